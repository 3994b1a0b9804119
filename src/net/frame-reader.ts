/**
 * Cuts a byte stream into frames:
 *
 *   stream = frame*
 *   frame  = size:int32 (big endian) bytes[size]
 *
 * Chunks are only borrowed, so that sockets can read into one buffer that they all share; each
 * frame is copied once into memory of exactly its own size. (Views of the chunks would spare small
 * frames the copy, but a kept frame of 200 bytes would then pin 64 KiB; and sockets that allocate
 * each chunk cost more than the copy, see bench/micro/net.ts.)
 *
 * It judges no size: whoever calls looks at `frameBytes` before `next`.
 * Invariant: memory for an unfinished frame <= 2 * bytes of it that have arrived + 1 MiB.
 */
import { assert } from '../core/assert.ts';

/** What `frameBytes` says while the size field itself has not arrived whole. */
export const frameBytesUnknown = Number.MIN_SAFE_INTEGER;

/** So much is allocated for any frame that begins. */
const firstBytesMax = 4 * 1024;
/** Up to this size a frame has its full memory as soon as a sixteenth of it is there. */
const stepBytesMax = 1024 * 1024;

export class FrameReader {
  #chunk: Buffer | null = null;
  #position = 0;
  /** The size field as far as it has arrived, and how many bytes of it that is. */
  #sizeBits = 0;
  #sizeCount = 0;
  /** The unfinished frame as far as it has arrived, or null if nothing of it has. */
  #partial: Buffer | null = null;
  #partialBytes = 0;

  /** Takes the next chunk of the stream, until `next` returns null or `keepRest` is called. */
  feed(chunk: Buffer): void {
    assert(this.#chunk === null, 'a chunk is fed only after the one before is used up');
    this.#chunk = chunk;
    this.#position = 0;
  }

  /** The claimed size of the frame at hand, may be negative; or `frameBytesUnknown`. */
  get frameBytes(): number {
    return this.#sizeCount === 4 || this.#readSize() ? this.#sizeBits : frameBytesUnknown;
  }

  /** Whether a part of a frame is kept here. */
  get midFrame(): boolean {
    return this.#sizeCount > 0 || this.#chunk !== null;
  }

  /** The next whole frame, or null when the chunk is used up. */
  next(): Buffer | null {
    const size = this.frameBytes;
    const chunk = this.#chunk;
    if (chunk === null) return null;
    assert(size >= 0, 'the size was judged before');
    const start = this.#position;
    const end = start + size - this.#partialBytes;
    if (end > chunk.length) {
      this.#keepPartial(chunk, size);
      return null;
    }
    const frame = this.#finishFrame(chunk, end, size);
    this.#sizeBits = 0;
    this.#sizeCount = 0;
    this.#position = end;
    if (end === chunk.length) this.#chunk = null;
    return frame;
  }

  /** Copies what is left of the chunk, whose owner wants it back before it is used up. */
  keepRest(): void {
    if (this.#chunk === null) return;
    this.#chunk = Buffer.from(this.#chunk.subarray(this.#position));
    this.#position = 0;
  }

  #finishFrame(chunk: Buffer, end: number, size: number): Buffer {
    const partial = this.#partial;
    if (partial === null) {
      const frame = Buffer.allocUnsafe(size);
      chunk.copy(frame, 0, this.#position, end);
      return frame;
    }
    const frame = partial.length === size ? partial : this.#grown(partial, size);
    chunk.copy(frame, this.#partialBytes, this.#position, end);
    this.#partial = null;
    this.#partialBytes = 0;
    return frame;
  }

  #keepPartial(chunk: Buffer, size: number): void {
    const count = chunk.length - this.#position;
    this.#chunk = null;
    if (count === 0) return;
    const arrived = this.#partialBytes + count;
    let partial = this.#partial;
    if (partial === null || partial.length < arrived) {
      const room = Math.max(firstBytesMax, 2 * arrived, Math.min(16 * arrived, stepBytesMax));
      partial = this.#grown(partial, Math.min(size, room));
      this.#partial = partial;
    }
    chunk.copy(partial, this.#partialBytes, this.#position);
    this.#partialBytes = arrived;
  }

  #grown(partial: Buffer | null, bytes: number): Buffer {
    const grown = Buffer.allocUnsafe(bytes);
    partial?.copy(grown, 0, 0, this.#partialBytes);
    return grown;
  }

  /** Reads on in the size field; true when it is whole. Drops a chunk that ends within it. */
  #readSize(): boolean {
    const chunk = this.#chunk;
    if (chunk === null) return false;
    if (this.#sizeCount === 0 && this.#position + 4 <= chunk.length) {
      this.#sizeBits = chunk.readInt32BE(this.#position);
      this.#sizeCount = 4;
      this.#position += 4;
      return true;
    }
    while (this.#sizeCount < 4 && this.#position < chunk.length) {
      this.#sizeBits = (this.#sizeBits << 8) | chunk[this.#position]!;
      this.#sizeCount += 1;
      this.#position += 1;
    }
    if (this.#sizeCount === 4) return true;
    this.#chunk = null;
    return false;
  }
}
