/**
 * Compact binary writing and reading for our own formats (journal entries, snapshots). Numbers
 * are unsigned LEB128 varints up to 2^53, or fixed 64-bit floats where any number may stand.
 * Reading is total: what does not fit throws `BytesError`, never reads past the end.
 */

export class BytesError extends Error {
  override name = 'BytesError';
}

/** Its length fits one byte as a varint. */
const shortTextMax = 0x7f;

export class ByteWriter {
  #buffer: Buffer;
  #length = 0;

  constructor(bytesInitial = 256) {
    this.#buffer = Buffer.allocUnsafe(bytesInitial);
  }

  get length(): number {
    return this.#length;
  }

  #reserve(bytes: number): number {
    const at = this.#length;
    const need = at + bytes;
    if (need > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(Math.max(need, this.#buffer.length * 2));
      this.#buffer.copy(grown, 0, 0, at);
      this.#buffer = grown;
    }
    this.#length = need;
    return at;
  }

  u8(value: number): this {
    const at = this.#reserve(1);
    this.#buffer[at] = value;
    return this;
  }

  u32(value: number): this {
    const at = this.#reserve(4);
    this.#buffer.writeUInt32LE(value, at);
    return this;
  }

  /** Any number: offsets that may be negative, timestamps, 53-bit ids. */
  f64(value: number): this {
    const at = this.#reserve(8);
    this.#buffer.writeDoubleLE(value, at);
    return this;
  }

  /** A whole number in [0, 2^53). */
  uvarint(value: number): this {
    while (value >= 0x80) {
      this.u8((value % 0x80) | 0x80);
      value = Math.floor(value / 0x80);
    }
    return this.u8(value);
  }

  string(value: string): this {
    const { length } = value;
    if (length <= shortTextMax && this.#shortAscii(value, length)) return this;
    const bytes = Buffer.byteLength(value);
    this.uvarint(bytes);
    const at = this.#reserve(bytes);
    this.#buffer.write(value, at, 'utf8');
    return this;
  }

  /** Nearly all texts are so, and need no calls out of JS. */
  #shortAscii(value: string, length: number): boolean {
    const start = this.#length;
    const at = this.#reserve(1 + length) + 1;
    const buffer = this.#buffer;
    buffer[start] = length;
    for (let i = 0; i < length; i++) {
      const code = value.charCodeAt(i);
      if (code >= 0x80) {
        this.#length = start;
        return false;
      }
      buffer[at + i] = code;
    }
    return true;
  }

  nullableString(value: string | null): this {
    return value === null ? this.u8(0) : this.u8(1).string(value);
  }

  bytes(value: Uint8Array): this {
    this.uvarint(value.length);
    return this.raw(value);
  }

  raw(value: Uint8Array): this {
    const at = this.#reserve(value.length);
    this.#buffer.set(value, at);
    return this;
  }

  /** What was written. The writer must not be used afterwards. */
  finish(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}

export class ByteReader {
  readonly #buffer: Buffer;
  readonly #end: number;
  #at: number;

  constructor(buffer: Buffer, start = 0, end = buffer.length) {
    this.#buffer = buffer;
    this.#at = start;
    this.#end = end;
  }

  get remaining(): number {
    return this.#end - this.#at;
  }

  #take(bytes: number): number {
    const at = this.#at;
    if (bytes > this.#end - at)
      throw new BytesError(`${bytes} bytes wanted, ${this.#end - at} left`);
    this.#at = at + bytes;
    return at;
  }

  u8(): number {
    return this.#buffer[this.#take(1)]!;
  }

  u32(): number {
    return this.#buffer.readUInt32LE(this.#take(4));
  }

  f64(): number {
    return this.#buffer.readDoubleLE(this.#take(8));
  }

  /** What must be a whole number in [0, 2^53). */
  wholeF64(): number {
    const value = this.f64();
    if (!Number.isSafeInteger(value) || value < 0)
      throw new BytesError(`${value} is no such number`);
    return value;
  }

  uvarint(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.u8();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) break;
      scale *= 0x80;
      if (scale > 2 ** 53) throw new BytesError('varint too long');
    }
    if (!Number.isSafeInteger(value)) throw new BytesError('varint too large');
    return value;
  }

  /** A count of things that take at least `bytesEach` bytes each. */
  count(bytesEach = 1): number {
    const count = this.uvarint();
    if (count * bytesEach > this.remaining) throw new BytesError(`count ${count} is too large`);
    return count;
  }

  string(): string {
    const bytes = this.uvarint();
    const at = this.#take(bytes);
    return this.#buffer.toString('utf8', at, at + bytes);
  }

  nullableString(): string | null {
    return this.u8() === 0 ? null : this.string();
  }

  /** A view, not a copy. */
  bytes(): Buffer {
    const bytes = this.uvarint();
    const at = this.#take(bytes);
    return this.#buffer.subarray(at, at + bytes);
  }

  /** A view of the next `bytes` bytes. */
  raw(bytes: number): Buffer {
    const at = this.#take(bytes);
    return this.#buffer.subarray(at, at + bytes);
  }

  end(): void {
    if (this.remaining !== 0) throw new BytesError(`${this.remaining} bytes too many`);
  }
}
