/**
 * Random requests that make some sense: names of topics that are there, members that joined, real
 * record batches, and among them the values at the edges. They get further into the handlers than
 * random bytes do. The same seed gives the same values.
 */
import { codecs } from '../../src/core/codecs.ts';
import { Compression } from '../../src/core/compression.ts';
import type { Random } from '../../src/core/random.ts';
import { encode } from '../../src/protocol/codec.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import { consumerProtocolSubscription } from '../../src/protocol/schema/consumer-protocol-subscription.ts';
import type { Field, Fields, MessageTable, ScalarType } from '../../src/protocol/schema-types.ts';
import { hasField, isNullable, type Struct } from '../../src/protocol/table.ts';
import { goodPrefix } from './good-client.ts';

const int32Max = 2 ** 31 - 1;
const int32Min = -(2 ** 31);
const int64Max = 2n ** 63n - 1n;
const longestText = 'x'.repeat(0x7fff);

const oddTopics = ['', '.', '..', 'é', 'a'.repeat(249), 'a'.repeat(250), 'a b', '0', longestText];
const metadataTopics = ['__consumer_offsets', '__cluster_metadata'];
const configNames = [
  'retention.ms',
  'max.message.bytes',
  'compression.type',
  'message.timestamp.type',
  'message.max.bytes',
  'num.partitions',
  'cleanup.policy',
  'segment.bytes',
  'leader.replication.throttled.replicas',
];
const configValues = ['-1', '0', '1', '9223372036854775807', 'gzip', 'LogAppendTime', 'delete'];

/** What a text stands for, by its path; the first that fits. */
interface Texts {
  readonly path: RegExp;
  readonly usual: readonly string[];
  readonly odd: readonly string[];
}
const textsOfField: readonly Texts[] = [
  {
    path: /group(s|Id|sNames)?$|key$|coordinatorKeys/i,
    usual: ['g0', 'g0', 'g1'],
    odd: ['', 'é', longestText],
  },
  { path: /instance/i, usual: ['i0', 'i1'], odd: ['', longestText] },
  { path: /member/i, usual: [''], odd: ['m', longestText] },
  { path: /protocolType|types/i, usual: ['consumer'], odd: ['connect', 'classic', ''] },
  { path: /protocol/i, usual: ['range'], odd: ['roundrobin', ''] },
  {
    path: /configs.*\/name$|configurationKeys/,
    usual: configNames,
    odd: ['no.such.config', '', longestText],
  },
  {
    path: /configs.*\/value$/,
    usual: configValues,
    odd: ['', 'abc', '1e3', '99999999999999999999', longestText],
  },
  { path: /resourceName/, usual: ['t0', 't1', ''], odd: ['0', '1', '-', ...oddTopics] },
  {
    path: /topic|name/i,
    usual: ['t0', 't0', 't1', 't2', 't.3', 't_3'],
    odd: [...oddTopics, ...metadataTopics],
  },
];
const numbersOfField: readonly [RegExp, readonly number[]][] = [
  [/(numPartitions|count)$/i, [-1, 0, 1, 2, 3, 5, 10_001]],
  [/replicationFactor$/, [-1, 1, 1, 1, 2, 0]],
  [/partition|index/i, [0, 0, 1, 2, -1]],
  [/brokerIds/, [0, 0, 0, 1, -1]],
  [/(timeout|wait|retention).*ms$/i, [10_000, 10_000, 10_000, 100, 0, -1]],
  [/bytes/i, [0, -1, 1, 100, 1_000_000]],
  [/epoch|generation/i, [-1, 0, 1, 2]],
  [/type|operation|level|acks/i, [0, 1, 2, 3, 4, 32, -1]],
  [/offset/i, [-1, -2, 0, 1, 2, 5]],
  [/timestamp/i, [-6, -5, -4, -3, -2, -1, 0, 1000, 2_000_000_000_000]],
];

function isGood(value: unknown): boolean {
  return typeof value === 'string' && value.startsWith(goodPrefix);
}

/** Values from answers, which a request may quote; of each field the last few. */
const seenMax = 3;
type Quotable = string | number;

export class PlausibleValues {
  readonly #random: Random;
  readonly #seen = new Map<string, Quotable[]>();

  constructor(random: Random) {
    this.#random = random;
  }

  /** A value for the request in this version, which it can carry. */
  request(table: MessageTable, version: number): Struct {
    return this.#struct(table.fields, version, '');
  }

  /** Remembers ids and epochs from an answer, but for those of the client beside. */
  learn(answer: unknown): void {
    if (Array.isArray(answer)) for (const item of answer) this.learn(item);
    else if (typeof answer === 'object' && answer !== null && !Buffer.isBuffer(answer)) {
      const entries = Object.entries(answer);
      if (entries.some(([, value]) => isGood(value))) return;
      for (const [name, value] of entries) {
        const isQuotable = typeof value === 'string' || typeof value === 'number';
        if (isQuotable && /id$|epoch|generation/i.test(name)) this.#remember(name, value);
        else this.learn(value);
      }
    }
  }

