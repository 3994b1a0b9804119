/**
 * Turns a run of batches of any magic into plain values. For tools and tests: it allocates
 * freely and checks what a careful reader checks, CRCs included.
 */

import * as batch from './batch-header.ts';
import { openRecords, RecordCursor } from './cursor.ts';
import { compressionName, type DecodedBatch, type DecodedRecord } from './decoded-batch.ts';
import { type OpenLimits, RecordsDamagedError } from './iterate.ts';
import { decodeLegacyMessage, legacyOverheadBytes } from './legacy.ts';

export interface DecodedBatches {
  batches: DecodedBatch[];
  /** What follows is no whole batch: Fetch responses may end so. */
  validBytes: number;
}

export function decodeBatches(buffer: Buffer, limits: OpenLimits): DecodedBatches {
  const batches: DecodedBatch[] = [];
  let position = 0;
  while (buffer.length - position >= batch.batchMagicEnd) {
    const bytes = batch.readBatchBytes(buffer, position);
    const magic = batch.readMagic(buffer, position);
    if (magic < 0 || magic > batch.batchMagic) {
      throw new RecordsDamagedError(`Invalid magic found in record: ${magic}`);
    }
    const bytesMin = magic === batch.batchMagic ? batch.batchHeaderBytes : legacyOverheadBytes;
    if (bytes < bytesMin) throw new RecordsDamagedError(`${bytes} bytes are no batch`);
    if (bytes > buffer.length - position) break;
    batches.push(
      magic === batch.batchMagic
        ? decodeBatch(buffer, position, limits)
        : decodeLegacyMessage(buffer.subarray(position, position + bytes), limits),
    );
    position += bytes;
  }
  return { batches, validBytes: position };
}

function decodeBatch(buffer: Buffer, position: number, limits: OpenLimits): DecodedBatch {
  const crc = batch.readCrc(buffer, position);
  const computed = batch.computeCrc(buffer, position);
  if (crc !== computed) {
    throw new RecordsDamagedError(
      `Record is corrupt (stored crc = ${crc}, computed crc = ${computed})`,
    );
  }
  return {
    magic: batch.batchMagic,
    compression: compressionName(batch.readCompressionBits(buffer, position)),
    timestampType: batch.readTimestampType(buffer, position),
    baseOffset: batch.readBaseOffset(buffer, position),
    lastOffset: batch.readLastOffset(buffer, position),
    sizeInBytes: batch.readBatchBytes(buffer, position),
    crc,
    maxTimestamp: batch.readMaxTimestamp(buffer, position),
    records: decodeRecords(buffer, position, limits),
  };
}

function decodeRecords(buffer: Buffer, position: number, limits: OpenLimits): DecodedRecord[] {
  const isEmpty = batch.readRecordCount(buffer, position) === 0;
  const opened = isEmpty
    ? null
    : openRecords(buffer, position, limits.codecs, limits.openedBytesMax);
  const cursor = new RecordCursor().reset(buffer, position, opened);
  const baseSequence = batch.readBaseSequence(buffer, position);
  const records: DecodedRecord[] = [];
  while (cursor.next()) {
    records.push({
      offset: cursor.offset,
      timestamp: cursor.timestamp,
      sequence: baseSequence < 0 ? -1 : batch.advanceSequence(baseSequence, cursor.offsetDelta),
      key: cursor.key(),
      value: cursor.value(),
      headers: cursor.headers(),
    });
  }
  if (cursor.fault !== null) throw new RecordsDamagedError(cursor.fault);
  return records;
}
