import { assert } from '../core/assert.ts';
import { BrokerError } from '../core/errors.ts';
import { ExtentTable } from './extent-table.ts';
import { addExtents } from './extents.ts';
import { type FilePort, isCode, type JournalFile } from './file-port.ts';
import { fileHeaderBytes, fileName, parseFileName, type StoredEntry } from './format.ts';
import { IndexFile, writeIndexFile } from './index-file.ts';
import { type LogFile, readFileHeader, unknownVersion } from './journal-file.ts';
import { FileScanner } from './scan.ts';

/** What a start takes from the last snapshot; all zero where there is none. */
export interface RecoveryStart {
  /** Everything before it is covered by the snapshot. */
  readonly position: number;
  /** Raft index and term of the last entry that the snapshot covers. */
  readonly index: number;
  readonly term: number;
}

export interface Recovered {
  readonly logFiles: LogFile[];
  /** Position at which the next group goes. */
  readonly end: number;
  /** Bytes at the end that no sync mark covers: they must be written again and synced. */
  readonly unsyncedFrom: number;
  readonly lastIndex: number;
  readonly lastTerm: number;
  /** Bytes of a torn tail that were cut off. */
  readonly cutBytes: number;
}

/**
 * Gets each entry that the snapshot does not cover, in order and without those in whose places
 * later files have others; its buffers do not outlive the call. Whether it is committed is not
 * known here: `index` files the extents of one that is, now or later. `position` is where its group
 * begins.
 */
export type OnRecoveredEntry = (
  entry: StoredEntry,
  index: (entry: StoredEntry) => void,
  position: number,
) => void;

export interface RecoveryOptions {
  readonly files: FilePort;
  readonly folder: string;
  readonly indexFolder: string;
  readonly start: RecoveryStart;
  readonly onEntry: OnRecoveredEntry;
  /** False: only look, change nothing on disk (`keylane check`). */
  readonly repair: boolean;
  readonly pause: () => Promise<void>;
}

/**
 * Reads the journal back after any kind of stop (design: unsynced writes may have reached the disk
 * in any order). Files below the snapshot are not read, only their indexes. From there on each
 * group is verified. The first bad group ends the journal if no later sync mark covers it: then it
 * was never acknowledged, and is cut. Otherwise it is damage, and the start is refused.
 */
export async function recover(options: RecoveryOptions): Promise<Recovered> {
  const logFiles = await openFiles(options);
  await checkNoneIsMissing(options, logFiles);
  const from = firstToScan(logFiles, options.start.position);
  for (let i = 0; i < from; i++) await openIndex(options, logFiles, i);
  const state = {
    lastIndex: options.start.index,
    lastTerm: options.start.term,
    // A snapshot is made of what is synced.
    synced: options.start.position,
    end: 0,
  };
  for (let i = from; i < logFiles.length; i++) {
    await scanFile(options, logFiles, i, state);
  }
  const last = logFiles.at(-1);
  let cutBytes = 0;
  if (last !== undefined && options.repair) cutBytes = await cutTail(last, state.end);
  return {
    logFiles,
    end: state.end,
    unsyncedFrom: Math.min(Math.max(state.synced, firstPosition(last)), state.end),
    lastIndex: state.lastIndex,
    lastTerm: state.lastTerm,
    cutBytes,
  };
}

function firstPosition(file: LogFile | undefined): number {
  return file === undefined ? 0 : file.header.basePosition + fileHeaderBytes;
}

async function openFiles(options: RecoveryOptions): Promise<LogFile[]> {
  const { files, folder, repair } = options;
  const logFiles: LogFile[] = [];
  // A process that was killed may have left entries that only the system's cache knows.
  if (repair) await files.syncFolder(folder);
  for (const name of await files.list(folder)) {
    const basePosition = parseFileName(name);
    const path = `${folder}/${name}`;
    if (basePosition === undefined) {
      if (repair && name.endsWith('.tmp')) await files.remove(path);
      continue;
    }
    const file = await files.open(path, repair ? 'write' : 'read');
    const header = await readFileHeader(file, path, basePosition);
    logFiles.push({
      header,
      file,
      path,
      bytes: await file.size(),
      end: basePosition + fileHeaderBytes,
      lastIndex: header.firstIndex - 1,
      table: new ExtentTable(basePosition),
      index: undefined,
      readers: 0,
      removed: false,
    });
  }
  return logFiles;
}

/**
 * Files may be missing in the middle: those in which nothing was alive. Such a file's index was
 * removed first, durably; an index without its file means that the file was lost.
 */
