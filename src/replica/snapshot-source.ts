import type { CancelTimer, Clock } from '../core/clock.ts';
import { EntryReader } from '../log/entry-reader.ts';
import type { FilePort } from '../log/file-port.ts';
import type { Entry } from '../log/format.ts';
import type { Journal } from '../log/journal.ts';
import { type OpenSnapshot, openNewestSnapshot } from '../log/snapshot-file.ts';
import type { TermRun } from '../raft/term-log.ts';
import {
  decodeSnapshotRequest,
  encodeSnapshotAnswer,
  type SnapshotAnswer,
  SnapshotPart,
  type SnapshotRequest,
} from './snapshot-messages.ts';

export interface SnapshotSourceOptions {
  readonly files: FilePort;
  readonly clock: Clock;
  readonly journal: Journal;
  /** Where the snapshots lie. */
  readonly folder: string;
  /** Somebody has more than the newest snapshot covers already: a newer one is wanted. */
  readonly onOutrun: () => void;
}

/** What one answer holds, or one entry. */
const answerBytesMax = 1024 * 1024;
/** Whoever has not asked for so long will have to begin with the newest snapshot. */
const pinnedMs = 30_000;

/**
 * Gives other members what they cannot get as entries of the log any more: all entries that are
 * still in the journal, up to a snapshot, then that snapshot. It remembers nothing of those who
 * ask, so they can go on at any time, and with any member.
 */
export class SnapshotSource {
  readonly #options: SnapshotSourceOptions;
  readonly #reader: EntryReader;
  /** Somebody fetches it: it stays open, even when newer ones have taken its place. */
  #pinned: OpenSnapshot | undefined;
  #pinning: Promise<OpenSnapshot | undefined> | undefined;
  #cancelUnpin: CancelTimer | undefined;

  constructor(options: SnapshotSourceOptions) {
    this.#options = options;
    this.#reader = new EntryReader(options.journal);
  }

  /** The last entry that the snapshot covers which somebody fetches. */
  get base(): TermRun | undefined {
    return this.#pinned?.base;
  }

  /** Answers a request; throws if it is none. */
  async answer(request: Buffer): Promise<Buffer[]> {
    return encodeSnapshotAnswer(await this.#answer(decodeSnapshotRequest(request)));
  }

  /** Entries up to `index` are gone: with a snapshot that ends before nobody could go on. */
  async onRemoved(index: number): Promise<void> {
    if (this.#pinned !== undefined && this.#pinned.base.index < index) await this.#unpin();
  }

  async stop(): Promise<void> {
    this.#cancelUnpin?.();
    await this.#pinning;
    await this.#unpin();
  }

  async #answer({ part, index, at }: SnapshotRequest): Promise<SnapshotAnswer> {
    const pinned = await this.#pin();
    if (pinned === undefined) return { part: SnapshotPart.later, base: { index: 0, term: 0 } };
    const { base } = pinned;
    if (part === SnapshotPart.image && base.index === index) return this.#imageAt(pinned, at);
    if (part === SnapshotPart.entries && index <= base.index) {
      return this.#entriesAfter(index, base);
    }
    // Of another one than was asked for, entries come first; of an older one nothing is of use.
    if (index > base.index) {
      await this.#unpin();
      this.#options.onOutrun();
    }
    return { part: SnapshotPart.later, base };
  }

  async #imageAt(
    { base, file, bytes: bytesOfAll }: OpenSnapshot,
    at: number,
  ): Promise<SnapshotAnswer> {
    const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(answerBytesMax, bytesOfAll - at)));
    if (bytes.length > 0) await file.read(bytes, 0, bytes.length, at);
    return { part: SnapshotPart.image, base, bytesOfAll, bytes };
  }

  /** The next ones that are there, however many were removed before them. */
  async #entriesAfter(index: number, base: TermRun): Promise<SnapshotAnswer> {
    const { logFiles } = this.#options.journal;
    let entries: readonly Entry[] = [];
    for (let after = index; entries.length === 0 && after < base.index; ) {
      const next = logFiles.find(
        ({ header, lastIndex }) => lastIndex > after && lastIndex >= header.firstIndex,
      );
      if (next === undefined) break;
      const first = Math.max(after + 1, next.header.firstIndex);
      entries = (await this.#reader.read(first, answerBytesMax)) ?? [];
      after = next.lastIndex;
    }
    const covered = entries.filter((entry) => entry.index <= base.index);
    const isLast = covered.length === 0 || covered.at(-1)!.index === base.index;
    return { part: SnapshotPart.entries, base, isLast, entries: covered };
  }

  async #pin(): Promise<OpenSnapshot | undefined> {
    const { clock, files, folder } = this.#options;
    this.#cancelUnpin?.();
    this.#cancelUnpin = clock.after(pinnedMs, () => void this.#unpin());
    if (this.#pinned !== undefined) return this.#pinned;
    this.#pinning ??= openNewestSnapshot(files, folder).finally(() => {
      this.#pinning = undefined;
    });
    this.#pinned = await this.#pinning;
    return this.#pinned;
  }

  async #unpin(): Promise<void> {
    const pinned = this.#pinned;
    this.#pinned = undefined;
    await pinned?.file.close();
  }
}
