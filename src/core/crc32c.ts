import { crc32c as nativeCrc32c } from '@node-rs/crc32';

/**
 * CRC-32C (Castagnoli) as an unsigned 32-bit number, continued from `initial` when given, so that
 * crc32c(b, crc32c(a)) is the checksum of a followed by b. Native: 5.9 GB/s on 16 KiB.
 */
export function crc32c(bytes: Uint8Array, initial = 0): number {
  return nativeCrc32c(bytes as Buffer, initial);
}
