import type { Clock } from '../core/clock.ts';
import { BrokerError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Random } from '../core/random.ts';
import { type FilePort, isCode } from '../log/file-port.ts';
import type { StoredEntry } from '../log/format.ts';
import { Journal } from '../log/journal.ts';
import {
  keepNewestSnapshot,
  readSnapshot,
  type SnapshotFacts,
  writeSnapshot,
} from '../log/snapshot-file.ts';
import { isOnlyVoter } from '../raft/membership.ts';
import type { Raft } from '../raft/raft.ts';
import type { TermRun } from '../raft/term-log.ts';
import { decodeLogFacts, encodeLogFacts, type LogFacts } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import { leaderEpochOf } from '../state/leader-epoch.ts';
import { StateMachine } from '../state/state-machine.ts';
import { type Command, Consensus, type LogStart, type RaftTimes } from './consensus.ts';
import { DiskGuard, type DiskGuardOptions } from './disk-guard.ts';
import { FileReaper } from './file-reaper.ts';
import type { Done, Outcome } from './group-commit.ts';
import { endInstall } from './install-folder.ts';
import { logReach } from './log-reach.ts';
import type { PeerPort } from './peer-port.ts';
import { RecoveredLog } from './recovered-log.ts';
import { SnapshotFetch } from './snapshot-fetch.ts';
import { SnapshotSource } from './snapshot-source.ts';
import { SnapshotTrigger } from './snapshot-trigger.ts';

export interface JournalSettings {
  readonly sync: 'always' | 'interval';
  readonly syncIntervalMs: number;
  readonly fileBytesMax: number;
  /** Length of the first file, which grows with use; without it what is best for many journals. */
  readonly fileBytesMin?: number;
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

export interface GroupOptions {
  readonly peers: PeerPort;
  readonly log: Logger;
  /** What is fetched of a snapshot in a second, on average. */
  readonly fetchBytesPerSecondMax: number;
  /** One append holds about this much, or one entry. */
  readonly appendBytesMax?: number;
  /** Of the newest entries, kept in memory for the other members. */
  readonly tailBytesMax?: number;
  /** All of a snapshot is there: `stop` puts it in place, then the replica is to be opened anew. */
  readonly onSnapshotFetched: () => void;
}

export interface ReplicaOptions {
  readonly files: FilePort;
  readonly folder: string;
  readonly clock: Clock;
  readonly random: Random;
  /** This voter: node id and directory id. */
  readonly voter: string;
  readonly journal: JournalSettings;
  /** Or that of the node, which others use, too. */
  readonly disk: DiskGuardOptions | DiskGuard;
  /** The other members of the group; undefined for a group of one. */
  readonly group?: GroupOptions;
  /**
   * Who is in the group until an entry says otherwise: only this member, where nothing is said. A
   * member that is none of them waits to be taken in.
   */
  readonly founders?: readonly string[];
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
const defaultTimes = { electionTimeoutMs: 400, heartbeatMs: 50, missedMs: 60_000 };
const appendBytesMax = 1024 * 1024;
const tailBytesMax = 32 * 1024 * 1024;

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
  /** The last entry that the newest of them covers. */
  #snapshotBase: TermRun;
  readonly #source: SnapshotSource;
  readonly #fetch: SnapshotFetch | undefined;
  #housekeeping: Promise<void> | undefined;

