/**
 * What a partition leader checks of the records in a Produce request before it stores them. The
 * outcome is a value: facts about the one batch, or an error code with texts for the producer.
 *
 * Kafka walks every record of every batch, compressed or not, and so does this, with one cursor
 * and nothing allocated per record. In three steps, so that the middle one can be done elsewhere:
 * `checkBatch` (header and CRC), `openRecords`, `checkRecords`.
 *
 * Two things Kafka takes are refused here, since no consumer could read them: compressed records
 * whose lengths do not add up, and data of a codec that do not decompress (Kafka: -1).
 *
 * Sources: ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords and
 * LogValidator.java of Apache Kafka 4.
 */

import { type Codecs, Compression, DecompressionError } from '../../core/compression.ts';
import { ErrorCode } from '../error-codes.ts';
import * as batch from './batch-header.ts';
import { openRecords, RecordCursor } from './cursor.ts';

export interface ProduceRules {
  /** Version of the Produce request. */
  readonly version: number;
  /** For messages: topic and partition, such as `orders-3`. */
  readonly topicPartition: string;
  /** `max.message.bytes` */
  readonly messageBytesMax: number;
  /** What a compressed batch may become. */
  readonly openedBytesMax: number;
  /** `message.timestamp.type` */
  readonly timestampType: batch.TimestampType;
  /** `message.timestamp.before.max.ms`; may be 2^63. */
  readonly timestampBeforeMaxMs: number;
  /** `message.timestamp.after.max.ms`; may be 2^63. */
  readonly timestampAfterMaxMs: number;
  /** `cleanup.policy` holds `compact`: each record needs a key. */
  readonly compacted: boolean;
  readonly nowMs: number;
}

export interface RecordError {
  readonly batchIndex: number;
  readonly message: string;
}

export interface RefusedBatch {
  readonly ok: false;
  readonly errorCode: number;
  readonly message: string;
  readonly recordErrors: readonly RecordError[];
}

export interface ValidBatch {
  readonly ok: true;
  /** The batch alone: stray bytes behind it are not stored. */
  readonly bytes: number;
  readonly count: number;
  readonly attributes: number;
  readonly isTransactional: boolean;
  /** -1: none. Epoch and sequence mean nothing then. */
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly baseTimestamp: number;
  /** The highest of the records' own timestamps, whatever the header says; -1: they have none. */
  readonly maxTimestamp: number;
  /**
   * The header's timestamp type or maxTimestamp is not what a CreateTime topic should store:
   * Kafka mends it with what `writeTimestamps` does.
   */
  readonly timestampsToMend: boolean;
  /**
   * Offset deltas are not 0, 1, 2, …: only possible without compression, where Kafka stores them
   * as they came. `renumberBatch` mends it.
   */
  readonly deltasToMend: boolean;
  /** The records of a compressed batch, opened. */
  readonly opened: Buffer | null;
}

/** Errors of single records that one answer carries; a producer fails the whole batch anyway. */
const recordErrorsMax = 1000;
/** Below this no batch of any magic could be (LegacyRecord.RECORD_OVERHEAD_V0). */
const batchLengthMin = 14;
/** In the descriptor of an LZ4 frame, which starts behind its magic: blocks are independent. */
const lz4FlagsAt = 4;
const lz4IndependentBlocks = 0x20;
const noTimestamp = -1;

const cursor = new RecordCursor();
/** What `surveyRecords` saw, good until the next call. */
const survey = { minDelta: 0, maxDelta: 0, hasNullKey: false, areConsecutive: true };

export function validateProduce(
  records: Buffer | null,
  rules: ProduceRules,
  codecs: Codecs,
): ValidBatch | RefusedBatch {
  const refused = checkBatch(records, rules);
  if (refused !== null) return refused;
  const sound = records!;
  let opened: Buffer | null;
  try {
    opened = openRecords(sound, 0, codecs, rules.openedBytesMax);
  } catch (error) {
    if (!(error instanceof DecompressionError)) throw error;
    return refuseUnopened(error);
  }
  return checkRecords(sound, opened, rules);
}

