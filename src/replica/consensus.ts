import type { Clock } from '../core/clock.ts';
import type { Random } from '../core/random.ts';
import type { Entry, StoredEntry } from '../log/format.ts';
import type { Journal } from '../log/journal.ts';
import type { ConfigurationEntry } from '../raft/membership.ts';
import type { Message } from '../raft/messages.ts';
import { Raft, Role } from '../raft/raft.ts';
import type { DozeOptions, HardState, OfferedSnapshot, Place } from '../raft/ready.ts';
import type { TermRun } from '../raft/term-log.ts';
import {
  encodeCommitMark,
  encodeHardState,
  encodeMembers,
  type Members,
} from '../state/commands.ts';
import { EntryType, entryVersion } from '../state/entry-types.ts';
import { defaultTenant } from '../state/tenants.ts';
import { AppendSender } from './append-sender.ts';
import { Awaking } from './awaking.ts';
import { EntryTail } from './entry-tail.ts';
import {
  type Done,
  type Group,
  GroupCommit,
  type GroupCommitOptions,
  type Outcome,
  type Pending,
  settle,
} from './group-commit.ts';
import type { PeerPort } from './peer-port.ts';
import type { Held } from './recovered-log.ts';

/** What a planner wants in the log. */
export interface Command {
  readonly type: EntryType;
  readonly meta: Buffer;
  readonly batches?: readonly Buffer[];
  /** Partition of each batch. */
  readonly partitions?: readonly number[];
}

export interface RaftTimes {
  /** The least time without a leader after which an election begins; the most is twice that. */
  readonly electionTimeoutMs: number;
  readonly heartbeatMs: number;
  /** What a member lacks that was silent for longer is not kept for it. */
  readonly missedMs: number;
  /** Of a group that may doze while nothing happens in it. */
  readonly doze?: DozeOptions;
}

/** What the group's log is at the start. */
export interface LogStart {
  readonly configuration: ConfigurationEntry;
  readonly configurations: readonly ConfigurationEntry[];
  readonly hardState: HardState;
  readonly base: TermRun;
  readonly runs: readonly TermRun[];
  readonly lastIndex: number;
  /** Applied; the entries behind it are `held`. */
  readonly commitIndex: number;
  readonly held: readonly Held[];
}

export interface ConsensusOptions
  extends Omit<
    GroupCommitOptions,
    'onDurable' | 'onDropped' | 'termAt' | 'companions' | 'onIdle' | 'clock' | 'journal'
  > {
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Journal;
  /** This member: node id and directory id. */
  readonly self: string;
  readonly start: LogStart;
  readonly times: RaftTimes;
  /** Undefined for a group of one, for ever. */
  readonly peers: PeerPort | undefined;
  /** One append holds about this much, or one entry. */
  readonly appendBytesMax: number;
  /** Of the newest entries, in memory for the others; older ones are read from the journal. */
  readonly tailBytesMax: number;
  /** The last entry that the snapshot covers which others are offered. */
  readonly snapshot: () => TermRun;
  readonly listener: ConsensusListener;
}

export interface ConsensusListener {
  /** A group of so many bytes is on disk. */
  onWritten(bytes: number): void;
  /** Each committed entry, once, in order. */
  apply(entry: StoredEntry): void;
  /** Some were applied, and those who waited for them told. */
  onGroupApplied(): void;
  /** What is planned and not applied is void: the disk is full, or this member leads no longer. */
  onPlansDropped(): void;
  /** All that was committed before is applied: plans may be made. */
  onLeading(): void;
  onFollowing(): void;
  /** The leader has a snapshot without which this member cannot go on. */
  onSnapshotOffered(offered: OfferedSnapshot): void;
  onIdle(): void;
}

const appendsUnderWayMax = 64;
/** On a full disk a vote waits this long for space. */
const voteAgainMs = 1000;

/** Durable, and not known to be committed. */
interface Waiting {
  readonly stored: StoredEntry;
  readonly pending: Pending | undefined;
  /** Journal position of its group. */
  readonly start: number;
}

/**
 * Drives the Raft core: takes what it wants on disk through the group commit, what it has to say to
 * the other members, and hands out entries in order once they are on disk here and committed.
 */
