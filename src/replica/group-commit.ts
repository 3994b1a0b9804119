import type { Clock } from '../core/clock.ts';
import { BrokerError } from '../core/errors.ts';
import type { Entry, StoredEntry } from '../log/format.ts';
import { entryBytesBound } from '../log/group-encoder.ts';
import type { Journal } from '../log/journal.ts';

/** An entry on its way to the disk. */
export interface Pending {
  readonly entry: Entry;
  readonly done: Done | undefined;
  /** Others who wait for it. */
  after: Done[] | undefined;
}

/**
 * - applied: durable, committed and in the state
 * - disk-full: it never reached the disk and never will; the client may try again
 * - stopped: the node is going down; what became of it is not known
 */
export type Outcome = 'applied' | 'disk-full' | 'stopped';
export type Done = (outcome: Outcome) => void;

/** Entries that were written together. */
export interface Group {
  readonly pending: readonly Pending[];
  readonly stored: readonly StoredEntry[];
  /** Journal position after it. */
  readonly end: number;
  readonly bytes: number;
}

export interface GroupCommitOptions {
  readonly journal: Journal;
  readonly clock: Clock;
  /** With `interval` a group counts as soon as it is written. */
  readonly sync: 'always' | 'interval';
  /**
   * While a sync is under way, what is written waits for the next one. So much must be queued for a
   * write of its own meanwhile: small requests are cheaper in one write.
   */
  readonly aheadBytesMin: number;
  /** Groups in their order, each once it is durable. */
  readonly onDurable: (group: Group) => void;
  /** These never reached the disk, for want of space. All before them is durable. */
  readonly onDropped: (dropped: readonly Pending[]) => void;
  /** Nothing is queued and nothing under way any more. */
  readonly onIdle: () => void;
  /** Called when the disk is full: true if there is some space now. */
  readonly release: () => Promise<boolean>;
  readonly onFatal: (error: unknown) => void;
}

/** One write takes about this much: bounds latency, memory and the length of turns. */
const groupBytesMax = 4 * 1024 * 1024;
const groupEntriesMax = 4096;
/** So much may be written and not synced. */
const aheadBytesMax = 16 * 1024 * 1024;

