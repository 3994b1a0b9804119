import type { Clock } from '../core/clock.ts';
import { BrokerError } from '../core/errors.ts';
import type { Random } from '../core/random.ts';
import { type FilePort, isCode } from '../log/file-port.ts';
import type { StoredEntry } from '../log/format.ts';
import { Journal } from '../log/journal.ts';
import { keepNewestSnapshot, readSnapshot, writeSnapshot } from '../log/snapshot-file.ts';
import type { Configuration } from '../raft/membership.ts';
import type { Raft } from '../raft/raft.ts';
import { TermLog, type TermRun } from '../raft/term-log.ts';
import { decodeLogFacts, encodeLogFacts, type LogFacts } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import { leaderEpochOf } from '../state/leader-epoch.ts';
import { StateMachine } from '../state/state-machine.ts';
import { type Command, Consensus, type LogStart, type RaftTimes } from './consensus.ts';
import { DiskGuard, type DiskGuardOptions } from './disk-guard.ts';
import { FileReaper } from './file-reaper.ts';
import type { Done, Outcome } from './group-commit.ts';
import type { PeerPort } from './peer-port.ts';
import { RecoveredLog } from './recovered-log.ts';
import { SnapshotTrigger } from './snapshot-trigger.ts';

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
  /** The other members of the group; undefined for a group of one. */
  readonly peers?: PeerPort;
  /** False for a member that others founded the group without: it waits to be taken in. */
  readonly isFounder?: boolean;
  readonly times?: RaftTimes;
  /** The process cannot go on: it must end, and recover when it starts again. */
  readonly onFatal: (error: unknown) => void;
}

/** Follows the state as it is applied; the calls for one group of entries come in one turn. */
export interface ReplicaListener {
  onApplied?(entry: StoredEntry): void;
  onGroupApplied?(): void;
  /** Pending plans were dropped: overlays are void, planning starts from the applied state. */
  onPlansDropped?(): void;
  /** This member leads from now on, and may plan on what is applied. */
  onLeading?(): void;
  onFollowing?(): void;
}

/** Below this, what arrives during a sync goes out in one write after it. */
const aheadBytesMin = 256 * 1024;
/** A local disk takes a tenth of it; timers are no finer than a half. */
const besideSyncMsMin = 2;
/** An idle journal writes a sync mark after this time. */
const idleMarkMs = 1000;
/** After deletions, files are removed with this delay. */
const removalDelayMs = 5000;
/** They play no part in a group of one voter, which elects itself. */
const defaultTimes = { electionTimeoutMs: 400, heartbeatMs: 50 };

/**
 * One tenant: journal, consensus and state machine, in this order for every entry: persist, commit,
 * apply, answer. Many proposals may be in flight; they reach the disk in groups.
 */
export class Replica {
  readonly state: StateMachine;
  readonly journal: Journal;
  readonly disk: DiskGuard;
  readonly #options: ReplicaOptions;
  readonly #reaper: FileReaper;
  readonly #listeners: ReplicaListener[] = [];
  readonly #consensus: Consensus;
  #stopped = false;
  #cancelIdle: (() => void) | undefined;
  #cancelRemoval: (() => void) | undefined;
  /** Journal positions of the two newest durable snapshots, the older one first. */
  #snapshotPositions: [number, number];
  readonly #snapshots: SnapshotTrigger;
  #housekeeping: Promise<void> | undefined;

