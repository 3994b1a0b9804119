/**
 * Buffers for reads from disk. Fresh large buffers are what costs in Node (their pages are faulted
 * in anew each time), so they are given back and used again.
 *
 * Those that are kept are in memory shared with the thread that reads (read-thread.ts). V8 does
 * not count such memory when it decides about a collection, so none of it is ever dropped, and
 * what is needed beyond it is ordinary memory.
 */
import { assert } from '../core/assert.ts';

export class BufferPool {
  readonly bufferBytes: number;
  readonly #keptMax: number;
  readonly #free: Buffer[] = [];
  #made = 0;

  constructor(bufferBytes: number, keptMax: number) {
    this.bufferBytes = bufferBytes;
    this.#keptMax = keptMax;
  }

  /** Kept buffers that nobody holds, made already or not. */
  get freeCount(): number {
    return this.#free.length + this.#keptMax - this.#made;
  }

  /** A buffer of at least `bytes`. */
  take(bytes: number): LentBuffer {
    return new LentBuffer(this.#take(bytes), this.#give);
  }

  #take(bytes: number): Buffer {
    if (bytes > this.bufferBytes) return Buffer.allocUnsafeSlow(bytes);
    const free = this.#free.pop();
    if (free !== undefined) return free;
    if (this.#made === this.#keptMax) return Buffer.allocUnsafeSlow(this.bufferBytes);
    this.#made++;
    return Buffer.from(new SharedArrayBuffer(this.bufferBytes));
  }

  readonly #give = (buffer: Buffer): void => {
    if (buffer.buffer instanceof SharedArrayBuffer) this.#free.push(buffer);
  };
}

/** Goes back to its pool when its last holder lets go; whoever took it is the first one. */
export class LentBuffer {
  readonly bytes: Buffer;
  readonly #give: (buffer: Buffer) => void;
  #holders = 1;

  constructor(bytes: Buffer, give: (buffer: Buffer) => void) {
    this.bytes = bytes;
    this.#give = give;
  }

  hold(): void {
    assert(this.#holders > 0, 'a buffer that was given back is not held again');
    this.#holders++;
  }

  /** The caller has no view of it any more. */
  letGo(): void {
    assert(this.#holders > 0, 'a buffer is given back once');
    this.#holders--;
    if (this.#holders === 0) this.#give(this.bytes);
  }
}
