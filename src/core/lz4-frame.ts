/**
 * The LZ4 frame format around lz4-napi's block codec, whose own frame reader cannot be bounded.
 *
 *   frame      => magic 04 22 4D 18, descriptor, block*, 00 00 00 00, [content checksum]
 *   descriptor => flags, block maximum, [content size 8], [dictionary id 4], header checksum
 *   block      => size (high bit: stored as is), bytes, [block checksum]
 *
 * All numbers are little-endian; checksums are xxHash32. One frame is read, and it must end where
 * the input does: Kafka's clients write no other.
 */

import lz4 from 'lz4-napi';
import { asBuffer } from './as-buffer.ts';
import { DecompressionError } from './compression.ts';
import { xxhash32 } from './xxhash32.ts';

const frameMagic = 0x184d2204;
/** Where the descriptor starts: behind the magic. */
const descriptorStart = 4;
const storedBit = 0x80000000;
/** How far back a block may reach into those before it, when blocks are linked. */
const windowBytes = 64 * 1024;
/** An LZ4 block grows by less than this for each of its bytes: 255 for each length byte. */
const growthMax = 255;
/** What is written: version 01, independent blocks (Kafka's Java client reads no others). */
const flagsWritten = 0x60;
/** Blocks of at most 64 KiB, as Kafka's Java client writes. */
const blockMaximumWritten = 4 << 4;
const blockBytesWritten = 64 * 1024;

interface Lz4Header {
  independent: boolean;
  blockChecksums: boolean;
  contentChecksum: boolean;
  /** Null where the frame does not say. */
  contentBytes: number | null;
  blockBytesMax: number;
  /** Where the first block starts. */
  end: number;
}

export function compressLz4(bytes: Uint8Array): Buffer {
  const input = asBuffer(bytes);
  const header = Buffer.alloc(7);
  header.writeUInt32LE(frameMagic);
  header[4] = flagsWritten;
  header[5] = blockMaximumWritten;
  header[6] = headerChecksum(header, 6);
  const pieces: Buffer[] = [header];
  for (let at = 0; at < input.length; at += blockBytesWritten) {
    const plain = input.subarray(at, at + blockBytesWritten);
    // The package puts the plain length in the four bytes where a frame has the block's size.
    const block = lz4.compressSync(plain);
    const size = block.length - 4;
    if (size < plain.length) {
      block.writeUInt32LE(size);
      pieces.push(block);
    } else {
      const stored = Buffer.alloc(4);
      stored.writeUInt32LE((storedBit | plain.length) >>> 0);
      pieces.push(stored, plain);
    }
  }
  pieces.push(Buffer.alloc(4));
  return Buffer.concat(pieces);
}

export function decompressLz4(bytes: Uint8Array, bytesMax: number): Buffer {
  const input = asBuffer(bytes);
  const header = readHeader(input);
  if (header.contentBytes !== null && header.contentBytes > bytesMax) throw tooLarge(bytesMax);
  const { blocks, end, total } = readBlocks(input, header, bytesMax);
  const result = blocks.length === 1 ? blocks[0]! : Buffer.concat(blocks, total);
  let at = end;
  if (header.contentChecksum) {
    if (wordAt(input, at, 'content checksum') !== xxhash32(result)) {
      throw new DecompressionError('lz4: content checksum does not match');
    }
    at += 4;
  }
  if (header.contentBytes !== null && header.contentBytes !== total) {
    throw new DecompressionError('lz4: content size does not match');
  }
  if (at !== input.length) throw new DecompressionError('lz4: bytes after the end of the frame');
  return result;
}

/**
 * A copy of the frame with a right header checksum. Kafka's clients before 0.10 computed it over
 * the magic too, and message sets of magic 0 still hold such frames (KAFKA-3160).
 */
export function mendLz4HeaderChecksum(bytes: Uint8Array): Buffer {
  const mended = Buffer.from(bytes);
  if (mended.length > 6) {
    const at = checksumPosition(mended[4]!);
    if (at < mended.length) mended[at] = headerChecksum(mended, at);
  }
  return mended;
}

