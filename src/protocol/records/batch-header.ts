/**
 * The header of a record batch (magic 2), read and written in place at (buffer, position).
 *
 *   batch => baseOffset           int64    0
 *            batchLength          int32    8   bytes that follow this field
 *            partitionLeaderEpoch int32   12
 *            magic                int8    16   2
 *            crc                  uint32  17   CRC-32C of everything from attributes on
 *            attributes           int16   21
 *            lastOffsetDelta      int32   23   also the delta of the last sequence
 *            baseTimestamp        int64   27   or the delete horizon, see attributes
 *            maxTimestamp         int64   35
 *            producerId           int64   43   -1: none
 *            producerEpoch        int16   51
 *            baseSequence         int32   53
 *            recordCount          int32   57
 *            records                      61   compressed as a whole, if at all
 *
 *   attributes => compression (bits 0-2), log append time (3), transactional (4), control (5),
 *                 delete horizon (6), unused (7-15)
 *
 * Base offset and leader epoch lie outside the CRC, so a broker sets them without touching it.
 *
 * Nothing here checks bounds: callers know that the whole batch is there. 64-bit fields are
 * numbers, exact within ±(2^53 - 1) and the nearest double beyond; where exactness matters the
 * caller checks `Number.isSafeInteger`. Written values beyond the range of an int64 saturate.
 *
 * Sources: DefaultRecordBatch.java of Apache Kafka, KIP-98.
 */

import type { CompressionId } from '../../core/compression.ts';
import { crc32c } from '../../core/crc32c.ts';
import { readInt16, readInt32, readInt64, writeInt32, writeInt64 } from './integers.ts';

/** Base offset and length: what stands before the bytes that `batchLength` counts. */
export const batchOverheadBytes = 12;
/** The shortest batch: a header without records. */
export const batchHeaderBytes = 61;
/** Up to and with the magic, which decides how to read the rest. */
export const batchMagicEnd = 17;
export const batchMagic = 2;

const lengthAt = 8;
const leaderEpochAt = 12;
const magicAt = 16;
const crcAt = 17;
const attributesAt = 21;
const lastOffsetDeltaAt = 23;
const baseTimestampAt = 27;
const maxTimestampAt = 35;
const producerIdAt = 43;
const producerEpochAt = 51;
const baseSequenceAt = 53;
const recordCountAt = 57;

export const BatchAttribute = {
  compressionMask: 0x07,
  logAppendTime: 0x08,
  transactional: 0x10,
  control: 0x20,
  deleteHorizon: 0x40,
} as const;

export type TimestampType = 'CreateTime' | 'LogAppendTime';

export function readBaseOffset(buffer: Buffer, position: number): number {
  return readInt64(buffer, position);
}

/** What the field says: the bytes that follow it. May be any int32 in input from outside. */
export function readBatchLength(buffer: Buffer, position: number): number {
  return readInt32(buffer, position + lengthAt);
}

/** The whole batch, from its base offset to its last record. */
export function readBatchBytes(buffer: Buffer, position: number): number {
  return batchOverheadBytes + readInt32(buffer, position + lengthAt);
}

export function readLeaderEpoch(buffer: Buffer, position: number): number {
  return readInt32(buffer, position + leaderEpochAt);
}

export function readMagic(buffer: Buffer, position: number): number {
  return (buffer[position + magicAt]! << 24) >> 24;
}

export function readCrc(buffer: Buffer, position: number): number {
  return readInt32(buffer, position + crcAt) >>> 0;
}

export function readAttributes(buffer: Buffer, position: number): number {
  return readInt16(buffer, position + attributesAt);
}

export function readLastOffsetDelta(buffer: Buffer, position: number): number {
  return readInt32(buffer, position + lastOffsetDeltaAt);
}

export function readBaseTimestamp(buffer: Buffer, position: number): number {
  return readInt64(buffer, position + baseTimestampAt);
}

export function readMaxTimestamp(buffer: Buffer, position: number): number {
  return readInt64(buffer, position + maxTimestampAt);
}

export function readProducerId(buffer: Buffer, position: number): number {
  return readInt64(buffer, position + producerIdAt);
}

export function readProducerEpoch(buffer: Buffer, position: number): number {
  return readInt16(buffer, position + producerEpochAt);
}

export function readBaseSequence(buffer: Buffer, position: number): number {
  return readInt32(buffer, position + baseSequenceAt);
}

export function readRecordCount(buffer: Buffer, position: number): number {
  return readInt32(buffer, position + recordCountAt);
}

export function readLastOffset(buffer: Buffer, position: number): number {
  return readBaseOffset(buffer, position) + readLastOffsetDelta(buffer, position);
}

