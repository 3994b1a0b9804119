/**
 * Cuts a byte stream into frames:
 *
 *   stream = frame*
 *   frame  = size:int32 (big endian) bytes[size]
 *
 * It owns the bytes of at most one unfinished frame plus one chunk, and allocates only for bytes
 * that have arrived, whatever size a frame claims. It judges no size: whoever calls looks at
 * `frameBytes` first.
 */
import { assert } from '../core/assert.ts';

/** What `frameBytes` says while the size field itself has not arrived whole. */
export const frameBytesUnknown = Number.MIN_SAFE_INTEGER;

export class FrameReader {
  #chunk: Buffer | null = null;
  #position = 0;
  /** The size field as far as it has arrived, and how many bytes of it that is. */
  #sizeBits = 0;
  #sizeCount = 0;
  /** Views of earlier chunks that belong to the frame at hand, or null. */
  #parts: Buffer[] | null = null;
  #partsBytes = 0;

  /** Takes the next chunk of the stream, whose bytes nobody changes any more. */
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

  /** The next whole frame, or null when the chunk is used up. Each frame owns its memory. */
  next(): Buffer | null {
    const size = this.frameBytes;
    const chunk = this.#chunk;
    if (chunk === null) return null;
    assert(size >= 0, 'the size was judged before');
    const end = this.#position + size - this.#partsBytes;
    if (end > chunk.length) {
      this.#keepRest(chunk);
      return null;
    }
    const frame = Buffer.allocUnsafe(size);
    if (this.#parts !== null) this.#joinParts(frame);
    chunk.copy(frame, this.#partsBytes, this.#position, end);
    this.#sizeBits = 0;
    this.#sizeCount = 0;
    this.#parts = null;
    this.#partsBytes = 0;
    this.#position = end;
    if (end === chunk.length) this.#chunk = null;
    return frame;
  }

  #keepRest(chunk: Buffer): void {
    this.#chunk = null;
    if (this.#position === chunk.length) return;
    this.#parts ??= [];
    this.#parts.push(chunk.subarray(this.#position));
    this.#partsBytes += chunk.length - this.#position;
  }

  #joinParts(frame: Buffer): void {
    let at = 0;
    for (const part of this.#parts ?? []) at += part.copy(frame, at);
  }

  /** Reads on in the size field; true when it is whole. Drops a chunk that ends within it. */
  #readSize(): boolean {
    const chunk = this.#chunk;
    if (chunk === null) return false;
    if (this.#sizeCount === 0 && this.#position + 4 <= chunk.length) {
      this.#sizeBits = chunk.readInt32BE(this.#position);
      this.#sizeCount = 4;
      this.#position += 4;
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
