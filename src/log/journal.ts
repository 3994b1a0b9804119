import { assert } from '../core/assert.ts';
import type { Clock } from '../core/clock.ts';
import { BrokerError } from '../core/errors.ts';
import type { Random } from '../core/random.ts';
import { BlockCache } from './block-cache.ts';
import { ExtentIndex } from './extent-index.ts';
import { ExtentTable } from './extent-table.ts';
import { addExtents } from './extents.ts';
import { type FilePort, isCode } from './file-port.ts';
import {
  type Entry,
  fileHeaderBytes,
  fileName,
  groupAlignBytes,
  type StoredEntry,
} from './format.ts';
import { batchCount, type EncodedGroup, encodeGroup } from './group-encoder.ts';
import {
  createLogFile,
  grownBytes,
  type LogFile,
  nextFilePath,
  padToPage,
} from './journal-file.ts';
import { JournalSyncs } from './journal-syncs.ts';
import { RecentBytes } from './recent-bytes.ts';
import {
  indexFolder,
  indexPath,
  type OnRecoveredEntry,
  type RecoveryStart,
  recover,
} from './recovery.ts';
import { sealFile } from './sealing.ts';
import { SpareFile } from './spare-file.ts';

/**
 * The tenant's one append-only log: Raft log and data store at once. It owns the files; the driver
 * owns the order of things: one `append` at a time, `apply` for what is committed, `seal` and
 * `remove` in the background. See format.ts for the bytes and recovery.ts for starts.
 */
export interface JournalOptions {
  readonly files: FilePort;
  readonly folder: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly start: RecoveryStart;
  readonly onEntry: OnRecoveredEntry;
  /** `always` syncs before an append is done; `interval` does so every `syncIntervalMs`. */
  readonly sync: 'always' | 'interval';
  readonly syncIntervalMs: number;
  /** A file is rolled before it grows beyond this. */
  readonly fileBytesMax: number;
  /** The first one of a journal has this length, and grows with use. */
  readonly fileBytesMin?: number;
  /** Or before it holds more batches than this: bounds the memory of its extents. */
  readonly fileExtentsMax: number;
  readonly recentBytesMax: number;
  readonly indexCacheBytesMax: number;
  /** Is there so much space that the next file may be filled with zeros in advance? */
  readonly mayPreallocate: () => boolean;
  /** An error after which the process must end and recover: a failed sync, a failed write. */
  readonly onFatal: (error: BrokerError) => void;
}

const firstFileBytes = 1024 * 1024;

/** Stored bytes of one file, and where they are read to. */
export interface StoredRange {
  readonly logFile: LogFile;
  readonly target: Buffer;
  readonly position: number;
}

export interface WrittenGroup {
  /** The entries as they are stored; their buffers are the journal's. */
  readonly stored: readonly StoredEntry[];
  /** Position of the group. */
  readonly start: number;
  /** Position after the group. */
  readonly end: number;
  readonly bytes: number;
}

export class Journal {
  readonly extents: ExtentIndex;
  readonly recent: RecentBytes;
  readonly #options: JournalOptions;
  readonly #cache: BlockCache;
  readonly #logFiles: LogFile[];
  /** Where the next group goes. */
  #end: number;
  /** The sync mark that was last written; when it is behind what is synced an idle mark is due. */
  #marked: number;
  #lastIndex: number;
  #lastTerm: number;
  /** In the last file; more than its table has while groups are written and not applied. */
  #batches: number;
  #sealing: Promise<void> | undefined;
  #cancelIntervalSync: (() => void) | undefined;
  readonly #syncs: JournalSyncs;
  readonly #spare: SpareFile;
  #closed = false;

