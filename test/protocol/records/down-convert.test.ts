import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codecs } from '../../../src/core/codecs.ts';
import {
  Compression,
  type CompressionId,
  DecompressionError,
} from '../../../src/core/compression.ts';
import { seededRandom } from '../../../src/core/random.ts';
import {
  type BatchInput,
  buildBatch,
  type RecordInput,
} from '../../../src/protocol/records/build.ts';
import { decodeBatches } from '../../../src/protocol/records/decode.ts';
import { type DownConversion, downConvert } from '../../../src/protocol/records/down-convert.ts';
import { RecordsDamagedError } from '../../../src/protocol/records/iterate.ts';
import { readVectors } from '../vectors.ts';

const limits = { codecs, openedBytesMax: 1024 * 1024 };
const everything: DownConversion = {
  magic: 1,
  offsetMin: 0,
  bytesMax: 1024 * 1024,
  oversized: 'given whole',
};

const unbounded = Number.POSITIVE_INFINITY;

function record(value: string | null, more: Partial<RecordInput> = {}): RecordInput {
  const bytes = value === null ? null : Buffer.from(value);
  return { key: null, value: bytes, timestamp: 1000, ...more };
}

function batchAt(
  baseOffset: number,
  records: readonly RecordInput[],
  more: Partial<BatchInput> = {},
): Buffer {
  return buildBatch({ baseOffset, records, ...more }, codecs);
}

function convert(batches: readonly Buffer[], conversion: Partial<DownConversion> = {}): Buffer {
  return downConvert(batches, { ...everything, ...conversion }, limits, unbounded).records;
}

/** Magic, offset, timestamp, key and value of each message, as the reader of old sets sees them. */
function messagesOf(set: Buffer): string[] {
  const { batches, validBytes } = decodeBatches(set, limits);
  assert.equal(validBytes, set.length, 'whole messages');
  return batches.flatMap(({ magic, records }) =>
    records.map(({ offset, timestamp, key, value }) =>
      [magic, offset, timestamp, String(key), String(value)].join(' '),
    ),
  );
}

test('records become messages with their offsets, times, keys and values', () => {
  const header = { key: 'h', value: Buffer.from('lost') };
  const batches = [
    batchAt(5, [
      record('a', { key: Buffer.from('k'), headers: [header] }),
      record(null, { key: Buffer.from('gone'), timestamp: 1001 }),
      record('', { key: Buffer.alloc(0), timestamp: -1 }),
    ]),
    // A gap, as after compaction.
    batchAt(20, [record('b'), record('c', { offsetDelta: 7 })]),
  ];
  assert.deepEqual(messagesOf(convert(batches)), [
    '1 5 1000 k a',
    '1 6 1001 gone null',
    '1 7 -1  ',
    '1 20 1000 null b',
    '1 27 1000 null c',
  ]);
  assert.deepEqual(messagesOf(convert(batches, { magic: 0 })), [
    '0 5 -1 k a',
    '0 6 -1 gone null',
    '0 7 -1  ',
    '0 20 -1 null b',
    '0 27 -1 null c',
  ]);
});

test('the bytes are those that Kafka writes', () => {
  const vectors = readVectors<{ name: string; hex: string }>('record-batches');
  const bytesOf = (name: string) =>
    Buffer.from(vectors.find((vector) => vector.name === name)!.hex, 'hex');
  for (const codec of ['none', 'gzip', 'snappy', 'lz4', 'zstd']) {
    for (const magic of [0, 1] as const) {
      const converted = convert([bytesOf(`v2-${codec}-basic`)], { magic });
      assert.deepEqual(converted, bytesOf(`v${magic}-none-basic`), `${codec} to ${magic}`);
    }
  }
});

test('every codec is opened, zstd too', () => {
  for (const compression of Object.values(Compression)) {
    const records = Array.from({ length: 50 }, (_, i) => record(`value ${i}`));
    const batch = batchAt(100, records, { compression: compression satisfies CompressionId });
    assert.deepEqual(
      messagesOf(convert([batch])),
      records.map(({ value }, i) => `1 ${100 + i} 1000 null ${value}`),
    );
  }
});

test('in a LogAppendTime batch messages have its time and say so', () => {
  const batch = batchAt(0, [record('a', { timestamp: 1 }), record('b', { timestamp: 2 })], {
    timestampType: 'LogAppendTime',
    maxTimestamp: 5000,
  });
  const { batches } = decodeBatches(convert([batch]), limits);
  assert.deepEqual(
    batches.map(({ timestampType, maxTimestamp }) => [timestampType, maxTimestamp]),
    [
      ['LogAppendTime', 5000],
      ['LogAppendTime', 5000],
    ],
  );
  // Magic 0 knows nothing of times.
  const old = decodeBatches(convert([batch], { magic: 0 }), limits);
  assert.equal(old.batches[0]?.timestampType, 'NoTimestampType');
});

