/**
 * Reads one block of raw snappy:
 *
 *   block    => length (varint, of the result) element*
 *   element  => literal (tag 00) | copy with 1, 2 or 4 bytes of distance (tags 01, 10, 11)
 *
 * The package snappyjs writes such blocks well. Its reader is not used: a literal length beyond
 * 2^31 moves it backwards and it never returns, and it takes blocks whose content is shorter or
 * longer than they say.
 */

import { DecompressionError } from './compression.ts';

const damaged = 'snappy: malformed block';

/** What a block says its result is long, and where its elements start. */
export function snappyBlockLength(
  bytes: Uint8Array,
  start: number,
  end: number,
): { length: number; elements: number } {
  let length = 0;
  for (let index = 0; index < 5; index++) {
    if (start + index >= end) throw new DecompressionError(damaged);
    const byte = bytes[start + index]!;
    length += (byte & 0x7f) * 2 ** (7 * index);
    if (byte < 0x80) {
      if (length > 0xffffffff) break;
      return { length, elements: start + index + 1 };
    }
  }
  throw new DecompressionError('snappy: malformed length');
}

/**
 * Expands the elements in [at, end) into `target` from `targetStart` on. The result must end
 * exactly at `targetEnd`; copies reach back no further than `targetStart`.
 */
export function expandSnappyBlock(
  bytes: Uint8Array,
  at: number,
  end: number,
  target: Uint8Array,
  targetStart: number,
  targetEnd: number,
): void {
  let out = targetStart;
  while (at < end) {
    const tag = bytes[at++]!;
    const kind = tag & 3;
    if (kind === 0) {
      let length = (tag >>> 2) + 1;
      if (length > 60) {
        const width = length - 60;
        if (width > end - at) throw new DecompressionError(damaged);
        length = littleEndian(bytes, at, width) + 1;
        at += width;
      }
      if (length > end - at || length > targetEnd - out) throw new DecompressionError(damaged);
      copyForward(bytes, at, target, out, length);
      at += length;
      out += length;
      continue;
    }
    const width = kind === 3 ? 4 : kind;
    if (width > end - at) throw new DecompressionError(damaged);
    let distance = littleEndian(bytes, at, width);
    let length = (tag >>> 2) + 1;
    if (kind === 1) {
      distance += (tag >>> 5) << 8;
      length = ((tag >>> 2) & 7) + 4;
    }
    at += width;
    if (distance === 0 || distance > out - targetStart || length > targetEnd - out) {
      throw new DecompressionError(damaged);
    }
    // Source and target may overlap: then the bytes just written are repeated.
    copyForward(target, out - distance, target, out, length);
    out += length;
  }
  if (out !== targetEnd) throw new DecompressionError(damaged);
}

function littleEndian(bytes: Uint8Array, at: number, width: number): number {
  let value = bytes[at]!;
  if (width > 1) value |= bytes[at + 1]! << 8;
  if (width > 2) value |= bytes[at + 2]! << 16;
  if (width > 3) value |= bytes[at + 3]! << 24;
  return value >>> 0;
}

function copyForward(
  source: Uint8Array,
  from: number,
  target: Uint8Array,
  to: number,
  length: number,
): void {
  // A native copy costs about as much as sixty steps of the loop.
  if (length > 64 && source !== target) {
    target.set(source.subarray(from, from + length), to);
    return;
  }
  for (let index = 0; index < length; index++) target[to + index] = source[from + index]!;
}