  private constructor(options: JournalOptions, logFiles: LogFile[], end: number) {
    this.#options = options;
    this.#spare = new SpareFile(options.files, nextFilePath(options.folder), options.fileBytesMax);
    this.#cache = new BlockCache(options.indexCacheBytesMax);
    this.#logFiles = logFiles;
    this.extents = new ExtentIndex(logFiles, this.#cache);
    this.recent = new RecentBytes(options.recentBytesMax);
    this.#end = end;
    this.#syncs = new JournalSyncs({
      files: options.files,
      written: () => this.#end,
      failed: (error) => this.#fatal('DISK_FAILED', error, this.#logFiles.at(-1)!),
    });
    const last = logFiles.at(-1);
    if (last !== undefined) this.#syncs.use(last.path, last.file, end);
    this.#marked = 0;
    this.#lastIndex = options.start.index;
    this.#lastTerm = options.start.term;
    this.#batches = logFiles.at(-1)?.table?.rows ?? 0;
  }

  /** Recovers what is on disk (making the first file if there is none) and opens for writing. */
  static async open(options: JournalOptions): Promise<{ journal: Journal; cutBytes: number }> {
    const { files, folder, clock, start } = options;
    await files.makeFolder(folder);
    await files.makeFolder(indexFolder(folder));
    const recovered = await recover({
      files,
      folder,
      indexFolder: indexFolder(folder),
      start,
      onEntry: options.onEntry,
      repair: true,
      pause: () => new Promise((resolve) => clock.soon(resolve)),
    });
    const journal = new Journal(options, recovered.logFiles, recovered.end);
    journal.#lastIndex = recovered.lastIndex;
    journal.#lastTerm = recovered.lastTerm;
    try {
      if (journal.#logFiles.length === 0) await journal.#startFile(start.position);
      else await journal.#rewriteTail(recovered.unsyncedFrom);
    } catch (error) {
      if (!isCode(error, 'ENOSPC')) throw error;
      throw new BrokerError('DISK_FULL', `no space left for ${folder}`, { folder }, error);
    }
    return { journal, cutBytes: recovered.cutBytes };
  }

  get end(): number {
    return this.#end;
  }
  get lastIndex(): number {
    return this.#lastIndex;
  }
  get lastTerm(): number {
    return this.#lastTerm;
  }
  get logFiles(): readonly LogFile[] {
    return this.#logFiles;
  }
  /** Is there anything synced that no mark on disk says is synced? */
  get markIsDue(): boolean {
    return this.#marked < this.#syncs.synced;
  }

  /** Writes the entries as one group and, with `sync=always`, makes it durable; see `write`. */
  async append(entries: readonly Entry[]): Promise<readonly StoredEntry[]> {
    const written = await this.write(entries);
    if (this.#options.sync === 'always') await this.flush();
    return written.stored;
  }

  /**
   * Writes the entries as one group, which is durable after the next `flush`; with `sync=interval`
   * that comes by itself. One at a time, but beside a flush. Rejects with DISK_FULL when there is
   * no space: then nothing of the group counts, and a later write takes its place. Any other
   * failure is fatal. No entries: writes only a sync mark.
   */
  async write(entries: readonly Entry[]): Promise<WrittenGroup> {
    let group = this.#encode(entries);
    if (this.#mustRoll(group)) {
      await this.#roll();
      group = this.#encode(entries);
    }
    const logFile = this.#logFiles.at(-1)!;
    const position = this.#end;
    const marked = this.#syncs.synced;
    const inFile = position - logFile.header.basePosition;
    try {
      const end = inFile + group.bytes;
      await this.#grow(logFile, end);
      await logFile.file.write(padToPage(group.pieces, end, logFile.bytes), inFile);
    } catch (error) {
      const failure = this.#writeFailed(error, logFile);
      if (failure.code === 'DISK_FULL') await this.#takeBack(logFile, position);
      throw failure;
    }
    this.#end = position + group.bytes;
    logFile.end = this.#end;
    this.#batches += batchCount(group);
    // A mark alone need not be covered by another one; else an idle journal would never rest.
    this.#marked = entries.length === 0 && position === marked ? this.#end : marked;
    if (this.#options.sync === 'interval') this.#syncLater();
    for (const entry of entries) {
      if (entry.index > 0) {
        this.#lastIndex = entry.index;
        this.#lastTerm = entry.term;
        logFile.lastIndex = entry.index;
      }
    }
    this.#remember(position, group);
    if (this.#options.mayPreallocate())
      this.#spare.advance(this.#end - logFile.header.basePosition);
    return { stored: group.entries, start: position, end: this.#end, bytes: group.bytes };
  }

  /**
   * Entries after `index`, which is of `term`, are void: others will take their places, in a new
   * file. So nothing that was promised is ever gone for a while, as it would be if bytes were cut
   * and written anew, and a file's first index tells what of the files before it is void. As
   * `write`: one at a time, rejects with DISK_FULL, and then nothing has changed.
   */
  async rewind(index: number, term: number): Promise<void> {
    const [lastIndex, lastTerm] = [this.#lastIndex, this.#lastTerm];
    assert(index < lastIndex, 'there is something to make void');
    this.#lastIndex = index;
    this.#lastTerm = term;
    try {
      await this.#roll(true);
    } catch (error) {
      this.#lastIndex = lastIndex;
      this.#lastTerm = lastTerm;
      throw error;
    }
    for (const logFile of this.#logFiles) logFile.lastIndex = Math.min(logFile.lastIndex, index);
  }

  /** Everything before it is known to be on disk. */
  get synced(): number {
    return this.#syncs.synced;
  }

  /** Makes everything durable that is written by now; beside another sync, if there is one. */
  flush(): Promise<void> {
    return this.#syncs.flush();
  }

  /** The extents of an entry become visible to reads: call when it is applied. */
  apply(entry: StoredEntry): void {
    if (entry.batches.length === 0) return;
    const logFile = this.#fileAt(entry.positions[0]!);
    assert(logFile?.table !== undefined, 'an entry is applied before its file is sealed');
    addExtents(logFile.table, entry);
  }

  /**
   * Moves the extents of rolled files whose last entry is applied from memory to index files.
   * Works in the background in slices; a call while one is under way is that one.
   */
  seal(appliedIndex: number): Promise<void> {
    this.#sealing ??= this.#sealFiles(appliedIndex).finally(() => {
      this.#sealing = undefined;
    });
    return this.#sealing;
  }

  get sealIsDue(): boolean {
    return this.#logFiles.length > 1 && this.#logFiles.at(-2)!.table !== undefined;
  }

  /**
   * Deletes sealed files, durably. The caller knows that nothing in them is needed any more. Their
   * indexes go first: an index without its file tells a start that the file was lost.
   */
  async remove(removed: readonly LogFile[]): Promise<void> {
    const { files, folder } = this.#options;
    if (removed.length === 0) return;
    for (const logFile of removed) {
      const at = this.#logFiles.indexOf(logFile);
      assert(
        at >= 0 && at < this.#logFiles.length - 1,
        'the file that is written to is not removed',
      );
      this.#logFiles.splice(at, 1);
      if (logFile.index === undefined) continue;
      this.#cache.drop(logFile.index);
      await logFile.index.close();
      await files.remove(indexPath(folder, logFile));
    }
    await files.syncFolder(indexFolder(folder));
    for (const logFile of removed) {
      await files.remove(logFile.path);
      // From here on its last reader closes it; not before, or it would be closed twice.
      logFile.removed = true;
      if (logFile.readers === 0) await logFile.file.close();
    }
    await files.syncFolder(folder);
  }

  /** The file that a position lies in; undefined if it was removed. */
  fileAt(position: number): LogFile | undefined {
    return this.#fileAt(position);
  }

  /** The file stays open, even if it is removed, until one read for each hold is done. */
  hold(logFile: LogFile): void {
    logFile.readers++;
  }

  /** The end of a hold without a read. */
  release(logFile: LogFile): Promise<void> {
    return letGo(logFile);
  }

  /** Reads stored bytes of a file that is held, and lets go of it. */
  async readInto({ logFile, target, position }: StoredRange): Promise<void> {
    try {
      const inFile = position - logFile.header.basePosition;
      const read = await logFile.file.read(target, 0, target.length, inFile);
      assert(read === target.length, `${logFile.path} is shorter than its extents say`);
    } catch (error) {
      throw isCode(error, 'EIO') ? this.#fatal('DISK_FAILED', error, logFile) : error;
    } finally {
      await letGo(logFile);
    }
  }

  /**
   * As `readInto` for each of the ranges, as far as that is better done at once. Answers how many
   * are done, from the first one on; the files of the others are still held.
   */
  async readMany(ranges: readonly StoredRange[]): Promise<number> {
    const { files } = this.#options;
    if (files.readMany === undefined || ranges.length === 0) return 0;
    let done = ranges.length;
    try {
      done = await files.readMany(
        ranges.map(({ logFile, target, position }) => ({
          file: logFile.file,
          target,
          position: position - logFile.header.basePosition,
        })),
      );
      return done;
    } catch (error) {
      throw isCode(error, 'EIO') ? this.#fatal('DISK_FAILED', error, ranges[0]!.logFile) : error;
    } finally {
      for (const { logFile } of ranges.slice(0, done)) await letGo(logFile);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelIntervalSync?.();
    await this.#sealing;
    await this.#spare.close();
    if (this.#options.sync === 'interval') await this.flush();
    await this.#syncs.release();
    for (const logFile of this.#logFiles) {
      await logFile.file.close();
      await logFile.index?.close();
    }
  }

  #encode(entries: readonly Entry[]): EncodedGroup {
    return encodeGroup(entries, {
      position: this.#end,
      syncedPosition: this.#syncs.synced,
      writtenMs: this.#options.clock.wallMs(),
      salt: this.#logFiles.at(-1)!.header.salt,
    });
  }

  /**
   * Frees what a write took before it found the disk full: behind the end there are zeros only,
   * durably, or a crash could bring back what its producer was told is not there.
   */
  async #takeBack(logFile: LogFile, position: number): Promise<void> {
    const inFile = position - logFile.header.basePosition;
    try {
      await logFile.file.truncate(inFile);
      await logFile.file.truncate(Math.max(inFile, logFile.bytes));
      await logFile.file.sync();
    } catch (error) {
      throw this.#fatal('DISK_FAILED', error, logFile);
    }
  }

  #mustRoll(group: EncodedGroup): boolean {
    const { header } = this.#logFiles.at(-1)!;
    const used = this.#end - header.basePosition;
    if (used <= fileHeaderBytes || group.entries.length === 0) return false;
    return (
      used + group.bytes > this.#options.fileBytesMax ||
      this.#batches + batchCount(group) > this.#options.fileExtentsMax
    );
  }

  /** Syncs what was written, then puts a new file behind it. */
  async #roll(voids = false): Promise<void> {
    await this.flush();
    const last = this.#logFiles.at(-1)!;
    try {
      await this.#startFile(this.#end, voids);
    } catch (error) {
      throw this.#writeFailed(error, last);
    }
  }

  /** Its next sync has a length to write; once it is grown, none has. */
  async #grow(logFile: LogFile, end: number): Promise<void> {
    const bytes = grownBytes(logFile.bytes, end, this.#options.fileBytesMax);
    if (bytes === logFile.bytes) return;
    await logFile.file.truncate(bytes);
    logFile.bytes = bytes;
  }

  async #startFile(basePosition: number, voids = false): Promise<void> {
    const { files, folder, fileBytesMax, fileBytesMin = firstFileBytes, random } = this.#options;
    const isFirst = this.#logFiles.length === 0;
    const bytes = isFirst ? Math.min(fileBytesMin, fileBytesMax) : fileBytesMax;
    const header = {
      basePosition,
      firstIndex: this.#lastIndex + 1,
      previousTerm: this.#lastTerm,
      salt: random.bytes(4).readUInt32LE(0),
      voids,
    };
    await this.#syncs.release();
    const spare = await this.#spare.take();
    const file = await createLogFile(files, folder, header, bytes, spare);
    const path = `${folder}/${fileName(basePosition)}`;
    this.#logFiles.push({
      header,
      file,
      path,
      bytes,
      end: basePosition + fileHeaderBytes,
      lastIndex: this.#lastIndex,
      table: new ExtentTable(basePosition),
      index: undefined,
      readers: 0,
      removed: false,
    });
    this.#end = basePosition + fileHeaderBytes;
    this.#syncs.use(path, file, this.#end);
    this.#marked = this.#end;
    this.#batches = 0;
  }

  /**
   * What lies after the last sync mark may be in the page cache only, and a sync that failed
   * before the stop may have marked it clean: it is written again and synced before it counts.
   */
  async #rewriteTail(from: number): Promise<void> {
    const last = this.#logFiles.at(-1)!;
    const base = last.header.basePosition;
    const start = Math.max(from, base + fileHeaderBytes);
    const chunk = Buffer.allocUnsafe(Math.min(1024 * 1024, Math.max(1, this.#end - start)));
    for (let at = start; at < this.#end; at += chunk.length) {
      const bytes = Math.min(chunk.length, this.#end - at);
      await last.file.read(chunk, 0, bytes, at - base);
      await last.file.write([chunk.subarray(0, bytes)], at - base);
    }
    // The same goes for the file's length; a new one is written for certain.
    if (start < this.#end) await last.file.truncate((await last.file.size()) + groupAlignBytes);
    await last.file.sync();
  }

  #remember(position: number, group: EncodedGroup): void {
    if (group.entries.length === 0) return;
    let at = position;
    for (const piece of group.pieces) {
      this.recent.add(at, piece);
      at += piece.length;
    }
  }

  #syncLater(): void {
    if (this.#cancelIntervalSync !== undefined) return;
    this.#cancelIntervalSync = this.#options.clock.after(this.#options.syncIntervalMs, () => {
      this.#cancelIntervalSync = undefined;
      if (this.#closed) return;
      // A failed sync has been reported as fatal.
      this.flush().catch(() => undefined);
    });
  }

  async #sealFiles(appliedIndex: number): Promise<void> {
    const { files, folder, clock } = this.#options;
    const pause = () => new Promise<void>((resolve) => clock.soon(resolve));
    for (const logFile of this.#logFiles.slice(0, -1)) {
      if (logFile.table === undefined || logFile.lastIndex > appliedIndex || this.#closed) continue;
      try {
        // Without space the extents stay in memory; the next roll or snapshot tries again.
        if (!(await sealFile(files, folder, logFile, pause))) return;
      } catch (error) {
        throw this.#fatal('DISK_FAILED', error, logFile);
      }
    }
  }

  #fileAt(position: number): LogFile | undefined {
    let low = 0;
    let high = this.#logFiles.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#logFiles[middle]!.header.basePosition <= position) low = middle + 1;
      else high = middle;
    }
    const found = this.#logFiles[low - 1];
    return found !== undefined && position < found.end ? found : undefined;
  }

  #writeFailed(error: unknown, logFile: LogFile): BrokerError {
    if (error instanceof BrokerError) return error;
    if (isCode(error, 'ENOSPC') || isCode(error, 'EDQUOT')) {
      const { path } = logFile;
      return new BrokerError('DISK_FULL', `no space left for ${path}`, { file: path }, error);
    }
    return this.#fatal('DISK_FAILED', error, logFile);
  }

  #fatal(code: 'DISK_FAILED', cause: unknown, logFile: LogFile): BrokerError {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const error = new BrokerError(
      code,
      `${logFile.path}: ${reason}`,
      { file: logFile.path },
      cause,
    );
    this.#options.onFatal(error);
    return error;
  }
}

async function letGo(logFile: LogFile): Promise<void> {
  logFile.readers--;
  if (logFile.removed && logFile.readers === 0) await logFile.file.close();
}
