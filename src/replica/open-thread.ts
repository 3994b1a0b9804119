import { Worker } from 'node:worker_threads';
import { batchOverheadBytes, readBatchLength } from '../protocol/records/batch-header.ts';
import type {
  BatchOpener,
  BatchToOpen,
  CancelOpening,
  OpenedBatch,
  Opening,
} from './open-batch.ts';
import type { OpenCommand, OpenReport } from './open-worker.ts';

/** One call, of which `results` are there already. */
interface Task {
  readonly batches: readonly BatchToOpen[];
  readonly done: (result: Opening) => void;
  readonly results: OpenedBatch[];
  isCancelled: boolean;
}

/** Batches that go in one message: beyond one, as many as have so many bytes before opening. */
const messageBytesMax = 256 * 1024;
/** Messages that the thread has not answered: one at work, one that it finds when it is done. */
const messagesMax = 2;

/**
 * A thread that opens large batches, started by the first of them. What it cannot take yet waits
 * here and not in its mailbox: as bytes that are counted as in flight, uncopied. Calls with much
 * to open take turns.
 *
 * Should the thread end, the process does: it has no state that another one could not build up,
 * but what ended it would come again.
 */
export class OpenThread implements BatchOpener {
  readonly #onFatal: (error: unknown) => void;
  readonly #module: URL;
  #worker: Worker | undefined;
  #isStopped = false;
  /** Those that have batches which are not sent. */
  readonly #waiting: Task[] = [];
  /** Whose batches each message has that is not answered. */
  readonly #sent: Task[] = [];

  constructor(
    onFatal: (error: unknown) => void,
    module = new URL('./open-worker.js', import.meta.url),
  ) {
    this.#onFatal = onFatal;
    this.#module = module;
  }

  open(batches: readonly BatchToOpen[], done: (result: Opening) => void): CancelOpening {
    const task: Task = { batches, done, results: [], isCancelled: false };
    if (this.#isStopped) {
      setImmediate(() => this.#finish(task, 'stopped'));
    } else {
      this.#waiting.push(task);
      this.#send();
    }
    return () => {
      task.isCancelled = true;
      const at = this.#waiting.indexOf(task);
      if (at >= 0) this.#waiting.splice(at, 1);
    };
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    const tasks = [...this.#sent.splice(0), ...this.#waiting.splice(0)];
    for (const task of tasks) this.#finish(task, 'stopped');
    await this.#worker?.terminate();
  }

  #send(): void {
    while (this.#sent.length < messagesMax) {
      const task = this.#waiting.shift();
      if (task === undefined) return;
      this.#worker ??= this.#start();
      // Only who is waited for keeps the process alive.
      if (this.#sent.length === 0) this.#worker.ref();
      this.#sent.push(task);
      sendNext(this.#worker, task);
    }
  }

  #start(): Worker {
    const worker = new Worker(this.#module, { name: 'open', env: {}, execArgv: [] });
    worker.on('message', (report: OpenReport) => this.#onReport(report));
    worker.on('error', (error) => this.#onEnd(error));
    worker.on('exit', () => this.#onEnd(new Error('the thread that opens batches has ended')));
    return worker;
  }

  #onReport(report: OpenReport): void {
    const task = this.#sent.shift();
    if (task === undefined) return;
    if (report instanceof Error) this.#finish(task, report);
    else {
      for (const { verdict, rewritten } of report) {
        task.results.push({ verdict, rewritten: rewritten === null ? null : asBuffer(rewritten) });
      }
      if (task.results.length === task.batches.length) this.#finish(task, task.results);
      else if (!task.isCancelled) this.#waiting.push(task);
    }
    this.#send();
    if (this.#sent.length === 0) this.#worker?.unref();
  }

  #finish(task: Task, result: Opening): void {
    if (!task.isCancelled) task.done(result);
  }

  #onEnd(error: unknown): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#onFatal(error);
  }
}

/** A copy goes out: what the broker stores is a part of the request that was received. */
function sendNext(worker: Worker, { batches, results }: Task): void {
  const command: OpenCommand['batches'][number][] = [];
  const transfer: ArrayBuffer[] = [];
  let bytes = 0;
  for (let at = results.length; at < batches.length; at++) {
    const { records, rules, compressionType } = batches[at]!;
    const batchBytes = readBatchLength(records, 0) + batchOverheadBytes;
    bytes += batchBytes;
    if (command.length > 0 && bytes > messageBytesMax) break;
    const copy = new Uint8Array(records.subarray(0, batchBytes));
    command.push({ records: copy, rules, compressionType });
    transfer.push(copy.buffer);
  }
  worker.postMessage({ batches: command } satisfies OpenCommand, transfer);
}

function asBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}
