import { readRecordCount } from '../protocol/records/batch-header.ts';
import { ExtentTable } from './extent-table.ts';
import { addExtents } from './extents.ts';
import type { JournalFile } from './file-port.ts';
import { type FileHeader, fileHeaderBytes, type StoredEntry } from './format.ts';
import { unknownVersion } from './journal-file.ts';
import { bytesInUse } from './recovery.ts';
import { FileScanner, type Group } from './scan.ts';

/** Positions between which no sound group was found. */
export interface Gap {
  readonly from: number;
  readonly to: number;
}

/** What an offline check finds in one journal file. */
export class CheckedFile {
  readonly path: string;
  readonly file: JournalFile;
  readonly header: FileHeader;
  readonly table: ExtentTable;
  readonly types = new Map<number, number>();
  readonly gaps: Gap[] = [];
  readonly problems: { readonly position: number; readonly what: string }[] = [];
  /** Position after the last sound group. */
  end: number;
  lastIndex: number;
  /** The greatest sync mark. */
  synced = 0;
  /** Bytes behind the end up to the last that is not zero. */
  rest = 0;
  records = 0;
  batchBytes = 0;
  #groups = 0;
  #entries = 0;
  #terms: [first: number, last: number] = [0, 0];
  #writtenMs: [first: number, last: number] = [0, 0];
  /** From this entry on, later files have others in the place of those of this one. */
  #voidIndex = Number.POSITIVE_INFINITY;

  constructor(path: string, file: JournalFile, header: FileHeader) {
    this.path = path;
    this.file = file;
    this.header = header;
    this.table = new ExtentTable(header.basePosition);
    this.end = header.basePosition + fileHeaderBytes;
    this.lastIndex = header.firstIndex - 1;
  }

  /** Goes through all groups, over damage too. Entries from `voidIndex` on hold nothing. */
  async read(voidIndex: number): Promise<void> {
    this.#voidIndex = voidIndex;
    const scanner = new FileScanner(this.file, this.header, await this.file.size());
    for (;;) {
      const scanned = await scanner.groupAt(this.end);
      if (scanned.kind === 'unknown-version') throw unknownVersion(this.path, scanned.version);
      if (scanned.kind === 'group') this.#add(scanned.group);
      else {
        const next = await scanner.headerBeyond(this.end, () => true);
        if (next === undefined) break;
        this.gaps.push({ from: this.end, to: next.position });
        this.end = next.position;
      }
    }
    this.#mergeGaps();
    const inFile = this.end - this.header.basePosition;
    this.rest = await bytesInUse(this.file, inFile, await this.file.size());
  }

  /** Everything from there on is a torn tail. */
  cutAt(position: number): void {
    this.rest += this.end - position;
    this.end = position;
    keep(this.gaps, ({ from }) => from < position);
    keep(this.problems, (problem) => problem.position <= position);
  }

  /** A header whose group is damaged ends one gap and begins another. */
  #mergeGaps(): void {
    for (let i = this.gaps.length - 1; i > 0; i--) {
      const before = this.gaps[i - 1]!;
      const gap = this.gaps[i]!;
      if (before.to === gap.from) this.gaps.splice(i - 1, 2, { from: before.from, to: gap.to });
    }
    // What looks like a group at the end and is none belongs to the tail.
    const last = this.gaps.at(-1);
    if (last === undefined || last.to !== this.end) return;
    this.gaps.pop();
    this.end = last.from;
  }

  #add({ header, entries, end }: Group): void {
    this.#groups++;
    this.end = end;
    this.synced = Math.max(this.synced, header.syncedPosition);
    if (this.#writtenMs[0] === 0) this.#writtenMs[0] = header.writtenMs;
    this.#writtenMs[1] = header.writtenMs;
    for (const entry of entries) this.#addEntry(entry);
  }

  #addEntry(entry: StoredEntry): void {
    this.#entries++;
    this.types.set(entry.type, (this.types.get(entry.type) ?? 0) + 1);
    if (entry.index > 0) {
      if (entry.index !== this.lastIndex + 1) {
        const what = `entry ${entry.index} follows entry ${this.lastIndex}`;
        this.problems.push({ position: this.end, what });
      }
      this.lastIndex = entry.index;
      if (this.#terms[0] === 0) this.#terms[0] = entry.term;
      this.#terms[1] = entry.term;
    }
    if (entry.index >= this.#voidIndex) return;
    for (const batch of entry.batches) {
      this.records += readRecordCount(batch, 0);
      this.batchBytes += batch.length;
    }
    addExtents(this.table, entry);
  }

  describe(): string {
    const { basePosition, firstIndex } = this.header;
    const positions = `positions ${basePosition} to ${this.end}`;
    if (this.#entries === 0) return `${this.path}: ${positions}, no entries`;
    const [firstMs, lastMs] = this.#writtenMs;
    return [
      `${this.path}: ${positions}`,
      `entries ${firstIndex} to ${this.lastIndex}`,
      `terms ${this.#terms[0]} to ${this.#terms[1]}`,
      `${this.#groups} groups, ${this.table.rows} batches, ${this.records} records`,
      `written ${new Date(firstMs).toISOString()} to ${new Date(lastMs).toISOString()}`,
    ].join(', ');
  }
}

function keep<T>(items: T[], isKept: (item: T) => boolean): void {
  items.splice(0, items.length, ...items.filter(isKept));
}
