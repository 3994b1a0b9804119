/** Record batches that are wrong, hostile or too large are refused, and nothing else happens. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { constants, deflateRawSync, gzipSync } from 'node:zlib';
import { codecs } from '../../src/core/codecs.ts';
import { Compression, type CompressionId } from '../../src/core/compression.ts';
import { xxhash32 } from '../../src/core/xxhash32.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import * as batch from '../../src/protocol/records/batch-header.ts';
import {
  type ProduceRequestInput,
  produceRequest,
  produceResponse,
} from '../../src/protocol/schema/00-produce.ts';
import { readVectors } from '../protocol/vectors.ts';
import { startWorld } from './bad-input-world.ts';
import { batchOf, fetchFrom, produceTo, recordsOf } from './records.ts';

const mib = 1024 * 1024;
const topic = 'orders';

/** As Kafka judges them in Produce version 13; null: it takes them. */
interface CorruptVector {
  readonly name: string;
  readonly hex?: string;
  readonly kafkaError: { readonly error: string } | null;
}

/** What Kafka does not foresee (UNKNOWN_SERVER_ERROR), or takes though it cannot be read. */
const judgedOtherwise = new Map<string, readonly ErrorCode[]>([
  ['transactional-without-producer-id', [ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_RECORD]],
]);

test('each corrupt batch gets the error that Kafka gives, and changes nothing', async (t) => {
  const world = await startWorld(t);
  // The vectors have timestamps around 1700000000000.
  await world.node.createTopic(topic, 1, { 'message.timestamp.before.max.ms': '1000000000000' });
  const client = await world.node.connect();
  let end = 0;
  for (const { name, hex, kafkaError } of readVectors<CorruptVector>('corrupt-batches')) {
    if (hex === undefined) continue;
    const records = Buffer.from(hex, 'hex');
    const { errorCode, baseOffset } = await produceTo(client, { topic, records });
    if (kafkaError === null && !judgedOtherwise.has(name)) {
      assert.deepEqual([name, errorCode, baseOffset], [name, ErrorCode.NONE, end]);
      end += batch.readRecordCount(records, 0);
      continue;
    }
    const foreseen =
      kafkaError === null || kafkaError.error === 'UNKNOWN_SERVER_ERROR'
        ? [ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE]
        : [ErrorCode[kafkaError.error as keyof typeof ErrorCode]];
    const expected = judgedOtherwise.get(name) ?? foreseen;
    assert.ok(expected.includes(errorCode as ErrorCode), `${name}: ${errorCode}`);
    assert.equal(baseOffset, -1, name);
  }
  const { responses } = await fetchFrom(client, [{ topic, offset: 0, bytesMax: mib }]);
  const [partition] = responses[0]!.partitions;
  assert.equal(partition?.highWatermark, end);
  assert.equal(recordsOf(partition.records).length, end);
  await world.finish();
});

test('what only a broker or a transaction may write is refused', async (t) => {
  const world = await startWorld(t);
  await world.node.createTopic(topic);
  const client = await world.node.connect();
  const producer = { producerId: 7, producerEpoch: 0 };
  for (const [what, records, expected] of [
    ['control batch', batchOf(['a'], { isControl: true }), ErrorCode.INVALID_RECORD],
    [
      'control batch in a transaction',
      batchOf(['a'], { ...producer, baseSequence: 0, isControl: true, isTransactional: true }),
      ErrorCode.INVALID_RECORD,
    ],
    ['producer id without a sequence', batchOf(['a'], producer), ErrorCode.INVALID_RECORD],
  ] as const) {
    const { errorCode } = await produceTo(client, { topic, records });
    assert.equal(errorCode, expected, what);
  }
  const inNoTransaction = batchOf(['a'], { ...producer, baseSequence: 0, isTransactional: true });
  const { errorCode } = await produceTo(client, { topic, records: inNoTransaction });
  assert.notEqual(errorCode, ErrorCode.NONE, 'a transactional batch outside of a transaction');
  await world.finish();
});

test('a batch beyond max.message.bytes is refused, one of that size is stored', async (t) => {
  const world = await startWorld(t);
  const exact = batchOf(['x'.repeat(5000)]);
  await world.node.createTopic(topic, 1, { 'max.message.bytes': String(exact.length) });
  const client = await world.node.connect();
  const larger = batchOf(['x'.repeat(5001)]);
  const refused = await produceTo(client, { topic, records: larger });
  assert.equal(refused.errorCode, ErrorCode.MESSAGE_TOO_LARGE);
  const stored = await produceTo(client, { topic, records: exact });
  assert.deepEqual([stored.errorCode, stored.baseOffset], [ErrorCode.NONE, 0]);
  // A record of 50 MiB is refused as easily.
  const huge = batchOf(['x'.repeat(50 * mib)]);
  const { errorCode } = await produceTo(client, { topic, records: huge });
  assert.equal(errorCode, ErrorCode.MESSAGE_TOO_LARGE);
  await world.finish();
});

