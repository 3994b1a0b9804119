import type { JournalFile } from './file-port.ts';
import {
  batchIsSound,
  type FileHeader,
  fileHeaderBytes,
  type GroupHeader,
  groupAlignBytes,
  groupBytes,
  groupHeaderBytes,
  groupMagicBytes,
  groupVersion,
  journalVersion,
  readEntry,
  readGroupHeader,
  type StoredEntry,
} from './format.ts';

/** Reads of a scan; larger groups enlarge it for their own length. */
const windowBytes = 4 * 1024 * 1024;

export interface Group {
  readonly header: GroupHeader;
  readonly entries: readonly StoredEntry[];
  /** Position after the group. */
  readonly end: number;
}

export type Scanned =
  | { readonly kind: 'group'; readonly group: Group }
  | { readonly kind: 'unknown-version'; readonly version: number }
  /** No whole and sound group begins here: the end, a torn tail, or damage. */
  | { readonly kind: 'nothing' };

/** Reads one journal file group by group. Buffers of an answer are valid until the next call. */
export class FileScanner {
  readonly #file: JournalFile;
  readonly #header: FileHeader;
  readonly #fileBytes: number;
  #window: Buffer = Buffer.alloc(0);
  #windowAt = 0;
  #windowFilled = 0;

  constructor(file: JournalFile, header: FileHeader, fileBytes: number) {
    this.#file = file;
    this.#header = header;
    this.#fileBytes = fileBytes;
  }

  get firstPosition(): number {
    return this.#header.basePosition + fileHeaderBytes;
  }

  /** The group at a position of this file, with all checksums verified, those of batches too. */
  async groupAt(position: number): Promise<Scanned> {
    const at = position - this.#header.basePosition;
    const head = await this.#view(at, groupHeaderBytes);
    if (head === undefined) return { kind: 'nothing' };
    const header = readGroupHeader(head, 0, position, this.#header.salt);
    if (header === undefined) return { kind: 'nothing' };
    const version = groupVersion(head, 0);
    if (version > journalVersion) return { kind: 'unknown-version', version };
    const whole = await this.#view(at, groupBytes(header.bodyBytes));
    if (whole === undefined) return { kind: 'nothing' };
    const entries = readEntries(whole, header);
    if (entries === undefined) return { kind: 'nothing' };
    return { kind: 'group', group: { header, entries, end: position + whole.length } };
  }

  /**
   * The first group header after `position` that names a sync mark beyond it: proof that the bytes
   * at `position` were once synced. Undefined if there is none: what lies there is a torn tail.
   */
  markBeyond(position: number): Promise<GroupHeader | undefined> {
    return this.headerBeyond(position, (header) => header.syncedPosition > position);
  }

  /** The first group header after `position` that is accepted. */
  async headerBeyond(
    position: number,
    accepts: (header: GroupHeader) => boolean,
  ): Promise<GroupHeader | undefined> {
    const base = this.#header.basePosition;
    let at = position - base + groupAlignBytes;
    while (at + groupHeaderBytes <= this.#fileBytes) {
      const view = await this.#view(at, Math.min(windowBytes, this.#fileBytes - at));
      if (view === undefined) return undefined;
      const last = view.length - groupHeaderBytes;
      let from = 0;
      for (;;) {
        const found = findGroupMagic(view, from);
        if (found > last) break;
        const header = readGroupHeader(view, found, base + at + found, this.#header.salt);
        if (header !== undefined && accepts(header)) return header;
        from = found + (header === undefined ? groupAlignBytes : groupBytes(header.bodyBytes));
      }
      // The view's last bytes may be the beginning of a header; a group may end behind the view.
      at += Math.max(from, last + groupAlignBytes);
    }
    return undefined;
  }

  async #view(at: number, bytes: number): Promise<Buffer | undefined> {
    if (at + bytes > this.#fileBytes) return undefined;
    if (at < this.#windowAt || at + bytes > this.#windowAt + this.#windowFilled) {
      const wanted = Math.min(Math.max(bytes, windowBytes), this.#fileBytes - at);
      if (this.#window.length < wanted) this.#window = Buffer.allocUnsafe(wanted);
      this.#windowFilled = await this.#file.read(this.#window, 0, wanted, at);
      this.#windowAt = at;
      if (this.#windowFilled < bytes) return undefined;
    }
    const from = at - this.#windowAt;
    return this.#window.subarray(from, from + bytes);
  }
}

/** Where the next group may begin, or the end: most of what is searched are zeros. */
function findGroupMagic(view: Buffer, from: number): number {
  let at = view.indexOf(groupMagicBytes, from);
  while (at >= 0 && at % groupAlignBytes !== 0) at = view.indexOf(groupMagicBytes, at + 1);
  return at < 0 ? view.length : at;
}

function readEntries(whole: Buffer, header: GroupHeader): StoredEntry[] | undefined {
  const entries: StoredEntry[] = [];
  const end = groupHeaderBytes + header.bodyBytes;
  let at = groupHeaderBytes;
  for (let i = 0; i < header.entryCount; i++) {
    const read = readEntry(whole, at, end, header.position + at);
    if (read === undefined || !read.entry.batches.every(batchIsSound)) return undefined;
    entries.push(read.entry);
    at = read.end;
  }
  return at === end ? entries : undefined;
}
