/**
 * Questions to the records of one stored batch (magic 2), for ListOffsets and for tools. Stored
 * batches have been checked when they arrived, so a malformed one is damage: it throws.
 */

import type { Codecs } from '../../core/compression.ts';
import * as batch from './batch-header.ts';
import { openRecords, RecordCursor } from './cursor.ts';

/** A batch that no leader would have stored as it is now. */
export class RecordsDamagedError extends Error {
  override name = 'RecordsDamagedError';
}

export interface TimestampAndOffset {
  readonly timestamp: number;
  readonly offset: number;
}

export interface OpenLimits {
  readonly codecs: Codecs;
  /** What a compressed batch may become: not less than what was allowed when it arrived. */
  readonly openedBytesMax: number;
}

const cursor = new RecordCursor();

/**
 * The first record from `offsetMin` on whose timestamp is `timestamp` or later, null if there is
 * none in this batch.
 */
export function findByTimestamp(
  buffer: Buffer,
  position: number,
  timestamp: number,
  offsetMin: number,
  limits: OpenLimits,
): TimestampAndOffset | null {
  // No record is later than this, so most batches need not be opened.
  if (batch.readMaxTimestamp(buffer, position) < timestamp) return null;
  return findFirst(
    buffer,
    position,
    limits,
    () => cursor.timestamp >= timestamp && cursor.offset >= offsetMin,
  );
}

/** The first record that has the batch's highest timestamp; null for a batch without records. */
export function findMaxTimestamp(
  buffer: Buffer,
  position: number,
  limits: OpenLimits,
): TimestampAndOffset | null {
  const maxTimestamp = batch.readMaxTimestamp(buffer, position);
  return findFirst(buffer, position, limits, () => cursor.timestamp === maxTimestamp);
}

/**
 * Calls `visit` for each record, with a cursor that is good until the call returns. Everything
 * that the cursor gives out are views on `buffer` or, for a compressed batch, on a new buffer.
 * Ends early when `visit` returns false. Throws for damaged records, after those before them.
 */
export function forEachRecord(
  buffer: Buffer,
  position: number,
  limits: OpenLimits,
  visit: (record: RecordCursor) => boolean | undefined,
): void {
  const records = new RecordCursor();
  const opened = openRecords(buffer, position, limits.codecs, limits.openedBytesMax);
  records.reset(buffer, position, opened);
  while (records.next()) {
    if (visit(records) === false) return;
  }
  if (records.fault !== null) throw new RecordsDamagedError(records.fault);
}

function findFirst(
  buffer: Buffer,
  position: number,
  limits: OpenLimits,
  isFound: () => boolean,
): TimestampAndOffset | null {
  cursor.reset(
    buffer,
    position,
    openRecords(buffer, position, limits.codecs, limits.openedBytesMax),
  );
  let found: TimestampAndOffset | null = null;
  while (found === null && cursor.next()) {
    if (isFound()) found = { timestamp: cursor.timestamp, offset: cursor.offset };
  }
  cursor.release();
  if (cursor.fault !== null) throw new RecordsDamagedError(cursor.fault);
  return found;
}