test('a gigabyte in a small batch is refused in every codec, without the memory', async (t) => {
  const world = await startWorld(t);
  await world.node.createTopic(topic, 1, { 'max.message.bytes': String(16 * mib) });
  const client = await world.node.connect();
  const bombs: readonly [string, CompressionId, Buffer][] = [
    ['gzip', Compression.gzip, gzipBomb()],
    ['gzip in members', Compression.gzip, gzipMembersBomb()],
    ['lz4', Compression.lz4, lz4Bomb()],
    ['zstd', Compression.zstd, zstdBomb()],
    ['snappy', Compression.snappy, snappyBomb()],
  ];
  const rssBefore = process.memoryUsage().rss;
  for (const [what, compression, compressed] of bombs) {
    const records = bombBatch(compression, compressed);
    const startMs = performance.now();
    const { errorCode } = await produceTo(client, { topic, records });
    const elapsedMs = performance.now() - startMs;
    const isRefused =
      errorCode === ErrorCode.MESSAGE_TOO_LARGE || errorCode === ErrorCode.INVALID_RECORD;
    assert.ok(isRefused, `${what}: ${errorCode}`);
    assert.ok(elapsedMs < 3000, `${what} took ${elapsedMs} ms`);
  }
  const grownBytes = process.memoryUsage().rss - rssBefore;
  assert.ok(grownBytes < 400 * mib, `${grownBytes / mib} MiB more`);
  await world.finish();
});

test('many partitions, the same one again and again, and none at all', async (t) => {
  const world = await startWorld(t);
  await world.node.createTopic(topic);
  const client = await world.node.connect();
  const produce = (topicData: ProduceRequestInput['topicData']) =>
    client.ask(produceRequest, produceResponse, 9, { acks: -1, timeoutMs: -1, topicData });
  assert.deepEqual((await produce([])).responses, []);
  const empty = await produce([{ name: topic, partitionData: [] }]);
  assert.deepEqual(empty.responses[0]?.partitionResponses, []);
  const index = 0;
  const partitionData = Array.from({ length: 5000 }, (_, i) => ({
    index: i % 2 === 0 ? index : i,
    records: batchOf([`v${i}`]),
  }));
  const { responses } = await produce([{ name: topic, partitionData }]);
  const stored = responses[0]!.partitionResponses.filter(({ errorCode }) => errorCode === 0);
  assert.deepEqual(
    stored.map(({ baseOffset }) => baseOffset),
    Array.from({ length: 2500 }, (_, i) => i),
  );
  await world.finish();
});

/** Where they stand in a batch (batch-header.ts has the grammar). */
const lengthAt = 8;
const attributesAt = 21;

/** A batch around data that claims to be compressed records; header and CRC are right. */
function bombBatch(compression: CompressionId, compressed: Buffer): Buffer {
  const header = batchOf(['a']).subarray(0, batch.batchHeaderBytes);
  const bomb = Buffer.concat([header, compressed]);
  bomb.writeInt32BE(bomb.length - batch.batchOverheadBytes, lengthAt);
  bomb.writeInt16BE(compression, attributesAt);
  batch.writeCrc(bomb, 0);
  return bomb;
}

const bombBytes = 1024 * mib;

/** One member: a deflate stream of zeros, repeated before its end. */
function gzipBomb(): Buffer {
  const head = gzipSync('').subarray(0, 10);
  const zeros = deflateRawSync(Buffer.alloc(8 * mib), { finishFlush: constants.Z_FULL_FLUSH });
  return Buffer.concat([head, ...Array<Buffer>(bombBytes / (8 * mib)).fill(zeros)]);
}

function gzipMembersBomb(): Buffer {
  const member = gzipSync(Buffer.alloc(8 * mib));
  return Buffer.concat(Array<Buffer>(bombBytes / (8 * mib)).fill(member));
}

/** Blocks of 4 MiB, each one byte and a match that repeats it. */
function lz4Bomb(): Buffer {
  const descriptor = Buffer.from([0x60, 0x70]);
  const blockBytes = 4 * mib;
  const matchBytes = blockBytes - 1 - 5;
  const lengthBytes = Math.floor((matchBytes - 4 - 15) / 255);
  const block = Buffer.concat([
    Buffer.from([0x1f, 0x00, 0x01, 0x00]),
    Buffer.alloc(lengthBytes, 0xff),
    Buffer.from([(matchBytes - 4 - 15) % 255, 0x50]),
    Buffer.alloc(5),
  ]);
  const size = Buffer.alloc(4);
  size.writeUInt32LE(block.length);
  const blocks = Array<Buffer>(bombBytes / blockBytes).fill(Buffer.concat([size, block]));
  const checksum = Buffer.from([(xxhash32(descriptor) >>> 8) & 0xff]);
  const magic = Buffer.from('04224d18', 'hex');
  return Buffer.concat([magic, descriptor, checksum, ...blocks, Buffer.alloc(4)]);
}

/** Run-length blocks of 128 KiB: four bytes each, 32 KiB in all. */
function zstdBomb(): Buffer {
  const blockBytes = 128 * 1024;
  const count = bombBytes / blockBytes;
  const head = Buffer.from('28b52ffd0058', 'hex');
  const blocks = Buffer.alloc(4 * count);
  for (let i = 0; i < count; i++) {
    const isLast = i === count - 1 ? 1 : 0;
    blocks.writeUIntLE((blockBytes << 3) | (1 << 1) | isLast, 4 * i, 3);
  }
  return Buffer.concat([head, blocks]);
}

/** Snappy cannot hold so much in so little: a block that only says so. */
function snappyBomb(): Buffer {
  return Buffer.concat([Buffer.from('8080808004', 'hex'), Buffer.alloc(1024)]);
}

test('the bombs are what they claim to be', () => {
  for (const [codec, bomb] of [
    [codecs.gzip, gzipBomb()],
    [codecs.gzip, gzipMembersBomb()],
    [codecs.lz4, lz4Bomb()],
    [codecs.zstd, zstdBomb()],
    [codecs.snappy, snappyBomb()],
  ] as const) {
    assert.throws(() => codec.decompress(bomb, mib), /more than 1048576 bytes/);
  }
});