/** Everything that can be said without the records: null if nothing is wrong. */
export function checkBatch(records: Buffer | null, rules: ProduceRules): RefusedBatch | null {
  const version = rules.version;
  const bytes = records === null ? 0 : nextBatchBytes(records, 0);
  if (records === null || bytes === 0) {
    return invalid(
      `Produce requests with version ${version} must have at least one record batch per partition`,
    );
  }
  if (typeof bytes !== 'number') return bytes;
  if (batch.readMagic(records, 0) !== batch.batchMagic) {
    return invalid(
      `Produce requests with version ${version} are only allowed to contain record batches with` +
        ` magic version 2`,
    );
  }
  if (bytes < batch.batchHeaderBytes) {
    return corrupt(
      `Record batch is corrupt (the size ${bytes} is smaller than the minimum allowed overhead` +
        ` ${batch.batchHeaderBytes})`,
    );
  }
  if (version < 7 && batch.readCompressionBits(records, 0) === Compression.zstd) {
    return refuse(
      ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
      `Produce requests with version ${version} are not allowed to use ZStandard compression`,
    );
  }
  const following = nextBatchBytes(records, bytes);
  if (typeof following !== 'number') return following;
  if (following > 0) {
    return invalid(
      `Produce requests with version ${version} are only allowed to contain exactly one record` +
        ` batch per partition`,
    );
  }
  return checkHeader(records, bytes, rules);
}

/**
 * The bytes of the batch that starts at `position`: 0 where none is complete, a refusal where
 * what stands there cannot be one (ByteBufferLogInputStream.nextBatchSize).
 */
function nextBatchBytes(records: Buffer, position: number): number | RefusedBatch {
  const left = records.length - position;
  if (left < batch.batchOverheadBytes) return 0;
  const length = batch.readBatchLength(records, position);
  if (length < batchLengthMin) {
    return corrupt(
      `Record size ${length} is less than the minimum record overhead (${batchLengthMin})`,
    );
  }
  if (left < batch.batchMagicEnd) return 0;
  const magic = batch.readMagic(records, position);
  if (magic < 0 || magic > batch.batchMagic) {
    return corrupt(`Invalid magic found in record: ${magic}`);
  }
  const bytes = length + batch.batchOverheadBytes;
  return bytes > left ? 0 : bytes;
}

function checkHeader(records: Buffer, bytes: number, rules: ProduceRules): RefusedBatch | null {
  const where = rules.topicPartition;
  const baseOffset = batch.readBaseOffset(records, 0);
  if (baseOffset !== 0) {
    return invalid(
      `The baseOffset of the record batch in the append to ${where} should be 0, but it is` +
        ` ${baseOffset}`,
    );
  }
  if (bytes > rules.messageBytesMax) {
    return refuse(
      ErrorCode.MESSAGE_TOO_LARGE,
      `The record batch size in the append to ${where} is ${bytes} bytes which exceeds the` +
        ` maximum configured value of ${rules.messageBytesMax}`,
    );
  }
  const crc = batch.readCrc(records, 0);
  if (crc !== batch.computeCrc(records, 0)) {
    return corrupt(`Record is corrupt (stored crc = ${crc}) in topic partition ${where}.`);
  }
  const compression = batch.readCompressionBits(records, 0);
  if (!batch.isCompressionId(compression)) {
    return invalid(`Unknown compression type id: ${compression}`);
  }
  const lastOffset = batch.readLastOffsetDelta(records, 0);
  const count = batch.readRecordCount(records, 0);
  if (lastOffset < 0) {
    return invalid(
      `Batch has an invalid offset range: [0, ${lastOffset}] in topic partition ${where}`,
    );
  }
  if (count <= 0) {
    return invalid(`Invalid reported count for record batch: ${count} in topic partition ${where}`);
  }
  if (lastOffset + 1 !== count) {
    return invalid(
      `Inconsistent batch offset range [0, ${lastOffset}] and count of records ${count} in topic` +
        ` partition ${where}`,
    );
  }
  return checkProducer(records, where);
}