  #remember(name: string, value: Quotable): void {
    const seen = this.#seen.get(name) ?? [];
    this.#seen.set(name, seen);
    if (seen.includes(value)) return;
    seen.push(value);
    if (seen.length > seenMax) seen.shift();
  }

  #struct(fields: Fields, version: number, path: string): Struct {
    const value: Struct = {};
    for (const [name, field] of Object.entries(fields)) {
      if (!hasField(field, version)) continue;
      value[name] = this.#field(field, version, `${path}/${name}`);
    }
    return value;
  }

  #field(field: Field, version: number, path: string): unknown {
    if (isNullable(field, version) && this.#chance(/instance/i.test(path) ? 50 : 20)) return null;
    if (field.default !== undefined && field.default !== null && this.#chance(20)) {
      return field.default;
    }
    if ('struct' in field) return this.#struct(field.struct, version, path);
    if (!('items' in field)) return this.#scalar(field.type, path);
    const { items } = field;
    const one = () =>
      typeof items === 'string' ? this.#scalar(items, path) : this.#struct(items, version, path);
    const values = Array.from({ length: this.#chance(3) ? 20 : this.#below(4) }, one);
    // The same once more: duplicates have rules of their own.
    if (values.length > 0 && this.#chance(15)) values.push(values[0]);
    return values;
  }

  #scalar(type: ScalarType, path: string): unknown {
    const name = path.slice(path.lastIndexOf('/') + 1);
    const seen = this.#seen.get(name);
    switch (type) {
      case 'bool':
        return this.#chance(50);
      case 'string':
        return this.#text(path, seen);
      case 'uuid':
        return seen !== undefined && this.#chance(70) ? this.#of(seen) : '0'.repeat(32);
      case 'bytes':
        return this.#bytes();
      case 'records':
        return this.#records();
      case 'float64':
        return this.#random.next();
      default:
        return this.#number(type, path, seen);
    }
  }

  #text(path: string, seen: readonly Quotable[] | undefined): unknown {
    if (seen !== undefined && this.#chance(60)) {
      const quoted = this.#of(seen);
      if (typeof quoted === 'string') return quoted;
    }
    const known = textsOfField.find((texts) => texts.path.test(path));
    if (known !== undefined && this.#chance(97)) {
      return this.#of(this.#chance(85) ? known.usual : known.odd);
    }
    return this.#of(['', 'x', 'client', 'é😀', '\u0000', longestText]);
  }

  #number(type: ScalarType, path: string, seen: readonly Quotable[] | undefined): unknown {
    if (this.#chance(4)) return this.#of(extremes[type] ?? [0]);
    if (seen !== undefined && this.#chance(60)) {
      const quoted = this.#of(seen);
      if (typeof quoted === 'number') return quoted;
    }
    const known = numbersOfField.find(([pattern]) => pattern.test(path));
    const value = known === undefined ? this.#below(5) - 1 : this.#of(known[1]);
    return fitted(value, type);
  }

  #bytes(): Buffer {
    if (this.#chance(50)) return this.#random.bytes(this.#below(20));
    const pieces = encode(consumerProtocolSubscription, this.#below(4), {
      topics: ['t0', 't1'],
      userData: null,
    });
    return this.#damaged(Buffer.concat(pieces));
  }

  #records(): Buffer {
    if (this.#chance(5)) return this.#random.bytes(this.#below(100));
    const isIdempotent = this.#chance(40);
    const batch = buildBatch(
      {
        records: Array.from({ length: 1 + this.#below(3) }, (_, i) => ({
          key: this.#chance(30) ? null : Buffer.from(`k${i}`),
          value: this.#chance(20) ? null : this.#random.bytes(this.#below(50)),
          timestamp: 1000 + i,
        })),
        compression: this.#of(Object.values(Compression)),
        isTransactional: this.#chance(5),
        isControl: this.#chance(5),
        ...(isIdempotent && {
          producerId: this.#below(3),
          producerEpoch: this.#below(2),
          baseSequence: this.#below(4) - 1,
        }),
      },
      codecs,
    );
    return this.#damaged(batch);
  }

  /** Mostly as it was; now and then with a wrong byte or cut short. */
  #damaged(bytes: Buffer): Buffer {
    if (bytes.length === 0 || this.#chance(75)) return bytes;
    if (this.#chance(30)) return bytes.subarray(0, this.#below(bytes.length));
    bytes[this.#below(bytes.length)] = this.#below(256);
    return bytes;
  }

  #below(limit: number): number {
    return Math.floor(this.#random.next() * limit);
  }

  #chance(percent: number): boolean {
    return this.#below(100) < percent;
  }

  #of<T>(values: readonly T[]): T {
    return values[this.#below(values.length)]!;
  }
}

const extremes: Partial<Record<ScalarType, readonly (number | bigint)[]>> = {
  int8: [127, -128],
  int16: [32_767, -32_768],
  uint16: [65_535],
  int32: [int32Max, int32Min],
  int64: [int64Max, -int64Max - 1n, Number.MAX_SAFE_INTEGER, 2 ** 53, int32Max],
};

/** Field names do not tell the width: what is too large becomes small. */
function fitted(value: number, type: ScalarType): number {
  if (type === 'int8') return (value << 24) >> 24;
  if (type === 'int16') return (value << 16) >> 16;
  if (type === 'uint16') return value & 0xffff;
  return type === 'int32' ? value | 0 : value;
}
