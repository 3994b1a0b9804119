import { assert } from '../core/assert.ts';
import type { Clock } from '../core/clock.ts';
import { crc32c } from '../core/crc32c.ts';
import type { Random } from '../core/random.ts';
import { ExtentTable } from './extent-table.ts';
import { addExtents } from './extents.ts';
import type { FilePort, JournalFile } from './file-port.ts';
import {
  type Entry,
  entryBytes,
  type FileHeader,
  fileHeaderBytes,
  fileName,
  parseFileName,
} from './format.ts';
import { encodeGroup } from './group-encoder.ts';
import { IndexFile, writeIndexFile } from './index-file.ts';
import { createLogFile, type LogFile, readFileHeader } from './journal-file.ts';
import { indexFolder, indexName, indexPath } from './recovery.ts';
import { FileScanner } from './scan.ts';

export interface StagedJournalOptions {
  readonly files: FilePort;
  /** Where it is put together; the journal in use lies on the same disk. */
  readonly folder: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly fileBytesMax: number;
  readonly fileExtentsMax: number;
}

/** The file that is being filled. */
interface OpenFile {
  readonly header: FileHeader;
  readonly file: JournalFile;
  readonly table: ExtentTable;
  hasEntries: boolean;
}

/**
 * Says that the files that were taken over are there, all of them: f64 last index | f64 end | crc.
 * A start of the journal removes it.
 */
const takenName = 'taken.tmp';
const takenBytes = 20;

/**
 * A journal that is put together beside the one in use: out of sealed files of that one, and of
 * entries from another node, which may leave out what is not alive any more. Only where nothing of
 * a later index can be in the journal in use is it of use: below a snapshot.
 *
 * It can be put together in several sittings. A file counts once its index is there; the one that
 * was being filled when the process ended is made again.
 */
export class StagedJournal {
  readonly #options: StagedJournalOptions;
  #open: OpenFile | undefined;
  #lastIndex: number;
  #lastTerm = 0;
  /** Position at which the next file or group goes. */
  #end: number;
  /** The file before the next one was in use, and may have void entries behind its last one. */
  #followsTaken: boolean;

  private constructor(options: StagedJournalOptions, place: Place) {
    this.#options = options;
    this.#lastIndex = place.lastIndex;
    this.#end = place.end;
    this.#followsTaken = place.isTaken;
  }

  /** Goes on with what is there, or begins with the files that `kept` names: see `takeOver`. */
  static async open(
    options: StagedJournalOptions,
    kept: () => readonly LogFile[],
    journalFolder: string,
  ): Promise<StagedJournal> {
    const { files, folder } = options;
    const taken = await readTaken(files, folder);
    if (taken !== undefined) return new StagedJournal(options, await findPlace(options, taken));
    await files.removeFolder(folder);
    await files.makeFolder(indexFolder(folder));
    const place = await takeOver(options, kept(), journalFolder);
    return new StagedJournal(options, place);
  }

  /** The last entry that it has. */
  get lastIndex(): number {
    return this.#lastIndex;
  }

  /** Adds entries behind those that are there. They are durable when `finish` is done. */
  async append(entries: readonly Entry[]): Promise<void> {
    for (let from = 0; from < entries.length; ) {
      let to = from + 1;
      while (entries[to]?.index === entries[to - 1]!.index + 1) to++;
      await this.#appendRun(entries.slice(from, to));
      from = to;
    }
  }