function readHeader(input: Buffer): Lz4Header {
  if (wordAt(input, 0, 'magic') !== frameMagic) throw new DecompressionError('lz4: not a frame');
  if (input.length < 7) throw new DecompressionError('lz4: header cut short');
  const flags = input[4]!;
  const blockMaximum = input[5]!;
  if (flags >>> 6 !== 1) throw new DecompressionError('lz4: unknown version');
  // Bit 1 of the flags and all but bits 4 to 6 of the block maximum are reserved.
  if ((flags & 0x02) !== 0 || (blockMaximum & 0x8f) !== 0 || blockMaximum >>> 4 < 4) {
    throw new DecompressionError('lz4: malformed header');
  }
  if ((flags & 0x01) !== 0) throw new DecompressionError('lz4: frame needs a dictionary');
  const checksumAt = checksumPosition(flags);
  if (checksumAt >= input.length) throw new DecompressionError('lz4: header cut short');
  if (input[checksumAt] !== headerChecksum(input, checksumAt)) {
    throw new DecompressionError('lz4: header checksum does not match');
  }
  const hasContentSize = (flags & 0x08) !== 0;
  return {
    independent: (flags & 0x20) !== 0,
    blockChecksums: (flags & 0x10) !== 0,
    contentChecksum: (flags & 0x04) !== 0,
    contentBytes: hasContentSize ? input.readUInt32LE(6) + input.readUInt32LE(10) * 2 ** 32 : null,
    blockBytesMax: 1 << (2 * (blockMaximum >>> 4) + 8),
    end: checksumAt + 1,
  };
}

function checksumPosition(flags: number): number {
  const contentSize = (flags & 0x08) !== 0 ? 8 : 0;
  const dictionaryId = (flags & 0x01) !== 0 ? 4 : 0;
  return descriptorStart + 2 + contentSize + dictionaryId;
}

function headerChecksum(frame: Buffer, checksumAt: number): number {
  return (xxhash32(frame, descriptorStart, checksumAt) >>> 8) & 0xff;
}

function readBlocks(
  input: Buffer,
  header: Lz4Header,
  bytesMax: number,
): { blocks: Buffer[]; end: number; total: number } {
  const blocks: Buffer[] = [];
  let total = 0;
  let at = header.end;
  for (;;) {
    const word = wordAt(input, at, 'block size');
    at += 4;
    if (word === 0) return { blocks, end: at, total };
    const size = (word & ~storedBit) >>> 0;
    if (size > header.blockBytesMax || size > input.length - at) {
      throw new DecompressionError('lz4: malformed block size');
    }
    if (header.blockChecksums) {
      if (wordAt(input, at + size, 'block checksum') !== xxhash32(input, at, at + size)) {
        throw new DecompressionError('lz4: block checksum does not match');
      }
    }
    const stored = word >= storedBit;
    const block = stored
      ? Buffer.from(input.subarray(at, at + size))
      : expandBlock(input, at, size, header, blocks);
    total += block.length;
    if (total > bytesMax) throw tooLarge(bytesMax);
    blocks.push(block);
    at += size + (header.blockChecksums ? 4 : 0);
  }
}

function expandBlock(
  input: Buffer,
  at: number,
  size: number,
  header: Lz4Header,
  before: readonly Buffer[],
): Buffer {
  // The package wants in front of a block the length of the result, and takes it as a bound.
  const prefixed = Buffer.allocUnsafe(4 + size);
  prefixed.writeUInt32LE(Math.min(header.blockBytesMax, size * growthMax));
  input.copy(prefixed, 4, at, at + size);
  const dictionary = header.independent || before.length === 0 ? null : lastWindow(before);
  try {
    return lz4.uncompressSync(prefixed, dictionary);
  } catch (error) {
    throw new DecompressionError('lz4: malformed block', false, error);
  }
}

/** The last 64 KiB before a linked block, which may lie in several blocks. */
function lastWindow(blocks: readonly Buffer[]): Buffer {
  const last = blocks[blocks.length - 1]!;
  if (last.length >= windowBytes) return last.subarray(last.length - windowBytes);
  let first = blocks.length;
  for (let bytes = 0; first > 0 && bytes < windowBytes; ) bytes += blocks[--first]!.length;
  const joined = Buffer.concat(blocks.slice(first));
  return joined.subarray(Math.max(0, joined.length - windowBytes));
}

function wordAt(input: Buffer, at: number, what: string): number {
  if (input.length - at < 4) throw new DecompressionError(`lz4: ${what} missing`);
  return input.readUInt32LE(at);
}

function tooLarge(bytesMax: number): DecompressionError {
  return new DecompressionError(`lz4: more than ${bytesMax} bytes`, true);
}
