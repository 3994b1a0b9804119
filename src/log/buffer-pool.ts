/**
 * Buffers for reads from disk. Fresh large buffers are what costs in Node (their pages are faulted
 * in anew each time), so they are given back and used again.
 *
 * Those that are kept are in memory shared with the thread that reads (read-thread.ts). V8 does
 * not count such memory when it decides about a collection, so none of it is ever dropped, and
 * what is needed beyond it is ordinary memory.
 */
export class BufferPool {
  readonly bufferBytes: number;
  readonly #keptMax: number;
  readonly #free: Buffer[] = [];
  #made = 0;

  constructor(bufferBytes: number, keptMax: number) {
    this.bufferBytes = bufferBytes;
    this.#keptMax = keptMax;
  }

  /** A buffer of at least `bytes`. */
  take(bytes: number): Buffer {
    if (bytes > this.bufferBytes) return Buffer.allocUnsafeSlow(bytes);
    const free = this.#free.pop();
    if (free !== undefined) return free;
    if (this.#made === this.#keptMax) return Buffer.allocUnsafeSlow(this.bufferBytes);
    this.#made++;
    return Buffer.from(new SharedArrayBuffer(this.bufferBytes));
  }

  /** The caller holds no view of it any more. */
  give(buffer: Buffer): void {
    if (buffer.buffer instanceof SharedArrayBuffer) this.#free.push(buffer);
  }
}
