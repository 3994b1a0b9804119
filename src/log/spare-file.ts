import type { FilePort, JournalFile } from './file-port.ts';

/** Zeros that are written and synced at a time: a larger step would hold up the journal's syncs. */
const stepBytesMax = 4 * 1024 * 1024;
const zeroBytes = 1024 * 1024;
/** Parts of the present file: when the next one is begun, and when it is to be ready. */
const beginsAt = 0.25;
const readyAt = 0.75;

const zeros = Buffer.alloc(zeroBytes);

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
      if (this.#file === undefined) {
        this.#file = await this.#files.open(this.#path, 'create');
        await this.#file.truncate(this.#bytes);
      }
      while (this.#filled < this.#target) await this.#fillStep(this.#file);
    } catch {
      // It holds nothing: without space, or on a bad disk, the journal goes on without it.
      await this.#giveUp();
    }
  }

  async #fillStep(file: JournalFile): Promise<void> {
    const end = Math.min(this.#bytes, this.#filled + stepBytesMax);
    for (let at = this.#filled; at < end; at += zeroBytes) {
      await file.write([zeros.subarray(0, Math.min(zeroBytes, end - at))], at);
    }
    await file.sync();
    this.#filled = end;
  }

  async #giveUp(): Promise<void> {
    this.#isGivenUp = true;
    const file = this.#file;
    this.#file = undefined;
    this.#filled = 0;
    await file?.close().catch(() => undefined);
    await this.#files.remove(this.#path).catch(() => undefined);
  }
}
