import { crc32c } from '../core/crc32c.ts';

/**
 * The journal's bytes. Everything is little-endian; a position is a byte's place in the whole
 * journal, counted from its first file on, and never used twice.
 *
 *   file   = fileHeader group* rest          named by its base position, 20 digits, `.journal`
 *   rest   = zeros, or what a torn write left
 *
 *   fileHeader (64) = magic "KLJF" | u16 version | u16 headerBytes | f64 basePosition
 *                   | f64 firstIndex | f64 previousTerm | u32 salt | u8 voids | zeros
 *                   | u32 crc of all before
 *   group  = groupHeader entry+ padding to 8 bytes, or a groupHeader alone (a sync mark)
 *   groupHeader (48) = magic "KLJG" | u16 version | u16 zero | u32 entryCount | u32 bodyBytes
 *                   | f64 position | f64 syncedPosition | f64 writtenMs | u32 salt | u32 crc
 *   entry  = entryHeader (40) batchTable meta batch*
 *   entryHeader     = u32 entryBytes | u32 crc | u8 type | u8 version | u16 zero
 *                   | u32 tenant | u32 batchCount | u32 metaBytes | f64 term | f64 index
 *   batchTable      = (u32 partition | u32 bytes)*
 *
 * `syncedPosition` is the sync mark: everything before it was known to be synced when this group
 * was written, so bad bytes there are damage, and bad bytes after the last mark are a torn tail.
 *
 * The salt is random for each file and repeated in its groups, so that no record value can be made
 * to look like a group of this file.
 *
 * An entry's crc covers its header after the crc, the batch table, the meta and the first 21
 * bytes of each batch (those that a broker rewrites). The rest of a batch is covered by the
 * batch's own CRC-32C, which was checked on arrival. Bytes are checked once, not twice.
 */

export const journalVersion = 1;
export const fileHeaderBytes = 64;
export const groupHeaderBytes = 48;
export const entryHeaderBytes = 40;
export const batchTableRowBytes = 8;
/** What a broker may rewrite in a stored batch, and its own CRC: bytes 0 to 20. */
export const batchHeadBytes = 21;
export const groupAlignBytes = 8;

const fileMagic = 0x464a4c4b; // "KLJF"
const groupMagic = 0x474a4c4b; // "KLJG"
export const groupMagicBytes: Buffer = Buffer.from('KLJG', 'latin1');

export interface FileHeader {
  readonly basePosition: number;
  /** The Raft index that the first entry of this file has or will have. */
  readonly firstIndex: number;
  /** Term of the entry before it. */
  readonly previousTerm: number;
  readonly salt: number;
  /**
   * Files before it may have entries from `firstIndex` on, which are void: as long as those files
   * are there, so must this one be.
   */
  readonly voids: boolean;
}

export interface GroupHeader {
  readonly position: number;
  readonly syncedPosition: number;
  readonly entryCount: number;
  readonly bodyBytes: number;
  /** Wall clock of the writer, for people; nothing depends on it. */
  readonly writtenMs: number;
  /** That of the file. */
  readonly salt: number;
}

export function fileName(basePosition: number): string {
  return `${String(basePosition).padStart(20, '0')}.journal`;
}

/** The base position that a file name stands for; undefined for any other name. */
export function parseFileName(name: string): number | undefined {
  const match = /^(\d{20})\.journal$/.exec(name);
  return match ? Number(match[1]) : undefined;
}

export function encodeFileHeader(header: FileHeader): Buffer {
  const bytes = Buffer.alloc(fileHeaderBytes);
  bytes.writeUInt32LE(fileMagic, 0);
  bytes.writeUInt16LE(journalVersion, 4);
  bytes.writeUInt16LE(fileHeaderBytes, 6);
  bytes.writeDoubleLE(header.basePosition, 8);
  bytes.writeDoubleLE(header.firstIndex, 16);
  bytes.writeDoubleLE(header.previousTerm, 24);
  bytes.writeUInt32LE(header.salt, 32);
  bytes[36] = header.voids ? 1 : 0;
  bytes.writeUInt32LE(crc32c(bytes.subarray(0, fileHeaderBytes - 4)), fileHeaderBytes - 4);
  return bytes;
}