async function checkNoneIsMissing(
  options: RecoveryOptions,
  logFiles: readonly LogFile[],
): Promise<void> {
  const { files, folder, indexFolder, start, repair } = options;
  if (logFiles.length === 0 && start.position > 0) {
    const lost = `all entries but those of the snapshot, up to ${start.index}`;
    throw damaged(folder, 0, `there is no journal file; lost: ${lost}`);
  }
  const known = new Set(logFiles.map((logFile) => indexName(logFile.header.basePosition)));
  for (const name of await files.list(indexFolder)) {
    if (repair && name.endsWith('.tmp')) await files.remove(`${indexFolder}/${name}`);
    if (!name.endsWith('.index') || known.has(name)) continue;
    const path = `${folder}/${fileName(Number.parseInt(name, 10))}`;
    throw damaged(path, 0, `the file is missing; lost: all its records, listed in ${name}`);
  }
}

/** The file that holds the snapshot's position; files before it need not be read. */
function firstToScan(logFiles: readonly LogFile[], position: number): number {
  let from = 0;
  for (let i = 0; i < logFiles.length; i++) {
    if (logFiles[i]!.header.basePosition <= position) from = i;
  }
  return from;
}

interface ScanState {
  lastIndex: number;
  lastTerm: number;
  /** The greatest sync mark seen. */
  synced: number;
  end: number;
}

async function scanFile(
  options: RecoveryOptions,
  logFiles: readonly LogFile[],
  number: number,
  state: ScanState,
): Promise<void> {
  const logFile = logFiles[number]!;
  const next = logFiles[number + 1];
  const { start } = options;
  const scanner = new FileScanner(logFile.file, logFile.header, await logFile.file.size());
  const { header } = logFile;
  const voidIndex = voidFrom(logFiles, number);
  // All of it may be void.
  if (header.basePosition > start.position && header.firstIndex < voidIndex) {
    checkStart(options, logFile, state);
  }
  let position = scanner.firstPosition;
  // A file is put in place only after everything before it was synced.
  state.synced = Math.max(state.synced, logFile.header.basePosition);
  const index = (entry: StoredEntry) => addExtents(logFile.table!, entry);
  for (;;) {
    const scanned = await scanner.groupAt(position);
    if (scanned.kind === 'unknown-version') throw unknownVersion(logFile.path, scanned.version);
    if (scanned.kind === 'nothing') break;
    const { header, entries, end } = scanned.group;
    state.synced = Math.max(state.synced, header.syncedPosition);
    for (const entry of entries) {
      if (entry.index >= voidIndex) continue;
      if (entry.index > 0) logFile.lastIndex = entry.index;
      if (entry.index > 0 && entry.index <= start.index) {
        index(entry);
        continue;
      }
      // Before the snapshot's place lies nothing behind it but what was void by then.
      if (position < start.position) continue;
      if (entry.index > 0) {
        checkIndex(logFile, entry, state);
        state.lastIndex = entry.index;
        state.lastTerm = entry.term;
      }
      options.onEntry(entry, index, position);
    }
    position = end;
    logFile.end = end;
  }
  state.end = position;
  await checkEnd(logFile, next, position, scanner, state);
}

/** A file begins behind the entry before it: those in whose places it has others do not count. */
function checkStart({ start }: RecoveryOptions, logFile: LogFile, state: ScanState): void {
  const { header, path } = logFile;
  const last = header.firstIndex - 1;
  if (last > state.lastIndex) {
    const missing = `entries ${state.lastIndex + 1} to ${last} are missing`;
    throw damaged(path, 0, `${missing}: the file before it is gone`);
  }
  if (last < start.index) {
    throw damaged(path, 0, `takes the place of entry ${last + 1}, which the snapshot covers`);
  }
}

function checkIndex(logFile: LogFile, entry: StoredEntry, state: ScanState): void {
  if (entry.index === state.lastIndex + 1) return;
  throw damaged(
    logFile.path,
    logFile.end - logFile.header.basePosition,
    `entry ${entry.index} follows entry ${state.lastIndex}`,
  );
}

/** Nothing sound begins at `position`: is that the end, a torn tail, or damage? */
async function checkEnd(
  logFile: LogFile,
  next: LogFile | undefined,
  position: number,
  scanner: FileScanner,
  state: ScanState,
): Promise<void> {
  if (next?.header.basePosition === position) return;
  const mark = await scanner.markBeyond(position);
  const inFile = position - logFile.header.basePosition;
  if (next === undefined && mark === undefined && state.synced <= position) return;
  const until =
    next === undefined
      ? 'all that followed in this file'
      : `entries ${state.lastIndex + 1} to ${next.header.firstIndex - 1}`;
  throw damaged(logFile.path, inFile, `these bytes were synced before; lost: ${until}`);
}

