import { type FilePort, isCode, type JournalFile } from './file-port.ts';
import { pageBytes } from './journal-file.ts';

/** Zeros that are written at a time: a larger step would hold up the journal's syncs. */
const stepBytesMax = 4 * 1024 * 1024;
/** A write through the page cache; see `groupBytesMax` in group-commit.ts for larger ones. */
const cachedBytesMax = 1024 * 1024;
/** Parts of the present file: when the next one is begun, and when it is to be ready. */
const beginsAt = 1 / 16;
const readyAt = 7 / 8;

/** Node has it; its types leave it to those of browsers. */
declare const WebAssembly: {
  readonly Memory: new (size: { initial: number }) => { readonly buffer: ArrayBuffer };
};

/** WebAssembly's memory begins with a page, as direct writes must. None of it is ever touched. */
const zeros = Buffer.from(new WebAssembly.Memory({ initial: stepBytesMax / 65_536 }).buffer);

/**
 * The next journal file, filled with zeros while the present one is written to. A sync of blocks
 * that are on the disk already has no metadata to write: with large groups it takes half the time
 * or less. A journal that is hardly used never gets one, and where it is not ready in time, or
 * there is no space for it, the next file is made without.
 */
export class SpareFile {
  readonly #files: FilePort;
  readonly #path: string;
  readonly #bytes: number;
  #file: JournalFile | undefined;
  /** The same file past the page cache, where that is possible. */
  #direct: JournalFile | undefined;
  #filled = 0;
  #filling: Promise<void> | undefined;
  #target = 0;
  /** It could not be made; the next one may. */
  #isGivenUp = false;

  constructor(files: FilePort, path: string, bytes: number) {
    this.#files = files;
    this.#path = path;
    this.#bytes = bytes;
  }

  /** Keeps pace with the present file, of which `usedBytes` are written; in the background. */
  advance(usedBytes: number): void {
    const part = (usedBytes / this.#bytes - beginsAt) / (readyAt - beginsAt);
    this.#target = Math.min(this.#bytes, Math.floor(part * this.#bytes));
    if (this.#target <= this.#filled || this.#isGivenUp || this.#filling !== undefined) return;
    this.#filling = this.#fill().finally(() => {
      this.#filling = undefined;
    });
  }

  /** The file, at its full length, under the path that was given; the next one can be begun. */
  async take(): Promise<JournalFile | undefined> {
    this.#target = 0;
    await this.#filling;
    await this.#closeDirect();
    const file = this.#file;
    this.#file = undefined;
    this.#filled = 0;
    this.#isGivenUp = false;
    return file;
  }

  /** Stops; what is left of it on the disk goes at the next start. */
  async close(): Promise<void> {
    const file = await this.take();
    this.#isGivenUp = true;
    await file?.close();
  }

  async #fill(): Promise<void> {
    try {
      this.#file ??= await this.#create();
      while (this.#filled < this.#target) await this.#fillStep(this.#file);
    } catch {
      // It holds nothing: without space, or on a bad disk, the journal goes on without it.
      await this.#giveUp();
    }
  }

  async #create(): Promise<JournalFile> {
    const file = await this.#files.open(this.#path, 'create');
    try {
      await file.truncate(this.#bytes);
      this.#direct = await this.#files.openDirect?.(this.#path);
    } catch (error) {
      await file.close();
      throw error;
    }
    return file;
  }

  async #fillStep(file: JournalFile): Promise<void> {
    const bytes = Math.min(stepBytesMax, this.#bytes - this.#filled);
    if (!(await this.#writeDirect(bytes))) {
      await this.#writeCached(file, this.#filled + bytes);
    }
    this.#filled += bytes;
  }

  /**
   * Past the page cache it takes a twentieth of the processor's time. There is nothing to sync but
   * the file's metadata, and that is done when it is put in place.
   */
  async #writeDirect(bytes: number): Promise<boolean> {
    if (this.#direct === undefined || bytes % pageBytes !== 0) return false;
    try {
      await this.#direct.write([zeros.subarray(0, bytes)], this.#filled);
      return true;
    } catch (error) {
      if (!isCode(error, 'EINVAL')) throw error;
      // A disk with larger blocks than pages, or a file system that will not have it.
      await this.#closeDirect();
      return false;
    }
  }

  async #writeCached(file: JournalFile, end: number): Promise<void> {
    for (let at = this.#filled; at < end; at += cachedBytesMax) {
      await file.write([zeros.subarray(0, Math.min(cachedBytesMax, end - at))], at);
    }
    await file.sync();
  }

  async #closeDirect(): Promise<void> {
    const direct = this.#direct;
    this.#direct = undefined;
    await direct?.close().catch(() => undefined);
  }

  async #giveUp(): Promise<void> {
    this.#isGivenUp = true;
    const file = this.#file;
    this.#file = undefined;
    this.#filled = 0;
    await this.#closeDirect();
    await file?.close().catch(() => undefined);
    await this.#files.remove(this.#path).catch(() => undefined);
  }
}
