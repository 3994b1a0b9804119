/**
 * Writes the zig-zag varints of records: 7 bits a byte, the low ones first, the high bit set on
 * all bytes but the last. They are read by the cursor.
 */

/** Bytes of an int32. */
export function sizeOfVarint(value: number): number {
  const raw = ((value << 1) ^ (value >> 31)) >>> 0;
  if (raw < 0x80) return 1;
  if (raw < 0x4000) return 2;
  if (raw < 0x200000) return 3;
  return raw < 0x10000000 ? 4 : 5;
}

/** Writes an int32 and returns where it ends. */
export function writeVarint(target: Uint8Array, at: number, value: number): number {
  let raw = ((value << 1) ^ (value >> 31)) >>> 0;
  while (raw >= 0x80) {
    target[at++] = (raw & 0x7f) | 0x80;
    raw >>>= 7;
  }
  target[at] = raw;
  return at + 1;
}

/** Bytes of an int64, where `value` is beyond its range of the nearest. */
export function sizeOfVarlong(value: number): number {
  let { high, low } = zigZag(value);
  let bytes = 1;
  while (high > 0 || low >= 0x80) {
    low = ((low >>> 7) | (high << 25)) >>> 0;
    high >>>= 7;
    bytes++;
  }
  return bytes;
}

/** Writes an int64 and returns where it ends. */
export function writeVarlong(target: Uint8Array, at: number, value: number): number {
  let { high, low } = zigZag(value);
  while (high > 0 || low >= 0x80) {
    target[at++] = (low & 0x7f) | 0x80;
    low = ((low >>> 7) | (high << 25)) >>> 0;
    high >>>= 7;
  }
  target[at] = low;
  return at + 1;
}

/** The two halves of 2 * value, or of -2 * value - 1 for a negative one. */
function zigZag(value: number): { high: number; low: number } {
  // 2^63 and more, which is what the largest int64 becomes as a double, stand for that.
  if (value >= 2 ** 63) return { high: 0xffffffff, low: 0xfffffffe };
  const sign = value < 0 ? -1 : 0;
  const high = Math.floor(value / 2 ** 32);
  const low = value >>> 0;
  return {
    high: (((high << 1) | (low >>> 31)) ^ sign) >>> 0,
    low: ((low << 1) ^ sign) >>> 0,
  };
}
