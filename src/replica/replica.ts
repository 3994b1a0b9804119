import { assert } from '../core/assert.ts';
import type { Clock } from '../core/clock.ts';
import { BrokerError } from '../core/errors.ts';
import type { Random } from '../core/random.ts';
import { type FilePort, isCode } from '../log/file-port.ts';
import type { Entry, StoredEntry } from '../log/format.ts';
import { Journal } from '../log/journal.ts';
import { keepNewestSnapshot, readSnapshot, writeSnapshot } from '../log/snapshot-file.ts';
import { Raft, Role } from '../raft/raft.ts';
import type { TermRun } from '../raft/term-log.ts';
import { decodeHardState, encodeHardState } from '../state/commands.ts';
import { EntryType, entryVersion } from '../state/entry-types.ts';
import { leaderEpochOf } from '../state/leader-epoch.ts';
import { StateMachine } from '../state/state-machine.ts';
import { DiskGuard, type DiskGuardOptions } from './disk-guard.ts';
import { FileReaper } from './file-reaper.ts';
import { type Done, type Group, GroupCommit, type Outcome, type Pending } from './group-commit.ts';
import { SnapshotTrigger } from './snapshot-trigger.ts';

/** What a planner wants in the log. */
export interface Command {
  readonly type: EntryType;
  readonly meta: Buffer;
  readonly batches?: readonly Buffer[];
  /** Partition of each batch. */
  readonly partitions?: readonly number[];
}

export interface JournalSettings {
  readonly sync: 'always' | 'interval';
  readonly syncIntervalMs: number;
  readonly fileBytesMax: number;
  readonly fileExtentsMax: number;
  readonly recentBytesMax: number;
  readonly indexCacheBytesMax: number;
  /** Bytes that are written even while a sync is under way; without it what is best for speed. */
  readonly aheadBytesMin?: number;
  /** Milliseconds from which on a sync is slow: then a second one is begun beside it. */
  readonly besideSyncMsMin?: number;
  /** Journal bytes after which a new snapshot is due; more if the state is larger than that. */
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

/** Below this, what arrives during a sync goes out in one write after it. */
const aheadBytesMin = 256 * 1024;
/** A local disk takes a tenth of it; timers are no finer than a half. */
const besideSyncMsMin = 2;
/** An idle journal writes a sync mark after this time. */
const idleMarkMs = 1000;
/** After deletions, files are removed with this delay. */
const removalDelayMs = 5000;
const defaultTenant = 0;
/** They play no part in a group of one voter, which elects itself. */
const raftTimes = { electionTimeoutMs: 1000, heartbeatMs: 100 };
const appendsUnderWayMax = 1;

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
  readonly #commit: GroupCommit;
  #stopped = false;
  #cancelIdle: (() => void) | undefined;
  #cancelRemoval: (() => void) | undefined;
  /** Journal positions of the two newest durable snapshots, the older one first. */
  #snapshotPositions: [number, number];
  readonly #snapshots: SnapshotTrigger;
  #housekeeping: Promise<void> | undefined;
  /** Journal position after the last applied group: where a snapshot of the state belongs. */
  #appliedPosition: number;

