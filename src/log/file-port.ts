/**
 * The file system as the journal sees it. Injected, so that tests can lose at a crash whatever
 * was not synced, fill the disk, and delay or fail any call. Errors carry Node's `code`
 * (`ENOSPC`, `EIO`, …).
 */

export interface JournalFile {
  /** Writes all pieces at `position`, continuing short writes. Nothing is durable before `sync`. */
  write(pieces: readonly Uint8Array[], position: number): Promise<void>;
  /** Makes earlier writes durable, with the file's length (fdatasync). Never retry a failed one. */
  sync(): Promise<void>;
  /** Reads up to `bytes`; less only at the end of the file. Answers the number of bytes read. */
  read(target: Buffer, targetOffset: number, bytes: number, position: number): Promise<number>;
  /** Sets the length; what is added reads as zeros. */
  truncate(bytes: number): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
  /** What the platform calls it, for `readMany`. */
  readonly descriptor?: number;
}

/** Bytes from `position` of a file on, as many as the target holds. */
export interface RangeRead {
  readonly file: JournalFile;
  readonly target: Buffer;
  readonly position: number;
}

export interface FilePort {
  /** `create` makes an empty file (one that exists is emptied); else the file must exist. */
  open(path: string, mode: 'create' | 'write' | 'read'): Promise<JournalFile>;
  /** Names in a folder, sorted; an absent folder is empty. */
  list(folder: string): Promise<string[]>;
  /** Makes the folder and its parents, each of them durable. */
  makeFolder(folder: string): Promise<void>;
  /** Of a file or a folder; what is there under the new name must be a file. */
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Removes a folder with all that is in it, durably; if there is none, does nothing. */
  removeFolder(folder: string): Promise<void>;
  /** Another name for a file, on the same disk. */
  link(from: string, to: string): Promise<void>;
  /** Makes creations, renames and removals in the folder durable. */
  syncFolder(folder: string): Promise<void>;
  /**
   * Many reads at once, where the platform has a better way for those that need not wait for the
   * disk. Answers how many are done, from the first one on; `read` is for the others.
   */
  readMany?(reads: readonly RangeRead[]): Promise<number>;
  /**
   * A file that exists, for writes past the page cache: of whole pages, from memory that begins
   * with one. Undefined where the platform or the file system has no such thing.
   */
  openDirect?(path: string): Promise<JournalFile | undefined>;
  /** Bytes that can still be written where the folder lies. */
  freeBytes(folder: string): Promise<number>;
}

/** Does an error of the file port carry this code? */
export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
