import { CheckedFile } from './check-file.ts';
import { type ExtentTable, noRow } from './extent-table.ts';
import type { FilePort } from './file-port.ts';
import { fileHeaderBytes, fileName, parseFileName } from './format.ts';
import { IndexFile } from './index-file.ts';
import { readFileHeader } from './journal-file.ts';
import { indexName, voidFrom } from './recovery.ts';
import { readSnapshotFile, type Snapshot, snapshotNames } from './snapshot-file.ts';

export interface CheckOptions {
  readonly files: FilePort;
  /** A tenant's folder: `journal`, `journal/index` and `snapshots` lie in it. */
  readonly folder: string;
  /** What an entry type is called; the journal itself knows only numbers. */
  readonly entryTypeName: (type: number) => string;
  readonly onLine: (line: string) => void;
}

/**
 * Reads everything of a tenant's folder that no broker has open, and changes nothing: all journal
 * files, also those that a start would not read, with every checksum down to the record batches,
 * indexes and snapshots. Says what is there, and answers whether it is sound.
 *
 * Lines that begin with `damage:` mean lost data. Those with `warning:` mean something that the
 * next start mends from what is there.
 */
export function checkJournal(options: CheckOptions): Promise<boolean> {
  return new JournalCheck(options).run();
}

class JournalCheck {
  readonly #files: FilePort;
  readonly #journalFolder: string;
  readonly #snapshotFolder: string;
  readonly #entryTypeName: (type: number) => string;
  readonly #line: (line: string) => void;
  #damages = 0;
  /** End offset of each partition so far; offsets go on from there without a gap. */
  #ends = new Map<number, number>();

  constructor({ files, folder, entryTypeName, onLine }: CheckOptions) {
    // Opening a damaged index removes it, so that a start makes it anew: not here.
    this.#files = { ...files, remove: async () => undefined };
    this.#journalFolder = `${folder}/journal`;
    this.#snapshotFolder = `${folder}/snapshots`;
    this.#entryTypeName = entryTypeName;
    this.#line = onLine;
  }

  async run(): Promise<boolean> {
    const snapshot = await this.#checkSnapshots();
    const paths = await this.#journalPaths();
    const checked: CheckedFile[] = [];
    for (let i = 0; i < paths.length; i++) {
      const file = await this.#openFile(paths[i]!);
      if (file !== undefined) checked.push(file);
    }
    for (const [i, file] of [...checked.entries()].reverse()) {
      const isRead = await this.#attempt(() => file.read(voidFrom(checked, i)).then(() => true));
      if (isRead === undefined) checked.splice(i, 1);
    }
    if (checked.length === 0 && snapshot !== undefined) {
      this.#damage(`${this.#journalFolder}: there is a snapshot, but no journal file`);
    }
    const synced = Math.max(
      snapshot?.position ?? 0,
      ...checked.map((file) => Math.max(file.synced, file.header.basePosition)),
    );
    for (let i = 0; i < checked.length; i++) {
      this.#judgeFile(checked, i, synced, snapshot);
      await this.#checkIndex(checked[i]!, i === checked.length - 1);
    }
    await this.#checkOrphans(checked);
    this.#summarize(checked, synced);
    for (const { file } of checked) await file.close();
    return this.#damages === 0;
  }

