import { Worker } from 'node:worker_threads';
import type { JobCommand, JobReport } from './job-worker.ts';

/** Work for the thread, in one message or several. Exactly one of the last three calls ends it. */
export interface Job {
  /** The next message; what is in `transfer` changes hands. */
  next(transfer: ArrayBuffer[]): JobCommand;
  /** What came of the last message. Answers whether there are more. */
  onReport(report: Exclude<JobReport, Error>): boolean;
  /** An error that nobody foresaw ended it. */
  onError(error: Error): void;
  /** A stop came first. */
  onStopped(): void;
}

/** After it nothing is called back any more. */
export type CancelJob = () => void;

interface Task {
  readonly job: Job;
  isCancelled: boolean;
}

/** Messages that the thread has not answered: one at work, one that it finds when it is done. */
const messagesMax = 2;

/**
 * A thread for what would hold up the event loop, started by the first job. What it cannot take yet
 * waits here and not in its mailbox: as bytes that are counted as in flight, uncopied. Jobs of many
 * messages take turns with the others.
 *
 * Should the thread end, the process does: it has no state that another one could not build up,
 * but what ended it would come again.
 */
export class JobThread {
  readonly #onFatal: (error: unknown) => void;
  readonly #module: URL;
  #worker: Worker | undefined;
  #isStopped = false;
  /** Those that have messages which are not sent. */
  readonly #waiting: Task[] = [];
  /** Whose message each is that is not answered. */
  readonly #sent: Task[] = [];

  constructor(
    onFatal: (error: unknown) => void,
    module = new URL('./job-worker.js', import.meta.url),
  ) {
    this.#onFatal = onFatal;
    this.#module = module;
  }

  /** Calls back later, and in the order of the calls as far as jobs have one message. */
  run(job: Job): CancelJob {
    const task: Task = { job, isCancelled: false };
    if (this.#isStopped) {
      setImmediate(() => stopTask(task));
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
    for (const task of tasks) stopTask(task);
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
      const transfer: ArrayBuffer[] = [];
      this.#worker.postMessage(task.job.next(transfer), transfer);
    }
  }

  #start(): Worker {
    const worker = new Worker(this.#module, { name: 'jobs', env: {}, execArgv: [] });
    worker.on('message', (report: JobReport) => this.#onReport(report));
    worker.on('error', (error) => this.#onEnd(error));
    worker.on('exit', () => this.#onEnd(new Error('the thread for large batches has ended')));
    return worker;
  }

  #onReport(report: JobReport): void {
    const task = this.#sent.shift();
    if (task === undefined) return;
    if (!task.isCancelled) {
      if (report instanceof Error) task.job.onError(report);
      // It may be cancelled by what it calls.
      else if (task.job.onReport(report) && !task.isCancelled) this.#waiting.push(task);
    }
    this.#send();
    if (this.#sent.length === 0) this.#worker?.unref();
  }

  #onEnd(error: unknown): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#onFatal(error);
  }
}

function stopTask({ job, isCancelled }: Task): void {
  if (!isCancelled) job.onStopped();
}
