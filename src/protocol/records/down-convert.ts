/**
 * Record batches as message sets of magic 0 or 1, for consumers that know nothing else (Fetch
 * versions 0 to 3). Grammar: legacy.ts. Kafka compresses again what was compressed; here every
 * message goes plain, which all of them read, zstd included, that none of them knows.
 *
 * Offsets stay as they are, headers and, in magic 0, timestamps are lost; control records are left
 * out (RecordsUtil.downConvert of Apache Kafka 3).
 */

import { DecompressionError } from '../../core/compression.ts';
import { crc32 } from '../../core/crc32c.ts';
import * as batch from './batch-header.ts';
import { openRecords, RecordCursor } from './cursor.ts';
import { writeInt32, writeInt64 } from './integers.ts';
import { type OpenLimits, RecordsDamagedError } from './iterate.ts';

export interface DownConversion {
  readonly magic: 0 | 1;
  /** Records below it are left out: the batch that holds it starts earlier. */
  readonly offsetMin: number;
  readonly bytesMax: number;
  /** What becomes of the first message if it alone is more than `bytesMax`. */
  readonly oversized: 'given whole' | 'cut' | 'left out';
}

/** Offset, length, CRC, magic and attributes. */
const headBytes = 18;
const timestampBytes = 8;
const lengthBytes = 4;
/** What the length field counts begins behind it; what the CRC covers begins at the magic. */
const lengthEnd = 12;
const crcAt = 12;
const magicAt = 16;
const attributesAt = 17;
const chunkBytesMin = 16 * 1024;

export interface DownConverted {
  readonly records: Buffer;
  /** What the compressed batches have become. */
  readonly openedBytes: number;
}

/**
 * As many whole messages as fit, of as many batches as together become no more than
 * `openedBytesLeft`. Throws what damaged batches throw: `RecordsDamagedError` and
 * `DecompressionError`.
 */
export function downConvert(
  batches: readonly Buffer[],
  conversion: DownConversion,
  limits: OpenLimits,
  openedBytesLeft: number,
): DownConverted {
  let openedBytes = 0;
  const set = new MessageSet(conversion);
  const cursor = new RecordCursor();
  for (const bytes of batches) {
    if (batch.isControl(bytes, 0) || batch.readLastOffset(bytes, 0) < conversion.offsetMin)
      continue;
    const opened = open(bytes, limits, openedBytesLeft - openedBytes);
    if (opened === 'no room') break;
    openedBytes += opened?.length ?? 0;
    cursor.reset(bytes, 0, opened);
    const attributes =
      conversion.magic === 0
        ? 0
        : batch.readAttributes(bytes, 0) & batch.BatchAttribute.logAppendTime;
    while (cursor.next()) {
      if (cursor.offset < conversion.offsetMin) continue;
      if (!set.add(cursor, attributes)) return { records: set.finish(), openedBytes };
    }
    if (cursor.fault !== null) throw new RecordsDamagedError(cursor.fault);
  }
  return { records: set.finish(), openedBytes };
}

function open(bytes: Buffer, limits: OpenLimits, bytesLeft: number): Buffer | null | 'no room' {
  try {
    return openRecords(bytes, 0, limits.codecs, Math.min(limits.openedBytesMax, bytesLeft));
  } catch (error) {
    const hasNoRoom = error instanceof DecompressionError && error.tooLarge;
    if (hasNoRoom && bytesLeft < limits.openedBytesMax) return 'no room';
    throw error;
  }
}

class MessageSet {
  readonly #conversion: DownConversion;
  #buffer = Buffer.allocUnsafe(chunkBytesMin);
  #length = 0;

  constructor(conversion: DownConversion) {
    this.#conversion = conversion;
  }

  /** False if there is no room for this message, nor for any after it. */
  add(cursor: RecordCursor, attributes: number): boolean {
    const { magic, bytesMax, oversized } = this.#conversion;
    const keyAt = magic === 0 ? headBytes : headBytes + timestampBytes;
    const valueAt = keyAt + lengthBytes + Math.max(0, cursor.keyBytes);
    const bytes = valueAt + lengthBytes + Math.max(0, cursor.valueBytes);
    const isFull = this.#length + bytes > bytesMax;
    if (isFull && (this.#length > 0 || oversized === 'left out')) return false;
    const at = this.#reserve(bytes);
    const buffer = this.#buffer;
    writeInt64(buffer, at, cursor.offset);
    writeInt32(buffer, at + lengthEnd - lengthBytes, bytes - lengthEnd);
    buffer[at + magicAt] = magic;
    buffer[at + attributesAt] = attributes;
    if (magic === 1) writeInt64(buffer, at + headBytes, cursor.timestamp);
    writeBytes(buffer, at + keyAt, cursor.bytes, cursor.keyStart, cursor.keyBytes);
    writeBytes(buffer, at + valueAt, cursor.bytes, cursor.valueStart, cursor.valueBytes);
    writeInt32(buffer, at + crcAt, crc32(buffer.subarray(at + magicAt, at + bytes)));
    if (isFull && oversized === 'cut') this.#length = Math.max(0, bytesMax);
    return !isFull;
  }

  finish(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #reserve(bytes: number): number {
    const at = this.#length;
    const needed = at + bytes;
    if (needed > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length));
      this.#buffer.copy(grown, 0, 0, at);
      this.#buffer = grown;
    }
    this.#length = needed;
    return at;
  }
}

/** Length and bytes; a length of -1 alone stands for null. */
function writeBytes(
  target: Buffer,
  at: number,
  source: Buffer,
  start: number,
  length: number,
): void {
  writeInt32(target, at, length < 0 ? -1 : length);
  if (length > 0) source.copy(target, at + lengthBytes, start, start + length);
}