  private constructor(
    options: ReplicaOptions,
    state: StateMachine,
    journal: Journal,
    disk: DiskGuard,
    start: { readonly position: number; readonly image?: Buffer },
    log: LogStart,
  ) {
    this.#options = options;
    this.state = state;
    this.journal = journal;
    // The older snapshot may be the one that a start has to fall back to: nothing below the newer
    // is removed before a third one is there.
    this.#snapshotPositions = [0, start.position];
    this.#snapshots = new SnapshotTrigger({
      clock: options.clock,
      journalBytesMin: options.journal.snapshotBytes,
      imageBytes: start.image?.length ?? 0,
    });
    this.#reaper = new FileReaper(journal, state);
    this.#consensus = new Consensus({
      journal,
      clock: options.clock,
      random: options.random,
      self: options.voter,
      start: log,
      times: options.times ?? defaultTimes,
      peers: options.peers,
      sync: options.journal.sync,
      aheadBytesMin: options.journal.aheadBytesMin ?? aheadBytesMin,
      besideSyncMsMin: options.journal.besideSyncMsMin ?? besideSyncMsMin,
      release: () => this.disk.release(),
      onFatal: options.onFatal,
      listener: {
        onWritten: (bytes) => this.disk.wrote(bytes),
        apply: (entry) => this.#apply(entry),
        onGroupApplied: () => {
          for (const listener of this.#listeners) listener.onGroupApplied?.();
          this.#considerHousekeeping();
        },
        onPlansDropped: () => {
          for (const listener of this.#listeners) listener.onPlansDropped?.();
        },
        onLeading: () => {
          for (const listener of this.#listeners) listener.onLeading?.();
        },
        onFollowing: () => {
          for (const listener of this.#listeners) listener.onFollowing?.();
        },
        onIdle: () => this.#onIdle(),
      },
    });
    this.disk = disk;
  }

  /** Recovers the tenant from its folder; the only voter of a group is elected when it is done. */
  static async open(options: ReplicaOptions): Promise<{ replica: Replica; cutBytes: number }> {
    const { files, folder, voter } = options;
    const state = new StateMachine();
    await files.makeFolder(snapshotFolder(folder));
    const snapshot = await readSnapshot(files, snapshotFolder(folder));
    const facts = snapshot === undefined ? noFacts : decodeLogFacts(snapshot.hardState);
    if (snapshot !== undefined) state.restore(snapshot.image);
    const start = snapshot ?? { position: 0, index: 0, term: 0 };
    const founders = options.isFounder === false ? [] : [voter];
    const configuration = state.members ?? { index: 0, voters: founders, learners: [] };
    const recovered = new RecoveredLog(state, voter, configuration, facts);
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
      onEntry: recovered.onEntry,
      onRewound: recovered.onRewound,
    });
    const replica = new Replica(options, state, journal, disk, start, {
      configuration: {
        index: configuration.index,
        configuration: { voters: configuration.voters, learners: configuration.learners },
      },
      configurations: recovered.configurations,
      hardState: recovered.hardState,
      ...logReach(journal, facts, start, recovered.runs),
      lastIndex: journal.lastIndex,
      commitIndex: state.appliedIndex,
      held: recovered.held,
    });
    await disk.start();
    if (isAlone(replica.raft.configuration, voter)) await replica.#lead();
    return { replica, cutBytes };
  }

  get raft(): Raft {
    return this.#consensus.raft;
  }

  /** Kafka's leader epoch of every partition. */
  get leaderEpoch(): number {
    return leaderEpochOf(this.raft.term);
  }

  /** Whether plans may be made here. */
  get isLeader(): boolean {
    return this.#consensus.isLeading && !this.#stopped;
  }

  /** Whether what is known here is all that anybody was told, at this moment. */
  get mayAnswer(): boolean {
    return this.#consensus.mayAnswer;
  }

  get consensus(): Consensus {
    return this.#consensus;
  }

  listen(listener: ReplicaListener): void {
    this.#listeners.push(listener);
  }

  /** Appends an entry; `done` is called once, in a later turn. */
  propose(command: Command, done?: Done): void {
    this.#consensus.propose(command, done);
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
    this.#consensus.afterPlanned(done);
  }

  /** Takes no new proposals, finishes those that are there, and closes the files. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelIdle?.();
    this.#cancelRemoval?.();
    this.disk.stop();
    await this.#consensus.stop();
    await this.#housekeeping;
    if (this.journal.markIsDue) await this.#consensus.mark();
    await this.journal.close();
  }

  /** Resolves when everything that was proposed so far is on disk. */
  settled(): Promise<void> {
    return this.#consensus.settled();
  }

  async #lead(): Promise<void> {
    this.#consensus.campaign();
    await this.settled();
    if (this.#consensus.isLeading) return;
    await this.stop();
    throw diskFull(this.#options.folder);
  }

  #apply(entry: StoredEntry): void {
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    this.state.apply(entry);
    this.journal.apply(entry);
    if (mayFreeFiles(entry.type)) this.#removeSoon();
    for (const listener of this.#listeners) listener.onApplied?.(entry);
  }

  #onIdle(): void {
    if (this.#stopped || this.#cancelIdle !== undefined) return;
    this.#cancelIdle = this.#options.clock.after(idleMarkMs, () => {
      this.#cancelIdle = undefined;
      if (this.#stopped || !this.#consensus.isIdle || !this.journal.markIsDue) return;
      this.#consensus.mark().catch((error: unknown) => this.#options.onFatal(error));
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
    const removed = await this.#reaper.removeDead(this.#snapshotPositions[0]);
    const last = removed.at(-1);
    // Other members can be given only what follows.
    if (last !== undefined) this.raft.compactTo(last.lastIndex);
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
      position: this.#consensus.appliedPosition,
      index: this.state.appliedIndex,
      term: this.state.appliedTerm,
      hardState: encodeLogFacts({
        ...this.raft.hardState,
        ...this.raft.termsUpTo(this.state.appliedIndex),
      }),
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

function isAlone({ voters }: Configuration, self: string): boolean {
  return voters.length === 1 && voters[0] === self;
}

/**
 * How far back the entries reach that other members can be given: as far as the snapshot says, and
 * no further than where a file was removed.
 */
function logReach(
  { logFiles }: Journal,
  { base, runs: covered }: LogFacts,
  start: { readonly index: number; readonly term: number },
  recovered: readonly TermRun[],
): { readonly base: TermRun; readonly runs: readonly TermRun[] } {
  const startPlace = { index: start.index, term: start.term };
  if (base === undefined) return { base: startPlace, runs: recovered };
  let first = Number.POSITIVE_INFINITY;
  for (const { header, lastIndex } of [...logFiles].reverse()) {
    if (lastIndex + 1 < first && first !== Number.POSITIVE_INFINITY) break;
    // A file whose entries are all void may begin behind those that took their places.
    first = Math.min(first, header.firstIndex);
  }
  const log = new TermLog(base, covered, start.index);
  log.compactTo(Math.min(Math.max(base.index, first - 1), start.index));
  const known = log.runs;
  const isSame = known.at(-1)?.term === recovered[0]?.term;
  return { base: log.base, runs: [...known, ...recovered.slice(isSame ? 1 : 0)] };
}

function mayFreeFiles(entryType: number): boolean {
  return entryType === EntryType.topicDeleted || entryType === EntryType.logStartsMoved;
}

function diskFull(folder: string): BrokerError {
  return new BrokerError('DISK_FULL', `no space left to start with ${folder}`, { folder });
}

const noFacts: LogFacts = { term: 0, votedFor: null, base: undefined, runs: [] };

function snapshotFolder(folder: string): string {
  return `${folder}/snapshots`;
}
