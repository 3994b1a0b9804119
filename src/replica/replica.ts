import { assert } from '../core/assert.ts';
import type { Clock } from '../core/clock.ts';
import { BrokerError } from '../core/errors.ts';
import type { Random } from '../core/random.ts';
import { type FilePort, isCode } from '../log/file-port.ts';
import type { Entry, StoredEntry } from '../log/format.ts';
import { entryBytesBound } from '../log/group-encoder.ts';
import { Journal } from '../log/journal.ts';
import { keepNewestSnapshot, readSnapshot, writeSnapshot } from '../log/snapshot-file.ts';
import { Raft, Role } from '../raft/raft.ts';
import { decodeHardState, encodeHardState } from '../state/commands.ts';
import { EntryType, entryVersion } from '../state/entry-types.ts';
import { leaderEpochOf } from '../state/leader-epoch.ts';
import { StateMachine } from '../state/state-machine.ts';
import { DiskGuard, type DiskGuardOptions } from './disk-guard.ts';
import { FileReaper } from './file-reaper.ts';

/** What a planner wants in the log. */
export interface Command {
  readonly type: EntryType;
  readonly meta: Buffer;
  readonly batches?: readonly Buffer[];
  /** Partition of each batch. */
  readonly partitions?: readonly number[];
}

/**
 * - applied: durable, committed and in the state
 * - disk-full: it never reached the disk and never will; the client may try again
 * - stopped: the node is going down; what became of it is not known
 */
export type Outcome = 'applied' | 'disk-full' | 'stopped';
export type Done = (outcome: Outcome) => void;

export interface JournalSettings {
  readonly sync: 'always' | 'interval';
  readonly syncIntervalMs: number;
  readonly fileBytesMax: number;
  readonly fileExtentsMax: number;
  readonly recentBytesMax: number;
  readonly indexCacheBytesMax: number;
  /** Journal bytes after which a new snapshot is due. */
  readonly snapshotBytes: number;
}

export interface ReplicaOptions {
  readonly files: FilePort;
  readonly folder: string;
  readonly clock: Clock;
  readonly random: Random;
  /** This voter: node id and directory id. */
  readonly voter: string;
  readonly journal: JournalSettings;
  readonly disk: DiskGuardOptions;
  /** The process cannot go on: it must end, and recover when it starts again. */
  readonly onFatal: (error: unknown) => void;
}

/** Follows the state as it is applied; the calls for one group of entries come in one turn. */
export interface ReplicaListener {
  onApplied(entry: StoredEntry): void;
  onGroupApplied(): void;
  /** Pending plans were dropped: overlays are void, planning starts from the applied state. */
  onPlansDropped(): void;
}

/** One group-commit write takes about this much: bounds latency, memory and the length of turns. */
const groupBytesMax = 8 * 1024 * 1024;
const groupEntriesMax = 4096;
/** An idle journal writes a sync mark after this time. */
const idleMarkMs = 1000;
/** After deletions, files are removed with this delay. */
const removalDelayMs = 5000;
const defaultTenant = 0;

interface Pending {
  readonly entry: Entry;
  readonly done: Done | undefined;
  /** Others who wait for it. */
  after: Done[] | undefined;
}

function settle(pending: Pending, outcome: Outcome): void {
  pending.done?.(outcome);
  if (pending.after !== undefined) for (const done of pending.after) done(outcome);
}

/**
 * The driver: raft, journal and state machine of one tenant, in this order for every entry:
 * persist, apply, answer. Many proposals may be in flight; they reach the disk in groups.
 */
export class Replica {
  readonly state: StateMachine;
  readonly journal: Journal;
  readonly disk: DiskGuard;
  readonly #options: ReplicaOptions;
  readonly #raft: Raft;
  readonly #reaper: FileReaper;
  readonly #listeners: ReplicaListener[] = [];
  #queue: Pending[] = [];
  /** The group that is being written. */
  #inFlight: readonly Pending[] = [];
  #queuedBytes = 0;
  #running: Promise<void> | undefined;
  #stopped = false;
  #cancelIdle: (() => void) | undefined;
  #cancelRemoval: (() => void) | undefined;
  #waitingForIdle: (() => void)[] = [];
  /** Journal positions of the two newest durable snapshots, the older one first. */
  #snapshotPositions: [number, number];
  #housekeeping: Promise<void> | undefined;
  /** Journal position after the last applied group: where a snapshot of the state belongs. */
  #appliedPosition: number;

