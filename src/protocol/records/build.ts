/**
 * Makes record batches (magic 2): from records, and from another batch with another compression
 * (`compression.type` of a topic) or with its offset deltas in order. Grammars: batch-header.ts
 * and cursor.ts.
 */

import { type Codecs, Compression, type CompressionId } from '../../core/compression.ts';
import * as batch from './batch-header.ts';
import { RecordCursor } from './cursor.ts';
import { RecordsDamagedError } from './iterate.ts';
import { sizeOfVarint, sizeOfVarlong, writeVarint, writeVarlong } from './varints.ts';

export interface RecordHeaderInput {
  readonly key: string;
  readonly value: Uint8Array | null;
}

export interface RecordInput {
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
  readonly timestamp: number;
  readonly headers?: readonly RecordHeaderInput[];
  /** Default: one more than the record before, from 0. */
  readonly offsetDelta?: number;
}

export interface BatchInput {
  readonly records: readonly RecordInput[];
  readonly compression?: CompressionId;
  readonly level?: number;
  /** Default 0, which is what producers send. */
  readonly baseOffset?: number;
  /** Default -1: not known, which is what producers send. */
  readonly leaderEpoch?: number;
  readonly timestampType?: batch.TimestampType;
  /** Default: that of the first record; with `deleteHorizonMs` that; without records -1. */
  readonly baseTimestamp?: number;
  /** Default: the highest of the records. */
  readonly maxTimestamp?: number;
  /** Default: that of the last record. */
  readonly lastOffsetDelta?: number;
  readonly producerId?: number;
  readonly producerEpoch?: number;
  readonly baseSequence?: number;
  readonly isTransactional?: boolean;
  readonly isControl?: boolean;
  /** Until when a cleaner keeps the tombstones of this batch (KIP-534). */
  readonly deleteHorizonMs?: number;
}

export function buildBatch(input: BatchInput, codecs: Codecs): Buffer {
  const records = input.records;
  const baseTimestamp = input.deleteHorizonMs ?? input.baseTimestamp ?? records[0]?.timestamp ?? -1;
  const encoded = encodeRecords(records, baseTimestamp);
  const compression = input.compression ?? Compression.none;
  return seal(compress(encoded.bytes, compression, codecs, input.level), {
    baseOffset: input.baseOffset ?? 0,
    leaderEpoch: input.leaderEpoch ?? -1,
    attributes: attributesOf(input, compression),
    lastOffsetDelta: input.lastOffsetDelta ?? Math.max(0, encoded.lastOffsetDelta),
    baseTimestamp,
    maxTimestamp: input.maxTimestamp ?? encoded.maxTimestamp,
    producerId: input.producerId ?? -1,
    producerEpoch: input.producerEpoch ?? -1,
    baseSequence: input.baseSequence ?? -1,
    recordCount: records.length,
  });
}

/** The values of the topic setting `compression.type`. */
export type CompressionSetting = 'producer' | 'uncompressed' | keyof Codecs;

/** In which codec a topic stores a batch that arrives in `source`. */
export function targetCompression(
  setting: CompressionSetting,
  source: CompressionId,
): CompressionId {
  if (setting === 'producer') return source;
  return setting === 'uncompressed' ? Compression.none : Compression[setting];
}

/**
 * The batch with the same records in another codec. All header fields stay but the codec, length
 * and CRC. `opened` is what `openRecords` gave for the batch.
 */
export function recompressBatch(
  buffer: Buffer,
  position: number,
  opened: Buffer | null,
  compression: CompressionId,
  codecs: Codecs,
  level?: number,
): Buffer {
  const plain = opened ?? plainRecords(buffer, position);
  const header = readHeader(buffer, position);
  const others = header.attributes & ~batch.BatchAttribute.compressionMask;
  return seal(compress(plain, compression, codecs, level), {
    ...header,
    attributes: others | compression,
  });
}

/**
 * The batch, not compressed, with the offset deltas 0, 1, 2, …: what a producer meant that wrote
 * others. Throws where the records are malformed.
 */
export function renumberBatch(buffer: Buffer, position: number): Buffer {
  const cursor = new RecordCursor().reset(buffer, position, null);
  const pieces: Buffer[] = [];
  while (cursor.next()) {
    // Attributes and timestamp stand before the delta, everything else behind it.
    const before = 1 + sizeOfVarlong(cursor.timestampDelta);
    const tail = cursor.keyStart - sizeOfVarint(cursor.keyBytes);
    const deltaBytes = sizeOfVarint(cursor.index);
    const length = before + deltaBytes + cursor.recordEnd - tail;
    const record = Buffer.alloc(sizeOfVarint(length) + length);
    let at = writeVarint(record, 0, length) + 1;
    at = writeVarlong(record, at, cursor.timestampDelta);
    at = writeVarint(record, at, cursor.index);
    buffer.copy(record, at, tail, cursor.recordEnd);
    pieces.push(record);
  }
  if (cursor.fault !== null) throw new RecordsDamagedError(cursor.fault);
  return seal(Buffer.concat(pieces), readHeader(buffer, position));
}

