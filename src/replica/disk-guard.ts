import type { Clock } from '../core/clock.ts';
import { type FilePort, isCode, type JournalFile } from '../log/file-port.ts';

export interface DiskGuardOptions {
  /** Writes that grow the log are refused while less than this is free. */
  readonly lowWaterBytes: number;
  /** Held back as a zero-filled file, for commits and deletions when the disk is full anyway. */
  readonly reserveBytes: number;
}

const pollMs = 1000;

/**
 * Watches the space on the data folder's disk. Produce is refused in time, so that what must go on
 * (offset commits, deletions, snapshots) still finds space; if another program takes that too, the
 * reserve file is given up for them and taken back when there is space again.
 */
export class DiskGuard {
  readonly #files: FilePort;
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #options: DiskGuardOptions;
  #freeBytes = Number.POSITIVE_INFINITY;
  #reserved = false;
  /** The removal of a reserve must not meet the making of the next one. */
  #releasing = false;
  #starting: Promise<void> | undefined;
  #cancel: (() => void) | undefined;
  #stopped = false;

  constructor(files: FilePort, folder: string, clock: Clock, options: DiskGuardOptions) {
    this.#files = files;
    this.#folder = folder;
    this.#clock = clock;
    this.#options = options;
  }

  /** Is there room for `bytes` more of what grows the log? */
  mayGrow(bytes: number): boolean {
    return this.#freeBytes - bytes >= this.#options.lowWaterBytes;
  }

  /** Nothing that grows the log has room. */
  get isLow(): boolean {
    return !this.mayGrow(1);
  }

  /** There is room for a while: enough to lead in the place of a node whose disk is low. */
  get isRoomy(): boolean {
    return this.mayGrow(Math.max(this.#options.lowWaterBytes, 1));
  }

  get freeBytes(): number {
    return this.#freeBytes;
  }

  /** The reserve is given up: what can wait must not use the rest. */
  get isCritical(): boolean {
    return this.#options.reserveBytes > 0 && !this.#reserved;
  }

  /** Own writes count at once, before the next look at the disk. */
  wrote(bytes: number): void {
    this.#freeBytes -= bytes;
  }

  /** Once, however many share it; the folder has to be there. */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  async #start(): Promise<void> {
    this.#reserved = await this.#findReserve();
    await this.#look();
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  /** The disk is full: gives up the reserve. False when it was already given up. */
  async release(): Promise<boolean> {
    this.#freeBytes = 0;
    if (!this.#reserved) return false;
    this.#reserved = false;
    this.#releasing = true;
    try {
      await this.#files.remove(this.#reservePath);
    } finally {
      this.#releasing = false;
    }
    return true;
  }

  /** A reserve that a stop left half filled, or of another size, is filled anew. */
  async #findReserve(): Promise<boolean> {
    if (!(await this.#files.list(this.#folder)).includes('reserve')) return false;
    const file = await this.#files.open(this.#reservePath, 'read');
    try {
      return (await file.size()) === this.#options.reserveBytes;
    } finally {
      await file.close();
    }
  }

  get #reservePath(): string {
    return `${this.#folder}/reserve`;
  }

  #schedule(): void {
    this.#cancel = this.#clock.after(pollMs, () => {
      void this.#look().then(() => {
        if (!this.#stopped) this.#schedule();
      });
    });
  }

  async #look(): Promise<void> {
    this.#freeBytes = await this.#files.freeBytes(this.#folder);
    const { lowWaterBytes, reserveBytes } = this.#options;
    if (this.#reserved || this.#releasing || this.#stopped || reserveBytes === 0) return;
    if (this.#freeBytes < lowWaterBytes + reserveBytes * 2) return;
    await this.#fillReserve();
  }

  async #fillReserve(): Promise<void> {
    const { reserveBytes } = this.#options;
    const zeros = Buffer.alloc(Math.min(reserveBytes, 1024 * 1024));
    let file: JournalFile | undefined;
    try {
      file = await this.#files.open(this.#reservePath, 'create');
      for (let at = 0; at < reserveBytes; at += zeros.length) {
        await file.write([zeros.subarray(0, Math.min(zeros.length, reserveBytes - at))], at);
      }
      await file.sync();
      this.#reserved = true;
    } catch (error) {
      if (!isCode(error, 'ENOSPC')) throw error;
      await this.#files.remove(this.#reservePath);
    } finally {
      await file?.close();
    }
  }
}
