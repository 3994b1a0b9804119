import type { Clock } from '../core/clock.ts';
import { BrokerError } from '../core/errors.ts';
import type { Entry, StoredEntry } from '../log/format.ts';
import { entryBytesBound } from '../log/group-encoder.ts';
import type { Journal } from '../log/journal.ts';

/** An entry on its way to the disk. */
export interface Pending {
  readonly entry: Entry;
  done: Done | undefined;
  /** Others who wait for it. */
  after: Done[] | undefined;
}

/** Tells all who wait for the entry, once. */
export function settle(pending: Pending, outcome: Outcome): void {
  const { done, after } = pending;
  pending.done = undefined;
  pending.after = undefined;
  done?.(outcome);
  if (after !== undefined) for (const each of after) each(outcome);
}

/**
 * - applied: durable, committed and in the state
 * - disk-full: it never reached the disk and never will; the client may try again
 * - not-leader: this node does not lead (any more), or is going down; what becomes of the entry is
 *   not known
 */
export type Outcome = 'applied' | 'disk-full' | 'not-leader';
export type Done = (outcome: Outcome) => void;

/** Entries that were written together. */
export interface Group {
  readonly pending: readonly Pending[];
  /** One for each of `pending`, and more that nobody waits for. */
  readonly stored: readonly StoredEntry[];
  /** Journal position of it, and after it. */
  readonly start: number;
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
  /** Where syncs take so long, a second one is begun beside one that is half way. */
  readonly besideSyncMsMin: number;
  /** Groups in their order, each once it is durable. */
  readonly onDurable: (group: Group) => void;
  /** These never reached the disk, for want of space. All before them is durable. */
  readonly onDropped: (dropped: readonly Pending[]) => void;
  /** Nothing is queued and nothing under way any more. */
  readonly onIdle: () => void;
  /** Called when the disk is full: true if there is some space now. */
  readonly release: () => Promise<boolean>;
  readonly onFatal: (error: unknown) => void;
  /** The term of an entry that is written already: others may take the places of those after it. */
  readonly termAt: (index: number) => number;
  /** What is to be written along with a group. */
  readonly companions: () => readonly Entry[];
}

/**
 * One write takes about this much: bounds latency, memory and the length of turns. A larger one
 * covers whole blocks of 2 MiB, for which Linux takes huge pages to the page cache: where these
 * are rare, or to be had from a hypervisor first, that costs ten times what smaller ones do.
 */
const groupBytesMax = 2 * 1024 * 1024;
const groupEntriesMax = 4096;
/** So much may be written and not synced. */
const aheadBytesMax = 16 * 1024 * 1024;

