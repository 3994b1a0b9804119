/**
 * What is in stored batches: for ListOffsets, which asks; for keyed delivery, which looks at all of
 * it; for Fetch of old versions, which wants it in another format. A small batch is opened here and
 * now, a large one by the thread for such jobs.
 */
import { asBuffer } from '../core/as-buffer.ts';
import { assert } from '../core/assert.ts';
import { type Codecs, DecompressionError } from '../core/compression.ts';
import { isPacked } from '../protocol/records/batch-header.ts';
import { openRecords } from '../protocol/records/cursor.ts';
import {
  type DownConversion,
  type DownConverted,
  downConvert,
} from '../protocol/records/down-convert.ts';
import {
  findByTimestamp,
  findMaxTimestamp,
  RecordsDamagedError,
  type TimestampAndOffset,
} from '../protocol/records/iterate.ts';
import type { JobThread } from './job-thread.ts';
import type { JobCommand, JobReport } from './job-worker.ts';
import { movableCopy } from './movable.ts';

export interface BatchQuestion {
  /** The first record that is not earlier; or the first of those that are latest. */
  readonly timestamp: number | 'latest';
  /** Only records from here on count. */
  readonly offsetMin: number;
  /** What a compressed batch may become. */
  readonly openedBytesMax: number;
}

export interface BatchConversion {
  readonly asked: DownConversion;
  /** What one compressed batch may become, and what all of them may. */
  readonly openedBytesMax: number;
  readonly openedBytesLeft: number;
}

/** `too large`: the batch grows beyond what is allowed. */
export type QuestionAnswer = TimestampAndOffset | null | 'damaged' | 'too large';

/** As much opens in 0.1 ms, which is about what a hop to a thread and back costs. */
const openedHereBytesMax = 64 * 1024;

export class StoredBatches {
  readonly #codecs: Codecs;
  readonly #thread: JobThread;

  constructor(codecs: Codecs, thread: JobThread) {
    this.#codecs = codecs;
    this.#thread = thread;
  }

  /** Whether `unpack` would take the thread: the batch is compressed, and not small. */
  static isLarge(batch: Buffer): boolean {
    return isPacked(batch) && batch.length > unpackedHereBytesMax;
  }

  /** The records of a compressed batch; it must stay as it is until the answer. */
  unpack(batch: Buffer): Promise<Buffer | null | 'stopped'> {
    if (!StoredBatches.isLarge(batch)) return Promise.resolve(unpack(batch, this.#codecs));
    return this.#ask(
      (transfer) => ({ kind: 'unpack', batch: movableCopy(batch, transfer) }),
      (report) => {
        assert(report.kind === 'unpacked', 'the thread answers in order');
        return report.records && asBuffer(report.records);
      },
    );
  }

  /** `batch` must stay as it is until the answer. */
  ask(batch: Buffer, question: BatchQuestion): Promise<QuestionAnswer | 'stopped'> {
    if (batch.length <= openedHereBytesMax) {
      const openedBytesMax = Math.min(question.openedBytesMax, openedHereBytesMax);
      const answer = answerQuestion(batch, { ...question, openedBytesMax }, this.#codecs);
      const isFinal = answer !== 'too large' || openedBytesMax === question.openedBytesMax;
      if (isFinal) return Promise.resolve(answer);
    }
    return this.#ask(
      (transfer) => ({ kind: 'ask', batch: movableCopy(batch, transfer), question }),
      (report) => {
        assert(report.kind === 'asked', 'the thread answers in order');
        return report.answer;
      },
    );
  }

  /** As messages of an old format, by the thread in any case. The batches must stay as they are. */
  convert(
    batches: readonly Buffer[],
    conversion: BatchConversion,
  ): Promise<DownConverted | 'damaged' | 'stopped'> {
    return this.#ask(
      (transfer) => ({
        kind: 'convert',
        batches: batches.map((batch) => movableCopy(batch, transfer)),
        conversion,
      }),
      (report) => {
        assert(report.kind === 'converted', 'the thread answers in order');
        const { result } = report;
        if (result === 'damaged') return result;
        return { records: asBuffer(result.records), openedBytes: result.openedBytes };
      },
    );
  }

  #ask<T>(
    command: (transfer: ArrayBuffer[]) => JobCommand,
    read: (report: Exclude<JobReport, Error>) => T,
  ): Promise<T | 'stopped'> {
    return new Promise((resolve, reject) => {
      this.#thread.run({
        next: command,
        onReport(report) {
          resolve(read(report));
          return false;
        },
        onError: reject,
        onStopped: () => resolve('stopped'),
      });
    });
  }
}

const noRecords: Buffer = Buffer.alloc(0);

/** As much packed opens in about as long as a hop to the thread and back takes. */
const unpackedHereBytesMax = 16 * 1024;

/**
 * The records of a stored batch without compression, empty if they are so there; null if it is
 * damaged. What was accepted once is opened however large it is, also if `decompressed.bytes.max`
 * is lower by now.
 */
export function unpack(batch: Buffer, codecs: Codecs): Buffer | null {
  try {
    return openRecords(batch, 0, codecs, 2 ** 31 - 1) ?? noRecords;
  } catch (error) {
    if (error instanceof DecompressionError) return null;
    throw error;
  }
}

/** Batches as messages of an old format, as `downConvert` makes them. */
export function convertBatches(
  batches: readonly Buffer[],
  { asked, openedBytesMax, openedBytesLeft }: BatchConversion,
  codecs: Codecs,
): DownConverted | 'damaged' {
  try {
    return downConvert(batches, asked, { codecs, openedBytesMax }, openedBytesLeft);
  } catch (error) {
    const isDamaged = error instanceof RecordsDamagedError || error instanceof DecompressionError;
    if (!isDamaged) throw error;
    return 'damaged';
  }
}

export function answerQuestion(
  batch: Buffer,
  { timestamp, offsetMin, openedBytesMax }: BatchQuestion,
  codecs: Codecs,
): QuestionAnswer {
  const limits = { codecs, openedBytesMax };
  try {
    return timestamp === 'latest'
      ? findMaxTimestamp(batch, 0, limits)
      : findByTimestamp(batch, 0, timestamp, offsetMin, limits);
  } catch (error) {
    if (error instanceof RecordsDamagedError) return 'damaged';
    if (error instanceof DecompressionError) return error.tooLarge ? 'too large' : 'damaged';
    throw error;
  }
}