  /**
   * Everything up to the entry `index`, which is of `term`, is there: what the journal needs to go
   * on behind it is made durable. Answers the position from which on it is to be read.
   */
  async finish(index: number, term: number): Promise<number> {
    const { files, folder, fileBytesMax } = this.#options;
    assert(index >= this.#lastIndex, 'a snapshot covers all that came with it');
    if (index > this.#lastIndex) await this.#keepVoid();
    await this.#complete();
    const header = this.#header(index + 1, term);
    const file = await createLogFile(files, folder, header, fileBytesMax, undefined);
    await file.close();
    return header.basePosition;
  }

  async close(): Promise<void> {
    await this.#open?.file.close();
    this.#open = undefined;
  }

  async #appendRun(entries: readonly Entry[]): Promise<void> {
    const { clock, fileBytesMax, fileExtentsMax } = this.#options;
    const first = entries[0]!.index;
    assert(first > this.#lastIndex, 'entries come in their order');
    const isBehindGap = first > this.#lastIndex + 1;
    if (isBehindGap) await this.#keepVoid();
    const used = this.#open === undefined ? 0 : this.#end - this.#open.header.basePosition;
    let bytes = 0;
    for (const entry of entries) bytes += entryBytes(entry);
    const isFull = used + bytes > fileBytesMax || (this.#open?.table.rows ?? 0) > fileExtentsMax;
    if (this.#open === undefined || isBehindGap || (isFull && this.#open.hasEntries)) {
      await this.#begin(first);
    }
    const { header, file, table } = this.#open!;
    const place = { position: this.#end, syncedPosition: header.basePosition };
    const group = encodeGroup(entries, { ...place, writtenMs: clock.wallMs(), salt: header.salt });
    await file.write(group.pieces, this.#end - header.basePosition);
    for (const entry of group.entries) addExtents(table, entry);
    this.#open!.hasEntries = true;
    this.#end += group.bytes;
    this.#lastIndex = entries.at(-1)!.index;
    this.#lastTerm = entries.at(-1)!.term;
  }

  /** What is void in files that were taken over stays so as long as a file begins right there. */
  async #keepVoid(): Promise<void> {
    if (this.#followsTaken) await this.#begin(this.#lastIndex + 1);
  }

  async #begin(firstIndex: number): Promise<void> {
    const { files, folder } = this.#options;
    await this.#complete();
    const header = this.#header(firstIndex, this.#lastTerm);
    const file = await createLogFile(files, folder, header, fileHeaderBytes, undefined);
    const table = new ExtentTable(header.basePosition);
    this.#open = { header, file, table, hasEntries: false };
    this.#end = header.basePosition + fileHeaderBytes;
    this.#followsTaken = false;
  }

  #header(firstIndex: number, previousTerm: number): FileHeader {
    const salt = this.#options.random.bytes(4).readUInt32LE(0);
    const voids = this.#followsTaken;
    return { basePosition: this.#end, firstIndex, previousTerm, salt, voids };
  }

  /** The file is durable before its index says that it is whole. */
  async #complete(): Promise<void> {
    if (this.#open === undefined) return;
    const { files, folder, clock } = this.#options;
    const { header, file, table } = this.#open;
    await file.sync();
    const name = indexName(header.basePosition);
    const pause = () => new Promise<void>((resolve) => clock.soon(resolve));
    await writeIndexFile(files, indexFolder(folder), name, table, pause);
    await this.close();
  }
}

/** Where it goes on. */
interface Place {
  readonly lastIndex: number;
  readonly end: number;
  /** The last file was in use before. */
  readonly isTaken: boolean;
}

/** Gives sealed files a second name here, and notes durably that all of them have one. */
async function takeOver(
  { files, folder }: StagedJournalOptions,
  kept: readonly LogFile[],
  journalFolder: string,
): Promise<Place> {
  for (const logFile of kept) {
    const { basePosition } = logFile.header;
    await files.link(logFile.path, `${folder}/${fileName(basePosition)}`);
    const name = indexName(basePosition);
    await files.link(indexPath(journalFolder, logFile), `${indexFolder(folder)}/${name}`);
  }
  await files.syncFolder(indexFolder(folder));
  await files.syncFolder(folder);
  const last = kept.at(-1);
  const place = { lastIndex: last?.lastIndex ?? 0, end: last?.end ?? 0 };
  await writeTaken(files, folder, place);
  return { ...place, isTaken: last !== undefined };
}

function takenPath(folder: string): string {
  return `${folder}/${takenName}`;
}

async function writeTaken(
  files: FilePort,
  folder: string,
  { lastIndex, end }: Pick<Place, 'lastIndex' | 'end'>,
): Promise<void> {
  const bytes = Buffer.alloc(takenBytes);
  bytes.writeDoubleLE(lastIndex, 0);
  bytes.writeDoubleLE(end, 8);
  bytes.writeUInt32LE(crc32c(bytes.subarray(0, 16)), 16);
  const file = await files.open(takenPath(folder), 'create');
  try {
    await file.write([bytes], 0);
    await file.sync();
  } finally {
    await file.close();
  }
  await files.syncFolder(folder);
}

/** Undefined where files were not, or not surely all, taken over. */
async function readTaken(
  files: FilePort,
  folder: string,
): Promise<Pick<Place, 'lastIndex' | 'end'> | undefined> {
  if (!(await files.list(folder)).includes(takenName)) return undefined;
  const file = await files.open(takenPath(folder), 'read');
  const bytes = Buffer.alloc(takenBytes);
  try {
    if ((await file.read(bytes, 0, takenBytes, 0)) !== takenBytes) return undefined;
  } finally {
    await file.close();
  }
  if (bytes.readUInt32LE(16) !== crc32c(bytes.subarray(0, 16))) return undefined;
  return { lastIndex: bytes.readDoubleLE(0), end: bytes.readDoubleLE(8) };
}

/** Removes what is not whole, and looks how far the rest goes. */
async function findPlace(
  { files, folder }: StagedJournalOptions,
  taken: Pick<Place, 'lastIndex' | 'end'>,
): Promise<Place> {
  let last: number | undefined;
  for (const name of await files.list(folder)) {
    const basePosition = parseFileName(name);
    if (basePosition === undefined) continue;
    const index = await IndexFile.open(files, `${indexFolder(folder)}/${indexName(basePosition)}`);
    await index?.close();
    // A start makes the index of a file that was in use anew.
    if (index !== undefined || basePosition < taken.end) last = basePosition;
    else await files.remove(`${folder}/${name}`);
  }
  await files.syncFolder(folder);
  if (last === undefined || last < taken.end) return { ...taken, isTaken: taken.end > 0 };
  return { ...(await readPlace(files, `${folder}/${fileName(last)}`, last)), isTaken: false };
}

/** Entry and position at which a file that is whole ends. */
async function readPlace(
  files: FilePort,
  path: string,
  basePosition: number,
): Promise<Pick<Place, 'lastIndex' | 'end'>> {
  const file = await files.open(path, 'read');
  try {
    const header = await readFileHeader(file, path, basePosition);
    const scanner = new FileScanner(file, header, await file.size());
    let lastIndex = header.firstIndex - 1;
    let end = scanner.firstPosition;
    for (;;) {
      const scanned = await scanner.groupAt(end);
      if (scanned.kind !== 'group') return { lastIndex, end };
      lastIndex = scanned.group.entries.at(-1)?.index ?? lastIndex;
      end = scanned.group.end;
    }
  } finally {
    await file.close();
  }
}
