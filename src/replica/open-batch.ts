/**
 * What a leader does with the records of one batch before it plans to store it: opens them, walks
 * over them, and writes them anew where the topic wants another codec or the producer's offsets
 * are out of order. It looks at nothing but the batch, so it may run anywhere.
 */
import {
  type Codecs,
  Compression,
  type CompressionId,
  DecompressionError,
} from '../core/compression.ts';
import { readCompressionBits } from '../protocol/records/batch-header.ts';
import {
  type CompressionSetting,
  recompressBatch,
  renumberBatch,
  targetCompression,
} from '../protocol/records/build.ts';
import { openRecords } from '../protocol/records/cursor.ts';
import {
  checkRecords,
  type ProduceRules,
  type RefusedBatch,
  refuseUnopened,
  type ValidBatch,
} from '../protocol/records/validate.ts';

export interface BatchToOpen {
  /** It starts with a batch that `checkBatch` has nothing against. */
  readonly records: Buffer;
  readonly rules: ProduceRules;
  /** `compression.type` of the topic. */
  readonly compressionType: CompressionSetting;
}

export interface OpenedBatch {
  readonly verdict: ValidBatch | RefusedBatch;
  /** The batch as it is to be stored, where that is not as it was sent. */
  readonly rewritten: Buffer | null;
}

export type CancelOpening = () => void;

/**
 * Opens batches elsewhere than on the event loop, in the order of the calls as far as one call does
 * not hold up the others for long.
 */
export interface BatchOpener {
  /**
   * Calls back once, later and not after it was cancelled: with a result for each batch; with an
   * error, should one of them have found a bug; with 'stopped' if a stop comes first. The batches
   * must not change until then.
   */
  open(batches: readonly BatchToOpen[], done: (result: Opening) => void): CancelOpening;
  stop(): Promise<void>;
}

export type Opening = readonly OpenedBatch[] | Error | 'stopped';

/** How many bytes may be opened here and now; other work counts as what costs as much. */
export interface OpeningAllowance {
  readonly batchBytesMax: number;
  /** What is left for all batches together. */
  bytes: number;
}

/**
 * What one request may have opened on the event loop. A gzip batch of 64 KiB of JSON opens in
 * 0.1 ms, and what tries to become more than that is given up as fast. A hop to a thread and back
 * costs 0.05 ms.
 */
export function requestAllowance(): OpeningAllowance {
  return { batchBytesMax: 64 * 1024, bytes: 256 * 1024 };
}

export function unlimitedAllowance(): OpeningAllowance {
  return { batchBytesMax: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };
}

/** Compressing costs that many times as much as opening, and so does writing record by record. */
const rewriteWeight = 8;

/** Null where it would take more than is allowed. */
export function openBatch(
  batch: BatchToOpen,
  codecs: Codecs,
  allowance: OpeningAllowance,
): OpenedBatch | null {
  const { records, rules, compressionType } = batch;
  const bytesMax = Math.min(allowance.batchBytesMax, allowance.bytes);
  const compression = readCompressionBits(records, 0) as CompressionId;
  if (compression !== Compression.none && records.length > bytesMax) return null;
  let opened: Buffer | null;
  try {
    opened = openRecords(records, 0, codecs, Math.min(bytesMax, rules.openedBytesMax));
  } catch (error) {
    if (!(error instanceof DecompressionError)) throw error;
    if (error.tooLarge && bytesMax < rules.openedBytesMax) return null;
    // It may have failed at its very end.
    allowance.bytes -= bytesMax;
    return { verdict: refuseUnopened(error), rewritten: null };
  }
  if (opened !== null) allowance.bytes -= opened.length;
  const verdict = checkRecords(records, opened, rules);
  if (!verdict.ok) return { verdict, rewritten: null };
  const target = targetCompression(compressionType, compression);
  if (target === compression && !verdict.deltasToMend) return { verdict, rewritten: null };
  const work = (opened ?? records).length * rewriteWeight;
  if (work > Math.min(allowance.batchBytesMax, allowance.bytes)) return null;
  allowance.bytes -= work;
  const renumbered = verdict.deltasToMend ? renumberBatch(records, 0) : records;
  const isPacked = target === compression;
  const rewritten = isPacked ? renumbered : recompressBatch(renumbered, 0, opened, target, codecs);
  return { verdict, rewritten };
}
