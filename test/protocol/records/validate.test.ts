import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codecs } from '../../../src/core/codecs.ts';
import { Compression, type CompressionId } from '../../../src/core/compression.ts';
import { seededRandom } from '../../../src/core/random.ts';
import { ErrorCode } from '../../../src/protocol/error-codes.ts';
import * as batch from '../../../src/protocol/records/batch-header.ts';
import {
  type BatchInput,
  buildBatch,
  type RecordInput,
  renumberBatch,
} from '../../../src/protocol/records/build.ts';
import { decodeBatches } from '../../../src/protocol/records/decode.ts';
import {
  type ProduceRules,
  type RefusedBatch,
  type ValidBatch,
  validateProduce,
} from '../../../src/protocol/records/validate.ts';
import { readVectors } from '../vectors.ts';

const time = 1_700_000_000_000;
const rules: ProduceRules = {
  version: 13,
  topicPartition: 't-0',
  messageBytesMax: 1_048_588,
  openedBytesMax: 8 * 1024 * 1024,
  timestampType: 'CreateTime',
  timestampBeforeMaxMs: 2 ** 63,
  timestampAfterMaxMs: 3_600_000,
  compacted: false,
  nowMs: time + 1000,
};

interface CorruptVector {
  name: string;
  hex?: string;
  rule?: string;
  kafka: Record<string, string | { error: string; recordErrors?: { batchIndex: number }[] }>;
  kafkaError: { error: string; message: string; recordErrors?: { batchIndex: number }[] } | null;
}

const corrupt = readVectors<CorruptVector>('corrupt-batches');

function bytesOf(vector: CorruptVector): Buffer {
  if (vector.name !== 'too-large') return Buffer.from(vector.hex ?? '', 'hex');
  const value = Buffer.alloc(2_097_152);
  return buildBatch({ records: [{ key: Buffer.from('k'), value, timestamp: time }] }, codecs);
}

function valid(verdict: ValidBatch | RefusedBatch): ValidBatch {
  assert.ok(verdict.ok, verdict.ok ? '' : verdict.message);
  return verdict;
}

function refused(verdict: ValidBatch | RefusedBatch): RefusedBatch {
  assert.ok(!verdict.ok, 'was taken');
  return verdict;
}

function assertAgrees(verdict: ValidBatch | RefusedBatch, vector: CorruptVector): void {
  const { name, kafkaError } = vector;
  if (kafkaError === null) {
    assert.ok(verdict.ok, `${name}: ${verdict.ok ? '' : verdict.message}`);
    return;
  }
  const { errorCode, recordErrors } = refused(verdict);
  if (kafkaError.error === 'UNKNOWN_SERVER_ERROR') {
    // Kafka did not foresee these. The CRC is right, so sending them again would not help.
    assert.equal(errorCode, ErrorCode.INVALID_RECORD, name);
  } else {
    assert.equal(errorCode, ErrorCode[kafkaError.error as keyof typeof ErrorCode], name);
  }
  const indexes = (errors: readonly { batchIndex: number }[] = []) =>
    errors.map((error) => error.batchIndex);
  assert.deepEqual(indexes(recordErrors), indexes(kafkaError.recordErrors), name);
}

test('wrong batches are refused as Kafka refuses them', () => {
  assert.ok(corrupt.length >= 59);
  for (const vector of corrupt) {
    assertAgrees(validateProduce(bytesOf(vector), rules, codecs), vector);
    const padded = Buffer.concat([Buffer.alloc(7, 0xff), bytesOf(vector)]).subarray(7);
    assertAgrees(validateProduce(padded, rules, codecs), vector);
  }
});

test('request checks of version 3 agree too', () => {
  for (const vector of corrupt) {
    const said = vector.kafka['produceRequestV3'];
    if (said === undefined || typeof said === 'string') continue;
    if (said.error === 'UNKNOWN_SERVER_ERROR') continue;
    const verdict = refused(validateProduce(bytesOf(vector), { ...rules, version: 3 }, codecs));
    assert.equal(verdict.errorCode, ErrorCode[said.error as keyof typeof ErrorCode], vector.name);
  }
});

