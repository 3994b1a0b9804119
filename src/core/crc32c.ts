import { createRequire } from 'node:module';

type Checksum = (bytes: Uint8Array, initial: number) => number;

interface Checksums {
  crc32: Checksum;
  crc32c: Checksum;
}

interface TablePackage {
  buf(bytes: Uint8Array, seed: number): number;
}

const require = createRequire(import.meta.url);
const checksums = load();

/**
 * The native package carries its binaries in optional packages, one per platform. Where none of
 * them loads, JavaScript does the same.
 */
function load(): Checksums {
  try {
    return require('@node-rs/crc32') as Checksums;
  } catch {
    return portableChecksums();
  }
}

/** The tables of crc-32, at 1.7 GB/s. */
export function portableChecksums(): Checksums {
  const crc32Tables = require('crc-32') as TablePackage;
  const crc32cTables = require('crc-32/crc32c.js') as TablePackage;
  return {
    crc32: (bytes, initial) => crc32Tables.buf(bytes, initial) >>> 0,
    crc32c: (bytes, initial) => crc32cTables.buf(bytes, initial) >>> 0,
  };
}

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
