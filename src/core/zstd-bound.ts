/**
 * How long the result of a zstd input can be at most, from its headers alone (RFC 8878, 3.1.1):
 *
 *   input => frame*
 *   frame => magic 28 B5 2F FD, header, block*, [checksum 4]
 *          | magic 5x 2A 4D 18, size 4, bytes (skippable)
 *   block => 3 bytes (last 1 bit, type 2 bits, size 21 bits), content
 *
 * Frames of streaming writers (Kafka's Java client is one) do not say how long their content is;
 * a compressed block then counts as the largest that may be, so the bound can be far too high.
 */

import { DecompressionError } from './compression.ts';

const frameMagic = 0xfd2fb528;
const skippableMagic = 0x184d2a5;
const blockBytesMax = 128 * 1024;
const BlockType = { raw: 0, runLength: 1, compressed: 2, reserved: 3 } as const;
const contentSizeWidths = [0, 2, 4, 8] as const;
const dictionaryIdWidths = [0, 1, 2, 4] as const;

export function zstdBound(input: Buffer): number {
  need(input, 0, 4);
  let bound = 0;
  let at = 0;
  while (at < input.length) {
    need(input, at, 4);
    const magic = input.readUInt32LE(at);
    if (magic >>> 4 === skippableMagic) {
      need(input, at, 8);
      at += 8 + input.readUInt32LE(at + 4);
      need(input, at, 0);
      continue;
    }
    if (magic !== frameMagic) throw new DecompressionError('zstd: not a frame');
    const frame = frameBound(input, at + 4);
    bound += frame.bound;
    at = frame.end;
  }
  return bound;
}

function frameBound(input: Buffer, start: number): { bound: number; end: number } {
  need(input, start, 1);
  const descriptor = input[start]!;
  const singleSegment = (descriptor & 0x20) !== 0;
  const widthCode = descriptor >>> 6;
  const width = widthCode === 0 && singleSegment ? 1 : contentSizeWidths[widthCode]!;
  let at = start + 1 + (singleSegment ? 0 : 1) + dictionaryIdWidths[descriptor & 3]!;
  need(input, at, width);
  const stated = width === 0 ? null : contentSize(input, at, width);
  at += width;
  let bound = 0;
  for (let last = false; !last; ) {
    need(input, at, 3);
    const block = input.readUIntLE(at, 3);
    at += 3;
    last = (block & 1) === 1;
    const type = (block >>> 1) & 3;
    const size = block >>> 3;
    if (type === BlockType.reserved) throw new DecompressionError('zstd: malformed block');
    bound += type === BlockType.compressed ? blockBytesMax : size;
    at += type === BlockType.runLength ? 1 : size;
    need(input, at, 0);
  }
  if ((descriptor & 0x04) !== 0) at += 4;
  need(input, at, 0);
  // The decoder holds a frame to what it states, so the smaller of both is the bound.
  return { bound: stated === null ? bound : Math.min(bound, stated), end: at };
}

function contentSize(input: Buffer, at: number, width: number): number {
  if (width === 1) return input[at]!;
  if (width === 2) return input.readUInt16LE(at) + 256;
  if (width === 4) return input.readUInt32LE(at);
  return input.readUInt32LE(at) + input.readUInt32LE(at + 4) * 2 ** 32;
}

function need(input: Buffer, at: number, bytes: number): void {
  if (bytes > input.length - at) throw new DecompressionError('zstd: frame cut short');
}