test('messages say what Kafka says, where its first objection is the same', () => {
  const same = corrupt.filter((vector) => {
    const verdict = validateProduce(bytesOf(vector), rules, codecs);
    return !verdict.ok && verdict.message === vector.kafkaError?.message;
  });
  assert.ok(same.length >= 25, `${same.length} are the same`);
});

function records(count: number, valueBytes = 20): RecordInput[] {
  return Array.from({ length: count }, (_, index) => ({
    key: Buffer.from(`key-${index % 7}`),
    value: Buffer.alloc(valueBytes, index),
    timestamp: time + ((index * 7) % 5),
    headers: index % 3 === 0 ? [{ key: 'h', value: Buffer.from('x') }] : [],
  }));
}

function build(input: Partial<BatchInput>): Buffer {
  return buildBatch({ records: records(10), ...input }, codecs);
}

test('the facts of a good batch, in every codec', () => {
  for (const compression of Object.values(Compression)) {
    const bytes = build({
      compression: compression as CompressionId,
      producerId: 77,
      producerEpoch: 3,
      baseSequence: 12,
      isTransactional: true,
    });
    const { opened, ...facts } = valid(validateProduce(bytes, rules, codecs));
    assert.deepEqual(facts, {
      ok: true,
      bytes: bytes.length,
      count: 10,
      attributes: compression | batch.BatchAttribute.transactional,
      isTransactional: true,
      producerId: 77,
      producerEpoch: 3,
      baseSequence: 12,
      baseTimestamp: time,
      maxTimestamp: time + 4,
      timestampsToMend: false,
      deltasToMend: false,
    });
    assert.equal(opened === null, compression === Compression.none);
    if (opened !== null) assert.ok(opened.equals(build({}).subarray(batch.batchHeaderBytes)));
  }
});

test('stray bytes behind the batch are not part of it', () => {
  const bytes = build({});
  const followed = Buffer.concat([bytes, Buffer.from([0, 0, 0, 0, 0])]);
  assert.equal(valid(validateProduce(followed, rules, codecs)).bytes, bytes.length);
  // A second batch that is not complete is nothing but stray bytes, too.
  const half = Buffer.concat([bytes, build({}).subarray(0, 80)]);
  assert.equal(valid(validateProduce(half, rules, codecs)).bytes, bytes.length);
});

test('null records are refused like none', () => {
  assert.equal(refused(validateProduce(null, rules, codecs)).errorCode, ErrorCode.INVALID_RECORD);
});

test('zstd needs version 7', () => {
  const bytes = build({ compression: Compression.zstd });
  const verdict = refused(validateProduce(bytes, { ...rules, version: 6 }, codecs));
  assert.equal(verdict.errorCode, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE);
  valid(validateProduce(bytes, { ...rules, version: 7 }, codecs));
});

test('max.message.bytes holds to the byte, and for the bytes on the wire', () => {
  for (const compression of [Compression.none, Compression.lz4]) {
    const bytes = build({ compression });
    const exact = { ...rules, messageBytesMax: bytes.length };
    valid(validateProduce(bytes, exact, codecs));
    const less = { ...rules, messageBytesMax: bytes.length - 1 };
    const verdict = refused(validateProduce(bytes, less, codecs));
    assert.equal(verdict.errorCode, ErrorCode.MESSAGE_TOO_LARGE);
  }
});

test('batches that decompress to too much are refused in every codec', () => {
  const bomb = records(1, 4 * 1024 * 1024);
  for (const compression of [1, 2, 3, 4] as const) {
    const bytes = build({ records: bomb, compression });
    const narrow = { ...rules, openedBytesMax: 1024 * 1024 };
    const verdict = refused(validateProduce(bytes, narrow, codecs));
    assert.equal(verdict.errorCode, ErrorCode.MESSAGE_TOO_LARGE);
    valid(validateProduce(bytes, rules, codecs));
  }
});

test('a topic that is compacted refuses records without a key, and says which', () => {
  const mixed = records(5).map((record, index) => ({
    ...record,
    key: index === 1 || index === 3 ? null : record.key,
  }));
  for (const compression of Object.values(Compression)) {
    const bytes = build({ records: mixed, compression: compression as CompressionId });
    valid(validateProduce(bytes, rules, codecs));
    const verdict = refused(validateProduce(bytes, { ...rules, compacted: true }, codecs));
    assert.equal(verdict.errorCode, ErrorCode.INVALID_RECORD);
    assert.deepEqual(
      verdict.recordErrors.map((error) => error.batchIndex),
      [1, 3],
    );
    assert.match(verdict.recordErrors[0]!.message, /without key in topic partition t-0/);
  }
});