/**
 * Takes entries to the disk in groups. A write and a sync are under way at a time, each beside the
 * other: while the disk syncs, the next groups are written to the page cache, and a sync makes all
 * of them durable that were written when it began. On a quick disk that is one group, on a slow
 * one several.
 *
 * On a slow disk there are two syncs under way, half the time of one apart: so what arrives waits
 * a quarter of that time for its sync to begin, and not half of it. See JournalSyncs for why two
 * are sound.
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
  /** Syncs under way, at most two. */
  #syncs = 0;
  /** Journal position up to which the syncs reach that were begun. */
  #coveredEnd = 0;
  #syncStartedMs = 0;
  /** What a sync takes at the least. */
  #syncMs = 0;
  #isBesideAwaited = false;
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
      this.#syncs === 0
    );
  }

  /** The youngest entry that is not settled. */
  get last(): Pending | undefined {
    return this.#queue.at(-1) ?? this.#writing.at(-1) ?? this.#written.at(-1)?.pending.at(-1);
  }

  /** Settles in a later turn. */
  add(entry: Entry, done: Done | undefined): void {
    this.#queue.push({ entry, done, after: undefined });
    this.#queuedBytes += boundOf(entry);
    this.#wake();
  }

  /** Resolves when everything that was added so far is settled. */
  idle(): Promise<void> {
    if (this.isIdle) return Promise.resolve();
    return new Promise((resolve) => this.#waitingForIdle.push(resolve));
  }

  /** All that are not durable yet, in order. */
  *pending(): Iterable<Pending> {
    for (const { pending } of this.#written) yield* pending;
    yield* this.#writing;
    yield* this.#queue;
  }

  /** Takes back entries after `index` as far as they are not being written; answers them. */
  takeBackAfter(index: number): Pending[] {
    const taken = this.#queue.filter(({ entry }) => entry.index > index);
    if (taken.length === 0) return taken;
    this.#queue = this.#queue.filter(({ entry }) => entry.index <= index);
    for (const { entry } of taken) this.#queuedBytes -= boundOf(entry);
    return taken;
  }

  /** Writes a sync mark, when idle; without space for it, the next group carries one anyway. */
  async mark(): Promise<void> {
    this.#isWriting = true;
    try {
      await this.#options.journal.append(this.#options.companions());
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
    return this.#maySync() || this.#mayWriteAhead();
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
    const entries = pending.map(({ entry }) => entry);
    const written = await this.#tryToWrite([...entries, ...this.#options.companions()]);
    // Whatever `sync` says: a term that was forgotten could come back with other entries.
    if (entries.some(({ index }) => index === 0)) await this.#options.journal.flush();
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
    let lastIndex = 0;
    while (count < this.#queue.length && count < groupEntriesMax) {
      const { entry } = this.#queue[count]!;
      const more = boundOf(entry);
      if (count > 0 && bytes + more > groupBytesMax) break;
      // It takes the place of one before it.
      if (entry.index > 0 && entry.index <= lastIndex) break;
      lastIndex = Math.max(lastIndex, entry.index);
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
    const { journal, release, termAt } = this.#options;
    const first = entries.find(({ index }) => index > 0)?.index;
    for (;;) {
      try {
        if (first !== undefined && first <= journal.lastIndex) {
          await journal.rewind(first - 1, termAt(first - 1));
        }
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
    await this.#options.journal.flush();
    this.#settle();
    const dropped = [...pending, ...this.#queue];
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#writing = [];
    this.#options.onDropped(dropped);
  }

  #sync(): void {
    const end = this.#written.at(-1)?.end ?? 0;
    if (this.#options.sync === 'interval') this.#settle();
    else if (end > this.#coveredEnd && this.#maySync()) {
      this.#coveredEnd = end;
      this.#syncWritten().catch((error) => this.#options.onFatal(error));
    }
  }

  async #syncWritten(): Promise<void> {
    const { clock, journal } = this.#options;
    const startedMs = clock.monotonicMs();
    this.#syncStartedMs = startedMs;
    this.#syncs++;
    this.#syncBesideLater();
    await journal.flush();
    this.#syncs--;
    // A busy event loop hears of it late, so a low value tells more than a high one.
    this.#syncMs = Math.min(clock.monotonicMs() - startedMs, this.#syncMs * 1.1 + 0.1);
    this.#settle();
    // A small write that can start now is worth waiting for: one sync is then enough for both.
    if (this.#isWriting || this.#queue.length === 0 || this.#mayWriteAhead()) this.#sync();
    this.#syncBesideLater();
    this.#goOn();
  }

  #maySync(): boolean {
    if (this.#syncs === 0) return true;
    return this.#syncs === 1 && this.#isSlow && this.#besideInMs() <= 0;
  }

  get #isSlow(): boolean {
    return this.#syncMs >= this.#options.besideSyncMsMin;
  }

  #besideInMs(): number {
    const beganMs = this.#options.clock.monotonicMs() - this.#syncStartedMs;
    return Math.floor(this.#syncMs / 2) - beganMs;
  }

  /** Looks for something to sync when the sync that began last is half way. */
  #syncBesideLater(): void {
    if (this.#syncs !== 1 || !this.#isSlow || this.#isBesideAwaited) return;
    this.#isBesideAwaited = true;
    this.#options.clock.after(Math.max(0, this.#besideInMs()), () => {
      this.#isBesideAwaited = false;
      if (this.#syncs === 1 && !this.#maySync()) this.#syncBesideLater();
      this.#write();
      if (!this.#isWriting) this.#sync();
    });
  }

  /** Whatever is durable now; with `interval`, all that is written. */
  #settle(): void {
    const { sync, journal, onDurable } = this.#options;
    const isDone = (group: Group) => sync === 'interval' || group.end <= journal.synced;
    let count = 0;
    while (count < this.#written.length && isDone(this.#written[count]!)) count++;
    for (const group of this.#written.splice(0, count)) {
      this.#writtenBytes -= group.bytes;
      onDurable(group);
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

function boundOf({ meta, batches }: Entry): number {
  return entryBytesBound(meta.length, batches);
}

function isDiskFull(error: unknown): boolean {
  return error instanceof BrokerError && error.code === 'DISK_FULL';
}
