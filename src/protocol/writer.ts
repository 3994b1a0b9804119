/**
 * Writes the primitives of the wire into one scratch buffer that grows, and hands out an exact
 * copy at the end. Record batches are not copied: the writer remembers where they belong, and the
 * result is a list of pieces with the batches in between.
 */
import { EncodeError } from './codec-error.ts';

const SCRATCH_BYTES = 16 * 1024;
/** A scratch buffer that grew beyond this is given back after use. */
const SCRATCH_KEPT_BYTES_MAX = 1024 * 1024;
const STRING_BYTES_MAX = 0x7fff;
const INT64_LIMIT = 2 ** 63;

interface Insertion {
  /** Where in the scratch buffer the referenced bytes belong. */
  readonly position: number;
  readonly bytes: Buffer;
}

export class Writer {
  private scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  private position = 0;
  private insertions: Insertion[] = [];
  private insertedBytes = 0;

  /** Forgets what was written: after a failure, and before each message. */
  reset(): void {
    this.position = 0;
    if (this.insertions.length > 0) this.insertions = [];
    this.insertedBytes = 0;
    if (this.scratch.length > SCRATCH_KEPT_BYTES_MAX) {
      this.scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
    }
  }

  /** Bytes written since the last reset, without those of records. */
  get length(): number {
    return this.position;
  }

  /** Everything written since the last reset, in order. Ends the message. */
  finish(): Buffer[] {
    const head = Buffer.allocUnsafe(this.position);
    this.scratch.copy(head, 0, 0, this.position);
    if (this.insertions.length === 0) return [head];
    const pieces: Buffer[] = [];
    let start = 0;
    for (const { position, bytes } of this.insertions) {
      if (position > start) pieces.push(head.subarray(start, position));
      pieces.push(bytes);
      start = position;
    }
    if (start < head.length) pieces.push(head.subarray(start));
    return pieces;
  }

  /** Leaves room for the int32 size of a frame; `endFrame` fills it in. */
  beginFrame(): void {
    this.int32(0);
  }

  endFrame(): void {
    const end = this.position;
    this.position = 0;
    this.int32(end - 4 + this.insertedBytes);
    this.position = end;
  }

  private reserve(bytes: number): number {
    const at = this.position;
    if (at + bytes > this.scratch.length) this.grow(bytes);
    this.position = at + bytes;
    return at;
  }