test('timestamps have a range on both sides, ends included', () => {
  const bounded = { ...rules, timestampBeforeMaxMs: 5000, timestampAfterMaxMs: 3000 };
  const stamps = [-5001, -5000, 0, 3000, 3001].map((delta) => rules.nowMs + delta);
  const stamped = records(6).map((record, index) => ({
    ...record,
    timestamp: stamps[index] ?? -1,
  }));
  const bytes = build({ records: stamped });
  const verdict = refused(validateProduce(bytes, bounded, codecs));
  assert.equal(verdict.errorCode, ErrorCode.INVALID_TIMESTAMP);
  assert.deepEqual(
    verdict.recordErrors.map((error) => error.batchIndex),
    [0, 4],
  );
  assert.match(
    verdict.recordErrors[1]!.message,
    /Timestamp 1700000004001 of message with offset 4 .* \[1699999996000, 1700000004000\]/,
  );
  valid(validateProduce(build({ records: stamped.slice(1, 4) }), bounded, codecs));
  const appendTime = { ...bounded, timestampType: 'LogAppendTime' } as const;
  valid(validateProduce(bytes, appendTime, codecs));
});

test('a batch with a wrong time and a missing key answers for the time', () => {
  const both = records(2).map((record, index) =>
    index === 0 ? { ...record, key: null } : { ...record, timestamp: time * 3 },
  );
  const bytes = build({ records: both });
  const verdict = refused(validateProduce(bytes, { ...rules, compacted: true }, codecs));
  assert.equal(verdict.errorCode, ErrorCode.INVALID_TIMESTAMP);
  assert.equal(verdict.recordErrors.length, 2);
});

test('timestamps that a number cannot hold are out of every range', () => {
  for (const timestamp of [2 ** 62, -(2 ** 62), 2 ** 53, -(2 ** 53)]) {
    const bytes = build({ records: [{ key: null, value: null, timestamp }], baseTimestamp: 0 });
    const wide = { ...rules, timestampAfterMaxMs: 2 ** 63 };
    const verdict = refused(validateProduce(bytes, wide, codecs));
    assert.equal(verdict.errorCode, ErrorCode.INVALID_TIMESTAMP);
  }
});

test('errors of single records are bounded in number', () => {
  const many = records(3000).map((record) => ({ ...record, key: null }));
  const bytes = build({ records: many });
  const verdict = refused(validateProduce(bytes, { ...rules, compacted: true }, codecs));
  assert.equal(verdict.recordErrors.length, 1000);
  assert.match(verdict.message, /3000 record errors/);
});

test('a producer that claims LogAppendTime: mended, or refused where the broker sets it', () => {
  const bytes = build({ timestampType: 'LogAppendTime', maxTimestamp: time + 9 });
  const facts = valid(validateProduce(bytes, rules, codecs));
  assert.deepEqual([facts.maxTimestamp, facts.timestampsToMend], [time + 9, true]);
  batch.writeTimestamps(bytes, 0, 'CreateTime', facts.maxTimestamp);
  const mended = valid(validateProduce(bytes, rules, codecs));
  assert.deepEqual([mended.maxTimestamp, mended.timestampsToMend], [time + 4, true]);

  const claimed = build({ timestampType: 'LogAppendTime' });
  const appendTime = { ...rules, timestampType: 'LogAppendTime' } as const;
  const verdict = refused(validateProduce(claimed, appendTime, codecs));
  assert.equal(verdict.errorCode, ErrorCode.INVALID_TIMESTAMP);
  assert.equal(verdict.recordErrors.length, 10);
  const without = build({ timestampType: 'LogAppendTime', maxTimestamp: -1 });
  assert.equal(
    refused(validateProduce(without, rules, codecs)).errorCode,
    ErrorCode.INVALID_TIMESTAMP,
  );
});