function checkProducer(records: Buffer, where: string): RefusedBatch | null {
  if (batch.isControl(records, 0)) {
    return invalid(`Clients are not allowed to write control records in topic partition ${where}`);
  }
  const producerId = batch.readProducerId(records, 0);
  if (producerId <= -1) return null;
  if (!Number.isSafeInteger(producerId)) {
    // No broker gives out such an id, and two of them could not be told apart.
    return invalid(`Invalid producerId in record batch in topic partition ${where}`);
  }
  const baseSequence = batch.readBaseSequence(records, 0);
  if (baseSequence < 0) {
    return invalid(
      `Invalid sequence number ${baseSequence} in record batch with producerId ${producerId} in` +
        ` topic partition ${where}`,
    );
  }
  return null;
}

/** The answer for a batch that `openRecords` could not open. */
export function refuseUnopened(error: DecompressionError): RefusedBatch {
  if (!error.tooLarge) return invalid(`Failed to decompress record stream: ${error.message}`);
  // A producer answers this one by splitting the batch, which is what helps.
  return refuse(
    ErrorCode.MESSAGE_TOO_LARGE,
    `The records of the batch decompress to too much: ${error.message}`,
  );
}

/** The walk over all records of a batch that `checkBatch` had nothing against. */
export function checkRecords(
  records: Buffer,
  opened: Buffer | null,
  rules: ProduceRules,
): ValidBatch | RefusedBatch {
  if (opened !== null && hasLinkedLz4Blocks(records)) {
    return invalid('Dependent LZ4 block stream is unsupported (BlockIndependence must be set)');
  }
  surveyRecords(records, opened);
  if (cursor.fault !== null) {
    cursor.release();
    return invalid(`${cursor.fault} in topic partition ${rules.topicPartition}`);
  }
  const isLogAppendTime = batch.readTimestampType(records, 0) === 'LogAppendTime';
  const baseTimestamp = batch.readBaseTimestamp(records, 0);
  const headerMaxTimestamp = batch.readMaxTimestamp(records, 0);
  const latest = isLogAppendTime ? headerMaxTimestamp : baseTimestamp + survey.maxDelta;
  const earliest = isLogAppendTime ? headerMaxTimestamp : baseTimestamp + survey.minDelta;
  const maxTimestamp = Math.max(noTimestamp, latest);
  if (
    isLogAppendTime ||
    earliest < lowestTimestamp(rules) ||
    latest > highestTimestamp(rules) ||
    (rules.compacted && survey.hasNullKey)
  ) {
    const refused = collectRecordErrors(records, opened, rules);
    if (refused !== null) return refused;
  }
  cursor.release();
  if (!survey.areConsecutive && opened !== null) {
    return invalid(
      `Inner offsets of the compressed record batch are not consecutive in topic partition` +
        ` ${rules.topicPartition}`,
    );
  }
  return {
    ok: true,
    bytes: batch.readBatchBytes(records, 0),
    count: batch.readRecordCount(records, 0),
    attributes: batch.readAttributes(records, 0),
    isTransactional: batch.isTransactional(records, 0),
    producerId: Math.max(-1, batch.readProducerId(records, 0)),
    producerEpoch: batch.readProducerEpoch(records, 0),
    baseSequence: batch.readBaseSequence(records, 0),
    baseTimestamp,
    maxTimestamp,
    timestampsToMend: isLogAppendTime || maxTimestamp !== headerMaxTimestamp,
    deltasToMend: !survey.areConsecutive,
    opened,
  };
}

/**
 * The hot loop. It compares small integers only: what they mean for the batch, and which records
 * are to blame if they are wrong, is found out afterwards.
 */
function surveyRecords(records: Buffer, opened: Buffer | null): void {
  cursor.reset(records, 0, opened);
  survey.hasNullKey = false;
  survey.areConsecutive = true;
  if (!cursor.next()) return;
  let minDelta = cursor.timestampDelta;
  let maxDelta = minDelta;
  do {
    const delta = cursor.timestampDelta;
    if (delta < minDelta) minDelta = delta;
    else if (delta > maxDelta) maxDelta = delta;
    if (cursor.keyBytes < 0) survey.hasNullKey = true;
    if (cursor.offsetDelta !== cursor.index) survey.areConsecutive = false;
  } while (cursor.next());
  survey.minDelta = minDelta;
  survey.maxDelta = maxDelta;
}