  private grow(bytes: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(this.scratch.length * 2, this.position + bytes));
    this.scratch.copy(larger, 0, 0, this.position);
    this.scratch = larger;
  }

  bool(value: boolean): void {
    if (typeof value !== 'boolean') failValue('bool', value);
    const at = this.reserve(1);
    this.scratch[at] = value ? 1 : 0;
  }

  int8(value: number): void {
    if ((value << 24) >> 24 !== value) failValue('int8', value);
    const at = this.reserve(1);
    this.scratch[at] = value;
  }

  int16(value: number): void {
    if ((value << 16) >> 16 !== value) failValue('int16', value);
    const at = this.reserve(2);
    this.scratch[at] = value >>> 8;
    this.scratch[at + 1] = value;
  }

  uint16(value: number): void {
    if ((value & 0xffff) !== value) failValue('uint16', value);
    const at = this.reserve(2);
    this.scratch[at] = value >>> 8;
    this.scratch[at + 1] = value;
  }

  int32(value: number): void {
    if ((value | 0) !== value) failValue('int32', value);
    this.word(value);
  }

  /** 2^63 is written as the largest int64: it is what that value decodes to. */
  int64(value: number | bigint): void {
    if (typeof value === 'bigint') {
      this.bigInt64(value);
    } else if (value === INT64_LIMIT) {
      this.bigInt64(0x7fffffffffffffffn);
    } else {
      if (!(value >= -INT64_LIMIT && value < INT64_LIMIT && Number.isInteger(value))) {
        failValue('int64', value);
      }
      this.word(Math.floor(value / 0x100000000));
      this.word(value >>> 0);
    }
  }

  private bigInt64(value: bigint): void {
    if (BigInt.asIntN(64, value) !== value) failValue('int64', value);
    const at = this.reserve(8);
    this.scratch.writeBigInt64BE(value, at);
  }

  private word(value: number): void {
    const at = this.reserve(4);
    const scratch = this.scratch;
    scratch[at] = value >>> 24;
    scratch[at + 1] = value >>> 16;
    scratch[at + 2] = value >>> 8;
    scratch[at + 3] = value;
  }

  float64(value: number): void {
    if (typeof value !== 'number') failValue('float64', value);
    const at = this.reserve(8);
    this.scratch.writeDoubleBE(value, at);
  }

  uuid(value: string): void {
    const at = this.reserve(16);
    const valid = typeof value === 'string' && value.length === 32;
    if (!valid || this.scratch.write(value, at, 16, 'hex') !== 16) failValue('uuid', value);
  }

  unsignedVarint(value: number): void {
    while (value >= 0x80) {
      const at = this.reserve(1);
      this.scratch[at] = (value & 0x7f) | 0x80;
      value >>>= 7;
    }
    const at = this.reserve(1);
    this.scratch[at] = value;
  }

  /** A zig-zag varint. */
  varint(value: number): void {
    this.unsignedVarint(((value << 1) ^ (value >> 31)) >>> 0);
  }

  string(value: string): void {
    const bytes = textBytes(value);
    this.int16(bytes);
    this.text(value, bytes);
  }

  stringOrNull(value: string | null): void {
    if (value === null) this.int16(-1);
    else this.string(value);
  }

  compactString(value: string): void {
    const bytes = textBytes(value);
    this.unsignedVarint(bytes + 1);
    this.text(value, bytes);
  }

  compactStringOrNull(value: string | null): void {
    if (value === null) this.unsignedVarint(0);
    else this.compactString(value);
  }

  private text(value: string, bytes: number): void {
    const at = this.reserve(bytes);
    if (bytes !== value.length) {
      this.scratch.write(value, at, bytes, 'utf8');
      return;
    }
    const scratch = this.scratch;
    for (let index = 0; index < bytes; index++) scratch[at + index] = value.charCodeAt(index);
  }

  bytes(value: Uint8Array): void {
    this.int32(lengthOf(value));
    this.raw(value);
  }

  bytesOrNull(value: Uint8Array | null): void {
    if (value === null) this.int32(-1);
    else this.bytes(value);
  }

  compactBytes(value: Uint8Array): void {
    this.unsignedVarint(lengthOf(value) + 1);
    this.raw(value);
  }

  compactBytesOrNull(value: Uint8Array | null): void {
    if (value === null) this.unsignedVarint(0);
    else this.compactBytes(value);
  }

  private raw(value: Uint8Array): void {
    const at = this.reserve(value.length);
    this.scratch.set(value, at);
  }

  records(value: Buffer | readonly Buffer[]): void {
    this.int32(recordsBytes(value));
    this.insert(value);
  }

  recordsOrNull(value: Buffer | readonly Buffer[] | null): void {
    if (value === null) this.int32(-1);
    else this.records(value);
  }

  compactRecords(value: Buffer | readonly Buffer[]): void {
    this.unsignedVarint(recordsBytes(value) + 1);
    this.insert(value);
  }

  compactRecordsOrNull(value: Buffer | readonly Buffer[] | null): void {
    if (value === null) this.unsignedVarint(0);
    else this.compactRecords(value);
  }

  private insert(value: Buffer | readonly Buffer[]): void {
    if (!Buffer.isBuffer(value)) {
      for (const part of value) this.insert(part);
      return;
    }
    if (value.length === 0) return;
    this.insertions.push({ position: this.position, bytes: value });
    this.insertedBytes += value.length;
  }

  count(value: number): void {
    this.int32(value);
  }

  nullCount(): void {
    this.int32(-1);
  }

  compactCount(value: number): void {
    this.unsignedVarint(value + 1);
  }

  compactNullCount(): void {
    this.unsignedVarint(0);
  }

  present(value: boolean): void {
    this.int8(value ? 1 : -1);
  }

  /** Starts a tagged field; hand what it returns to `endTag`. */
  beginTag(tag: number): number {
    this.unsignedVarint(tag);
    return this.position;
  }

  /**
   * Puts the size before a tagged field's content by moving it. No tagged field of Kafka's holds
   * records, so no insertion has to move with it.
   */
  endTag(start: number): void {
    const end = this.position;
    const sizeBytes = unsignedVarintBytes(end - start);
    this.reserve(sizeBytes);
    this.scratch.copyWithin(start + sizeBytes, start, end);
    this.position = start;
    this.unsignedVarint(end - start);
    this.position = end + sizeBytes;
  }
}

function failValue(type: string, value: unknown): never {
  throw new EncodeError(`not a value of ${type}: ${String(value)}`);
}

/** The length in UTF-8. Short texts of ASCII, which nearly all are, need no call out of JS. */
function textBytes(value: string): number {
  if (typeof value !== 'string') failValue('string', value);
  const length = value.length;
  for (let index = 0; index < length; index++) {
    if (value.charCodeAt(index) >= 0x80) return checkTextBytes(Buffer.byteLength(value, 'utf8'));
  }
  return checkTextBytes(length);
}

function checkTextBytes(bytes: number): number {
  if (bytes > STRING_BYTES_MAX) throw new EncodeError(`a string of ${bytes} bytes is too long`);
  return bytes;
}

function lengthOf(value: Uint8Array): number {
  if (!(value instanceof Uint8Array)) failValue('bytes', value);
  return value.length;
}

function recordsBytes(value: Buffer | readonly Buffer[]): number {
  if (Buffer.isBuffer(value)) return value.length;
  if (!Array.isArray(value)) failValue('records', value);
  let bytes = 0;
  for (const part of value as readonly Buffer[]) bytes += part.length;
  return bytes;
}

function unsignedVarintBytes(value: number): number {
  let bytes = 1;
  while (value >= 0x80) {
    value >>>= 7;
    bytes++;
  }
  return bytes;
}