test('a header with another maxTimestamp than its records is mended', () => {
  for (const maxTimestamp of [time - 5, time + 99, -1]) {
    const bytes = build({ maxTimestamp });
    const facts = valid(validateProduce(bytes, rules, codecs));
    assert.deepEqual([facts.maxTimestamp, facts.timestampsToMend], [time + 4, true]);
    batch.writeTimestamps(bytes, 0, 'CreateTime', facts.maxTimestamp);
    assert.equal(valid(validateProduce(bytes, rules, codecs)).timestampsToMend, false);
  }
  const unstamped = build({ records: [{ key: null, value: null, timestamp: -1 }] });
  const facts = valid(validateProduce(unstamped, rules, codecs));
  assert.deepEqual([facts.maxTimestamp, facts.timestampsToMend], [-1, false]);
});

test('offset deltas out of order are mended without compression, refused with it', () => {
  const odd = records(200).map((record, index) => ({ ...record, offsetDelta: index * 3 }));
  const input = { records: odd, lastOffsetDelta: 199 };
  const bytes = build(input);
  assert.equal(valid(validateProduce(bytes, rules, codecs)).deltasToMend, true);
  const mended = renumberBatch(bytes, 0);
  assert.deepEqual(mended, build({ records: records(200) }));
  assert.equal(valid(validateProduce(mended, rules, codecs)).deltasToMend, false);
  const packed = build({ ...input, compression: Compression.lz4 });
  assert.equal(refused(validateProduce(packed, rules, codecs)).errorCode, ErrorCode.INVALID_RECORD);
});

test('producer ids that a number cannot hold are refused', () => {
  const bytes = build({ producerId: 2 ** 60, producerEpoch: 0, baseSequence: 0 });
  assert.equal(refused(validateProduce(bytes, rules, codecs)).errorCode, ErrorCode.INVALID_RECORD);
  const negative = build({ producerId: -5, baseSequence: -1 });
  assert.equal(valid(validateProduce(negative, rules, codecs)).producerId, -1);
});

test('LZ4 with linked blocks is refused: Java consumers cannot read it', () => {
  const bytes = build({ compression: Compression.lz4 });
  // Clears the flag in the frame and mends its checksum, which is that of two bytes.
  bytes[batch.batchHeaderBytes + 4] = 0x40;
  bytes[batch.batchHeaderBytes + 6] = 0xc0;
  batch.writeCrc(bytes, 0);
  const verdict = refused(validateProduce(bytes, rules, codecs));
  assert.match(verdict.message, /BlockIndependence/);
});

test('every cut of a good batch is refused, whatever its CRC says', () => {
  for (const compression of Object.values(Compression)) {
    const bytes = build({ records: records(4), compression: compression as CompressionId });
    for (let length = 0; length < bytes.length; length++) {
      const cut = Buffer.from(bytes.subarray(0, length));
      refused(validateProduce(cut, rules, codecs));
      if (length < batch.batchHeaderBytes) continue;
      cut.writeInt32BE(length - batch.batchOverheadBytes, 8);
      refused(validateProduce(cut, rules, codecs));
      batch.writeCrc(cut, 0);
      const verdict = refused(validateProduce(cut, rules, codecs));
      assert.equal(verdict.errorCode, ErrorCode.INVALID_RECORD);
    }
  }
});

test('damage behind a right CRC never throws, and what is taken can be read', () => {
  const random = seededRandom(90);
  let taken = 0;
  for (let round = 0; round < 20_000; round++) {
    const compression = (round % 5) as CompressionId;
    const bytes = build({ records: records(1 + (round % 4)), compression });
    const changes = 1 + Math.floor(random.next() * 3);
    for (let change = 0; change < changes; change++) {
      // Records more often than the header, which has few ways to be right.
      const from = random.next() < 0.8 ? batch.batchHeaderBytes : 17;
      const at = from + Math.floor(random.next() * (bytes.length - from));
      bytes[at] = Math.floor(random.next() * 256);
    }
    if (random.next() < 0.95) batch.writeCrc(bytes, 0);
    const verdict = validateProduce(bytes, rules, codecs);
    if (!verdict.ok) continue;
    taken++;
    const limits = { codecs, openedBytesMax: rules.openedBytesMax };
    const { batches } = decodeBatches(bytes, limits);
    assert.equal(batches[0]!.records.length, verdict.count);
  }
  assert.ok(taken > 1000, `${taken} were taken`);
});
