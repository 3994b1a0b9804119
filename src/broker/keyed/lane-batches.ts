import type { Codecs } from '../../core/compression.ts';
import {
  BatchAttribute,
  batchHeaderBytes,
  batchOverheadBytes,
  readAttributes,
  readBaseOffset,
  readRecordCount,
  writeBaseOffset,
  writeCrc,
  writeLeaderEpoch,
} from '../../protocol/records/batch-header.ts';
import { openRecords, RecordCursor } from '../../protocol/records/cursor.ts';
import { writeInt32 } from '../../protocol/records/integers.ts';
import { sizeOfVarint, writeVarint } from '../../protocol/records/varints.ts';

/** Which records of one stored batch go out, and under which lane offsets. */
export interface LaneBatch {
  /** Of the stored batch in the journal. */
  readonly position: number;
  readonly bytes: number;
  /** Lane offset, first stored offset, count: three numbers for each run of neighbours. */
  readonly runs: number[];
}

/** Base offset, length and leader epoch: what stands before that which the CRC covers. */
const headBytes = 16;
const attributesAt = 21;
const lastOffsetDeltaAt = 23;
const recordCountAt = 57;

const cursor = new RecordCursor();

/**
 * A stored batch as a lane gives it: its offsets are lane offsets, its leader epoch is unknown. If
 * all of its records go out side by side the stored bytes do as they are, but for their head;
 * otherwise those that go are put into a batch of their own, uncompressed.
 */
export function laneBatch(
  stored: Buffer,
  { runs }: LaneBatch,
  codecs: Codecs,
  openedBytesMax: number,
): Buffer[] {
  const recordCount = readRecordCount(stored, 0);
  const isWhole =
    runs.length === 3 && runs[1] === readBaseOffset(stored, 0) && runs[2] === recordCount;
  if (isWhole) {
    const head = Buffer.from(stored.subarray(0, headBytes));
    writeBaseOffset(head, 0, runs[0]!);
    writeLeaderEpoch(head, 0, -1);
    return [head, stored.subarray(headBytes)];
  }
  return [pick(stored, runs, openRecords(stored, 0, codecs, openedBytesMax))];
}

function pick(stored: Buffer, runs: readonly number[], opened: Buffer | null): Buffer {
  const first = runs[0]!;
  const base = readBaseOffset(stored, 0);
  const records = opened ?? stored.subarray(batchHeaderBytes);
  // An offset delta grows by four bytes at most, and the record's length by less.
  const target = Buffer.allocUnsafe(batchHeaderBytes + records.length + 10 * countOf(runs));
  stored.copy(target, 0, 0, batchHeaderBytes);
  cursor.reset(stored, 0, opened);
  let at = batchHeaderBytes;
  let run = 0;
  let count = 0;
  let lastDelta = 0;
  while (run < runs.length && cursor.next()) {
    const offset = base + cursor.offsetDelta;
    while (run < runs.length && offset >= runs[run + 1]! + runs[run + 2]!) run += 3;
    if (run >= runs.length || offset < runs[run + 1]!) continue;
    lastDelta = runs[run]! + (offset - runs[run + 1]!) - first;
    at = copyRecord(cursor, lastDelta, target, at);
    count++;
  }
  cursor.release();
  writeBaseOffset(target, 0, first);
  writeInt32(target, 8, at - batchOverheadBytes);
  writeLeaderEpoch(target, 0, -1);
  const attributes = readAttributes(stored, 0) & BatchAttribute.logAppendTime;
  target.writeInt16BE(attributes, attributesAt);
  writeInt32(target, lastOffsetDeltaAt, lastDelta);
  writeInt32(target, recordCountAt, count);
  const batch = target.subarray(0, at);
  writeCrc(batch, 0);
  return batch;
}

function countOf(runs: readonly number[]): number {
  let count = 0;
  for (let i = 2; i < runs.length; i += 3) count += runs[i]!;
  return count;
}

/**
 * The same record with another offset delta. Answers where the next one begins.
 *
 *     record := length varint, attributes u8, timestampDelta varlong, offsetDelta varint, rest
 */
function copyRecord(record: RecordCursor, delta: number, target: Buffer, at: number): number {
  const { bytes } = record;
  const attributes = pastVarint(bytes, record.recordStart);
  const offsetDelta = pastVarint(bytes, attributes + 1);
  const rest = pastVarint(bytes, offsetDelta);
  const length = offsetDelta - attributes + sizeOfVarint(delta) + (record.recordEnd - rest);
  at = writeVarint(target, at, length);
  at += bytes.copy(target, at, attributes, offsetDelta);
  at = writeVarint(target, at, delta);
  return at + bytes.copy(target, at, rest, record.recordEnd);
}

/** The records were checked when they were produced: a varint ends. */
function pastVarint(bytes: Buffer, at: number): number {
  while (bytes[at]! >= 0x80) at++;
  return at + 1;
}