  private constructor(
    options: ReplicaOptions,
    state: StateMachine,
    journal: Journal,
    raft: Raft,
    disk: DiskGuard,
    start: { readonly position: number; readonly image?: Buffer },
  ) {
    this.#options = options;
    this.state = state;
    this.journal = journal;
    this.#raft = raft;
    // The older snapshot may be the one that a start has to fall back to: nothing below the newer
    // is removed before a third one is there.
    this.#snapshotPositions = [0, start.position];
    this.#snapshots = new SnapshotTrigger({
      clock: options.clock,
      journalBytesMin: options.journal.snapshotBytes,
      imageBytes: start.image?.length ?? 0,
    });
    this.#appliedPosition = journal.end;
    this.#reaper = new FileReaper(journal, state);
    this.#commit = new GroupCommit({
      journal,
      clock: options.clock,
      sync: options.journal.sync,
      aheadBytesMin: options.journal.aheadBytesMin ?? aheadBytesMin,
      besideSyncMsMin: options.journal.besideSyncMsMin ?? besideSyncMsMin,
      onDurable: (group) => this.#onDurable(group),
      onDropped: (dropped) => this.#onDropped(dropped),
      onIdle: () => this.#onIdle(),
      release: () => this.disk.release(),
      onFatal: options.onFatal,
    });
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
    const runs: TermRun[] = [];
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
        else {
          state.apply(entry);
          const { index, term } = entry;
          if (index > start.index && runs.at(-1)?.term !== term) runs.push({ index, term });
        }
      },
    });
    const raft = new Raft(
      {
        self: options.voter,
        configuration: { index: 0, configuration: { voters: [options.voter], learners: [] } },
        hardState,
        base: { index: start.index, term: start.term },
        runs,
        lastIndex: journal.lastIndex,
        // One voter: what is in the journal is committed.
        commitIndex: state.appliedIndex,
        ...raftTimes,
        appendsUnderWayMax,
        lastFitting: (_first, last) => last,
        random: options.random.next,
      },
      options.clock.monotonicMs(),
    );
    const replica = new Replica(options, state, journal, raft, disk, start);
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
    const { last } = this.#commit;
    if (last === undefined) this.#options.clock.soon(() => done('applied'));
    else last.after = last.after === undefined ? [done] : [...last.after, done];
  }

  /** Takes no new proposals, finishes those that are there, and closes the files. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelIdle?.();
    this.#cancelRemoval?.();
    this.disk.stop();
    await this.#commit.idle();
    await this.#housekeeping;
    if (this.journal.markIsDue) await this.#commit.mark();
    await this.journal.close();
  }

  /** Resolves when everything that was proposed so far is settled. */
  settled(): Promise<void> {
    return this.#commit.idle();
  }

  async #lead(): Promise<void> {
    const { clock } = this.#options;
    this.#raft.campaign(clock.monotonicMs());
    const { hardState } = this.#raft.takeReady();
    assert(hardState !== undefined, 'a campaign begins with a vote');
    const meta = encodeHardState(hardState);
    const vote = entryOf({ type: EntryType.hardState, meta }, hardState.term, 0);
    if (!(await this.#commit.persist([vote]))) throw diskFull(this.#options.folder);
    this.#raft.hardStatePersisted(hardState, clock.monotonicMs());
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
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    this.#commit.add(entryOf(command, term, index), done);
  }

  #onDurable({ pending, stored, end, bytes }: Group): void {
    this.disk.wrote(bytes);
    const { index, term } = pending.at(-1)!.entry;
    this.#raft.entriesPersisted(index, term);
    assert(this.#raft.commitIndex >= index, 'one voter commits what it stores');
    for (const entry of stored) {
      this.state.apply(entry);
      this.journal.apply(entry);
      if (mayFreeFiles(entry.type)) this.#removeSoon();
      for (const listener of this.#listeners) listener.onApplied(entry);
    }
    this.#appliedPosition = end;
    for (const one of pending) settle(one, 'applied');
    for (const listener of this.#listeners) listener.onGroupApplied();
    this.#considerHousekeeping();
  }

  /** The disk is full: planning starts again from what is applied. */
  #onDropped(dropped: readonly Pending[]): void {
    this.#raft.dropUnpersisted(this.state.appliedIndex, this.#options.clock.monotonicMs());
    for (const listener of this.#listeners) listener.onPlansDropped();
    for (const one of dropped) settle(one, 'disk-full');
  }

  #onIdle(): void {
    if (this.#stopped || this.#cancelIdle !== undefined) return;
    this.#cancelIdle = this.#options.clock.after(idleMarkMs, () => {
      this.#cancelIdle = undefined;
      if (this.#stopped || !this.#commit.isIdle || !this.journal.markIsDue) return;
      this.#commit.mark().catch((error: unknown) => this.#options.onFatal(error));
    });
  }

  /** Seals, snapshots and removes files in the background, one job at a time. */
  #considerHousekeeping(): void {
    if (this.#housekeeping !== undefined || this.#stopped || this.disk.isCritical) return;
    const grown = this.journal.end - this.#snapshotPositions[1];
    const snapshotIsDue = this.#snapshots.isDue(grown);
    if (!snapshotIsDue && !this.journal.sealIsDue) return;
    // This snapshot serves for what was deleted before it, too.
    const removesAll = snapshotIsDue && this.#cancelRemoval !== undefined;
    if (removesAll) {
      this.#cancelRemoval?.();
      this.#cancelRemoval = undefined;
    }
    this.#startHousekeeping(snapshotIsDue, removesAll);
  }

  /**
   * Something was deleted: soon, a snapshot is written and files in which nothing is alive any more
   * are removed. Not at once, since deletions come in rows; and if the state is large rather late,
   * unless the disk is nearly full.
   */
  #removeSoon(): void {
    if (this.#cancelRemoval !== undefined || this.#stopped) return;
    this.#cancelRemoval = this.#options.clock.after(removalDelayMs, () => {
      this.#cancelRemoval = undefined;
      if (this.#stopped) return;
      const isShort = !this.disk.mayGrow(2 * this.#options.journal.fileBytesMax);
      const isTime = isShort || this.#snapshots.mayFollowDeletions;
      if (isTime && this.#housekeeping === undefined) this.#startHousekeeping(true, true);
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
      const image = writer.finish();
      await writeSnapshot(files, snapshotFolder(folder), { ...facts, image });
      this.#snapshots.onWritten(image.length);
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
