/**
 * Snappy as Kafka's clients write it. Java writes the framing of xerial's snappy-java, others
 * (librdkafka, some Go clients) also a single raw block. Both are read, xerial is written.
 *
 *   stream => header chunk* (header chunk*)*
 *   header => 82 'SNAPPY' 00, version int32, lowest compatible version int32
 *   chunk  => length int32 (big-endian), one raw block of that length
 *
 * A raw block cannot be mistaken for a header: after its length (82 53) the header's 'N' would be
 * a copy, and no block starts with one.
 */

import snappyjs from 'snappyjs';
import { asBuffer } from './as-buffer.ts';
import { DecompressionError } from './compression.ts';
import { expandSnappyBlock, snappyBlockLength } from './snappy-block.ts';

const magic = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]);
const headerBytes = 16;
/** The block size of Kafka's Java client. */
const blockBytes = 32 * 1024;
const version = 1;

export function compressSnappy(bytes: Uint8Array): Buffer {
  const header = Buffer.alloc(headerBytes);
  header.set(magic);
  header.writeInt32BE(version, 8);
  header.writeInt32BE(version, 12);
  const pieces: Buffer[] = [header];
  for (let at = 0; at < bytes.length; at += blockBytes) {
    const block = snappyjs.compress(asBuffer(bytes).subarray(at, at + blockBytes));
    const length = Buffer.alloc(4);
    length.writeInt32BE(block.length);
    pieces.push(length, block);
  }
  return Buffer.concat(pieces);
}

export function decompressSnappy(bytes: Uint8Array, bytesMax: number): Buffer {
  const input = asBuffer(bytes);
  if (!startsWithMagic(input, 0)) return decompressRaw(input, bytesMax);
  const result = Buffer.allocUnsafe(xerialLength(input, bytesMax));
  let out = 0;
  forEachChunk(input, (start, end) => {
    const { length, elements } = snappyBlockLength(input, start, end);
    expandSnappyBlock(input, elements, end, result, out, out + length);
    out += length;
  });
  return result;
}

function decompressRaw(input: Buffer, bytesMax: number): Buffer {
  const { length, elements } = snappyBlockLength(input, 0, input.length);
  refuseBeyond(length, bytesMax);
  refuseImplausible(length, input.length);
  const result = Buffer.allocUnsafe(length);
  expandSnappyBlock(input, elements, input.length, result, 0, length);
  return result;
}

/** The length of the whole result, from the lengths that the chunks state. */
function xerialLength(input: Buffer, bytesMax: number): number {
  let total = 0;
  forEachChunk(input, (start, end) => {
    const { length } = snappyBlockLength(input, start, end);
    total += length;
    refuseBeyond(total, bytesMax);
    refuseImplausible(length, end - start);
  });
  return total;
}

function refuseBeyond(length: number, bytesMax: number): void {
  if (length > bytesMax) {
    throw new DecompressionError(`snappy: more than ${bytesMax} bytes`, true);
  }
}

/** The densest element makes 64 bytes of 3: what states more would only make us allocate. */
function refuseImplausible(length: number, compressedLength: number): void {
  if (length > compressedLength * 22) throw new DecompressionError('snappy: malformed length');
}

function forEachChunk(input: Buffer, visit: (start: number, end: number) => void): void {
  let at = 0;
  while (at < input.length) {
    // Streams may be put one after another, so a header may stand where a chunk could.
    if (startsWithMagic(input, at)) {
      if (input.length - at < headerBytes) throw new DecompressionError('snappy: header cut short');
      at += headerBytes;
      continue;
    }
    if (input.length - at < 4) throw new DecompressionError('snappy: chunk cut short');
    const length = input.readInt32BE(at);
    at += 4;
    if (length < 0 || length > input.length - at) {
      throw new DecompressionError('snappy: malformed chunk length');
    }
    visit(at, at + length);
    at += length;
  }
}

function startsWithMagic(input: Buffer, at: number): boolean {
  return (
    input.length - at >= magic.length && input.compare(magic, 0, magic.length, at, at + 8) === 0
  );
}
