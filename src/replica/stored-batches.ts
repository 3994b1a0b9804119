/**
 * What is in stored batches: for ListOffsets, which asks, and for keyed delivery, which looks at
 * all of it. A small batch is opened here and now, a large one by the thread for such jobs.
 */
import { assert } from '../core/assert.ts';
import { type Codecs, DecompressionError } from '../core/compression.ts';
import { isPacked } from '../protocol/records/batch-header.ts';
import { openRecords } from '../protocol/records/cursor.ts';
import {
  findByTimestamp,
  findMaxTimestamp,
  RecordsDamagedError,
  type TimestampAndOffset,
} from '../protocol/records/iterate.ts';
import type { Job, JobThread } from './job-thread.ts';
import type { JobReport } from './job-worker.ts';

export interface BatchQuestion {
  /** The first record that is not earlier; or the first of those that are latest. */
  readonly timestamp: number | 'latest';
  /** Only records from here on count. */
  readonly offsetMin: number;
  /** What a compressed batch may become. */
  readonly openedBytesMax: number;
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
    return new Promise((resolve, reject) => {
      this.#thread.run(new UnpackJob(batch, resolve, reject));
    });
  }

  /** `batch` must stay as it is until the answer. */
  ask(batch: Buffer, question: BatchQuestion): Promise<QuestionAnswer | 'stopped'> {
    if (batch.length <= openedHereBytesMax) {
      const openedBytesMax = Math.min(question.openedBytesMax, openedHereBytesMax);
      const answer = answerQuestion(batch, { ...question, openedBytesMax }, this.#codecs);
      const isFinal = answer !== 'too large' || openedBytesMax === question.openedBytesMax;
      if (isFinal) return Promise.resolve(answer);
    }
    return new Promise((resolve, reject) => {
      this.#thread.run(new AskJob(batch, question, resolve, reject));
    });
  }
}

const noRecords: Buffer = Buffer.alloc(0);

/** As much packed opens in about as long as a hop to the thread and back takes. */
const unpackedHereBytesMax = 16 * 1024;

class UnpackJob implements Job {
  readonly #batch: Buffer;
  readonly #resolve: (records: Buffer | null | 'stopped') => void;
  readonly #reject: (error: Error) => void;

  constructor(
    batch: Buffer,
    resolve: (records: Buffer | null | 'stopped') => void,
    reject: (error: Error) => void,
  ) {
    this.#batch = batch;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  next(transfer: ArrayBuffer[]) {
    const batch = new Uint8Array(this.#batch);
    transfer.push(batch.buffer);
    return { kind: 'unpack', batch } as const;
  }

  onReport(report: Exclude<JobReport, Error>): boolean {
    assert(report.kind === 'unpacked', 'the thread answers in order');
    const { records } = report;
    const isThere = records !== null;
    this.#resolve(isThere ? Buffer.from(records.buffer, records.byteOffset, records.length) : null);
    return false;
  }

  onError(error: Error): void {
    this.#reject(error);
  }

  onStopped(): void {
    this.#resolve('stopped');
  }
}

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

class AskJob implements Job {
  readonly #batch: Buffer;
  readonly #question: BatchQuestion;
  readonly #resolve: (answer: QuestionAnswer | 'stopped') => void;
  readonly #reject: (error: Error) => void;

  constructor(
    batch: Buffer,
    question: BatchQuestion,
    resolve: (answer: QuestionAnswer | 'stopped') => void,
    reject: (error: Error) => void,
  ) {
    this.#batch = batch;
    this.#question = question;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  next(transfer: ArrayBuffer[]) {
    const batch = new Uint8Array(this.#batch);
    transfer.push(batch.buffer);
    return { kind: 'ask', batch, question: this.#question } as const;
  }

  onReport(report: Exclude<JobReport, Error>): boolean {
    assert(report.kind === 'asked', 'the thread answers in order');
    this.#resolve(report.answer);
    return false;
  }

  onError(error: Error): void {
    this.#reject(error);
  }

  onStopped(): void {
    this.#resolve('stopped');
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
