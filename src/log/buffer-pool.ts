/**
 * Buffers for reads from disk. Fresh large buffers are what costs in Node (their pages are faulted
 * in anew each time), so they are given back and used again.
 */
export class BufferPool {
  readonly bufferBytes: number;
  readonly #keptMax: number;
  readonly #free: Buffer[] = [];

  constructor(bufferBytes: number, keptMax: number) {
    this.bufferBytes = bufferBytes;
    this.#keptMax = keptMax;
  }

  /** A buffer of at least `bytes`. */
  take(bytes: number): Buffer {
    if (bytes > this.bufferBytes) return Buffer.allocUnsafeSlow(bytes);
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(this.bufferBytes);
  }

  /** The caller holds no view of it any more. */
  give(buffer: Buffer): void {
    if (buffer.length === this.bufferBytes && this.#free.length < this.#keptMax) {
      this.#free.push(buffer);
    }
  }
}
