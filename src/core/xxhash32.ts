/** xxHash with 32 bits and seed 0: the checksum of LZ4 frames. */

const prime1 = 0x9e3779b1;
const prime2 = 0x85ebca77;
const prime3 = 0xc2b2ae3d;
const prime4 = 0x27d4eb2f;
const prime5 = 0x165667b1;

function rotateLeft(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function round(accumulator: number, lane: number): number {
  return Math.imul(rotateLeft((accumulator + Math.imul(lane, prime2)) | 0, 13), prime1);
}

function wordAt(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

/** The hash of bytes [start, end), unsigned. */
export function xxhash32(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let at = start;
  let hash: number;
  if (end - start >= 16) {
    let a = (prime1 + prime2) | 0;
    let b = prime2 | 0;
    let c = 0;
    let d = -prime1 | 0;
    for (; at <= end - 16; at += 16) {
      a = round(a, wordAt(bytes, at));
      b = round(b, wordAt(bytes, at + 4));
      c = round(c, wordAt(bytes, at + 8));
      d = round(d, wordAt(bytes, at + 12));
    }
    hash = rotateLeft(a, 1) + rotateLeft(b, 7) + rotateLeft(c, 12) + rotateLeft(d, 18);
  } else {
    hash = prime5;
  }
  hash = (hash + (end - start)) | 0;
  for (; at <= end - 4; at += 4) {
    hash = Math.imul(rotateLeft((hash + Math.imul(wordAt(bytes, at), prime3)) | 0, 17), prime4);
  }
  for (; at < end; at++) {
    hash = Math.imul(rotateLeft((hash + Math.imul(bytes[at]!, prime5)) | 0, 11), prime1);
  }
  hash = Math.imul(hash ^ (hash >>> 15), prime2);
  hash = Math.imul(hash ^ (hash >>> 13), prime3);
  return (hash ^ (hash >>> 16)) >>> 0;
}