test('control batches and what lies before the offset are left out', () => {
  const batches = [
    batchAt(0, [record('early'), record('a'), record('b')]),
    batchAt(3, [record('marker')], { isControl: true, isTransactional: true, producerId: 1 }),
    batchAt(4, [record('c')]),
  ];
  const values = (offsetMin: number) =>
    messagesOf(convert(batches, { offsetMin })).map((message) => message.split(' ').at(-1));
  assert.deepEqual(values(0), ['early', 'a', 'b', 'c']);
  assert.deepEqual(values(1), ['a', 'b', 'c']);
  assert.deepEqual(values(3), ['c']);
  assert.deepEqual(values(5), []);
  assert.equal(convert([]).length, 0);
});

test('messages are given whole, as many as fit', () => {
  const batches = [batchAt(0, [record('aaaa'), record('bbbb')]), batchAt(2, [record('cccc')])];
  const each = 34 + 4;
  for (let bytesMax = each; bytesMax <= 3 * each; bytesMax++) {
    const set = convert(batches, { bytesMax });
    assert.equal(set.length, Math.floor(bytesMax / each) * each);
    assert.equal(messagesOf(set).length, Math.floor(bytesMax / each));
  }
});

test('a first message that does not fit is given whole, cut or left out', () => {
  const batches = [batchAt(0, [record('a'.repeat(100)), record('b')])];
  const whole = convert(batches);
  for (const bytesMax of [133, 50, 1, 0, -1]) {
    const given = convert(batches, { bytesMax, oversized: 'given whole' });
    assert.deepEqual(messagesOf(given), [`1 0 1000 null ${'a'.repeat(100)}`]);
    const cut = convert(batches, { bytesMax, oversized: 'cut' });
    assert.deepEqual(cut, whole.subarray(0, Math.max(0, bytesMax)));
    assert.equal(convert(batches, { bytesMax, oversized: 'left out' }).length, 0);
  }
});

test('only as many batches are opened as may become so much together', () => {
  const batches = [0, 1, 2].map((offset) =>
    batchAt(offset, [record('x'.repeat(1000))], { compression: Compression.gzip }),
  );
  const all = downConvert(batches, everything, limits, unbounded);
  assert.equal(messagesOf(all.records).length, 3);
  const each = all.openedBytes / 3;
  for (const [bytesLeft, count] of [
    [0, 0],
    [each - 1, 0],
    [each, 1],
    [3 * each - 1, 2],
    [3 * each, 3],
  ] as const) {
    const some = downConvert(batches, everything, limits, bytesLeft);
    assert.equal(messagesOf(some.records).length, count);
    assert.equal(some.openedBytes, count * each);
  }
  // What may not even become so much by itself is damaged.
  const strict = { ...limits, openedBytesMax: 500 };
  assert.throws(() => downConvert(batches, everything, strict, unbounded), DecompressionError);
});

test('random batches come through whatever the limits', () => {
  const random = seededRandom(1);
  const below = (limit: number) => Math.floor(random.next() * limit);
  for (let round = 0; round < 200; round++) {
    const batches: Buffer[] = [];
    const expected: string[] = [];
    let offset = below(1000);
    for (let count = below(4); count >= 0; count--) {
      const records = Array.from({ length: 1 + below(20) }, () =>
        record('x'.repeat(below(30_000 / (1 + below(3000))))),
      );
      const compression = Object.values(Compression)[below(5)]!;
      batches.push(batchAt(offset, records, { compression }));
      records.forEach(({ value }, i) => {
        expected.push(`1 ${offset + i} 1000 null ${value}`);
      });
      offset += records.length + below(3);
    }
    const offsetMin = below(offset);
    const wanted = expected.filter((message) => Number(message.split(' ')[1]) >= offsetMin);
    assert.deepEqual(messagesOf(convert(batches, { offsetMin })), wanted);
    const limited = messagesOf(convert(batches, { offsetMin, bytesMax: below(50_000) }));
    assert.deepEqual(
      limited,
      wanted.slice(0, Math.max(Math.min(1, wanted.length), limited.length)),
    );
  }
});

test('a damaged batch throws', () => {
  const batch = batchAt(0, [record('a'), record('b')]);
  batch.writeInt32BE(3, 57);
  assert.throws(() => convert([batch]), RecordsDamagedError);
});
