/**
 * Reads the primitives of the wire. Every length is compared with what remains before it is used,
 * so nothing is allocated for bytes that were only claimed. Buffers come out as views on the
 * input, without a copy: they live as long as the frame does.
 */
import { DecodeError } from './codec-error.ts';
import { ZERO_UUID } from './uuid.ts';

/** Kafka's limit on any string, compact ones included. */
const STRING_BYTES_MAX = 0x7fff;
/**
 * The most array elements in one message. An element of two bytes becomes an object of fifty or
 * more, so without a limit a frame of 100 MB could fill the heap. No client asks for a million
 * partitions at once.
 */
const ELEMENTS_MAX = 1_000_000;

export class Reader {
  readonly buffer: Buffer;
  readonly end: number;
  readonly lossless: boolean;
  position: number;
  private elements = 0;

  /** With `lossless`, an int64 that no number can hold exactly comes out as a bigint. */
  constructor(buffer: Buffer, start: number, end: number, lossless = false) {
    if (!(start >= 0 && start <= end && end <= buffer.length)) {
      throw new DecodeError(`range ${start}..${end} does not fit ${buffer.length} bytes`);
    }
    this.buffer = buffer;
    this.position = start;
    this.end = end;
    this.lossless = lossless;
  }

  fail(problem: string): never {
    throw new DecodeError(`${problem} at byte ${this.position} of ${this.end}`);
  }

  /** Moves past `bytes` bytes and returns where they start. */
  private take(bytes: number): number {
    const start = this.position;
    if (bytes > this.end - start) this.fail(`${bytes} bytes are missing`);
    this.position = start + bytes;
    return start;
  }

  bool(): boolean {
    return this.buffer[this.take(1)] !== 0;
  }

  int8(): number {
    return (this.buffer[this.take(1)]! << 24) >> 24;
  }

  int16(): number {
    return (this.uint16() << 16) >> 16;
  }

  uint16(): number {
    const at = this.take(2);
    return (this.buffer[at]! << 8) | this.buffer[at + 1]!;
  }

  int32(): number {
    const at = this.take(4);
    const buffer = this.buffer;
    return (buffer[at]! << 24) | (buffer[at + 1]! << 16) | (buffer[at + 2]! << 8) | buffer[at + 3]!;
  }

  /** Values beyond ±2^53 come out as the nearest double, see `lossless`. */
  int64(): number {
    const high = this.int32();
    const low = this.int32() >>> 0;
    const value = high * 0x100000000 + low;
    if (this.lossless && !Number.isSafeInteger(value)) {
      // Only callers that asked for bigints meet them, so all others keep a plain type.
      return ((BigInt(high) << 32n) | BigInt(low)) as unknown as number;
    }
    return value;
  }

  float64(): number {
    return this.buffer.readDoubleBE(this.take(8));
  }

  uuid(): string {
    const at = this.take(16);
    const buffer = this.buffer;
    // Requests without a topic id carry the zero UUID, which needs no text of its own.
    for (let index = at; index < at + 16; index++) {
      if (buffer[index] !== 0) return buffer.toString('hex', at, at + 16);
    }
    return ZERO_UUID;
  }

  /** At most five bytes; bits above the 32nd are dropped, as Kafka's ByteUtils does. */
  unsignedVarint(): number {
    const buffer = this.buffer;
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = buffer[this.take(1)]!;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    return this.fail('a varint is too long');
  }

  /** A zig-zag varint. */
  varint(): number {
    const value = this.unsignedVarint();
    return (value >>> 1) ^ -(value & 1);
  }

  string(): string {
    return this.textOrNull(this.int16()) ?? this.failNull();
  }

  stringOrNull(): string | null {
    return this.textOrNull(this.int16());
  }

  compactString(): string {
    return this.textOrNull(this.unsignedVarint() - 1) ?? this.failNull();
  }

  compactStringOrNull(): string | null {
    return this.textOrNull(this.unsignedVarint() - 1);
  }