/**
 * Takes entries to the disk in groups. One write and one sync are under way at a time, each beside
 * the other: while the disk syncs, the next groups are written to the page cache, and a sync makes
 * all of them durable that were written when it began. On a quick disk that is one group, on a slow
 * one several.
 *
 * There is never more than one sync of a file under way, because Linux tells an error of the
 * device to one of them only, and not always to the one that it concerns.
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  #queue: Pending[] = [];
  #queuedBytes = 0;
  #writing: readonly Pending[] = [];
  #isWriting = false;
  /** Written and not durable, in order. */
  #written: Group[] = [];
  #writtenBytes = 0;
  #syncing: Promise<void> | undefined;
  #isWoken = false;
  #waitingForIdle: (() => void)[] = [];

  constructor(options: GroupCommitOptions) {
    this.#options = options;
  }

  get isIdle(): boolean {
    return (
      this.#queue.length === 0 &&
      !this.#isWriting &&
      this.#written.length === 0 &&
      this.#syncing === undefined
    );
  }

  /** The youngest entry that is not settled. */
  get last(): Pending | undefined {
    return this.#queue.at(-1) ?? this.#writing.at(-1) ?? this.#written.at(-1)?.pending.at(-1);
  }

  /** Settles in a later turn. */
  add(entry: Entry, done: Done | undefined): void {
    this.#queue.push({ entry, done, after: undefined });
    this.#queuedBytes += entryBytesBound(entry.meta.length, entry.batches);
    this.#wake();
  }

  /** Resolves when everything that was added so far is settled. */
  idle(): Promise<void> {
    if (this.isIdle) return Promise.resolve();
    return new Promise((resolve) => this.#waitingForIdle.push(resolve));
  }

  /** Makes entries durable that are not for the state machine, when idle. False: no space. */
  async persist(entries: readonly Entry[]): Promise<boolean> {
    this.#isWriting = true;
    const written = await this.#tryToWrite(entries);
    // Whatever `sync` says: a term that was forgotten could come back with other entries.
    if (written !== undefined) await this.#options.journal.flush();
    this.#isWriting = false;
    this.#goOn();
    return written !== undefined;
  }

  /** Writes a sync mark, when idle; without space for it, the next group carries one anyway. */
  async mark(): Promise<void> {
    this.#isWriting = true;
    try {
      await this.#options.journal.append([]);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
    } finally {
      this.#isWriting = false;
    }
    this.#goOn();
  }

  /** Looks for work after what has already arrived was taken in: that is group commit. */
  #wake(): void {
    if (this.#isWoken || !this.#mayWrite()) return;
    this.#isWoken = true;
    this.#options.clock.soon(() => {
      this.#isWoken = false;
      this.#write();
    });
  }

  #mayWrite(): boolean {
    if (this.#isWriting || this.#queue.length === 0) return false;
    return this.#syncing === undefined || this.#mayWriteAhead();
  }

  #mayWriteAhead(): boolean {
    const { aheadBytesMin } = this.#options;
    return this.#queuedBytes >= aheadBytesMin && this.#writtenBytes < aheadBytesMax;
  }

  #write(): void {
    if (this.#mayWrite()) this.#writeGroup().catch((error) => this.#options.onFatal(error));
  }

  async #writeGroup(): Promise<void> {
    this.#isWriting = true;
    const pending = this.#takeGroup();
    this.#writing = pending;
    const written = await this.#tryToWrite(pending.map(({ entry }) => entry));
    if (written === undefined) await this.#drop(pending);
    else {
      this.#written.push({ ...written, pending });
      this.#writtenBytes += written.bytes;
    }
    this.#writing = [];
    this.#isWriting = false;
    this.#sync();
    this.#goOn();
  }

  #takeGroup(): Pending[] {
    let bytes = 0;
    let count = 0;
    while (count < this.#queue.length && count < groupEntriesMax) {
      const { entry } = this.#queue[count]!;
      const more = entryBytesBound(entry.meta.length, entry.batches);
      if (count > 0 && bytes + more > groupBytesMax) break;
      bytes += more;
      count++;
    }
    const group = this.#queue.slice(0, count);
    this.#queue = this.#queue.slice(count);
    this.#queuedBytes -= bytes;
    return group;
  }

  /** Undefined when the disk is full, even after the reserve was given up. */
  async #tryToWrite(entries: readonly Entry[]) {
    const { journal, release } = this.#options;
    for (;;) {
      try {
        return await journal.write(entries);
      } catch (error) {
        if (!isDiskFull(error)) throw error;
        if (!(await release())) return undefined;
      }
    }
  }

  /**
   * The disk is full: nothing of the group is stored. Everything planned after it may rest on it
   * (offsets follow each other), so all of it goes, but only when what is before it is settled.
   */
  async #drop(pending: readonly Pending[]): Promise<void> {
    while (this.#written.length > 0) {
      this.#sync();
      await this.#syncing;
    }
    const dropped = [...pending, ...this.#queue];
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#writing = [];
    this.#options.onDropped(dropped);
  }

  #sync(): void {
    if (this.#syncing !== undefined || this.#written.length === 0) return;
    if (this.#options.sync === 'interval') this.#settle(this.#written.length);
    else {
      this.#syncing = this.#syncWritten();
      this.#syncing.catch((error) => this.#options.onFatal(error));
    }
  }

  async #syncWritten(): Promise<void> {
    const count = this.#written.length;
    await this.#options.journal.flush();
    this.#syncing = undefined;
    this.#settle(count);
    // A small write that can start now is worth waiting for: one sync is then enough for both.
    if (this.#isWriting || this.#queue.length === 0 || this.#mayWriteAhead()) this.#sync();
    this.#goOn();
  }

  #settle(count: number): void {
    for (const group of this.#written.splice(0, count)) {
      this.#writtenBytes -= group.bytes;
      this.#options.onDurable(group);
    }
  }

  #goOn(): void {
    if (!this.isIdle) {
      this.#write();
      return;
    }
    for (const resolve of this.#waitingForIdle.splice(0)) resolve();
    this.#options.onIdle();
  }
}

function isDiskFull(error: unknown): boolean {
  return error instanceof BrokerError && error.code === 'DISK_FULL';
}
