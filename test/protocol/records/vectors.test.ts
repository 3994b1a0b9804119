import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codecs } from '../../../src/core/codecs.ts';
import { Compression, type CompressionId } from '../../../src/core/compression.ts';
import { crc32, crc32c, portableChecksums } from '../../../src/core/crc32c.ts';
import { seededRandom } from '../../../src/core/random.ts';
import * as batch from '../../../src/protocol/records/batch-header.ts';
import {
  buildBatch,
  recompressBatch,
  targetCompression,
} from '../../../src/protocol/records/build.ts';
import {
  readControlType,
  readCoordinatorEpoch,
} from '../../../src/protocol/records/control-record.ts';
import { openRecords, RecordCursor } from '../../../src/protocol/records/cursor.ts';
import { decodeBatches } from '../../../src/protocol/records/decode.ts';
import type { DecodedBatch } from '../../../src/protocol/records/decoded-batch.ts';
import { forEachRecord, RecordsDamagedError } from '../../../src/protocol/records/iterate.ts';
import {
  sizeOfVarint,
  sizeOfVarlong,
  writeVarint,
  writeVarlong,
} from '../../../src/protocol/records/varints.ts';
import { type PrimitiveVector, readVectors } from '../vectors.ts';

interface RecordVector {
  offset: number | string;
  timestamp: number | string;
  sequence?: number;
  key: string | null;
  value: string | null;
  headers?: { key: string; value: string | null }[];
  control?: { type: string; coordinatorEpoch: number };
}

interface BatchVector {
  baseOffset: number | string;
  lastOffset: number | string;
  sizeInBytes: number;
  magic: number;
  compression: string;
  timestampType: string;
  batchLength?: number;
  partitionLeaderEpoch?: number;
  crc: number;
  attributes?: number;
  lastOffsetDelta?: number;
  baseTimestamp?: number;
  maxTimestamp: number | string;
  producerId?: number | string;
  producerEpoch?: number;
  baseSequence?: number;
  lastSequence?: number;
  isTransactional?: boolean;
  isControlBatch?: boolean;
  deleteHorizonMs?: number;
  count?: number;
  records: RecordVector[];
}

interface BatchesVector {
  name: string;
  hex: string;
  decoded: { validBytes: number; batches: BatchVector[] };
}

const limits = { codecs, openedBytesMax: 1 << 20 };
const vectors = readVectors<BatchesVector>('record-batches');

function base64(bytes: Buffer | null): string | null {
  return bytes === null ? null : bytes.toString('base64');
}

/** A decoded batch in the vectors' form. 64-bit values are compared as doubles. */
function toVector(decoded: DecodedBatch): unknown {
  return {
    ...decoded,
    records: decoded.records.map(({ key, value, headers, sequence, ...record }) => ({
      ...record,
      key: base64(key),
      value: base64(value),
      ...(decoded.magic === 2 && {
        sequence,
        headers: headers.map((header) => ({ key: header.key, value: base64(header.value) })),
      }),
    })),
  };
}

function expected(vector: BatchVector): unknown {
  return {
    magic: vector.magic,
    compression: vector.compression,
    timestampType: vector.timestampType,
    baseOffset: Number(vector.baseOffset),
    lastOffset: Number(vector.lastOffset),
    sizeInBytes: vector.sizeInBytes,
    crc: vector.crc,
    maxTimestamp: Number(vector.maxTimestamp),
    records: vector.records.map(({ control: _, ...record }) => ({
      ...record,
      offset: Number(record.offset),
      timestamp: Number(record.timestamp),
    })),
  };
}

test('every batch and message set of the vectors is decoded to its values', () => {
  assert.ok(vectors.length >= 87);
  for (const vector of vectors) {
    const bytes = Buffer.from(vector.hex, 'hex');
    const decoded = decodeBatches(bytes, limits);
    assert.equal(decoded.validBytes, vector.decoded.validBytes, vector.name);
    assert.deepEqual(
      decoded.batches.map(toVector),
      vector.decoded.batches.map(expected),
      vector.name,
    );
  }
});