function plainRecords(buffer: Buffer, position: number): Buffer {
  const end = position + batch.readBatchBytes(buffer, position);
  return buffer.subarray(position + batch.batchHeaderBytes, end);
}

function readHeader(buffer: Buffer, position: number): batch.BatchHeader {
  return {
    baseOffset: batch.readBaseOffset(buffer, position),
    leaderEpoch: batch.readLeaderEpoch(buffer, position),
    attributes: batch.readAttributes(buffer, position),
    lastOffsetDelta: batch.readLastOffsetDelta(buffer, position),
    baseTimestamp: batch.readBaseTimestamp(buffer, position),
    maxTimestamp: batch.readMaxTimestamp(buffer, position),
    producerId: batch.readProducerId(buffer, position),
    producerEpoch: batch.readProducerEpoch(buffer, position),
    baseSequence: batch.readBaseSequence(buffer, position),
    recordCount: batch.readRecordCount(buffer, position),
  };
}

function seal(records: Buffer, header: batch.BatchHeader): Buffer {
  const sealed = Buffer.allocUnsafe(batch.batchHeaderBytes + records.length);
  records.copy(sealed, batch.batchHeaderBytes);
  batch.writeHeader(sealed, 0, header);
  return sealed;
}

function attributesOf(input: BatchInput, compression: CompressionId): number {
  let attributes: number = compression;
  if (input.timestampType === 'LogAppendTime') attributes |= batch.BatchAttribute.logAppendTime;
  if (input.isTransactional === true) attributes |= batch.BatchAttribute.transactional;
  if (input.isControl === true) attributes |= batch.BatchAttribute.control;
  if (input.deleteHorizonMs !== undefined) attributes |= batch.BatchAttribute.deleteHorizon;
  return attributes;
}

function compress(
  bytes: Buffer,
  compression: CompressionId,
  codecs: Codecs,
  level: number | undefined,
): Buffer {
  switch (compression) {
    case Compression.none:
      return bytes;
    case Compression.gzip:
      return codecs.gzip.compress(bytes, level);
    case Compression.snappy:
      return codecs.snappy.compress(bytes, level);
    case Compression.lz4:
      return codecs.lz4.compress(bytes, level);
    case Compression.zstd:
      return codecs.zstd.compress(bytes, level);
  }
}

interface EncodedRecords {
  bytes: Buffer;
  lastOffsetDelta: number;
  maxTimestamp: number;
}

function encodeRecords(records: readonly RecordInput[], baseTimestamp: number): EncodedRecords {
  const pieces: Buffer[] = [];
  let lastOffsetDelta = -1;
  let maxTimestamp = -1;
  for (const record of records) {
    lastOffsetDelta = record.offsetDelta ?? lastOffsetDelta + 1;
    maxTimestamp = Math.max(maxTimestamp, record.timestamp);
    pieces.push(encodeRecord(record, record.timestamp - baseTimestamp, lastOffsetDelta));
  }
  return { bytes: Buffer.concat(pieces), lastOffsetDelta, maxTimestamp };
}

function encodeRecord(record: RecordInput, timestampDelta: number, offsetDelta: number): Buffer {
  const headers = record.headers ?? [];
  let length = 1 + sizeOfVarlong(timestampDelta) + sizeOfVarint(offsetDelta);
  length += sizeOfBytes(record.key) + sizeOfBytes(record.value) + sizeOfVarint(headers.length);
  for (const header of headers) {
    const keyBytes = Buffer.byteLength(header.key);
    length += sizeOfVarint(keyBytes) + keyBytes + sizeOfBytes(header.value);
  }
  const encoded = Buffer.alloc(sizeOfVarint(length) + length);
  let at = writeVarint(encoded, 0, length) + 1;
  at = writeVarlong(encoded, at, timestampDelta);
  at = writeVarint(encoded, at, offsetDelta);
  at = writeBytes(encoded, at, record.key);
  at = writeBytes(encoded, at, record.value);
  at = writeVarint(encoded, at, headers.length);
  for (const header of headers) {
    at = writeVarint(encoded, at, Buffer.byteLength(header.key));
    at += encoded.write(header.key, at, 'utf8');
    at = writeBytes(encoded, at, header.value);
  }
  return encoded;
}

function sizeOfBytes(bytes: Uint8Array | null): number {
  return bytes === null ? 1 : sizeOfVarint(bytes.length) + bytes.length;
}

function writeBytes(target: Buffer, at: number, bytes: Uint8Array | null): number {
  if (bytes === null) return writeVarint(target, at, -1);
  const start = writeVarint(target, at, bytes.length);
  target.set(bytes, start);
  return start + bytes.length;
}
