/**
 * Big-endian integers in place, without the checks of Buffer's own readers: callers know that the
 * bytes are there.
 */

export function readInt16(buffer: Buffer, at: number): number {
  return ((buffer[at]! << 24) | (buffer[at + 1]! << 16)) >> 16;
}

export function readInt32(buffer: Buffer, at: number): number {
  return (buffer[at]! << 24) | (buffer[at + 1]! << 16) | (buffer[at + 2]! << 8) | buffer[at + 3]!;
}

/** Exact within ±(2^53 - 1), the nearest double beyond. */
export function readInt64(buffer: Buffer, at: number): number {
  return readInt32(buffer, at) * 0x100000000 + (readInt32(buffer, at + 4) >>> 0);
}

export function writeInt32(buffer: Buffer, at: number, value: number): void {
  buffer[at] = value >>> 24;
  buffer[at + 1] = value >>> 16;
  buffer[at + 2] = value >>> 8;
  buffer[at + 3] = value;
}

/** Values beyond the range of an int64 saturate. */
export function writeInt64(buffer: Buffer, at: number, value: number): void {
  let high = Math.floor(value / 0x100000000);
  let low = value >>> 0;
  // The largest int64 becomes 2^63 as a double, and shall come out again.
  if (high > 0x7fffffff) {
    high = 0x7fffffff;
    low = 0xffffffff;
  } else if (high < -0x80000000) {
    high = -0x80000000;
    low = 0;
  }
  writeInt32(buffer, at, high);
  writeInt32(buffer, at + 4, low);
}