export type DecodedFileHeader =
  | { readonly kind: 'ok'; readonly header: FileHeader }
  | { readonly kind: 'damaged' }
  | { readonly kind: 'unknown-version'; readonly version: number };

export function decodeFileHeader(bytes: Buffer): DecodedFileHeader {
  if (bytes.length < fileHeaderBytes) return { kind: 'damaged' };
  if (bytes.readUInt32LE(0) !== fileMagic) return { kind: 'damaged' };
  const stored = bytes.readUInt32LE(fileHeaderBytes - 4);
  if (stored !== crc32c(bytes.subarray(0, fileHeaderBytes - 4))) return { kind: 'damaged' };
  const version = bytes.readUInt16LE(4);
  if (version > journalVersion) return { kind: 'unknown-version', version };
  return {
    kind: 'ok',
    header: {
      basePosition: bytes.readDoubleLE(8),
      firstIndex: bytes.readDoubleLE(16),
      previousTerm: bytes.readDoubleLE(24),
      salt: bytes.readUInt32LE(32),
      voids: bytes[36] === 1,
    },
  };
}

export function writeGroupHeader(target: Buffer, at: number, header: GroupHeader): void {
  target.fill(0, at, at + groupHeaderBytes);
  target.writeUInt32LE(groupMagic, at);
  target.writeUInt16LE(journalVersion, at + 4);
  target.writeUInt32LE(header.entryCount, at + 8);
  target.writeUInt32LE(header.bodyBytes, at + 12);
  target.writeDoubleLE(header.position, at + 16);
  target.writeDoubleLE(header.syncedPosition, at + 24);
  target.writeDoubleLE(header.writtenMs, at + 32);
  target.writeUInt32LE(header.salt, at + 40);
  target.writeUInt32LE(crc32c(target.subarray(at, at + groupHeaderBytes - 4)), at + 44);
}

/**
 * The group header at `at`, or undefined where the bytes are not one, or not one that was
 * written for this place. A header of a newer version counts as one: see `groupVersion`.
 */
export function readGroupHeader(
  bytes: Buffer,
  at: number,
  position: number,
  salt: number,
): GroupHeader | undefined {
  if (at + groupHeaderBytes > bytes.length) return undefined;
  if (bytes.readUInt32LE(at) !== groupMagic) return undefined;
  const crc = bytes.readUInt32LE(at + groupHeaderBytes - 4);
  if (crc !== crc32c(bytes.subarray(at, at + groupHeaderBytes - 4))) return undefined;
  if (bytes.readDoubleLE(at + 16) !== position) return undefined;
  if (bytes.readUInt32LE(at + 40) !== salt) return undefined;
  return {
    entryCount: bytes.readUInt32LE(at + 8),
    bodyBytes: bytes.readUInt32LE(at + 12),
    position,
    syncedPosition: bytes.readDoubleLE(at + 24),
    writtenMs: bytes.readDoubleLE(at + 32),
    salt,
  };
}

export function groupVersion(bytes: Buffer, at: number): number {
  return bytes.readUInt16LE(at + 4);
}

/** Whole length of a group on disk: header, body, padding. */
export function groupBytes(bodyBytes: number): number {
  return groupHeaderBytes + align(bodyBytes);
}

export function align(bytes: number): number {
  return Math.ceil(bytes / groupAlignBytes) * groupAlignBytes;
}

/** One Raft log entry as it is handed to the journal, which owns the buffers from then on. */
export interface Entry {
  readonly type: number;
  readonly version: number;
  readonly tenant: number;
  readonly term: number;
  readonly index: number;
  readonly meta: Buffer;
  /** Stored record batches, and the partition that each belongs to. Same length. */
  readonly batches: readonly Buffer[];
  readonly partitions: readonly number[];
}

/** Bytes of the entry up to its first batch. */
export function entryHeadBytes(entry: Entry): number {
  return entryHeaderBytes + entry.batches.length * batchTableRowBytes + entry.meta.length;
}

export function entryBytes(entry: Entry): number {
  let bytes = entryHeadBytes(entry);
  for (const batch of entry.batches) bytes += batch.length;
  return bytes;
}