/** Each batch of magic 2 with where it stands in its vector's bytes. */
function* batches(): Generator<{ name: string; bytes: Buffer; at: number; vector: BatchVector }> {
  for (const { name, hex, decoded } of vectors) {
    // A byte offset that is not zero, and bytes of others around.
    const bytes = Buffer.from(`ffffff${hex}ffff`, 'hex').subarray(3, -2);
    let at = 0;
    for (const vector of decoded.batches) {
      if (vector.magic === 2) yield { name, bytes, at, vector };
      at += vector.sizeInBytes;
    }
  }
}

test('every field of a header is read where it stands', () => {
  for (const { name, bytes, at, vector } of batches()) {
    const read = {
      baseOffset: batch.readBaseOffset(bytes, at),
      lastOffset: batch.readLastOffset(bytes, at),
      sizeInBytes: batch.readBatchBytes(bytes, at),
      magic: batch.readMagic(bytes, at),
      timestampType: batch.readTimestampType(bytes, at),
      batchLength: batch.readBatchLength(bytes, at),
      partitionLeaderEpoch: batch.readLeaderEpoch(bytes, at),
      crc: batch.readCrc(bytes, at),
      attributes: batch.readAttributes(bytes, at),
      lastOffsetDelta: batch.readLastOffsetDelta(bytes, at),
      baseTimestamp: batch.readBaseTimestamp(bytes, at),
      maxTimestamp: batch.readMaxTimestamp(bytes, at),
      producerId: batch.readProducerId(bytes, at),
      producerEpoch: batch.readProducerEpoch(bytes, at),
      baseSequence: batch.readBaseSequence(bytes, at),
      lastSequence: batch.readLastSequence(bytes, at),
      isTransactional: batch.isTransactional(bytes, at),
      isControlBatch: batch.isControl(bytes, at),
      count: batch.readRecordCount(bytes, at),
    };
    const { records: _, compression, deleteHorizonMs, ...header } = vector;
    const numbers = { ...header } as Record<string, unknown>;
    for (const field of ['baseOffset', 'lastOffset', 'maxTimestamp', 'producerId'] as const) {
      numbers[field] = Number(header[field]);
    }
    assert.deepEqual(read, numbers, name);
    const bits = batch.readCompressionBits(bytes, at);
    assert.equal(bits, Compression[compression as keyof typeof Compression], name);
    assert.equal(batch.computeCrc(bytes, at), vector.crc, name);
    if (deleteHorizonMs !== undefined) {
      assert.ok((read.attributes & batch.BatchAttribute.deleteHorizon) !== 0);
      assert.equal(read.baseTimestamp, deleteHorizonMs);
    }
  }
});

function bytesOf(text: string | null): Buffer | null {
  return text === null ? null : Buffer.from(text, 'base64');
}

function rebuild(vector: BatchVector): Buffer {
  return buildBatch(
    {
      baseOffset: Number(vector.baseOffset),
      leaderEpoch: vector.partitionLeaderEpoch!,
      compression: Compression[vector.compression as keyof typeof Compression],
      timestampType: vector.timestampType as batch.TimestampType,
      baseTimestamp: vector.baseTimestamp!,
      maxTimestamp: Number(vector.maxTimestamp),
      lastOffsetDelta: vector.lastOffsetDelta!,
      producerId: Number(vector.producerId),
      producerEpoch: vector.producerEpoch!,
      baseSequence: vector.baseSequence!,
      isTransactional: vector.isTransactional!,
      isControl: vector.isControlBatch!,
      ...(vector.deleteHorizonMs !== undefined && { deleteHorizonMs: vector.deleteHorizonMs }),
      records: vector.records.map((record) => ({
        key: bytesOf(record.key),
        value: bytesOf(record.value),
        timestamp: Number(record.timestamp),
        offsetDelta: Number(BigInt(record.offset) - BigInt(vector.baseOffset)),
        headers: record.headers!.map(({ key, value }) => ({ key, value: bytesOf(value) })),
      })),
    },
    codecs,
  );
}

