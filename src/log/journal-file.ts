import { BrokerError } from '../core/errors.ts';
import type { ExtentTable } from './extent-table.ts';
import type { FilePort, JournalFile } from './file-port.ts';
import {
  decodeFileHeader,
  encodeFileHeader,
  type FileHeader,
  fileHeaderBytes,
  fileName,
} from './format.ts';
import type { IndexFile } from './index-file.ts';

/**
 * One file of the journal. It is first written to, then rolled (full, another one follows), and
 * sealed once its last entry is applied: then its extents move from memory to an index file.
 */
export interface LogFile {
  readonly header: FileHeader;
  readonly file: JournalFile;
  readonly path: string;
  /** Its length: behind the last group lie zeros. */
  bytes: number;
  /** Position after the last group. */
  end: number;
  /** Raft index of the last entry; firstIndex - 1 while there is none. */
  lastIndex: number;
  /** Present until sealed. */
  table: ExtentTable | undefined;
  /** Present once sealed. */
  index: IndexFile | undefined;
  /** Reads under way; a removed file is closed after the last one. */
  readers: number;
  removed: boolean;
}

/**
 * Creates a journal file in a way that leaves a whole one or none after a crash: under a
 * temporary name, with header and length synced, then renamed, then the folder synced. The length
 * is set at once so that later syncs need not change it. `spare` is a file of that length, made
 * before under the temporary name (spare-file.ts).
 */
export async function createLogFile(
  files: FilePort,
  folder: string,
  header: FileHeader,
  bytes: number,
  spare: JournalFile | undefined,
): Promise<JournalFile> {
  const temporary = nextFilePath(folder);
  const file = spare ?? (await files.open(temporary, 'create'));
  try {
    await file.write([encodeFileHeader(header)], 0);
    if (spare === undefined) await file.truncate(bytes);
    await file.sync();
    await files.rename(temporary, `${folder}/${fileName(header.basePosition)}`);
    await files.syncFolder(folder);
  } catch (error) {
    await file.close();
    throw error;
  }
  return file;
}

const growthFactor = 4;
/** What the system's page cache and most disks take at a time. */
export const pageBytes = 4096;
const padding = Buffer.alloc(pageBytes);

/**
 * The pieces of a group that ends at `end` of the file, and zeros up to the end of the page, which
 * is what lies there. Of a page that is not in the cache, as those of a spare file are not, the
 * system would have to read the rest first.
 */
export function padToPage(
  pieces: readonly Uint8Array[],
  end: number,
  fileBytes: number,
): readonly Uint8Array[] {
  const bytes = Math.min(-end & (pageBytes - 1), fileBytes - end);
  return bytes > 0 ? [...pieces, padding.subarray(0, bytes)] : pieces;
}

/**
 * The length of a file of `bytes` that has to take a group up to `end`. The first one of a journal
 * begins small: all of it is read at a start, and there may be many journals. A file with one large
 * group may be longer than `bytesMax`, and never gets shorter.
 */
export function grownBytes(bytes: number, end: number, bytesMax: number): number {
  if (end <= bytes) return bytes;
  return Math.max(bytes, Math.min(bytesMax, Math.max(bytes * growthFactor, end)));
}

/** Where the next file lies until it is put in place. */
export function nextFilePath(folder: string): string {
  return `${folder}/next.tmp`;
}

/** Reads and checks the header of a file whose name promises `basePosition`. */
export async function readFileHeader(
  file: JournalFile,
  path: string,
  basePosition: number,
): Promise<FileHeader> {
  const bytes = Buffer.alloc(fileHeaderBytes);
  await file.read(bytes, 0, fileHeaderBytes, 0);
  const decoded = decodeFileHeader(bytes);
  if (decoded.kind === 'unknown-version') throw unknownVersion(path, decoded.version);
  if (decoded.kind === 'damaged' || decoded.header.basePosition !== basePosition) {
    throw new BrokerError('JOURNAL_DAMAGED', `${path}: the header at position 0 is damaged`, {
      file: path,
      position: 0,
    });
  }
  return decoded.header;
}

export function unknownVersion(path: string, version: number): BrokerError {
  return new BrokerError(
    'JOURNAL_VERSION_UNKNOWN',
    `${path} was written in format version ${version}, which this version of Keylane does not know`,
    { file: path, version },
  );
}