  private constructor(
    options: ReplicaOptions,
    state: StateMachine,
    journal: Journal,
    disk: DiskGuard,
    start: SnapshotFacts & { readonly image?: Buffer },
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
    this.#snapshotBase = { index: start.index, term: start.term };
    this.#reaper = new FileReaper(journal, state);
    this.#source = new SnapshotSource({
      ...{ files: options.files, clock: options.clock, journal },
      folder: snapshotFolder(options.folder),
      onOutrun: () => {
        if (this.#housekeeping === undefined) this.#startHousekeeping(true, false);
      },
    });
    if (options.group !== undefined) this.#fetch = this.#newFetch(options.group);
    this.#consensus = new Consensus({
      journal,
      clock: options.clock,
      random: options.random,
      self: options.voter,
      start: log,
      times: options.times ?? defaultTimes,
      peers: options.group?.peers,
      appendBytesMax: options.group?.appendBytesMax ?? appendBytesMax,
      tailBytesMax: options.group?.tailBytesMax ?? tailBytesMax,
      sync: options.journal.sync,
      aheadBytesMin: options.journal.aheadBytesMin ?? aheadBytesMin,
      besideSyncMsMin: options.journal.besideSyncMsMin ?? besideSyncMsMin,
      release: () => this.disk.release(),
      onFatal: options.onFatal,
      snapshot: () => this.#source.base ?? this.#snapshotBase,
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
        onSnapshotOffered: (offered) => this.#fetch?.offer(offered),
        onIdle: () => this.#onIdle(),
      },
    });
    this.disk = disk;
  }

  /** Recovers the tenant from its folder; the only voter of a group is elected when it is done. */
  static async open(options: ReplicaOptions): Promise<{ replica: Replica; cutBytes: number }> {
    const { files, folder, voter } = options;
    const state = new StateMachine();
    await endInstall(files, folder);
    await files.makeFolder(snapshotFolder(folder));
    const snapshot = await readSnapshot(files, snapshotFolder(folder));
    const facts = snapshot === undefined ? noFacts : decodeLogFacts(snapshot.hardState);
    if (snapshot !== undefined) state.restore(snapshot.image);
    const start = snapshot ?? { position: 0, index: 0, term: 0 };
    const founders = options.founders ?? [voter];
    const configuration = state.members ?? { index: 0, voters: founders, learners: [] };
    const recovered = new RecoveredLog(state, voter, configuration, facts);
    const { disk: given, clock } = options;
    const disk = given instanceof DiskGuard ? given : new DiskGuard(files, folder, clock, given);
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
    if (isOnlyVoter(replica.raft.configuration, voter)) await replica.#lead();
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

  /** Answers another member that fetches a snapshot; throws for what is no request. */
  answerFetch(request: Buffer): Promise<readonly Buffer[]> {
    return this.#source.answer(request);
  }

  /** Takes no new proposals, finishes those that are there, and closes the files. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelIdle?.();
    this.#cancelRemoval?.();
    if (!(this.#options.disk instanceof DiskGuard)) this.disk.stop();
    await this.#fetch?.stop();
    await this.#consensus.stop();
    await this.#housekeeping;
    if (this.journal.markIsDue) await this.#consensus.mark();
    await this.#source.stop();
    await this.journal.close();
    await this.#fetch?.putInPlace(this.raft.hardState, (base) => this.raft.lacks(base));
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

  #newFetch(group: GroupOptions): SnapshotFetch {
    const { files, folder, clock, random, journal, onFatal } = this.#options;
    const { peers, log, fetchBytesPerSecondMax: bytesPerSecondMax } = group;
    const { fileBytesMax, fileExtentsMax } = journal;
    return new SnapshotFetch({
      ...{ files, folder, clock, random, log, fileBytesMax, fileExtentsMax, bytesPerSecondMax },
      ask: (member, request) => peers.ask(member, request),
      onFatal,
      keptFiles: () => {
        const { logFiles } = this.journal;
        const end = logFiles.findIndex(
          ({ index, lastIndex }) => index === undefined || lastIndex > this.state.appliedIndex,
        );
        return logFiles.slice(0, end);
      },
      undisturbed: (work) => this.#undisturbed(work),
      mayGrow: (bytes) => this.disk.mayGrow(bytes),
      onFetched: group.onSnapshotFetched,
    });
  }

  /** Between the jobs of housekeeping. */
  async #undisturbed<T>(work: () => Promise<T>): Promise<T> {
    while (this.#housekeeping !== undefined) await this.#housekeeping;
    const working = work();
    const over = (): void => {
      this.#housekeeping = undefined;
    };
    this.#housekeeping = working.then(over, over);
    return working;
  }

  async #keepHouse(writesSnapshot: boolean, removesAll: boolean): Promise<void> {
    if (!this.disk.isCritical) await this.journal.seal(this.state.appliedIndex);
    if (!writesSnapshot) return;
    await this.#writeSnapshot();
    if (removesAll) await this.#forgetOlderSnapshots();
    await this.#fetch?.discard();
    const { files, isMoreDead } = await this.#reaper.removeDead(
      this.#snapshotPositions[0],
      this.#neededAfter,
    );
    const last = files.at(-1);
    // Other members can be given only what follows.
    if (last !== undefined) {
      this.raft.compactTo(last.lastIndex);
      await this.#source.onRemoved(last.lastIndex);
    }
    if (isMoreDead) this.#removeSoon();
  }

  /** What follows this entry is still to be given to other members, as long as there is room. */
  get #neededAfter(): number {
    const { clock, journal } = this.#options;
    if (!this.disk.mayGrow(2 * journal.fileBytesMax)) return Number.POSITIVE_INFINITY;
    const fetched = this.#source.base?.index ?? Number.POSITIVE_INFINITY;
    return Math.min(fetched, this.raft.neededAfter(clock.monotonicMs()));
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
    this.#snapshotBase = { index: facts.index, term: facts.term };
  }
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
