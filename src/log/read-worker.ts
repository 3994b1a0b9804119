/**
 * The other end of read-thread.ts: reads ranges of files one after the other, synchronously. It
 * stops when they take so long that they must have waited for the disk: those belong where several
 * wait at a time.
 */
import { readSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { assert } from '../core/assert.ts';
import { numbersPerRead, type ReadDone, type ReadJob } from './read-job.ts';

/** What lies in memory takes microseconds; the rest is for when others run on the processor. */
const startMs = 8;
const eachMs = 0.1;

const port = parentPort;
assert(port !== null, 'this module is the main one of a worker thread');
port.on('message', (job: ReadJob) => port.postMessage(run(job)));

function run({ id, buffers, places }: ReadJob): ReadDone {
  const views = buffers.map((buffer) => new Uint8Array(buffer));
  const began = performance.now();
  let done = 0;
  try {
    for (let at = 0; at < places.length; at += numbersPerRead) {
      const fd = places[at]!;
      const view = views[places[at + 1]!]!;
      const whole = readWhole(fd, view, places[at + 2]!, places[at + 3]!, places[at + 4]!);
      if (!whole) break;
      done++;
      if (performance.now() - began > startMs + done * eachMs) break;
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'EIO';
    return { id, done, code };
  }
  return { id, done, code: undefined };
}

function readWhole(fd: number, view: Uint8Array, at: number, bytes: number, from: number): boolean {
  for (let read = 0; read < bytes; ) {
    const more = readSync(fd, view, at + read, bytes - read, from + read);
    if (more === 0) return false;
    read += more;
  }
  return true;
}
