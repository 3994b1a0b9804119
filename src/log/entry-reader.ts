import { entryBytes, type StoredEntry } from './format.ts';
import type { Journal } from './journal.ts';
import type { LogFile } from './journal-file.ts';
import { FileScanner } from './scan.ts';

/**
 * Reads entries of the journal by their Raft index, for members of a group that lag behind what is
 * in memory. Reading on from where it was costs no search.
 */
export class EntryReader {
  readonly #journal: Journal;
  /** Where the group with this entry begins, as far as is known. */
  #next:
    | { readonly index: number; readonly logFile: LogFile; readonly position: number }
    | undefined;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /**
   * Entries from `index` on, at least one and more as long as they fit into `bytesMax`. Undefined
   * if the journal does not have it (any more).
   */
  async read(index: number, bytesMax: number): Promise<StoredEntry[] | undefined> {
    const logFiles = this.#journal.logFiles;
    // Entries of earlier files are void from where a later one begins.
    const number = logFiles.findLastIndex(({ header }) => header.firstIndex <= index);
    const logFile = logFiles[number];
    if (logFile === undefined || logFile.lastIndex < index) return undefined;
    this.#journal.hold(logFile);
    try {
      return await this.#readFile(logFile, index, bytesMax);
    } finally {
      await this.#journal.release(logFile);
    }
  }

  async #readFile(
    logFile: LogFile,
    index: number,
    bytesMax: number,
  ): Promise<StoredEntry[] | undefined> {
    const fileBytes = logFile.end - logFile.header.basePosition;
    const scanner = new FileScanner(logFile.file, logFile.header, fileBytes);
    const isNext = this.#next?.index === index && this.#next.logFile === logFile;
    let position = isNext ? this.#next!.position : scanner.firstPosition;
    const found: StoredEntry[] = [];
    let bytes = 0;
    while (bytes < bytesMax) {
      const scanned = await scanner.groupAt(position);
      if (scanned.kind !== 'group') break;
      const entries = scanned.group.entries.filter(
        (entry) => entry.index >= index && entry.index <= logFile.lastIndex,
      );
      for (const entry of entries) {
        bytes += entryBytes(entry);
        // The scanner reads the next group into the same bytes.
        found.push(copyEntry(entry));
      }
      position = scanned.group.end;
    }
    const last = found.at(-1);
    if (last === undefined) return undefined;
    this.#next = { index: last.index + 1, logFile, position };
    return found;
  }
}

/** With bytes of its own. */
export function copyEntry(entry: StoredEntry): StoredEntry {
  return {
    ...entry,
    meta: Buffer.from(entry.meta),
    batches: entry.batches.map((batch) => Buffer.from(batch)),
  };
}