test('batches are rebuilt from their values: to the byte, or once opened', () => {
  for (const { name, bytes, at, vector } of batches()) {
    // The records of a LogAppendTime batch have times of their own that nobody sees.
    if (vector.timestampType === 'LogAppendTime') continue;
    const original = bytes.subarray(at, at + vector.sizeInBytes);
    const rebuilt = rebuild(vector);
    if (!Number.isSafeInteger(Number(vector.baseOffset))) {
      // A number cannot hold this base offset; it lies outside of the CRC.
      assert.deepEqual(rebuilt.subarray(8), original.subarray(8), name);
    } else if (vector.compression === 'none') {
      assert.deepEqual(rebuilt, original, name);
    } else {
      const opened = openRecords(rebuilt, 0, codecs, 1 << 20);
      assert.deepEqual(opened, openRecords(bytes, at, codecs, 1 << 20), name);
      assert.deepEqual(rebuilt.subarray(21, 61), original.subarray(21, 61), name);
      assert.equal(batch.readCrc(rebuilt, 0), batch.computeCrc(rebuilt, 0));
    }
  }
});

test('a batch goes from any codec to any other with the same records and header', () => {
  const ids = Object.values(Compression);
  for (const { name, bytes, at, vector } of batches()) {
    if (vector.count === 0) continue;
    const opened = openRecords(bytes, at, codecs, 1 << 20);
    const before = bytes.subarray(at, at + vector.sizeInBytes);
    const plain = opened ?? before.subarray(batch.batchHeaderBytes);
    for (const id of ids) {
      const after = recompressBatch(bytes, at, opened, id as CompressionId, codecs);
      assert.equal(batch.readCompressionBits(after, 0), id);
      assert.equal(batch.readCrc(after, 0), batch.computeCrc(after, 0));
      assert.equal(batch.readBatchBytes(after, 0), after.length);
      assert.equal(batch.readAttributes(after, 0) & ~7, vector.attributes! & ~7);
      assert.deepEqual(after.subarray(23, 61), before.subarray(23, 61), name);
      const again = openRecords(after, 0, codecs, 1 << 20) ?? after.subarray(61);
      assert.deepEqual(again, plain, name);
    }
  }
});

test('compression.type names the codec of what is stored', () => {
  assert.equal(targetCompression('producer', Compression.snappy), Compression.snappy);
  assert.equal(targetCompression('uncompressed', Compression.snappy), Compression.none);
  assert.equal(targetCompression('zstd', Compression.snappy), Compression.zstd);
});

test('control records say what they end', () => {
  const types = ['ABORT', 'COMMIT'];
  let count = 0;
  for (const { bytes, at, vector } of batches()) {
    let index = 0;
    forEachRecord(bytes, at, limits, (record) => {
      const control = vector.records[index++]!.control;
      if (control === undefined) return;
      count++;
      assert.equal(types[readControlType(record.key())!], control.type);
      assert.equal(readCoordinatorEpoch(record.value()), control.coordinatorEpoch);
    });
    assert.equal(index, vector.count);
  }
  assert.ok(count >= 3);
});

test('input that is cut short anywhere ends at a batch or is called damaged', () => {
  for (const vector of vectors) {
    if (vector.hex.length > 1000) continue;
    const bytes = Buffer.from(vector.hex, 'hex');
    for (let length = 0; length < bytes.length; length++) {
      const { validBytes } = decodeBatches(bytes.subarray(0, length), limits);
      assert.ok(validBytes <= length && validBytes <= vector.decoded.validBytes);
    }
  }
});

