import { crc32c } from '../core/crc32c.ts';
import { BrokerError } from '../core/errors.ts';
import type { FilePort, JournalFile } from './file-port.ts';

/**
 * Snapshots: the image of the state machine after one entry, and where the journal goes on.
 *
 *   file   = header (64) hardState image
 *   header = magic "KLSN" | u16 version | u16 hardStateBytes | f64 position | f64 index | f64 term
 *          | f64 imageBytes | u32 crc of hardState and image | zeros | u32 crc of the header
 *
 * Named `<index, 20 digits>.snapshot`; the two newest are kept. A damaged one is passed over: the
 * one before it and the journal give the same state, as long as no file was deleted since.
 */

export const snapshotVersion = 1;
const headerBytes = 64;
const magic = 0x4e534c4b; // "KLSN"
const snapshotsKept = 2;
/** Large images are written in pieces, so that other writes come between. */
const pieceBytes = 1024 * 1024;

export interface SnapshotFacts {
  /** Journal position after the last entry that the image covers. */
  readonly position: number;
  readonly index: number;
  readonly term: number;
}

export interface Snapshot extends SnapshotFacts {
  /** The node's own term and vote at that time, encoded; not part of the replicated image. */
  readonly hardState: Buffer;
  readonly image: Buffer;
}

/** The file of one, open for reading. */
export interface OpenSnapshot {
  /** The last entry that it covers. */
  readonly base: { readonly index: number; readonly term: number };
  readonly file: JournalFile;
  readonly bytes: number;
}

export async function writeSnapshot(
  files: FilePort,
  folder: string,
  snapshot: Snapshot,
): Promise<void> {
  const { hardState, image } = snapshot;
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32LE(magic, 0);
  header.writeUInt16LE(snapshotVersion, 4);
  header.writeUInt16LE(hardState.length, 6);
  header.writeDoubleLE(snapshot.position, 8);
  header.writeDoubleLE(snapshot.index, 16);
  header.writeDoubleLE(snapshot.term, 24);
  header.writeDoubleLE(image.length, 32);
  header.writeUInt32LE(crc32c(image, crc32c(hardState)), 40);
  header.writeUInt32LE(crc32c(header.subarray(0, headerBytes - 4)), headerBytes - 4);
  const temporary = `${folder}/snapshot.tmp`;
  const file = await files.open(temporary, 'create');
  try {
    await file.write([header, hardState], 0);
    const imageAt = headerBytes + hardState.length;
    for (let at = 0; at < image.length; at += pieceBytes) {
      await file.write([image.subarray(at, at + pieceBytes)], imageAt + at);
    }
    await file.sync();
  } catch (error) {
    // It may be large, and the space is needed.
    await files.remove(temporary);
    throw error;
  } finally {
    await file.close();
  }
  await files.rename(temporary, `${folder}/${snapshotName(snapshot.index)}`);
  await files.syncFolder(folder);
  await removeOldSnapshots(files, folder);
}

/** The newest sound snapshot; undefined where there is none at all. */
export async function readSnapshot(files: FilePort, folder: string): Promise<Snapshot | undefined> {
  const names = await snapshotNames(files, folder);
  for (const name of names.reverse()) {
    const snapshot = await readSnapshotFile(files, `${folder}/${name}`);
    if (snapshot !== undefined) return snapshot;
  }
  if (names.length === 0) return undefined;
  throw new BrokerError('SNAPSHOT_DAMAGED', `all snapshots in ${folder} are damaged`, { folder });
}

/**
 * Removes all snapshots but the newest, after reading that one back: then journal files that only
 * older ones needed may go too. Answers false, and removes nothing, if it is not sound.
 */
export async function keepNewestSnapshot(files: FilePort, folder: string): Promise<boolean> {
  const names = await snapshotNames(files, folder);
  const newest = names.at(-1);
  if (newest === undefined) return false;
  if ((await readSnapshotFile(files, `${folder}/${newest}`)) === undefined) return false;
  for (const name of names.slice(0, -1)) await files.remove(`${folder}/${name}`);
  await files.syncFolder(folder);
  return true;
}

/** One snapshot; undefined if it is damaged. */
export async function readSnapshotFile(
  files: FilePort,
  path: string,
): Promise<Snapshot | undefined> {
  const file = await files.open(path, 'read');
  try {
    const head = await readHead(file, path);
    if (head === undefined) return undefined;
    const { hardStateBytes, imageBytes, crc, ...facts } = head;
    const body = Buffer.allocUnsafe(hardStateBytes + imageBytes);
    if ((await file.size()) !== headerBytes + body.length) return undefined;
    if ((await file.read(body, 0, body.length, headerBytes)) !== body.length) return undefined;
    if (crc !== crc32c(body)) return undefined;
    const hardState = body.subarray(0, hardStateBytes);
    return { ...facts, hardState, image: body.subarray(hardStateBytes) };
  } finally {
    await file.close();
  }
}

/** Opens the newest one whose header is sound, for others to read; undefined if there is none. */
export async function openNewestSnapshot(
  files: FilePort,
  folder: string,
): Promise<OpenSnapshot | undefined> {
  for (const name of (await snapshotNames(files, folder)).reverse()) {
    const path = `${folder}/${name}`;
    const file = await files.open(path, 'read');
    const head = await readHead(file, path);
    if (head !== undefined) {
      const { index, term } = head;
      return { base: { index, term }, file, bytes: await file.size() };
    }
    await file.close();
  }
  return undefined;
}

interface Head extends SnapshotFacts {
  readonly hardStateBytes: number;
  readonly imageBytes: number;
  /** Of what follows. */
  readonly crc: number;
}

async function readHead(file: JournalFile, path: string): Promise<Head | undefined> {
  const header = Buffer.alloc(headerBytes);
  if ((await file.read(header, 0, headerBytes, 0)) !== headerBytes) return undefined;
  if (header.readUInt32LE(0) !== magic) return undefined;
  const stored = header.readUInt32LE(headerBytes - 4);
  if (stored !== crc32c(header.subarray(0, headerBytes - 4))) return undefined;
  const version = header.readUInt16LE(4);
  if (version > snapshotVersion) {
    const what = `${path} has version ${version}, which this version of Keylane does not know`;
    throw new BrokerError('JOURNAL_VERSION_UNKNOWN', what, { file: path, version });
  }
  return {
    hardStateBytes: header.readUInt16LE(6),
    position: header.readDoubleLE(8),
    index: header.readDoubleLE(16),
    term: header.readDoubleLE(24),
    imageBytes: header.readDoubleLE(32),
    crc: header.readUInt32LE(40),
  };
}

async function removeOldSnapshots(files: FilePort, folder: string): Promise<void> {
  const names = await snapshotNames(files, folder);
  for (const name of names.slice(0, -snapshotsKept)) await files.remove(`${folder}/${name}`);
}

function snapshotName(index: number): string {
  return `${String(index).padStart(20, '0')}.snapshot`;
}

export async function snapshotNames(files: FilePort, folder: string): Promise<string[]> {
  return (await files.list(folder)).filter((name) => /^\d{20}\.snapshot$/.test(name));
}