export class Consensus {
  readonly #options: ConsensusOptions;
  readonly #raft: Raft;
  readonly #commit: GroupCommit;
  readonly #tail: EntryTail;
  readonly #senders = new Map<string, AppendSender>();
  #waiting: Waiting[];
  /** The term in which this member leads and may plan; 0 if it does not. */
  #leadingTerm = 0;
  /** Journal position after the last group that is on disk. */
  #durableEnd: number;
  /** Position of void entries on disk, which are back after a start unless others are there. */
  #voidFrom: number | undefined;
  #appliedIndex: number;
  #markedIndex = 0;
  #isSendingSoon = false;
  #cancelTick: (() => void) | undefined;
  /** The clock is looked at seldom. */
  #isDozing = false;
  readonly #awaking: Awaking;
  #isStopped = false;

  constructor(options: ConsensusOptions) {
    const { clock, random, journal, self, start, times, appendBytesMax } = options;
    this.#options = options;
    this.#awaking = new Awaking(clock);
    this.#tail = new EntryTail(options.tailBytesMax);
    this.#durableEnd = journal.end;
    this.#appliedIndex = start.commitIndex;
    this.#waiting = start.held.map(({ entry, position }) => ({
      ...{ stored: entry, pending: undefined, start: position },
    }));
    this.#raft = new Raft(
      {
        ...start,
        ...times,
        self,
        appendsUnderWayMax,
        lastFitting: (to, first, last) => this.#lastFitting(to, first, last, appendBytesMax),
        snapshot: options.snapshot,
        random: random.next,
      },
      clock.monotonicMs(),
    );
    this.#commit = new GroupCommit({
      ...options,
      termAt: (index) => this.#raft.termAt(index) ?? 0,
      companions: () => this.#companions(),
      onDurable: (group) => this.#onDurable(group),
      onDropped: (dropped) => this.#onDropped(dropped),
      onIdle: () => options.listener.onIdle(),
    });
    if (options.peers !== undefined) this.#tickLater();
  }

  /** Of what lies in no memory nobody knows how large it is: it goes by itself. */
  #lastFitting(to: string, first: number, last: number, bytesMax: number): number {
    const inTail = this.#tail.lastFitting(first, last, bytesMax);
    return inTail ?? this.#senders.get(to)?.lastFitting(first, last, bytesMax) ?? first;
  }

  get raft(): Raft {
    return this.#raft;
  }

  /** It leads, and all that was committed before is applied. */
  get isLeading(): boolean {
    return this.#leadingTerm > 0 && this.#raft.mayPropose && !this.#isStopped;
  }

  /** Whether nobody else can lead at this moment, and this member knows all that is committed. */
  get mayAnswer(): boolean {
    return this.#leadingTerm > 0 && this.#raft.mayAnswer(this.#options.clock.monotonicMs());
  }

  get isIdle(): boolean {
    return this.#commit.isIdle;
  }

  /** It leads, and may answer as soon as the others have said that it does: see `awake`. */
  get isAsleep(): boolean {
    return this.#options.times.doze !== undefined && this.isLeading && !this.mayAnswer;
  }

  /** Somebody wants something of this member. */
  touch(): void {
    if (this.#options.times.doze === undefined) return;
    const { isDozing } = this.#raft;
    this.#raft.wake(this.#options.clock.monotonicMs());
    if (isDozing) this.#goOn();
  }

  /** Calls back when this member may answer again, or it is plain that it may not. */
  awake(done: () => void): void {
    this.#awaking.add(this.#options.times.electionTimeoutMs, done);
    this.touch();
  }

  /** The connection to the node of this member is lost. */
  onPeerLost(member: string): void {
    if (this.#raft.leaderId !== member) return;
    this.#raft.leaderIsLost(this.#options.clock.monotonicMs());
    this.#goOn();
  }

  /** Where the journal is to be read from once all that is applied is in a snapshot. */
  get appliedPosition(): number {
    return this.#waiting[0]?.start ?? this.#voidFrom ?? this.#durableEnd;
  }

  /** Appends an entry; `done` is called once, in a later turn. */
  propose(command: Command, done?: Done): void {
    if (!this.isLeading) {
      if (done !== undefined) this.#options.clock.soon(() => done('not-leader'));
      return;
    }
    this.#add(entryOf(command, this.#raft.propose()), done);
    this.#sendSoon();
  }

  /** Changes the members by one voter, or any learners; only while `raft.mayReconfigure`. */
  proposeMembers(members: Members, done?: Done): void {
    const { voters, learners } = members;
    const place = this.#raft.proposeConfiguration({ voters, learners });
    this.#add(entryOf({ type: EntryType.members, meta: encodeMembers(members) }, place), done);
    this.#sendSoon();
  }

  /**
   * Calls back when everything that is planned now is settled. While leadership is being handed
   * over some of it was refused.
   */
  afterPlanned(done: Done): void {
    if (!this.isLeading) {
      this.#options.clock.soon(() => done('not-leader'));
      return;
    }
    const last = this.#commit.last ?? this.#waiting.at(-1)?.pending;
    if (last !== undefined) last.after = [...(last.after ?? []), done];
    else this.#options.clock.soon(() => done('applied'));
  }

  /** The only voter elects itself. */
  campaign(): void {
    this.#raft.campaign(this.#options.clock.monotonicMs());
    this.#goOn();
  }

  /** A message of another member, and the entries of an append. */
  receive(message: Message, entries: readonly Entry[]): void {
    if (this.#isStopped) return;
    const accepted = this.#raft.step(message, this.#options.clock.monotonicMs());
    if (accepted !== undefined) {
      const { truncateAfter, first } = accepted;
      if (truncateAfter !== undefined) this.#truncateAfter(truncateAfter);
      for (const entry of entries) if (entry.index >= first) this.#add(entry, undefined);
    }
    this.#goOn();
  }

  /** Hands leadership over, to the voter that has most if none is named; false if there is none. */
  handOver(to?: string): boolean {
    const isBegun = this.#raft.handOver(this.#options.clock.monotonicMs(), to);
    this.#goOn();
    return isBegun;
  }

  /** A sync mark, when idle. */
  mark(): Promise<void> {
    return this.#commit.mark();
  }

  /** Resolves when everything that was proposed so far is on disk. */
  settled(): Promise<void> {
    return this.#commit.idle();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTick?.();
    await this.#commit.idle();
    this.#settleAll('not-leader');
  }

  #tickLater(): void {
    const { clock, times } = this.#options;
    const { doze, heartbeatMs } = times;
    this.#isDozing = this.#raft.isDozing;
    const everyMs = (this.#isDozing ? doze!.heartbeatMs : heartbeatMs) / 2;
    this.#cancelTick = clock.after(everyMs, () => {
      this.#cancelTick = undefined;
      if (this.#isStopped) return;
      this.#raft.tick(clock.monotonicMs());
      this.#goOn();
      if (this.#cancelTick === undefined) this.#tickLater();
    });
  }

  #add(entry: Entry, done: Done | undefined): void {
    if (this.#options.peers !== undefined && entry.index > 0) this.#tail.push(entry);
    this.#commit.add(entry, done);
  }

  /** What one turn proposes goes out together, beside the own write (thesis, section 10.2.1). */
  #sendSoon(): void {
    if (this.#isSendingSoon || this.#options.peers === undefined) return;
    this.#isSendingSoon = true;
    this.#options.clock.soon(() => {
      this.#isSendingSoon = false;
      this.#raft.sendAppends(this.#options.clock.monotonicMs());
      this.#goOn();
    });
  }

  /** After anything that may have changed what is to be done. */
  #goOn(): void {
    this.#watchRole();
    this.#applyCommitted();
    if (this.#isDozing && !this.#raft.isDozing && !this.#isStopped) {
      this.#cancelTick?.();
      this.#tickLater();
    }
    if (this.#awaking.size > 0 && !this.isAsleep) this.#awaking.endAll();
    const { hardState, noop, messages, snapshot } = this.#raft.takeReady();
    if (hardState !== undefined) this.#persist(hardState);
    if (noop !== undefined) {
      const { term } = noop;
      const command = { type: EntryType.noop, meta: Buffer.alloc(0) };
      this.#add(entryOf(command, noop), (outcome) => {
        if (outcome === 'applied') this.#onLeading(term);
      });
    }
    for (const message of messages) this.#send(message);
    if (snapshot !== undefined) this.#options.listener.onSnapshotOffered(snapshot);
  }

  #send(message: Message): void {
    const { peers, journal, onFatal } = this.#options;
    const onMissing = (index: number): void => this.#onMissing(index);
    if (peers === undefined) return;
    if (message.kind !== 'append') {
      peers.send(message, []);
      return;
    }
    let sender = this.#senders.get(message.to);
    if (sender === undefined) {
      sender = new AppendSender(peers, this.#tail, journal, onMissing, onFatal);
      this.#senders.set(message.to, sender);
    }
    sender.send(message);
  }

  /** Its file was removed, maybe before the last start; or others have taken its place. */
  #onMissing(index: number): void {
    if (index <= this.#appliedIndex && !this.#isStopped) this.#raft.compactTo(index);
  }

  #persist(hardState: HardState): void {
    const { clock } = this.#options;
    const meta = encodeHardState(hardState);
    const place = { term: hardState.term, index: 0 };
    this.#commit.add(entryOf({ type: EntryType.hardState, meta }, place), (outcome) => {
      if (this.#isStopped) return;
      if (outcome === 'applied') {
        this.#raft.hardStatePersisted(hardState, clock.monotonicMs());
        this.#goOn();
        return;
      }
      clock.after(voteAgainMs, () => {
        if (!this.#isStopped && this.#raft.hardState === hardState) this.#persist(hardState);
      });
    });
  }

  #companions(): readonly Entry[] {
    // The only voter needs no mark: all that it has is committed.
    if (this.#options.peers === undefined || this.#markedIndex === this.#appliedIndex) return [];
    this.#markedIndex = this.#appliedIndex;
    const meta = encodeCommitMark(this.#appliedIndex);
    return [entryOf({ type: EntryType.commitMark, meta }, { term: this.#raft.term, index: 0 })];
  }

  #onDurable({ pending, stored, start, end, bytes }: Group): void {
    this.#options.listener.onWritten(bytes);
    this.#durableEnd = end;
    let last: Entry | undefined;
    for (const [i, one] of pending.entries()) {
      const { entry } = one;
      if (entry.index === 0) settle(one, 'applied');
      else if (this.#raft.termAt(entry.index) === entry.term) {
        last = entry;
        this.#waiting.push({ stored: stored[i]!, pending: one, start });
      } else this.#voidFrom ??= start;
    }
    if (last !== undefined) {
      this.#voidFrom = undefined;
      this.#raft.entriesPersisted(last.index, last.term);
    }
    this.#goOn();
  }

  #applyCommitted(): void {
    const { commitIndex } = this.#raft;
    let count = 0;
    while (count < this.#waiting.length && this.#waiting[count]!.stored.index <= commitIndex) {
      count++;
    }
    if (count === 0) return;
    const { listener } = this.#options;
    const committed = this.#waiting.splice(0, count);
    for (const { stored } of committed) {
      this.#appliedIndex = stored.index;
      listener.apply(stored);
    }
    for (const { pending } of committed) if (pending !== undefined) settle(pending, 'applied');
    listener.onGroupApplied();
  }

  #onLeading(term: number): void {
    if (this.#raft.role !== Role.leader || this.#raft.term !== term) return;
    this.#leadingTerm = term;
    this.#options.listener.onLeading();
  }

  /** Whoever waits for a plan of this member is told that it leads no longer. */
  #watchRole(): void {
    const { role, term } = this.#raft;
    const isSame = role === Role.leader && term === this.#leadingTerm;
    if (this.#leadingTerm === 0 || isSame) return;
    this.#leadingTerm = 0;
    this.#options.listener.onPlansDropped();
    this.#options.listener.onFollowing();
    this.#settleAll('not-leader');
  }

  #settleAll(outcome: Outcome): void {
    const pending = [...this.#commit.pending()].filter(({ entry }) => entry.index > 0);
    for (const waiting of this.#waiting) {
      if (waiting.pending !== undefined) settle(waiting.pending, outcome);
    }
    for (const one of pending) settle(one, outcome);
  }

  /** Others take the places of the entries after `index`. */
  #truncateAfter(index: number): void {
    this.#tail.truncateAfter(index);
    for (const pending of this.#commit.takeBackAfter(index)) settle(pending, 'not-leader');
    this.#voidFrom ??= this.#waiting.find(({ stored }) => stored.index > index)?.start;
    this.#waiting = this.#waiting.filter(({ stored }) => stored.index <= index);
  }

  /** The disk is full: planning starts again from what is applied. */
  #onDropped(dropped: readonly Pending[]): void {
    const { persistedIndex } = this.#raft;
    this.#raft.dropUnpersisted(persistedIndex, this.#options.clock.monotonicMs());
    this.#tail.truncateAfter(persistedIndex);
    this.#options.listener.onPlansDropped();
    for (const one of dropped) settle(one, 'disk-full');
    this.#goOn();
  }
}

function entryOf(command: Command, { term, index }: Place): Entry {
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
