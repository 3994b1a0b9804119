import { asBuffer } from '../core/as-buffer.ts';
import { assert } from '../core/assert.ts';
import { batchOverheadBytes, readBatchLength } from '../protocol/records/batch-header.ts';
import type { Job, JobThread } from './job-thread.ts';
import type { JobCommand, JobReport, OpenCommand } from './job-worker.ts';
import { movableCopy } from './movable.ts';
import type {
  BatchOpener,
  BatchToOpen,
  CancelOpening,
  OpenedBatch,
  Opening,
} from './open-batch.ts';

/** Batches that go in one message: beyond one, as many as have so many bytes before opening. */
const messageBytesMax = 256 * 1024;
/**
 * What the batches of one call may become together, in terms of what the largest of them may. Many
 * small batches that each grow as far as they are allowed to would otherwise take the thread for
 * minutes and, where they are stored uncompressed, all of the memory.
 */
const largestBatchesMax = 4;

/**
 * Opens the large batches of Produce requests in the thread for such jobs; a call is a request.
 * What is too much for one request is refused as a batch is that is too large by itself: producers
 * answer MESSAGE_TOO_LARGE by splitting their batches.
 */
export class OpenThread implements BatchOpener {
  readonly #thread: JobThread;

  constructor(thread: JobThread) {
    this.#thread = thread;
  }

  open(batches: readonly BatchToOpen[], done: (result: Opening) => void): CancelOpening {
    return this.#thread.run(new OpenJob(batches, done));
  }

  stop(): Promise<void> {
    return this.#thread.stop();
  }
}

class OpenJob implements Job {
  readonly #batches: readonly BatchToOpen[];
  readonly #done: (result: Opening) => void;
  readonly #results: OpenedBatch[] = [];
  #bytesLeft = 0;

  constructor(batches: readonly BatchToOpen[], done: (result: Opening) => void) {
    this.#batches = batches;
    this.#done = done;
    for (const { rules } of batches) {
      this.#bytesLeft = Math.max(this.#bytesLeft, rules.openedBytesMax * largestBatchesMax);
    }
  }

  /** A copy goes out: what the broker stores is a part of the request that was received. */
  next(transfer: ArrayBuffer[]): JobCommand {
    const command: OpenCommand['batches'][number][] = [];
    let bytes = 0;
    for (let at = this.#results.length; at < this.#batches.length; at++) {
      const { records, rules, compressionType } = this.#batches[at]!;
      const batchBytes = readBatchLength(records, 0) + batchOverheadBytes;
      bytes += batchBytes;
      if (command.length > 0 && bytes > messageBytesMax) break;
      const copy = movableCopy(records.subarray(0, batchBytes), transfer);
      command.push({ records: copy, rules, compressionType });
    }
    return { kind: 'open', batches: command, bytesLeft: this.#bytesLeft };
  }

  onReport(report: Exclude<JobReport, Error>): boolean {
    assert(report.kind === 'opened', 'the thread answers in order');
    this.#bytesLeft = report.bytesLeft;
    for (const { verdict, rewritten } of report.batches) {
      this.#results.push({ verdict, rewritten: rewritten === null ? null : asBuffer(rewritten) });
    }
    if (this.#results.length < this.#batches.length) return true;
    this.#done(this.#results);
    return false;
  }

  onError(error: Error): void {
    this.#done(error);
  }

  onStopped(): void {
    this.#done('stopped');
  }
}