  private constructor(
    options: ReplicaOptions,
    state: StateMachine,
    journal: Journal,
    raft: Raft,
    disk: DiskGuard,
    snapshotPosition: number,
  ) {
    this.#options = options;
    this.state = state;
    this.journal = journal;
    this.#raft = raft;
    // The older snapshot may be the one that a start has to fall back to: nothing below the newer
    // is removed before a third one is there.
    this.#snapshotPositions = [0, snapshotPosition];
    this.#appliedPosition = journal.end;
    this.#reaper = new FileReaper(journal, state);
    this.disk = disk;
  }

  /** Recovers the tenant from its folder and wins the election of its one voter. */
  static async open(options: ReplicaOptions): Promise<{ replica: Replica; cutBytes: number }> {
    const { files, folder } = options;
    const state = new StateMachine();
    await files.makeFolder(snapshotFolder(folder));
    const snapshot = await readSnapshot(files, snapshotFolder(folder));
    let hardState = decodeHardState(snapshot?.hardState ?? encodeHardState(noHardState));
    if (snapshot !== undefined) state.restore(snapshot.image);
    const start = snapshot ?? { position: 0, index: 0, term: 0 };
    const disk = new DiskGuard(files, folder, options.clock, options.disk);
    const { journal, cutBytes } = await Journal.open({
      ...options.journal,
      mayPreallocate: () => disk.mayGrow(options.journal.fileBytesMax * 2),
      files,
      folder: `${folder}/journal`,
      clock: options.clock,
      random: options.random,
      onFatal: options.onFatal,
      start,
      onEntry(entry) {
        if (entry.type === EntryType.hardState) hardState = decodeHardState(entry.meta);
        else state.apply(entry);
      },
    });
    const raft = new Raft({
      self: options.voter,
      voters: [options.voter],
      hardState,
      lastIndex: journal.lastIndex,
      lastTerm: journal.lastTerm,
      commitIndex: state.appliedIndex,
    });
    const replica = new Replica(options, state, journal, raft, disk, start.position);
    await disk.start();
    await replica.#lead();
    return { replica, cutBytes };
  }