/** The codec bits; 5 to 7 name no codec, see `isCompressionId`. */
export function readCompressionBits(buffer: Buffer, position: number): number {
  return buffer[position + attributesAt + 1]! & BatchAttribute.compressionMask;
}

/** Whether the records are compressed. */
export function isPacked(batch: Buffer): boolean {
  return readCompressionBits(batch, 0) !== 0;
}

export function isCompressionId(bits: number): bits is CompressionId {
  return bits >= 0 && bits <= 4;
}

export function readTimestampType(buffer: Buffer, position: number): TimestampType {
  const logAppendTime = readAttributes(buffer, position) & BatchAttribute.logAppendTime;
  return logAppendTime === 0 ? 'CreateTime' : 'LogAppendTime';
}

export function isTransactional(buffer: Buffer, position: number): boolean {
  return (readAttributes(buffer, position) & BatchAttribute.transactional) !== 0;
}

export function isControl(buffer: Buffer, position: number): boolean {
  return (readAttributes(buffer, position) & BatchAttribute.control) !== 0;
}

/** The sequence `increment` after `sequence`; it goes from 2^31 - 1 on to 0. */
export function advanceSequence(sequence: number, increment: number): number {
  const next = sequence + increment;
  return next > 0x7fffffff ? next - 0x80000000 : next;
}

/** -1 where the batch has no sequence. */
export function readLastSequence(buffer: Buffer, position: number): number {
  const baseSequence = readBaseSequence(buffer, position);
  if (baseSequence === -1) return -1;
  return advanceSequence(baseSequence, readLastOffsetDelta(buffer, position));
}

/** The checksum that the batch should carry. */
export function computeCrc(buffer: Buffer, position: number): number {
  const end = position + readBatchBytes(buffer, position);
  return crc32c(buffer.subarray(position + attributesAt, end));
}

/** Outside the CRC. */
export function writeBaseOffset(buffer: Buffer, position: number, baseOffset: number): void {
  writeInt64(buffer, position, baseOffset);
}

/** Outside the CRC. */
export function writeLeaderEpoch(buffer: Buffer, position: number, epoch: number): void {
  writeInt32(buffer, position + leaderEpochAt, epoch);
}

export function writeCrc(buffer: Buffer, position: number): void {
  writeInt32(buffer, position + crcAt, computeCrc(buffer, position));
}

/**
 * Sets timestamp type and maxTimestamp and computes the CRC anew, unless both are so already. For
 * LogAppendTime `maxTimestamp` is the time that every record of the batch then has.
 */
export function writeTimestamps(
  buffer: Buffer,
  position: number,
  type: TimestampType,
  maxTimestamp: number,
): void {
  if (
    readTimestampType(buffer, position) === type &&
    readMaxTimestamp(buffer, position) === maxTimestamp
  ) {
    return;
  }
  const attributes = buffer[position + attributesAt + 1]!;
  buffer[position + attributesAt + 1] =
    type === 'LogAppendTime'
      ? attributes | BatchAttribute.logAppendTime
      : attributes & ~BatchAttribute.logAppendTime;
  writeInt64(buffer, position + maxTimestampAt, maxTimestamp);
  writeCrc(buffer, position);
}

export interface BatchHeader {
  baseOffset: number;
  leaderEpoch: number;
  attributes: number;
  lastOffsetDelta: number;
  baseTimestamp: number;
  maxTimestamp: number;
  producerId: number;
  producerEpoch: number;
  baseSequence: number;
  recordCount: number;
}

/** Writes a whole header and its CRC; the batch ends where `buffer` does, records are there. */
export function writeHeader(buffer: Buffer, position: number, header: BatchHeader): void {
  writeInt64(buffer, position, header.baseOffset);
  writeInt32(buffer, position + lengthAt, buffer.length - position - batchOverheadBytes);
  writeInt32(buffer, position + leaderEpochAt, header.leaderEpoch);
  buffer[position + magicAt] = batchMagic;
  buffer.writeInt16BE(header.attributes, position + attributesAt);
  writeInt32(buffer, position + lastOffsetDeltaAt, header.lastOffsetDelta);
  writeInt64(buffer, position + baseTimestampAt, header.baseTimestamp);
  writeInt64(buffer, position + maxTimestampAt, header.maxTimestamp);
  writeInt64(buffer, position + producerIdAt, header.producerId);
  buffer.writeInt16BE(header.producerEpoch, position + producerEpochAt);
  writeInt32(buffer, position + baseSequenceAt, header.baseSequence);
  writeInt32(buffer, position + recordCountAt, header.recordCount);
  writeCrc(buffer, position);
}