function damaged(file: string, position: number, what: string): BrokerError {
  return new BrokerError('JOURNAL_DAMAGED', `${file}: damage at position ${position}: ${what}`, {
    file,
    position,
  });
}

/** Cuts what a torn write left behind `end`, durably, and answers how many bytes were not zero. */
async function cutTail(last: LogFile, end: number): Promise<number> {
  const inFile = end - last.header.basePosition;
  const size = await last.file.size();
  const torn = await bytesInUse(last.file, inFile, size);
  if (torn > 0) {
    await last.file.truncate(inFile);
    await last.file.truncate(size);
    await last.file.sync();
  }
  return torn;
}

const zeros = Buffer.alloc(1024 * 1024);

/** Bytes from `from` up to the last that is not zero. */
export async function bytesInUse(file: JournalFile, from: number, size: number): Promise<number> {
  const chunk = Buffer.allocUnsafe(zeros.length);
  let used = 0;
  for (let at = from; at < size; at += chunk.length) {
    const read = await file.read(chunk, 0, Math.min(chunk.length, size - at), at);
    let end = read;
    if (chunk.subarray(0, read).equals(zeros.subarray(0, read))) continue;
    while (end > 0 && chunk[end - 1] === 0) end--;
    if (end > 0) used = at + end - from;
  }
  return used;
}

/** Opens a sealed file's index, or makes it again from the file's entries. */
async function openIndex(
  options: RecoveryOptions,
  logFiles: readonly LogFile[],
  number: number,
): Promise<void> {
  const { files, indexFolder, pause, repair } = options;
  const logFile = logFiles[number]!;
  const next = logFiles[number + 1];
  const { basePosition } = logFile.header;
  const name = indexName(basePosition);
  assert(next !== undefined, 'the last file is always scanned');
  const voidIndex = voidFrom(logFiles, number);
  logFile.lastIndex = voidIndex - 1;
  // Exact unless the file behind it was removed; nothing asks for positions in that one.
  const size = await logFile.file.size();
  logFile.end = Math.min(next.header.basePosition, basePosition + size);
  const opened = await IndexFile.open(files, `${indexFolder}/${name}`);
  if (opened !== undefined) {
    logFile.index = opened;
    logFile.table = undefined;
    return;
  }
  await scanForIndex(logFile, next, size, voidIndex);
  if (!repair) return;
  try {
    await writeIndexFile(files, indexFolder, name, logFile.table!, pause);
  } catch (error) {
    // Without space the extents stay in memory; sealing tries again later.
    if (isCode(error, 'ENOSPC')) return;
    throw error;
  }
  logFile.index = await IndexFile.open(files, `${indexFolder}/${name}`);
  if (logFile.index !== undefined) logFile.table = undefined;
}

/** From this entry on, later files have others in the place of those of this file. */
export function voidFrom(logFiles: readonly Pick<LogFile, 'header'>[], number: number): number {
  const later = logFiles.slice(number + 1).map(({ header }) => header.firstIndex);
  return Math.min(...later, Number.POSITIVE_INFINITY);
}

/** Reads a file below the snapshot for its extents alone. All of it was synced long ago. */
async function scanForIndex(
  logFile: LogFile,
  next: LogFile,
  size: number,
  voidIndex: number,
): Promise<void> {
  const scanner = new FileScanner(logFile.file, logFile.header, size);
  let position = scanner.firstPosition;
  let lastIndex = logFile.header.firstIndex - 1;
  for (;;) {
    const scanned = await scanner.groupAt(position);
    if (scanned.kind === 'unknown-version') throw unknownVersion(logFile.path, scanned.version);
    if (scanned.kind === 'nothing') break;
    for (const entry of scanned.group.entries) {
      if (entry.index < voidIndex) addExtents(logFile.table!, entry);
      if (entry.index > 0) lastIndex = entry.index;
    }
    position = scanned.group.end;
  }
  logFile.end = position;
  if (position === next.header.basePosition) return;
  // The files behind it were removed, or this one ends too early. What they had may also be void:
  // then the next one begins with entries that this one has, too.
  const inFile = position - logFile.header.basePosition;
  if ((await bytesInUse(logFile.file, inFile, size)) === 0) return;
  throw damaged(logFile.path, inFile, `lost: entries from ${lastIndex + 1} on in this file`);
}

export function indexName(basePosition: number): string {
  return `${String(basePosition).padStart(20, '0')}.index`;
}

/** Where the indexes of a journal's sealed files lie. */
export function indexFolder(folder: string): string {
  return `${folder}/index`;
}

export function indexPath(folder: string, { header }: LogFile): string {
  return `${indexFolder(folder)}/${indexName(header.basePosition)}`;
}
