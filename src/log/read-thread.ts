import { Worker } from 'node:worker_threads';
import type { RangeRead } from './file-port.ts';
import { numbersPerRead, type ReadDone, type ReadJob } from './read-job.ts';

/** After reads that waited for the disk, the pool takes them: several wait at a time there. */
const pauseMs = 50;

interface Waiting {
  readonly resolve: (done: number) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A thread for many small reads of what the page cache holds. One message takes all ranges of a
 * fetch there, where a call of libuv's pool for each costs several times the read itself; and
 * the pool stays free for writes and syncs. It is started by the first read.
 */
export class ReadThread {
  #worker: Worker | undefined;
  #hasFailed = false;
  #nextId = 0;
  readonly #waiting = new Map<number, Waiting>();
  #pausedUntilMs = 0;

  /** Reads from the first one on; answers how many are done. The others are for the caller. */
  read(reads: readonly RangeRead[]): Promise<number> {
    if (this.#hasFailed || performance.now() < this.#pausedUntilMs) return Promise.resolve(0);
    const job = jobOf(this.#nextId++, reads);
    if (job === undefined) return Promise.resolve(0);
    this.#worker ??= this.#start();
    const worker = this.#worker;
    return new Promise<number>((resolve, reject) => {
      this.#waiting.set(job.id, { resolve, reject });
      worker.ref();
      worker.postMessage(job);
    }).then((done) => {
      if (done < reads.length) this.#pausedUntilMs = performance.now() + pauseMs;
      return done;
    });
  }

  #start(): Worker {
    const worker = new Worker(new URL('./read-worker.js', import.meta.url), {
      name: 'read',
      env: {},
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 16 },
    });
    worker.on('message', (done: ReadDone) => {
      this.#finish(done);
      // An idle thread does not keep the process alive.
      if (this.#waiting.size === 0) worker.unref();
    });
    worker.on('error', () => this.#fail());
    worker.on('exit', () => this.#fail());
    return worker;
  }

  #finish({ id, done, code }: ReadDone): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (code === undefined) waiting?.resolve(done);
    else waiting?.reject(Object.assign(new Error(`read: ${code}`), { code }));
  }

  /** Without the thread everything goes on, in the pool. */
  #fail(): void {
    this.#hasFailed = true;
    for (const { resolve } of this.#waiting.values()) resolve(0);
    this.#waiting.clear();
  }
}

/** Undefined where a target is not in memory that threads share. */
function jobOf(id: number, reads: readonly RangeRead[]): ReadJob | undefined {
  const buffers: SharedArrayBuffer[] = [];
  const places = new Float64Array(reads.length * numbersPerRead);
  let at = 0;
  for (const { file, target, position } of reads) {
    const { buffer } = target;
    if (file.descriptor === undefined || !(buffer instanceof SharedArrayBuffer)) return undefined;
    // Neighbours share their buffer, so the last one is the only one worth a look.
    if (buffers.at(-1) !== buffer) buffers.push(buffer);
    places[at++] = file.descriptor;
    places[at++] = buffers.length - 1;
    places[at++] = target.byteOffset;
    places[at++] = target.length;
    places[at++] = position;
  }
  return { id, buffers, places };
}
