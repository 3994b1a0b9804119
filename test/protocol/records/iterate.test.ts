import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codecs } from '../../../src/core/codecs.ts';
import { Compression, type CompressionId } from '../../../src/core/compression.ts';
import * as batch from '../../../src/protocol/records/batch-header.ts';
import { type BatchInput, buildBatch } from '../../../src/protocol/records/build.ts';
import {
  ControlType,
  controlKey,
  endTransactionValue,
  readControlType,
  readCoordinatorEpoch,
} from '../../../src/protocol/records/control-record.ts';
import { openRecords, RecordCursor } from '../../../src/protocol/records/cursor.ts';
import {
  findByTimestamp,
  findMaxTimestamp,
  forEachRecord,
  RecordsDamagedError,
} from '../../../src/protocol/records/iterate.ts';

const limits = { codecs, openedBytesMax: 1 << 20 };
const times = [1000, 1005, 1003, 1010, 1010, 1007];
// Names may come twice, be empty or not ASCII; values may be null.
const headers = [
  { key: 'trace', value: Buffer.from([0, 255]) },
  { key: 'trace', value: null },
  { key: '', value: Buffer.alloc(0) },
  { key: 'schlüssel', value: Buffer.from('✓') },
];
const input: BatchInput = {
  baseOffset: 500,
  records: times.map((timestamp, index) => ({
    key: index === 2 ? null : Buffer.from(`k${index}`),
    value: index === 3 ? null : Buffer.from(`value ${index}`),
    timestamp,
    headers: index === 1 ? headers : [],
  })),
};

/** The batch behind 100 bytes of others, in each codec. */
function* placed(extra: Partial<BatchInput> = {}): Generator<Buffer> {
  for (const compression of Object.values(Compression)) {
    const bytes = buildBatch(
      { ...input, ...extra, compression: compression as CompressionId },
      codecs,
    );
    yield Buffer.concat([Buffer.alloc(100, 0xee), bytes, Buffer.alloc(10, 0xee)]);
  }
}

test('the first record at a timestamp or later is found', () => {
  const found = (buffer: Buffer, timestamp: number, offsetMin = 0) => {
    const record = findByTimestamp(buffer, 100, timestamp, offsetMin, limits);
    return record === null ? null : [record.offset, record.timestamp];
  };
  for (const buffer of placed()) {
    assert.deepEqual(found(buffer, 0), [500, 1000]);
    assert.deepEqual(found(buffer, 1000), [500, 1000]);
    assert.deepEqual(found(buffer, 1001), [501, 1005]);
    assert.deepEqual(found(buffer, 1006), [503, 1010]);
    assert.deepEqual(found(buffer, 1010), [503, 1010]);
    assert.deepEqual(found(buffer, 1010, 504), [504, 1010]);
    assert.deepEqual(found(buffer, 1000, 505), [505, 1007]);
    assert.equal(found(buffer, 1000, 506), null);
    assert.equal(found(buffer, 1011), null);
  }
});

test('a batch whose maxTimestamp is too early is not even opened', () => {
  const bytes = buildBatch({ ...input, compression: Compression.zstd }, codecs);
  bytes.fill(0, batch.batchHeaderBytes);
  assert.equal(findByTimestamp(bytes, 0, 1011, 0, limits), null);
});

test('the first record with the highest timestamp is found', () => {
  for (const buffer of placed()) {
    assert.deepEqual(findMaxTimestamp(buffer, 100, limits), { offset: 503, timestamp: 1010 });
  }
  const empty = buildBatch({ records: [], lastOffsetDelta: 4, maxTimestamp: 7 }, codecs);
  assert.equal(findMaxTimestamp(empty, 0, limits), null);
});

test('all records of a LogAppendTime batch have its time', () => {
  for (const buffer of placed({ timestampType: 'LogAppendTime', maxTimestamp: 9999 })) {
    assert.deepEqual(findMaxTimestamp(buffer, 100, limits), { offset: 500, timestamp: 9999 });
    assert.deepEqual(findByTimestamp(buffer, 100, 2000, 502, limits), {
      offset: 502,
      timestamp: 9999,
    });
  }
});

test('a cursor gives keys, values and headers, and may read headers at any time', () => {
  for (const buffer of placed()) {
    const seen: unknown[] = [];
    forEachRecord(buffer, 100, limits, (record) => {
      assert.deepEqual(record.headers(), record.index === 1 ? headers : []);
      assert.equal(record.keyLatin1(), record.key()?.toString('latin1') ?? null);
      seen.push([record.offset, record.key()?.toString(), record.value()?.toString()]);
    });
    assert.deepEqual(seen, [
      [500, 'k0', 'value 0'],
      [501, 'k1', 'value 1'],
      [502, undefined, 'value 2'],
      [503, 'k3', undefined],
      [504, 'k4', 'value 4'],
      [505, 'k5', 'value 5'],
    ]);
  }
});

test('a visitor can end the walk', () => {
  const bytes = buildBatch(input, codecs);
  let count = 0;
  forEachRecord(bytes, 0, limits, () => ++count < 3);
  assert.equal(count, 3);
});

test('a visitor may walk another batch meanwhile', () => {
  const bytes = buildBatch(input, codecs);
  let count = 0;
  forEachRecord(bytes, 0, limits, () => {
    forEachRecord(bytes, 0, limits, () => void count++);
    return true;
  });
  assert.equal(count, times.length ** 2);
});