test('damage in legacy message sets is found by their CRC', () => {
  const random = seededRandom(5);
  for (const vector of vectors) {
    if (vector.decoded.batches.some((each) => each.magic === 2)) continue;
    for (let round = 0; round < 30; round++) {
      const bytes = Buffer.from(vector.hex, 'hex');
      bytes[16 + Math.floor(random.next() * (bytes.length - 16))]! ^= 1 << (round % 8);
      try {
        decodeBatches(bytes, limits);
      } catch (error) {
        assert.ok(error instanceof RecordsDamagedError, `${vector.name}: ${error}`);
      }
    }
  }
});

const primitives = readVectors<PrimitiveVector & { data: string; crc: number }>('primitives');

test('CRC-32C gives the values of the vectors, in one piece and in two', () => {
  const portable = portableChecksums();
  let count = 0;
  for (const vector of primitives) {
    if (vector.kind !== 'crc32c') continue;
    count++;
    const bytes = Buffer.from(vector.data, 'hex');
    const half = bytes.length >> 1;
    for (const checksum of [crc32c, portable.crc32c]) {
      assert.equal(checksum(bytes, 0), vector.crc);
      const first = checksum(bytes.subarray(0, half), 0);
      assert.equal(checksum(bytes.subarray(half), first), vector.crc);
    }
    assert.equal(portable.crc32(bytes, 0), crc32(bytes));
  }
  assert.equal(count, 68);
  assert.equal(crc32(Buffer.from('123456789')), 0xcbf43926);
});

/** One record whose offset delta or timestamp delta is given as bytes. */
function recordWith(field: 'varint' | 'varlong', bytes: Buffer): Buffer {
  const zero = Buffer.alloc(1);
  const nulls = Buffer.from([1, 1, 0]);
  const body = field === 'varint' ? [zero, zero, bytes, nulls] : [zero, bytes, zero, nulls];
  const record = Buffer.concat(body);
  const header = Buffer.alloc(batch.batchHeaderBytes);
  return Buffer.concat([header, Buffer.from([record.length * 2]), record]);
}

test('varints are written and read as in the vectors', () => {
  const cursor = new RecordCursor();
  let count = 0;
  for (const vector of primitives) {
    const kind = vector.kind;
    if (kind !== 'varint' && kind !== 'varlong') continue;
    count++;
    const bytes = Buffer.from(vector.hex, 'hex');
    const records = recordWith(kind, bytes);
    batch.writeHeader(records, 0, { ...emptyHeader, recordCount: 1 });
    cursor.reset(records, 0, null);
    assert.equal(cursor.next(), vector.kafkaError === undefined, vector.hex);
    if (vector.kafkaError !== undefined) {
      assert.match(cursor.fault!, /too long/);
      continue;
    }
    const value = Number(vector.value ?? vector.reads);
    assert.equal(kind === 'varint' ? cursor.offsetDelta : cursor.timestampDelta, value);
    if (vector.value === undefined || !isDouble(vector.value)) continue;
    const written = Buffer.alloc(12);
    const end =
      kind === 'varint' ? writeVarint(written, 0, value) : writeVarlong(written, 0, value);
    assert.deepEqual(written.subarray(0, end), bytes, vector.value);
    assert.equal(kind === 'varint' ? sizeOfVarint(value) : sizeOfVarlong(value), bytes.length);
  }
  assert.equal(count, 49 + 109);
});

/** True for what a number holds exactly, and for the largest int64, which saturates. */
function isDouble(value: string): boolean {
  return BigInt(Number(value)) === BigInt(value) || BigInt(value) === 2n ** 63n - 1n;
}

const emptyHeader: batch.BatchHeader = {
  baseOffset: 0,
  leaderEpoch: -1,
  attributes: 0,
  lastOffsetDelta: 0,
  baseTimestamp: 0,
  maxTimestamp: 0,
  producerId: -1,
  producerEpoch: -1,
  baseSequence: -1,
  recordCount: 0,
};
