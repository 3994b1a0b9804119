import { createRequire } from 'node:module';

type Checksum = (bytes: Uint8Array, initial: number) => number;

/**
 * The native package carries its binaries in optional packages, one per platform. Where none of
 * them loads, the JavaScript tables of crc-32 do the same at 1.7 GB/s.
 */
function load(): { crc32: Checksum; crc32c: Checksum } {
  const require = createRequire(import.meta.url);
  try {
    return require('@node-rs/crc32') as { crc32: Checksum; crc32c: Checksum };
  } catch {
    const table = { crc32: require('crc-32'), crc32c: require('crc-32/crc32c.js') } as Record<
      'crc32' | 'crc32c',
      { buf(bytes: Uint8Array, seed: number): number }
    >;
    return {
      crc32: (bytes, initial) => table.crc32.buf(bytes, initial) >>> 0,
      crc32c: (bytes, initial) => table.crc32c.buf(bytes, initial) >>> 0,
    };
  }
}

const checksums = load();

/**
 * CRC-32C (Castagnoli) as an unsigned 32-bit number, continued from `initial` when given, so that
 * crc32c(b, crc32c(a)) is the checksum of a followed by b. Native: 5.9 GB/s on 16 KiB.
 */
export function crc32c(bytes: Uint8Array, initial = 0): number {
  return checksums.crc32c(bytes, initial);
}

/** CRC-32 (of zip files) as an unsigned 32-bit number: the checksum of Kafka's magic 0 and 1. */
export function crc32(bytes: Uint8Array, initial = 0): number {
  return checksums.crc32(bytes, initial);
}
