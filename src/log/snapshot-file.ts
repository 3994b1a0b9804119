import { crc32c } from '../core/crc32c.ts';
import { BrokerError } from '../core/errors.ts';
import type { FilePort } from './file-port.ts';

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
    const header = Buffer.alloc(headerBytes);
    if ((await file.read(header, 0, headerBytes, 0)) !== headerBytes) return undefined;
    if (header.readUInt32LE(0) !== magic) return undefined;
    const stored = header.readUInt32LE(headerBytes - 4);
    if (stored !== crc32c(header.subarray(0, headerBytes - 4))) return undefined;
    const version = header.readUInt16LE(4);
    if (version > snapshotVersion) {
      throw new BrokerError(
        'JOURNAL_VERSION_UNKNOWN',
        `${path} has version ${version}, which this version of Keylane does not know`,
        { file: path, version },
      );
    }
    const hardStateBytes = header.readUInt16LE(6);
    const bodyBytes = hardStateBytes + header.readDoubleLE(32);
    if ((await file.size()) !== headerBytes + bodyBytes) return undefined;
    const body = Buffer.allocUnsafe(bodyBytes);
    if ((await file.read(body, 0, bodyBytes, headerBytes)) !== bodyBytes) return undefined;
    if (header.readUInt32LE(40) !== crc32c(body)) return undefined;
    return {
      hardState: body.subarray(0, hardStateBytes),
      position: header.readDoubleLE(8),
      index: header.readDoubleLE(16),
      term: header.readDoubleLE(24),
      image: body.subarray(hardStateBytes),
    };
  } finally {
    await file.close();
  }
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