  /** Kafka's leader epoch of every partition. */
  get leaderEpoch(): number {
    return leaderEpochOf(this.#raft.term);
  }

  get isLeader(): boolean {
    return this.#raft.role === Role.leader && !this.#stopped;
  }

  /** Bytes that are proposed and not yet durable. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  listen(listener: ReplicaListener): void {
    this.#listeners.push(listener);
  }

  /** Appends an entry; `done` is called once, in a later turn. */
  propose(command: Command, done?: Done): void {
    if (!this.isLeader) {
      if (done !== undefined) this.#options.clock.soon(() => done('stopped'));
      return;
    }
    const { term, index } = this.#raft.propose();
    this.#enqueue(command, term, index, done);
  }

  /** As `propose`, for commands that are rare. */
  proposeAndWait(command: Command): Promise<Outcome> {
    return new Promise((resolve) => this.propose(command, resolve));
  }

  /**
   * Calls back when everything that is planned now is settled: for answers that rest on pending
   * effects without adding any, such as "duplicate".
   */
  afterPlanned(done: Done): void {
    const last = this.#queue.at(-1) ?? this.#inFlight.at(-1);
    if (last === undefined) this.#options.clock.soon(() => done('applied'));
    else last.after = last.after === undefined ? [done] : [...last.after, done];
  }

  /** Takes no new proposals, finishes those that are there, and closes the files. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelIdle?.();
    this.#cancelRemoval?.();
    this.disk.stop();
    // One write may be followed by another, of what was proposed meanwhile.
    while (this.#running !== undefined) await this.#running;
    await this.#housekeeping;
    if (this.journal.markIsDue) await this.#mark();
    await this.journal.close();
  }

  /** Resolves when everything that was proposed so far is settled. */
  settled(): Promise<void> {
    if (this.#running === undefined && this.#queue.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waitingForIdle.push(resolve));
  }

  async #lead(): Promise<void> {
    this.#raft.campaign();
    const { hardState } = this.#raft.takeReady();
    assert(hardState !== undefined, 'a campaign begins with a vote');
    const meta = encodeHardState(hardState);
    const vote = entryOf({ type: EntryType.hardState, meta }, hardState.term, 0);
    if ((await this.#persist([vote])) === undefined) throw diskFull(this.#options.folder);
    // Whatever `sync` says: a term that was forgotten could come back with other entries.
    await this.journal.flush();
    this.#raft.hardStatePersisted(hardState.term);
    const { noop } = this.#raft.takeReady();
    assert(noop !== undefined, 'a leader begins with an entry of its own term');
    const command = { type: EntryType.noop, meta: Buffer.alloc(0) };
    const outcome = await new Promise<Outcome>((resolve) => {
      this.#enqueue(command, noop.term, noop.index, resolve);
    });
    if (outcome === 'disk-full') throw diskFull(this.#options.folder);
    await this.settled();
  }

  #enqueue(command: Command, term: number, index: number, done: Done | undefined): void {
    const entry = entryOf(command, term, index);
    this.#queue.push({ entry, done, after: undefined });
    this.#queuedBytes += entryBytesBound(entry.meta.length, entry.batches);
    this.#wake();
  }

  /** Starts the write loop after what has already arrived was taken in: that is group commit. */
  #wake(): void {
    if (this.#running !== undefined) return;
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    this.#running = new Promise((resolve) => {
      this.#options.clock.soon(() => {
        this.#run().then(
          () => {
            this.#running = undefined;
            resolve();
            // What was proposed while the loop was ending did not start it anew.
            if (this.#queue.length > 0) this.#wake();
            else this.#becomeIdle();
          },
          (error: unknown) => this.#options.onFatal(error),
        );
      });
    });
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      const group = this.#takeGroup();
      const stored = await this.#persist(group.map((pending) => pending.entry));
      if (stored === undefined) {
        this.#dropPlans(group);
        continue;
      }
      this.#raft.entriesPersisted(group.at(-1)!.entry.index);
      this.#applyGroup(stored, group);
      this.#considerHousekeeping();
    }
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
    this.#inFlight = group;
    this.#queue = this.#queue.slice(count);
    this.#queuedBytes -= bytes;
    this.disk.wrote(bytes);
    return group;
  }

  /** Undefined when the disk is full, even after the reserve was given up. */
  async #persist(entries: readonly Entry[]): Promise<readonly StoredEntry[] | undefined> {
    for (;;) {
      try {
        return await this.journal.append(entries);
      } catch (error) {
        if (!isDiskFull(error)) throw error;
        if (!(await this.disk.release())) return undefined;
      }
    }
  }

  #applyGroup(stored: readonly StoredEntry[], group: readonly Pending[]): void {
    assert(this.#raft.commitIndex >= group.at(-1)!.entry.index, 'one voter commits what it stores');
    for (let i = 0; i < stored.length; i++) {
      const entry = stored[i]!;
      this.state.apply(entry);
      this.journal.apply(entry);
      if (mayFreeFiles(entry.type)) this.#removeSoon();
      for (const listener of this.#listeners) listener.onApplied(entry);
    }
    this.#appliedPosition = this.journal.end;
    this.#inFlight = [];
    for (const pending of group) settle(pending, 'applied');
    for (const listener of this.#listeners) listener.onGroupApplied();
  }

  /**
   * The disk is full: nothing of the group is stored. Everything planned after it may rest on it
   * (offsets follow each other), so all of it is refused, and planning starts again from what is
   * applied.
   */
  #dropPlans(group: readonly Pending[]): void {
    const dropped = [...group, ...this.#queue];
    this.#queue = [];
    this.#inFlight = [];
    this.#queuedBytes = 0;
    this.#raft.dropUnpersisted(this.state.appliedIndex, this.state.appliedTerm);
    for (const listener of this.#listeners) listener.onPlansDropped();
    for (const pending of dropped) settle(pending, 'disk-full');
  }

  #becomeIdle(): void {
    for (const resolve of this.#waitingForIdle.splice(0)) resolve();
    if (this.#stopped || this.#cancelIdle !== undefined) return;
    this.#cancelIdle = this.#options.clock.after(idleMarkMs, () => {
      this.#cancelIdle = undefined;
      if (this.#stopped || this.#running !== undefined || !this.journal.markIsDue) return;
      this.#running = this.#mark().then(
        () => {
          this.#running = undefined;
          if (this.#queue.length > 0) this.#wake();
          else this.#becomeIdle();
        },
        (error: unknown) => this.#options.onFatal(error),
      );
    });
  }

  /** Writes a sync mark. If there is no space for it, the next group carries one anyway. */
  async #mark(): Promise<void> {
    try {
      await this.journal.append([]);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
    }
  }

  /** Seals, snapshots and removes files in the background, one job at a time. */
  #considerHousekeeping(): void {
    if (this.#housekeeping !== undefined || this.#stopped || this.disk.isCritical) return;
    const grown = this.journal.end - this.#snapshotPositions[1];
    const snapshotIsDue = grown >= this.#options.journal.snapshotBytes;
    if (snapshotIsDue || this.journal.sealIsDue) this.#startHousekeeping(snapshotIsDue, false);
  }

  /**
   * Something was deleted: soon, a snapshot is written and files in which nothing is alive any more
   * are removed. Not at once, since deletions come in rows.
   */
  #removeSoon(): void {
    if (this.#cancelRemoval !== undefined || this.#stopped) return;
    this.#cancelRemoval = this.#options.clock.after(removalDelayMs, () => {
      this.#cancelRemoval = undefined;
      if (this.#stopped) return;
      if (this.#housekeeping === undefined) this.#startHousekeeping(true, true);
      else this.#removeSoon();
    });
  }

  #startHousekeeping(writesSnapshot: boolean, removesAll: boolean): void {
    this.#housekeeping = this.#keepHouse(writesSnapshot, removesAll).then(
      () => {
        this.#housekeeping = undefined;
      },
      (error: unknown) => this.#options.onFatal(error),
    );
  }

  async #keepHouse(writesSnapshot: boolean, removesAll: boolean): Promise<void> {
    if (!this.disk.isCritical) await this.journal.seal(this.state.appliedIndex);
    if (!writesSnapshot) return;
    await this.#writeSnapshot();
    if (removesAll) await this.#forgetOlderSnapshots();
    await this.#reaper.removeDead(this.#snapshotPositions[0]);
  }

  /** Afterwards the newest snapshot is the only one, so that files below it may go. */
  async #forgetOlderSnapshots(): Promise<void> {
    const { files, folder } = this.#options;
    const isSound = await keepNewestSnapshot(files, snapshotFolder(folder));
    if (isSound) this.#snapshotPositions[0] = this.#snapshotPositions[1];
  }

  /** Makes the present state the starting point of the next start; in slices. */
  async #writeSnapshot(): Promise<void> {
    const { clock, files, folder } = this.#options;
    const facts = {
      position: this.#appliedPosition,
      index: this.state.appliedIndex,
      term: this.state.appliedTerm,
      hardState: encodeHardState(this.#raft.hardState),
    };
    // The same one once more would only push the older one out.
    if (facts.position === this.#snapshotPositions[1]) return;
    const writer = this.state.beginImage();
    while (writer.writeSlice()) await new Promise<void>((resolve) => clock.soon(resolve));
    this.state.endImage();
    // A snapshot promises that the journal before it is on disk.
    await this.journal.flush();
    try {
      await writeSnapshot(files, snapshotFolder(folder), { ...facts, image: writer.finish() });
    } catch (error) {
      if (isCode(error, 'ENOSPC')) return;
      throw error;
    }
    this.#snapshotPositions = [this.#snapshotPositions[1], facts.position];
  }
}

function mayFreeFiles(entryType: number): boolean {
  return entryType === EntryType.topicDeleted || entryType === EntryType.logStartsMoved;
}

function isDiskFull(error: unknown): boolean {
  return error instanceof BrokerError && error.code === 'DISK_FULL';
}

function diskFull(folder: string): BrokerError {
  return new BrokerError('DISK_FULL', `no space left to start with ${folder}`, { folder });
}

const noHardState = { term: 0, votedFor: null };

function snapshotFolder(folder: string): string {
  return `${folder}/snapshots`;
}

function entryOf(command: Command, term: number, index: number): Entry {
  return {
    type: command.type,
    version: entryVersion,
    tenant: defaultTenant,
    term,
    index,
    meta: command.meta,
    batches: command.batches ?? [],
    partitions: command.partitions ?? [],
  };
}