  #damage(what: string): void {
    this.#damages++;
    this.#line(`damage: ${what}`);
  }

  /** All snapshots are read; answers the newest sound one. */
  async #checkSnapshots(): Promise<Snapshot | undefined> {
    let newest: Snapshot | undefined;
    let damaged: string[] = [];
    for (const name of await snapshotNames(this.#files, this.#snapshotFolder)) {
      const path = `${this.#snapshotFolder}/${name}`;
      const snapshot = await this.#attempt(() => readSnapshotFile(this.#files, path));
      if (snapshot === undefined) {
        damaged.push(path);
        continue;
      }
      newest = snapshot;
      const { index, term, position, image } = snapshot;
      const place = `entry ${index}, term ${term}, position ${position}`;
      this.#line(`${path}: ${place}, ${image.length} bytes`);
    }
    if (newest === undefined && damaged.length > 0) {
      for (const path of damaged) this.#damage(`${path}: no snapshot is sound`);
      damaged = [];
    }
    for (const path of damaged) this.#line(`warning: ${path} is damaged; another one is used`);
    return newest;
  }

  /** An error that says what is wrong with a file is damage here, and the check goes on. */
  async #attempt<T>(read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read();
    } catch (error) {
      this.#damage(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }

  async #journalPaths(): Promise<string[]> {
    const names = await this.#files.list(this.#journalFolder);
    return names
      .filter((name) => parseFileName(name) !== undefined)
      .map((name) => `${this.#journalFolder}/${name}`);
  }

  #openFile(path: string): Promise<CheckedFile | undefined> {
    return this.#attempt(async () => {
      const basePosition = parseFileName(path.slice(path.lastIndexOf('/') + 1))!;
      const file = await this.#files.open(path, 'read');
      const header = await readFileHeader(file, path, basePosition);
      return new CheckedFile(path, file, header);
    });
  }

  #judgeFile(
    checked: readonly CheckedFile[],
    number: number,
    synced: number,
    snapshot: Snapshot | undefined,
  ): void {
    const file = checked[number]!;
    this.#judgeStart(file, checked[number - 1], snapshot);
    this.#line(file.describe());
    // Writes that no mark covers may be there in any part; a start cuts at the first bad one.
    const torn = file.gaps.find((gap) => gap.from >= synced);
    if (torn !== undefined) file.cutAt(torn.from);
    for (const { what } of file.problems) this.#damage(`${file.path}: ${what}`);
    for (const { from, to } of file.gaps) {
      const place = `position ${from - file.header.basePosition}`;
      this.#damage(`${file.path}: ${place}: ${to - from} bytes are not sound`);
      this.#ends.clear();
    }
    this.#judgeEnd(file, checked[number + 1], synced);
    this.#judgeOffsets(file);
  }

  /** Entries may be missing where files were removed: below the snapshot only. */
  #judgeStart(
    file: CheckedFile,
    before: CheckedFile | undefined,
    snapshot: Snapshot | undefined,
  ): void {
    const expected = (before?.lastIndex ?? 0) + 1;
    const { firstIndex } = file.header;
    if (firstIndex === expected) return;
    if (firstIndex < expected) {
      this.#line(`entries ${firstIndex} to ${expected - 1} before it are void: others follow`);
      return;
    }
    this.#ends.clear();
    const what = `entries ${expected} to ${firstIndex - 1}`;
    if (firstIndex > expected && firstIndex - 1 <= (snapshot?.index ?? 0)) {
      this.#line(`${what} were removed`);
    } else this.#damage(`${file.path}: follows entry ${expected - 1}; ${what} are missing`);
  }

  #judgeEnd(file: CheckedFile, next: CheckedFile | undefined, synced: number): void {
    const { end, rest, header, path } = file;
    const place = `position ${end - header.basePosition}`;
    // With zeros behind its end, the file that followed was removed or is missing: said there.
    const isBeforeHole = next !== undefined && next.header.firstIndex > file.lastIndex + 1;
    if (isBeforeHole && rest === 0) return;
    const isMissed = next === undefined ? end < synced : end !== next.header.basePosition;
    if (isMissed) this.#damage(`${path}: ${place}: what was synced here is gone`);
    else if (rest > 0 && next === undefined) {
      this.#line(`${path}: ${place}: a torn tail of ${rest} bytes, which a start cuts off`);
    }
  }

  /** Offsets of a partition follow each other without a gap, as long as no file is missing. */
  #judgeOffsets({ table, path, header, end: fileEnd }: CheckedFile): void {
    for (let row = 0; row < table.rows && table.position(row) < fileEnd; row++) {
      const partition = table.partition(row);
      const end = this.#ends.get(partition);
      const baseOffset = table.baseOffset(row);
      if (end !== undefined && end !== baseOffset) {
        const place = `position ${table.position(row) - header.basePosition}`;
        this.#damage(
          `${path}: ${place}: offset ${baseOffset} of partition ${partition} after ${end}`,
        );
      }
      this.#ends.set(partition, table.endOffset(row));
    }
  }

  async #checkIndex({ header, table, path }: CheckedFile, isLast: boolean): Promise<void> {
    const indexPath = `${this.#journalFolder}/index/${indexName(header.basePosition)}`;
    const index = await IndexFile.open(this.#files, indexPath);
    if (index === undefined) {
      if (!isLast) this.#line(`warning: ${path} has no sound index; a start makes one`);
      return;
    }
    // A block that is not sound fails an assertion.
    const isSame = await indexEquals(index, table).catch(() => false);
    await index.close();
    if (isSame) return;
    const advice = 'remove it, and a start makes it anew';
    this.#line(`warning: ${indexPath} is damaged or not that of its file: ${advice}`);
  }

  /** An index is removed before its file, so one without a file means a lost file. */
  async #checkOrphans(checked: readonly CheckedFile[]): Promise<void> {
    const known = new Set(checked.map((file) => indexName(file.header.basePosition)));
    for (const name of await this.#files.list(`${this.#journalFolder}/index`)) {
      if (!name.endsWith('.index') || known.has(name)) continue;
      const lost = fileName(Number.parseInt(name, 10));
      this.#damage(`${this.#journalFolder}/${lost}: the file of ${name} is missing or unreadable`);
    }
  }

  #summarize(checked: readonly CheckedFile[], synced: number): void {
    const types = new Map<number, number>();
    const partitions = new Set<number>();
    let records = 0;
    let bytes = 0;
    for (const file of checked) {
      for (const [type, count] of file.types) types.set(type, (types.get(type) ?? 0) + count);
      for (const partition of file.table.partitions()) partitions.add(partition);
      records += file.records;
      bytes += file.batchBytes;
    }
    const counts = [...types].sort(([a], [b]) => a - b);
    const named = counts.map(([type, count]) => `${this.#entryTypeName(type)} ${count}`);
    this.#line(`entries by type: ${named.join(', ') || 'none'}`);
    this.#line(`${records} records of ${partitions.size} partitions in ${bytes} bytes of batches`);
    const end = checked.at(-1)?.end ?? fileHeaderBytes;
    this.#line(
      `last sync mark at position ${synced}, ${Math.max(0, end - synced)} bytes behind it`,
    );
    this.#line(this.#damages === 0 ? 'ok' : `not ok: damage in ${this.#damages} places`);
  }
}

/** Does an index file say what the journal file does? */
async function indexEquals(index: IndexFile, table: ExtentTable): Promise<boolean> {
  if (index.facts.rows !== table.rows) return false;
  const partitions = [...table.partitions()].sort((a, b) => a - b);
  let partitionAt = 0;
  let row = partitions.length === 0 ? noRow : table.first(partitions[0]!);
  for (let number = 0; number < index.blocks; number++) {
    const block = await index.readBlock(number);
    for (let at = 0; at < block.rows; at++) {
      const isSame =
        block.partition(at) === table.partition(row) &&
        block.baseOffset(at) === table.baseOffset(row) &&
        block.count(at) === table.count(row) &&
        block.position(at) === table.position(row) &&
        block.bytes(at) === table.bytes(row);
      if (!isSame) return false;
      row = table.next(row);
      if (row === noRow && ++partitionAt < partitions.length) {
        row = table.first(partitions[partitionAt]!);
      }
    }
  }
  return true;
}