test('keys that are not text stay apart as latin1 strings', () => {
  const keys = [
    Buffer.from([0xc3, 0x28]),
    Buffer.from([0xff]),
    Buffer.from([0xfe]),
    Buffer.alloc(0),
  ];
  const bytes = buildBatch(
    { records: keys.map((key) => ({ key, value: null, timestamp: 1 })) },
    codecs,
  );
  const seen = new Set<string | null>();
  forEachRecord(bytes, 0, limits, (record) => void seen.add(record.keyLatin1()));
  assert.equal(seen.size, keys.length);
});

test('damaged records throw after those that are sound', () => {
  const bytes = buildBatch(input, codecs);
  const { length } = bytes;
  bytes[length - 1] = 2;
  let count = 0;
  assert.throws(() => forEachRecord(bytes, 0, limits, () => void count++), RecordsDamagedError);
  assert.equal(count, times.length - 1);
  assert.throws(() => findByTimestamp(bytes, 0, 1010, 505, limits), RecordsDamagedError);
});

test('a cursor serves batch after batch and lets go of their bytes', () => {
  const cursor = new RecordCursor();
  for (const buffer of placed()) {
    const opened = openRecords(buffer, 100, codecs, 1 << 20);
    cursor.reset(buffer, 100, opened);
    let count = 0;
    while (cursor.next()) assert.equal(cursor.index, count++);
    assert.equal(count, times.length);
    assert.equal(cursor.next(), false);
    assert.equal(cursor.fault, null);
  }
  cursor.release();
  assert.equal(cursor.bytes.length, 0);
});

test('base offset and leader epoch are set without touching the CRC', () => {
  const bytes = buildBatch(input, codecs);
  const crc = batch.readCrc(bytes, 0);
  for (const offset of [0, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1]) {
    batch.writeBaseOffset(bytes, 0, offset);
    assert.equal(batch.readBaseOffset(bytes, 0), offset);
    assert.equal(batch.readLastOffset(bytes, 0), offset + times.length - 1);
  }
  for (const epoch of [-1, 0, 5, 2 ** 31 - 1]) {
    batch.writeLeaderEpoch(bytes, 0, epoch);
    assert.equal(batch.readLeaderEpoch(bytes, 0), epoch);
  }
  assert.equal(batch.readCrc(bytes, 0), crc);
  assert.equal(batch.computeCrc(bytes, 0), crc);
});

test('LogAppendTime sets the type, the time and the CRC, and nothing else', () => {
  for (const buffer of placed({ isTransactional: true })) {
    const before = Buffer.from(buffer);
    batch.writeTimestamps(buffer, 100, 'LogAppendTime', 1_800_000_000_000);
    assert.equal(batch.readTimestampType(buffer, 100), 'LogAppendTime');
    assert.equal(batch.readMaxTimestamp(buffer, 100), 1_800_000_000_000);
    assert.equal(batch.readCrc(buffer, 100), batch.computeCrc(buffer, 100));
    assert.notEqual(batch.readCrc(buffer, 100), batch.readCrc(before, 100));
    batch.writeTimestamps(buffer, 100, 'CreateTime', 1010);
    assert.deepEqual(buffer, before);
  }
});

test('64-bit fields beyond 2^53 are the nearest double, and saturate when written', () => {
  const bytes = buildBatch(input, codecs);
  bytes.writeBigInt64BE(2n ** 63n - 1n, 0);
  assert.equal(batch.readBaseOffset(bytes, 0), 2 ** 63);
  batch.writeBaseOffset(bytes, 0, 2 ** 63);
  assert.equal(bytes.readBigInt64BE(0), 2n ** 63n - 1n);
  batch.writeBaseOffset(bytes, 0, -(2 ** 70));
  assert.equal(bytes.readBigInt64BE(0), -(2n ** 63n));
  for (const exact of [-1, -(2 ** 32), 2 ** 31, -(2 ** 53) + 1, 2 ** 53 - 1]) {
    batch.writeBaseOffset(bytes, 0, exact);
    assert.equal(bytes.readBigInt64BE(0), BigInt(exact));
    assert.equal(batch.readBaseOffset(bytes, 0), exact);
  }
});

test('sequences go from the largest int32 on to 0', () => {
  assert.equal(batch.advanceSequence(5, 3), 8);
  assert.equal(batch.advanceSequence(2 ** 31 - 1, 0), 2 ** 31 - 1);
  assert.equal(batch.advanceSequence(2 ** 31 - 1, 1), 0);
  assert.equal(batch.advanceSequence(2 ** 31 - 2, 4), 2);
});

test('control records are written as they are read, and others are none', () => {
  assert.equal(readControlType(controlKey(ControlType.commit)), ControlType.commit);
  assert.equal(readControlType(controlKey(ControlType.abort)), ControlType.abort);
  assert.equal(readCoordinatorEpoch(endTransactionValue(70_000)), 70_000);
  for (const bytes of [null, Buffer.alloc(3), Buffer.from([0xff, 0xff, 0, 0])]) {
    assert.equal(readControlType(bytes), null);
    assert.equal(readCoordinatorEpoch(bytes), null);
  }
});
