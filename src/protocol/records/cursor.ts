/**
 * Walks the records of one batch (magic 2) without allocating for each:
 *
 *   record => length          varint     bytes that follow this field
 *             attributes      int8       unused
 *             timestampDelta  varlong    from baseTimestamp
 *             offsetDelta     varint     from baseOffset
 *             keyLength       varint     -1: null
 *             key
 *             valueLength     varint     -1: null
 *             value
 *             headerCount     varint
 *             header*
 *   header => keyLength varint, key, valueLength varint (-1: null), value
 *
 * Varints are zig-zag encoded, of at most five bytes (varlongs: ten).
 *
 * One cursor serves any number of batches, one after another. What it points to lies in the batch
 * itself or, where that is compressed, in the opened records: views that `key`, `value` and
 * `headers` give out live as long as those bytes do.
 *
 * Sources: DefaultRecord.java and ByteUtils.java of Apache Kafka.
 */

import { type Codecs, Compression, DecompressionError } from '../../core/compression.ts';
import * as batch from './batch-header.ts';

export interface RecordHeader {
  key: string;
  value: Buffer | null;
}

const none = Buffer.alloc(0);

/**
 * The records of a compressed batch as one piece, null where they stand in the batch as they are.
 * Throws `DecompressionError` for malformed data, an unknown codec included.
 */
export function openRecords(
  buffer: Buffer,
  position: number,
  codecs: Codecs,
  bytesMax: number,
): Buffer | null {
  const id = batch.readCompressionBits(buffer, position);
  if (id === Compression.none) return null;
  const start = position + batch.batchHeaderBytes;
  const packed = buffer.subarray(start, position + batch.readBatchBytes(buffer, position));
  switch (id) {
    case Compression.gzip:
      return codecs.gzip.decompress(packed, bytesMax);
    case Compression.snappy:
      return codecs.snappy.decompress(packed, bytesMax);
    case Compression.lz4:
      return codecs.lz4.decompress(packed, bytesMax);
    case Compression.zstd:
      return codecs.zstd.decompress(packed, bytesMax);
    default:
      throw new DecompressionError(`unknown compression type id ${id}`);
  }
}

export class RecordCursor {
  /** Holds what the positions below point to. */
  bytes: Buffer = none;
  /** Of the current record in its batch, from 0; -1 before the first. */
  index = -1;
  offsetDelta = 0;
  timestampDelta = 0;
  /** Where the current record starts (its length field), and where the next one does. */
  recordStart = 0;
  recordEnd = 0;
  keyStart = 0;
  /** -1: null. */
  keyBytes = -1;
  valueStart = 0;
  /** -1: null. */
  valueBytes = -1;
  headersStart = 0;
  headerCount = 0;
  /** Why the walk ended before the last record: null as long as the records are sound. */
  fault: string | null = null;

  private baseOffset = 0;
  private baseTimestamp = 0;
  private maxTimestamp = 0;
  private isLogAppendTime = false;
  private recordCount = 0;
  private at = 0;
  /** Nothing is read from here on: the end of the records, or of the current record. */
  private limit = 0;
  private end = 0;

  /**
   * Goes to the start of a batch whose header is known to be there. `opened` is what
   * `openRecords` gave: null for a batch that is not compressed.
   */
  reset(buffer: Buffer, position: number, opened: Buffer | null): this {
    this.baseOffset = batch.readBaseOffset(buffer, position);
    this.baseTimestamp = batch.readBaseTimestamp(buffer, position);
    this.maxTimestamp = batch.readMaxTimestamp(buffer, position);
    this.isLogAppendTime = batch.readTimestampType(buffer, position) === 'LogAppendTime';
    this.recordCount = batch.readRecordCount(buffer, position);
    this.index = -1;
    this.fault = null;
    if (opened === null) {
      this.bytes = buffer;
      this.at = position + batch.batchHeaderBytes;
      this.end = position + batch.readBatchBytes(buffer, position);
    } else {
      this.bytes = opened;
      this.at = 0;
      this.end = opened.length;
    }
    this.recordEnd = this.at;
    return this;
  }

  /** Lets go of the bytes of the last batch. */
  release(): void {
    this.bytes = none;
  }

  get offset(): number {
    return this.baseOffset + this.offsetDelta;
  }

  /** The one that consumers see: in a LogAppendTime batch the batch's. */
  get timestamp(): number {
    return this.isLogAppendTime ? this.maxTimestamp : this.baseTimestamp + this.timestampDelta;
  }