  bytes(): Buffer {
    return this.viewOrNull(this.int32()) ?? this.failNull();
  }

  bytesOrNull(): Buffer | null {
    return this.viewOrNull(this.int32());
  }

  compactBytes(): Buffer {
    return this.viewOrNull(this.unsignedVarint() - 1) ?? this.failNull();
  }

  compactBytesOrNull(): Buffer | null {
    return this.viewOrNull(this.unsignedVarint() - 1);
  }

  /** How many elements follow, each of which takes at least `bytesMin` bytes. */
  count(bytesMin: number): number {
    return this.backed(this.int32(), bytesMin, false);
  }

  /** As `count`, with -1 for null. */
  countOrNull(bytesMin: number): number {
    return this.backed(this.int32(), bytesMin, true);
  }

  compactCount(bytesMin: number): number {
    return this.backed(this.unsignedVarint() - 1, bytesMin, false);
  }

  compactCountOrNull(bytesMin: number): number {
    return this.backed(this.unsignedVarint() - 1, bytesMin, true);
  }

  /** Whether the nullable struct is there. */
  present(): boolean {
    return this.int8() >= 0;
  }

  /** How many tagged fields follow; each takes a tag and a size at least. */
  tagCount(): number {
    return this.backed(this.unsignedVarint(), 2, false);
  }

  /** Reads the size of a tagged field and returns where it ends. */
  tagEnd(): number {
    const bytes = this.unsignedVarint();
    if (bytes > this.end - this.position) this.fail(`a tagged field of ${bytes} bytes`);
    return this.position + bytes;
  }

  /** Skips a tagged section in which no tag is known. */
  skipTags(): void {
    for (let count = this.tagCount(); count > 0; count--) {
      this.unsignedVarint();
      this.position = this.tagEnd();
    }
  }

  /** A message must fill its frame, and a known tagged field its size, to the byte. */
  expectEnd(end: number): void {
    if (this.position !== end) this.fail(`the end was expected at byte ${end}`);
  }

  private failNull(): never {
    return this.fail('null where none may be');
  }

  /** A negative length is null, as in Kafka's generated readers. */
  private textOrNull(bytes: number): string | null {
    if (bytes < 0) return null;
    if (bytes === 0) return '';
    if (bytes > STRING_BYTES_MAX) this.fail(`a string of ${bytes} bytes`);
    const start = this.take(bytes);
    return decodeUtf8(this.buffer, start, start + bytes) ?? this.fail('a string is not UTF-8');
  }

  private viewOrNull(bytes: number): Buffer | null {
    if (bytes < 0) return null;
    const start = this.take(bytes);
    return this.buffer.subarray(start, start + bytes);
  }

  private backed(count: number, bytesMin: number, nullable: boolean): number {
    if (count < 0) return nullable ? -1 : this.failNull();
    if (count * bytesMin > this.end - this.position) this.fail(`${count} elements`);
    this.elements += count;
    if (this.elements > ELEMENTS_MAX) this.fail(`more than ${ELEMENTS_MAX} elements`);
    return count;
  }
}

/** The text of `[start, end)`, or undefined if the bytes are not valid UTF-8. */
function decodeUtf8(buffer: Buffer, start: number, end: number): string | undefined {
  for (let index = start; index < end; index++) {
    if (buffer[index]! >= 0x80) return decodeNonAscii(buffer, start, end);
  }
  return buffer.toString('latin1', start, end);
}

function decodeNonAscii(buffer: Buffer, start: number, end: number): string | undefined {
  const text = buffer.toString('utf8', start, end);
  // Invalid bytes become U+FFFD. That character may also have been sent: then it encodes back to
  // the same bytes, which replaced bytes never do.
  if (!text.includes('\ufffd')) return text;
  return Buffer.from(text, 'utf8').equals(buffer.subarray(start, end)) ? text : undefined;
}