/** Java's KafkaLZ4BlockInputStream reads no linked blocks, so Kafka does not let them in. */
function hasLinkedLz4Blocks(records: Buffer): boolean {
  if (batch.readCompressionBits(records, 0) !== Compression.lz4) return false;
  const flags = records[batch.batchHeaderBytes + lz4FlagsAt]!;
  return (flags & lz4IndependentBlocks) === 0;
}

/**
 * Timestamps that are no safe integers lie outside of every range: what a number cannot hold
 * exactly could not be given back exactly. Where the broker sets the time, no range applies.
 */
function lowestTimestamp(rules: ProduceRules): number {
  if (rules.timestampType === 'LogAppendTime') return Number.NEGATIVE_INFINITY;
  return Math.max(rules.nowMs - rules.timestampBeforeMaxMs, Number.MIN_SAFE_INTEGER);
}

function highestTimestamp(rules: ProduceRules): number {
  if (rules.timestampType === 'LogAppendTime') return Number.POSITIVE_INFINITY;
  return Math.min(rules.nowMs + rules.timestampAfterMaxMs, Number.MAX_SAFE_INTEGER);
}

/** A second walk, taken only when the first has met something that Kafka blames on records. */
function collectRecordErrors(
  records: Buffer,
  opened: Buffer | null,
  rules: ProduceRules,
): RefusedBatch | null {
  const recordErrors: RecordError[] = [];
  let errorCount = 0;
  let isTimestampWrong = false;
  cursor.reset(records, 0, opened);
  while (cursor.next()) {
    const isKeyMissing = rules.compacted && cursor.keyBytes < 0;
    if (!isKeyMissing && isTimestampFine(records, rules)) continue;
    if (!isKeyMissing) isTimestampWrong = true;
    errorCount++;
    // Texts are what is slow here, and a batch may have a hundred thousand records.
    if (recordErrors.length >= recordErrorsMax) continue;
    const message = isKeyMissing
      ? `Compacted topic cannot accept message without key in topic partition` +
        ` ${rules.topicPartition}`
      : timestampError(rules);
    recordErrors.push({ batchIndex: cursor.index, message });
  }
  cursor.release();
  if (errorCount === 0) return null;
  if (isTimestampWrong) {
    return {
      ok: false,
      errorCode: ErrorCode.INVALID_TIMESTAMP,
      message: 'One or more records have been rejected due to invalid timestamp',
      recordErrors,
    };
  }
  return {
    ok: false,
    errorCode: ErrorCode.INVALID_RECORD,
    message: `One or more records have been rejected due to ${errorCount} record errors in total`,
    recordErrors,
  };
}

/** Is the time of the cursor's record one that may be stored (validateTimestamp)? */
function isTimestampFine(records: Buffer, rules: ProduceRules): boolean {
  if (!isRangeAsked(rules)) return batch.readTimestampType(records, 0) === 'CreateTime';
  const timestamp = cursor.timestamp;
  return timestamp >= lowestTimestamp(rules) && timestamp <= highestTimestamp(rules);
}

/** Why the time of the cursor's record is not fine. */
function timestampError(rules: ProduceRules): string {
  if (!isRangeAsked(rules)) {
    return (
      `Invalid timestamp type in message ${cursor.index}. Producer should not set timestamp type` +
      ` to LogAppendTime.`
    );
  }
  return (
    `Timestamp ${cursor.timestamp} of message with offset ${cursor.offset} is out of range. The` +
    ` timestamp should be within [${lowestTimestamp(rules)}, ${highestTimestamp(rules)}]`
  );
}

/** A range for times applies to the cursor's record, and nothing else does. */
function isRangeAsked(rules: ProduceRules): boolean {
  return rules.timestampType === 'CreateTime' && cursor.timestamp !== noTimestamp;
}

function invalid(message: string): RefusedBatch {
  return refuse(ErrorCode.INVALID_RECORD, message);
}

function corrupt(message: string): RefusedBatch {
  return refuse(ErrorCode.CORRUPT_MESSAGE, message);
}

function refuse(errorCode: number, message: string): RefusedBatch {
  return { ok: false, errorCode, message, recordErrors: [] };
}