  /** False behind the last record, and where the records turn out malformed: see `fault`. */
  next(): boolean {
    if (this.fault !== null) return false;
    if (this.index + 1 >= this.recordCount) return this.finish();
    this.limit = this.end;
    this.recordStart = this.at;
    const length = this.varint();
    const start = this.at;
    if (length < 0 || length > this.end - start) {
      return this.fail(`Invalid record size: ${length} bytes, ${this.end - start} are left`);
    }
    this.limit = start + length;
    this.recordEnd = this.limit;
    this.at = start + 1;
    this.timestampDelta = this.varlong();
    this.offsetDelta = this.varint();
    this.keyBytes = this.varint();
    this.keyStart = this.at;
    if (this.keyBytes > 0) this.skip(this.keyBytes);
    this.valueBytes = this.varint();
    this.valueStart = this.at;
    if (this.valueBytes > 0) this.skip(this.valueBytes);
    this.headerCount = this.varint();
    this.headersStart = this.at;
    if (this.headerCount !== 0) this.skipHeaders();
    if (this.fault !== null) return false;
    if (this.at !== this.limit) {
      return this.fail(`Invalid record size: expected ${length} bytes, read ${this.at - start}`);
    }
    this.index++;
    return true;
  }

  /** A view; null where the record has no key. */
  key(): Buffer | null {
    if (this.keyBytes < 0) return null;
    return this.bytes.subarray(this.keyStart, this.keyStart + this.keyBytes);
  }

  /** The key's bytes as a string of as many characters: a cheap Map key. Null: no key. */
  keyLatin1(): string | null {
    if (this.keyBytes < 0) return null;
    return this.bytes.toString('latin1', this.keyStart, this.keyStart + this.keyBytes);
  }

  /** A view; null where the record has no value (a tombstone). */
  value(): Buffer | null {
    if (this.valueBytes < 0) return null;
    return this.bytes.subarray(this.valueStart, this.valueStart + this.valueBytes);
  }

  headers(): RecordHeader[] {
    const headers: RecordHeader[] = [];
    const { at, limit } = this;
    this.at = this.headersStart;
    this.limit = this.recordEnd;
    for (let index = 0; index < this.headerCount; index++) {
      const keyBytes = this.varint();
      const key = this.bytes.toString('utf8', this.at, this.at + keyBytes);
      this.at += keyBytes;
      const valueBytes = this.varint();
      const value = valueBytes < 0 ? null : this.bytes.subarray(this.at, this.at + valueBytes);
      if (valueBytes > 0) this.at += valueBytes;
      headers.push({ key, value });
    }
    this.at = at;
    this.limit = limit;
    return headers;
  }

  private finish(): boolean {
    if (this.recordCount < 0) return this.fail(`Found invalid record count ${this.recordCount}`);
    if (this.at !== this.end && this.recordCount > 0) {
      return this.fail('Incorrect declared batch size, records still remaining');
    }
    return false;
  }

  private fail(fault: string): false {
    this.fault ??= fault;
    return false;
  }

  private cutShort(): 0 {
    this.fail('Incorrect declared batch size, premature EOF reached');
    this.at = this.limit;
    return 0;
  }

  private skip(bytes: number): void {
    if (bytes > this.limit - this.at) this.cutShort();
    else this.at += bytes;
  }

  private skipHeaders(): void {
    // A header takes two bytes at least, so a count that cannot be is refused before the loop.
    if (this.headerCount < 0 || this.headerCount > (this.limit - this.at) >>> 1) {
      this.fail(`Found invalid number of record headers ${this.headerCount}`);
      return;
    }
    for (let index = 0; index < this.headerCount && this.fault === null; index++) {
      const keyBytes = this.varint();
      if (keyBytes < 0) this.fail(`Invalid negative header key size ${keyBytes}`);
      else this.skip(keyBytes);
      const valueBytes = this.varint();
      if (valueBytes > 0) this.skip(valueBytes);
    }
  }

  private varint(): number {
    const at = this.at;
    if (at >= this.limit) return this.cutShort();
    const first = this.bytes[at]!;
    if (first >= 0x80) return this.longVarint(first);
    this.at = at + 1;
    return (first >>> 1) ^ -(first & 1);
  }

  private longVarint(first: number): number {
    const bytes = this.bytes;
    let raw = first & 0x7f;
    let at = this.at + 1;
    for (let shift = 7; shift < 35; shift += 7) {
      if (at >= this.limit) return this.cutShort();
      const byte = bytes[at++]!;
      raw |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        this.at = at;
        return (raw >>> 1) ^ -(raw & 1);
      }
    }
    this.fail('Varint is too long');
    return 0;
  }

  private varlong(): number {
    const bytes = this.bytes;
    let at = this.at;
    // The low 28 bits are gathered as integers; few deltas have more.
    let low = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      if (at >= this.limit) return this.cutShort();
      const byte = bytes[at++]!;
      low |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        this.at = at;
        return (low >>> 1) ^ -(low & 1);
      }
    }
    let high = 0;
    for (let scale = 1; scale <= 2 ** 35; scale *= 128) {
      if (at >= this.limit) return this.cutShort();
      const byte = bytes[at++]!;
      // Of the tenth byte one bit is left, as in Kafka: 9 * 7 bits come before it.
      high += (scale === 2 ** 35 ? byte & 0x01 : byte & 0x7f) * scale;
      if (byte < 0x80) {
        this.at = at;
        const magnitude = high * 2 ** 27 + (low >>> 1);
        return (low & 1) === 0 ? magnitude : -magnitude - 1;
      }
    }
    this.fail('Varlong is too long');
    return 0;
  }
}