/** Writes header, batch table and meta at `at`; answers where they end. */
export function writeEntryHead(target: Buffer, at: number, entry: Entry): number {
  target.writeUInt32LE(entryBytes(entry), at);
  target[at + 8] = entry.type;
  target[at + 9] = entry.version;
  target.writeUInt16LE(0, at + 10);
  target.writeUInt32LE(entry.tenant, at + 12);
  target.writeUInt32LE(entry.batches.length, at + 16);
  target.writeUInt32LE(entry.meta.length, at + 20);
  target.writeDoubleLE(entry.term, at + 24);
  target.writeDoubleLE(entry.index, at + 32);
  let to = at + entryHeaderBytes;
  for (let i = 0; i < entry.batches.length; i++) {
    target.writeUInt32LE(entry.partitions[i]!, to);
    target.writeUInt32LE(entry.batches[i]!.length, to + 4);
    to += batchTableRowBytes;
  }
  target.set(entry.meta, to);
  to += entry.meta.length;
  target.writeUInt32LE(entryCrc(target, at, to, entry.batches), at + 4);
  return to;
}

/** Heads of a few batches are gathered here, so that one call of the native CRC covers them. */
const headScratch = Buffer.alloc(batchHeadBytes * 64);

function entryCrc(head: Buffer, at: number, to: number, batches: readonly Buffer[]): number {
  let crc = crc32c(head.subarray(at + 8, to));
  let filled = 0;
  for (const batch of batches) {
    if (filled === headScratch.length) {
      crc = crc32c(headScratch, crc);
      filled = 0;
    }
    headScratch.set(batch.subarray(0, batchHeadBytes), filled);
    filled += Math.min(batchHeadBytes, batch.length);
  }
  return filled === 0 ? crc : crc32c(headScratch.subarray(0, filled), crc);
}

/** An entry read back: its buffers are views into the bytes that were read. */
export interface StoredEntry extends Entry {
  /** Where each batch begins in the journal. */
  readonly positions: readonly number[];
}

/**
 * The entry at `at`, which must end at or before `end`; undefined where the bytes are not a whole
 * and sound entry. `position` is the journal position of `at`.
 */
export function readEntry(
  bytes: Buffer,
  at: number,
  end: number,
  position: number,
): { readonly entry: StoredEntry; readonly end: number } | undefined {
  if (at + entryHeaderBytes > end) return undefined;
  const length = bytes.readUInt32LE(at);
  const batchCount = bytes.readUInt32LE(at + 16);
  const metaBytes = bytes.readUInt32LE(at + 20);
  const headBytes = entryHeaderBytes + batchCount * batchTableRowBytes + metaBytes;
  if (length < headBytes || at + length > end) return undefined;
  const batches: Buffer[] = [];
  const partitions: number[] = [];
  const positions: number[] = [];
  let batchAt = at + headBytes;
  for (let i = 0; i < batchCount; i++) {
    const row = at + entryHeaderBytes + i * batchTableRowBytes;
    const batchBytes = bytes.readUInt32LE(row + 4);
    if (batchBytes < batchHeadBytes || batchAt + batchBytes > at + length) return undefined;
    partitions.push(bytes.readUInt32LE(row));
    batches.push(bytes.subarray(batchAt, batchAt + batchBytes));
    positions.push(position + (batchAt - at));
    batchAt += batchBytes;
  }
  if (batchAt !== at + length) return undefined;
  if (bytes.readUInt32LE(at + 4) !== entryCrc(bytes, at, at + headBytes, batches)) return undefined;
  const metaAt = at + headBytes - metaBytes;
  const entry: StoredEntry = {
    type: bytes[at + 8]!,
    version: bytes[at + 9]!,
    tenant: bytes.readUInt32LE(at + 12),
    term: bytes.readDoubleLE(at + 24),
    index: bytes.readDoubleLE(at + 32),
    meta: bytes.subarray(metaAt, metaAt + metaBytes),
    batches,
    partitions,
    positions,
  };
  return { entry, end: at + length };
}

/**
 * Is the stored batch whole? Compares the CRC-32C that the producer computed (bytes 17 to 20,
 * over all from byte 21 on) with the bytes.
 */
export function batchIsSound(batch: Buffer): boolean {
  if (batch.length < batchHeadBytes) return false;
  return batch.readUInt32BE(17) === crc32c(batch.subarray(batchHeadBytes));
}
