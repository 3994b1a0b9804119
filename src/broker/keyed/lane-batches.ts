import { crc32c } from '../../core/crc32c.ts';
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
import { RecordCursor } from '../../protocol/records/cursor.ts';
import { writeInt32 } from '../../protocol/records/integers.ts';
import { sizeOfVarint, writeVarint } from '../../protocol/records/varints.ts';

/** Records that lie side by side in a stored batch and get neighbouring lane offsets. */
export interface LaneRun {
  readonly laneOffset: number;
  /** Stored offset of the first one. */
  readonly offset: number;
  readonly count: number;
  /** Where they begin and end in the opened records of the batch. */
  readonly byteStart: number;
  readonly byteEnd: number;
}

/** Which records of one stored batch go out, and under which lane offsets. */
export interface LaneBatch {
  /** Of the stored batch in the journal. */
  readonly position: number;
  readonly bytes: number;
  /** Ascending by offset. */
  readonly runs: LaneRun[];
}

/** Base offset, length and leader epoch: what stands before that which the CRC covers. */
const headBytes = 16;
const lengthAt = 8;
const crcAt = 17;
const attributesAt = 21;
const lastOffsetDeltaAt = 23;
const recordCountAt = 57;

const cursor = new RecordCursor();

/**
 * A stored batch as a lane gives it: its offsets are lane offsets, its leader epoch is unknown. If
 * all of its records go out side by side the stored bytes do as they are, but for their head; if
 * some of them do, those bytes do, behind a header of their own. Otherwise the records that go are
 * put into a batch one by one. What is taken apart goes out uncompressed. `open` answers the
 * records of a compressed batch, null for one that is not.
 */
export function laneBatch(
  stored: Buffer,
  { runs }: LaneBatch,
  open: (stored: Buffer) => Buffer | null,
): Buffer[] {
  const [first] = runs;
  const isOne = runs.length === 1 && first !== undefined;
  const base = readBaseOffset(stored, 0);
  if (isOne && isWhole(stored, first)) {
    const head = Buffer.from(stored.subarray(0, headBytes));
    writeBaseOffset(head, 0, first.laneOffset);
    writeLeaderEpoch(head, 0, -1);
    return [head, stored.subarray(headBytes)];
  }
  const opened = open(stored);
  if (!isOne) return [pick(stored, runs, opened)];
  const records = (opened ?? stored.subarray(batchHeaderBytes)).subarray(
    first.byteStart,
    first.byteEnd,
  );
  const firstDelta = first.offset - base;
  const header = headerOf(stored, {
    // Deltas stay what they are, so the batch begins before its first record.
    baseOffset: first.laneOffset - firstDelta,
    lastDelta: firstDelta + first.count - 1,
    count: first.count,
    bytes: batchHeaderBytes + records.length,
  });
  const crc = crc32c(records, crc32c(header.subarray(attributesAt)));
  header.writeUInt32BE(crc, crcAt);
  return [header, records];
}

/** Whether all records of the batch go out side by side: then it need not be opened. */
export function isWhole(stored: Buffer, { offset, count }: LaneRun): boolean {
  return offset === readBaseOffset(stored, 0) && count === readRecordCount(stored, 0);
}

interface NewHeader {
  readonly baseOffset: number;
  readonly lastDelta: number;
  readonly count: number;
  /** Of the whole batch. */
  readonly bytes: number;
}

/** The header of a part of a stored batch, without its checksum. */
function headerOf(stored: Buffer, { baseOffset, lastDelta, count, bytes }: NewHeader): Buffer {
  const header = Buffer.from(stored.subarray(0, batchHeaderBytes));
  writeBaseOffset(header, 0, baseOffset);
  writeInt32(header, lengthAt, bytes - batchOverheadBytes);
  writeLeaderEpoch(header, 0, -1);
  header.writeInt16BE(readAttributes(stored, 0) & BatchAttribute.logAppendTime, attributesAt);
  writeInt32(header, lastOffsetDeltaAt, lastDelta);
  writeInt32(header, recordCountAt, count);
  return header;
}

function pick(stored: Buffer, runs: readonly LaneRun[], opened: Buffer | null): Buffer {
  const first = runs[0]!.laneOffset;
  const base = readBaseOffset(stored, 0);
  let bytesMax = batchHeaderBytes;
  // An offset delta grows by four bytes at most, and the record's length by less.
  for (const { byteStart, byteEnd, count } of runs) bytesMax += byteEnd - byteStart + 10 * count;
  const target = Buffer.allocUnsafe(bytesMax);
  cursor.reset(stored, 0, opened);
  let at = batchHeaderBytes;
  let run = 0;
  let count = 0;
  let lastDelta = 0;
  while (run < runs.length && cursor.next()) {
    const offset = base + cursor.offsetDelta;
    while (run < runs.length && offset >= runs[run]!.offset + runs[run]!.count) run++;
    const one = runs[run];
    if (one === undefined || offset < one.offset) continue;
    lastDelta = one.laneOffset + (offset - one.offset) - first;
    at = copyRecord(cursor, lastDelta, target, at);
    count++;
  }
  cursor.release();
  headerOf(stored, { baseOffset: first, lastDelta, count, bytes: at }).copy(target);
  const batch = target.subarray(0, at);
  writeCrc(batch, 0);
  return batch;
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
