import { assert } from '../core/assert.ts';
import { Follower } from './follower.ts';
import { Leadership } from './leadership.ts';
import { type Configuration, isSingleChange, Memberships, majorityOf } from './membership.ts';
import type { Append, Heartbeat, Message, PreVote, SnapshotOffer, Vote } from './messages.ts';
import type { PeerProgress } from './peer.ts';
import {
  type Accepted,
  type HardState,
  Outbox,
  type Place,
  type RaftOptions,
  type Ready,
} from './ready.ts';
import { TermLog, type TermRun } from './term-log.ts';

/**
 * - follower: takes entries from a leader. election timeout => preCandidate
 * - preCandidate: asks whether an election would do. majority => candidate; a leader => follower
 * - candidate: waits for votes, its own counts once it is on disk. majority => leader
 * - leader: proposes entries. sees a higher term, or no majority => follower
 */
export const Role = {
  follower: 'follower',
  preCandidate: 'preCandidate',
  candidate: 'candidate',
  leader: 'leader',
} as const;
export type Role = (typeof Role)[keyof typeof Role];

/**
 * The consensus core: pure and synchronous. Messages, the time and reports of what is on disk come
 * in by calls; what is to be done comes out of `takeReady`. No sockets, files, clocks or
 * randomness. Sections are those of the Raft paper (extended version), where a thesis is named
 * those of Ongaro's.
 *
 * What has to be durable before what is in here, not left to the driver: votes, and answers to
 * appends, are among the messages only after the driver has reported that they are on disk.
 * Entries are known by index and term alone; what is in them is the driver's.
 */
export class Raft {
  readonly #options: RaftOptions;
  readonly #self: string;
  readonly #log: TermLog;
  readonly #memberships: Memberships;
  readonly #follower: Follower;
  readonly #outbox: Outbox;
  #role: Role = Role.follower;
  #leaderId: string | undefined;
  #leadership: Leadership | undefined;
  /** Up to here the log is on disk. */
  #persistedIndex: number;
  #commitIndex: number;
  /** Who has granted what was asked for as a candidate, or before it. */
  #grants = new Set<string>();
  #isTransfer = false;
  #electionMs = 0;
  /** How long this member waits for a word of its leader. */
  #patienceMs: number;
  #heartbeatDueMs = 0;
  /** As a leader: its heartbeats are few. */
  #isDozing = false;
  /** When there was last something to be done. */
  #busyMs: number;
  /** When a leader was last heard of, or this member started. */
  #contactMs: number;
  #tickedMs: number;
  /** An election may begin, or a leader give up, only after what lies unread was looked at. */
  #graceEndMs = Number.NEGATIVE_INFINITY;

  constructor(options: RaftOptions, nowMs: number) {
    const { self, hardState, base, runs, lastIndex, commitIndex } = options;
    this.#options = options;
    this.#self = self;
    this.#log = new TermLog(base, runs, lastIndex);
    this.#memberships = new Memberships(options.configuration, options.configurations ?? []);
    // An entry of a term proves the term: it may have reached the disk without the hard state.
    const isKnown = hardState.term >= this.#log.lastTerm;
    this.#outbox = new Outbox(isKnown ? hardState : { term: this.#log.lastTerm, votedFor: null });
    this.#follower = new Follower(this.#log, this.#memberships);
    this.#persistedIndex = this.#log.lastIndex;
    this.#commitIndex = commitIndex;
    assert(commitIndex <= this.#log.lastIndex, 'what is committed is in the log');
    // It may have promised its support to a leader just before it stopped.
    this.#contactMs = nowMs;
    this.#tickedMs = nowMs;
    this.#busyMs = nowMs;
    this.#patienceMs = options.electionTimeoutMs;
    this.#resetElection(nowMs);
  }

  get role(): Role {
    return this.#role;
  }
  get term(): number {
    return this.#outbox.hardState.term;
  }
  get hardState(): HardState {
    return this.#outbox.hardState;
  }
  get lastIndex(): number {
    return this.#log.lastIndex;
  }
  get lastTerm(): number {
    return this.#log.lastTerm;
  }
  get commitIndex(): number {
    return this.#commitIndex;
  }
  get persistedIndex(): number {
    return this.#persistedIndex;
  }
  /** Of this term, as far as it is known. */
  get leaderId(): string | undefined {
    return this.#leaderId;
  }
  /** What this leader knows of another member; undefined if it is no leader. */
  peer(id: string): PeerProgress | undefined {
    return this.#leadership?.peers.get(id);
  }
  /** Follows a leader that was heard of within two election timeouts. */
  isLed(nowMs: number): boolean {
    const isFollowing = this.#role === Role.follower && this.#leaderId !== undefined;
    return isFollowing && nowMs - this.#contactMs < 2 * this.#patienceMs;
  }
  /** Whether the other member answers, and had all that was committed not long ago. */
  isInSync(id: string, nowMs: number): boolean {
    const peer = this.peer(id);
    return peer !== undefined && nowMs - peer.caughtUpMs < 2 * this.#timeoutMs;
  }
  get configuration(): Configuration {
    return this.#memberships.current;
  }

  /** The entry before the first one of the log, and which terms follow up to `index`. */
  termsUpTo(index: number): { readonly base: TermRun; readonly runs: readonly TermRun[] } {
    const { base, runs } = this.#log;
    return { base, runs: runs.filter((run) => run.index <= index) };
  }

  termAt(index: number): number | undefined {
    return this.#log.termAt(index);
  }

  /**
   * Whether what this member knows to be committed is all that anybody was told: it leads, an entry
   * of its own term is committed (section 8), and nobody else can lead yet (thesis, 6.4.1).
   */
  mayAnswer(nowMs: number): boolean {
    const leadership = this.#leadership;
    if (leadership === undefined || this.#commitIndex < leadership.firstIndex) return false;
    return nowMs < leadership.leaseEndMs(nowMs);
  }

  get mayPropose(): boolean {
    return this.#leadership !== undefined && !this.#leadership.isHandingOver;
  }

  takeReady(): Ready {
    return this.#outbox.take();
  }

  // Time.

  /** Few words are needed between this member and its leader, or it and its peers. */
  get isDozing(): boolean {
    return this.#isDozing || this.#patienceMs > this.#options.electionTimeoutMs;
  }

  /** How long silence has to last until it means something. */
  get #timeoutMs(): number {
    const { electionTimeoutMs, doze } = this.#options;
    return this.isDozing ? doze!.timeoutMs : electionTimeoutMs;
  }

  /** There is something to be done: a leader renews its lease, and has many words again. */
  wake(nowMs: number): void {
    this.#busyMs = nowMs;
    if (!this.#isDozing) return;
    const leadership = this.#leadership!;
    this.#isDozing = false;
    leadership.onAwake(nowMs);
    this.#heartbeatDueMs = nowMs + this.#options.heartbeatMs;
    leadership.sendHeartbeats(this.#commitIndex, nowMs, false);
  }

  /** The leader's machine does not answer: it is not waited for as long as while it dozes. */
  leaderIsLost(nowMs: number): void {
    if (this.#role === Role.follower && this.isDozing) this.#resetElection(nowMs);
  }

  tick(nowMs: number): void {
    const { heartbeatMs } = this.#options;
    // The process was stopped or starved: what others said meanwhile lies unread.
    if (nowMs - this.#tickedMs > this.#timeoutMs / 2) this.#graceEndMs = nowMs + heartbeatMs;
    this.#tickedMs = nowMs;
    if (this.#role === Role.leader) this.#tickLeader(nowMs);
    else if (nowMs >= Math.max(this.#electionMs, this.#graceEndMs)) this.#onElectionTimeout(nowMs);
  }

  #tickLeader(nowMs: number): void {
    const leadership = this.#leadership!;
    const isForsaken = nowMs >= this.#graceEndMs && leadership.isForsaken(nowMs, this.#timeoutMs);
    if (isForsaken || leadership.isHandOverLate(nowMs)) {
      this.#follow(this.term, undefined, nowMs);
      return;
    }
    if (nowMs < this.#heartbeatDueMs) return;
    const { doze, heartbeatMs } = this.#options;
    this.#isDozing =
      doze !== undefined &&
      nowMs - this.#busyMs >= doze.afterMs &&
      leadership.isSettled(this.#commitIndex, nowMs);
    this.#heartbeatDueMs = nowMs + (this.#isDozing ? doze!.heartbeatMs : heartbeatMs);
    leadership.sendHeartbeats(this.#commitIndex, nowMs, this.#isDozing);
    const isRemoved = !this.#memberships.isVoter(this.#self);
    // The others know now that they go on without this member (thesis, section 4.2.2).
    if (isRemoved && this.#memberships.index <= this.#commitIndex) {
      this.#follow(this.term, undefined, nowMs);
    }
  }

  #onElectionTimeout(nowMs: number): void {
    this.#resetElection(nowMs);
    if (!this.#memberships.isVoter(this.#self)) return;
    if (this.#memberships.current.voters.length === 1) {
      this.campaign(nowMs);
      return;
    }
    this.#role = Role.preCandidate;
    this.#leaderId = undefined;
    this.#grants = new Set([this.#self]);
    for (const to of this.#otherVoters()) {
      this.#outbox.send({
        ...{ kind: 'preVote', from: this.#self, to, term: this.term + 1 },
        ...{ lastIndex: this.#log.lastIndex, lastTerm: this.#log.lastTerm },
      });
    }
  }

  /** Begins an election (section 5.2): a new term, and a vote for itself that must be durable. */
  campaign(nowMs: number, isTransfer = false): void {
    assert(this.#role !== Role.leader, 'a leader does not campaign');
    this.#resetElection(nowMs);
    this.#role = Role.candidate;
    this.#leaderId = undefined;
    this.#grants = new Set();
    this.#isTransfer = isTransfer;
    this.#setHardState({ term: this.term + 1, votedFor: this.#self });
  }

  // What is on disk.

  /** The driver reports that a hard state is on disk, as it was given. */
  hardStatePersisted(hardState: HardState, nowMs: number): void {
    if (!this.#outbox.onPersisted(hardState)) return;
    if (this.#role === Role.candidate) this.#askForVotes(nowMs);
    this.#answerAppend();
  }

  /** Nobody is asked before: who votes for this member may rely on it to remember its term. */
  #askForVotes(nowMs: number): void {
    if (this.#grants.has(this.#self)) return;
    for (const to of this.#otherVoters()) {
      this.#outbox.send({
        ...{ kind: 'vote', from: this.#self, to, term: this.term },
        ...{ lastIndex: this.#log.lastIndex, lastTerm: this.#log.lastTerm },
        isTransfer: this.#isTransfer,
      });
    }
    this.#onGranted(this.#self, nowMs);
  }

  /** The driver reports that all entries up to `index` are on disk here, the last one of `term`. */
  entriesPersisted(index: number, term: number): void {
    // Others took their place meanwhile, and will be reported themselves.
    if (this.#log.termAt(index) !== term) return;
    this.#persistedIndex = Math.max(this.#persistedIndex, index);
    if (this.#leadership !== undefined) this.#commitByMajority();
    else this.#answerAppend();
  }

  /**
   * The disk is full: entries after `index` never reached it. Alone, their places are free again;
   * others may have got them, and so this member leads no longer. Nor does it without an entry of
   * its term, since without that it can commit nothing: it has to be elected once more.
   */
  dropUnpersisted(index: number, nowMs: number): void {
    assert(index >= this.#persistedIndex, 'what is on disk is not dropped');
    this.#log.truncateAfter(index);
    this.#memberships.truncateAfter(index);
    // With others before the entry that made it alone, these may have got what is dropped.
    const isAlone = this.#leadership?.peers.size === 0 && this.#memberships.isAlone(this.#self);
    const goesOn = isAlone && index >= this.#leadership!.firstIndex;
    if (!goesOn) this.#follow(this.term, undefined, nowMs);
    assert(index >= this.#commitIndex || !isAlone, 'what is committed is on disk');
    this.#follower.onTruncated(index);
    this.#commitIndex = Math.min(this.#commitIndex, index);
  }

  // What a leader does.

  /** The place of a new entry. Only a leader may ask. */
  propose(): Place {
    assert(this.mayPropose, 'only a leader proposes');
    return this.#append();
  }

  /** Sends what was proposed. Many proposals go out in one message. */
  sendAppends(nowMs: number): void {
    this.wake(nowMs);
    this.#leadership?.sendAppends(this.#commitIndex, nowMs);
  }

  /** Whether the members may change now: one change at a time (thesis, section 4.1, erratum). */
  get mayReconfigure(): boolean {
    if (!this.mayPropose || this.#commitIndex < this.#leadership!.firstIndex) return false;
    return this.#memberships.index <= this.#commitIndex;
  }

  /** The place of an entry that changes the members; they are changed from now on. */
  proposeConfiguration(configuration: Configuration): Place {
    assert(this.mayReconfigure, 'one change at a time');
    assert(isSingleChange(this.#memberships.current, configuration), 'one voter at a time');
    const place = this.#append();
    this.#memberships.add({ index: place.index, configuration });
    this.#leadership!.onConfiguration();
    return place;
  }

  #append(): Place {
    const { term } = this;
    return { term, index: this.#log.appendOne(term) };
  }

  /** Hands over leadership; to the voter that has most, if none is named. False: there is none. */
  handOver(nowMs: number, to?: string): boolean {
    const leadership = this.#leadership;
    const successor = to ?? leadership?.bestSuccessor(this.#memberships.current);
    if (leadership === undefined || successor === undefined || leadership.isHandingOver) {
      return false;
    }
    if (!leadership.peers.has(successor) || !this.#memberships.isVoter(successor)) return false;
    this.wake(nowMs);
    leadership.handOver(successor, nowMs);
    return true;
  }

  // Snapshots.

  /** A snapshot here covers the log up to `index`, which is gone now. */
  compactTo(index: number): void {
    assert(index <= this.#commitIndex, 'a snapshot is made of what is committed');
    this.#log.compactTo(index);
    this.#memberships.compactTo(index);
  }

  /** Up to here entries may go, as far as members that are there do not need them any more. */
  neededAfter(nowMs: number): number {
    return this.#leadership?.neededAfter(nowMs) ?? Number.POSITIVE_INFINITY;
  }

  /**
   * Whether a snapshot up to `base` is of use here. It does not replace a log that has its last
   * entry: then what follows is valid, and may have been answered for (section 7).
   */
  lacks(base: TermRun): boolean {
    return base.index > this.#commitIndex && this.#log.termAt(base.index) !== base.term;
  }

  // Messages.

  /** Answers what of an append is to be written, if anything is. */
  step(message: Message, nowMs: number): Accepted | undefined {
    if (message.term > this.term && !this.#takeTerm(message, nowMs)) return undefined;
    if (message.term < this.term) {
      this.#answerEarlierTerm(message);
      return undefined;
    }
    const leadership = this.#leadership;
    switch (message.kind) {
      case 'preVote':
        // Of the present term: whoever asks is behind.
        this.#replyPreVote(message, false);
        return undefined;
      case 'preVoteReply':
        return undefined;
      case 'vote':
        this.#onVote(message, nowMs);
        return undefined;
      case 'voteReply':
        if (message.isGranted && this.#role === Role.candidate) {
          this.#onGranted(message.from, nowMs);
        }
        return undefined;
      case 'append':
        return this.#onAppend(message, nowMs);
      case 'heartbeat':
        this.#onHeartbeat(message, nowMs);
        return undefined;
      case 'appendReply':
        if (leadership?.onAppendReply(message, this.#commitIndex, nowMs)) this.#commitByMajority();
        return undefined;
      case 'appendRejected':
        leadership?.onAppendRejected(message, this.#commitIndex, nowMs);
        return undefined;
      case 'heartbeatReply':
        leadership?.onHeartbeatReply(message, this.#commitIndex, nowMs);
        return undefined;
      case 'snapshotOffer':
        this.#onSnapshotOffer(message, nowMs);
        return undefined;
      case 'timeoutNow':
        if (this.#role !== Role.leader && this.#memberships.isVoter(this.#self)) {
          this.campaign(nowMs, true);
        }
        return undefined;
      case 'termIsOver':
        return undefined;
    }
  }

  /** A higher term. Answers whether it is this member's now, and the message to be looked at. */
  #takeTerm(message: Message, nowMs: number): boolean {
    switch (message.kind) {
      case 'preVote':
        this.#replyPreVote(message, this.#wouldVote(message, nowMs));
        return false;
      case 'preVoteReply':
        if (message.isGranted) {
          this.#onPreGranted(message.from, message.term, nowMs);
          return false;
        }
        break;
      case 'vote':
        // Who hears from a leader does not let others disturb it (thesis, section 4.2.3).
        if (!message.isTransfer && this.#hasLeader(nowMs)) return false;
        break;
      default:
    }
    this.#follow(message.term, isLeaders(message) ? message.from : undefined, nowMs);
    return true;
  }

  #answerEarlierTerm(message: Message): void {
    const { kind, from: to } = message;
    const { term } = this;
    if (isLeaders(message)) {
      this.#outbox.reply({ kind: 'termIsOver', from: this.#self, to, term });
    } else if (kind === 'preVote') this.#replyPreVote(message, false);
    else if (kind === 'vote') {
      this.#outbox.reply({ kind: 'voteReply', from: this.#self, to, term, isGranted: false });
    }
  }

  // Elections.

  #hasLeader(nowMs: number): boolean {
    if (this.#leadership !== undefined) {
      return !this.#leadership.isForsaken(nowMs, this.#timeoutMs);
    }
    return nowMs - this.#contactMs < this.#patienceMs;
  }

  /** The voter's own log is not ahead (section 5.4.1). */
  #isUpToDate({ lastIndex, lastTerm }: PreVote | Vote): boolean {
    if (lastTerm !== this.#log.lastTerm) return lastTerm > this.#log.lastTerm;
    return lastIndex >= this.#log.lastIndex;
  }

  #wouldVote(message: PreVote, nowMs: number): boolean {
    return !this.#hasLeader(nowMs) && this.#isUpToDate(message);
  }

  #replyPreVote({ from: to, term: asked }: PreVote, isGranted: boolean): void {
    const term = isGranted ? asked : this.term;
    this.#outbox.reply({ kind: 'preVoteReply', from: this.#self, to, term, isGranted });
  }

  #onPreGranted(from: string, term: number, nowMs: number): void {
    if (this.#role !== Role.preCandidate || term !== this.term + 1) return;
    this.#grants.add(from);
    if (this.#isElected()) this.campaign(nowMs);
  }

  #onVote(message: Vote, nowMs: number): void {
    const { from, term } = message;
    const { votedFor } = this.hardState;
    const isFree = votedFor === null || votedFor === from;
    const isGranted = this.#role === Role.follower && isFree && this.#isUpToDate(message);
    if (isGranted) {
      this.#resetElection(nowMs);
      if (votedFor === null) this.#setHardState({ term, votedFor: from });
    }
    this.#outbox.reply({ kind: 'voteReply', from: this.#self, to: from, term, isGranted });
  }

  #onGranted(from: string, nowMs: number): void {
    this.#grants.add(from);
    // Its own vote may still be on the way to the disk.
    if (this.#grants.has(this.#self) && this.#isElected()) this.#lead(nowMs);
  }

  #isElected(): boolean {
    const { voters } = this.#memberships.current;
    const granted = voters.filter((voter) => this.#grants.has(voter)).length;
    return granted >= majorityOf(voters.length);
  }

  #lead(nowMs: number): void {
    const { electionTimeoutMs, heartbeatMs, missedMs, appendsUnderWayMax } = this.#options;
    const { lastFitting, snapshot } = this.#options;
    this.#role = Role.leader;
    this.#leaderId = this.#self;
    this.#leadership = new Leadership(
      {
        ...{ self: this.#self, term: this.term, log: this.#log },
        ...{ memberships: this.#memberships, electionTimeoutMs, missedMs, appendsUnderWayMax },
        lastFitting,
        send: (message) => this.#outbox.send(message),
        snapshot,
      },
      nowMs,
    );
    this.#heartbeatDueMs = nowMs + heartbeatMs;
    this.#busyMs = nowMs;
    this.#outbox.appendNoop(this.#append());
    this.#leadership.sendAppends(this.#commitIndex, nowMs);
  }

  /** Becomes a follower, in this term or a newer one. */
  #follow(term: number, leaderId: string | undefined, nowMs: number): void {
    const isNewTerm = term > this.term;
    if (isNewTerm) this.#setHardState({ term, votedFor: null });
    if (isNewTerm || this.#role === Role.leader) this.#resetElection(nowMs);
    this.#role = Role.follower;
    this.#leadership = undefined;
    this.#isDozing = false;
    this.#leaderId = leaderId;
  }

  // What a follower does.

  #onContact(from: string, nowMs: number, patienceMs?: number): void {
    assert(this.#role !== Role.leader, 'a term has one leader');
    if (this.#role !== Role.follower) this.#follow(this.term, from, nowMs);
    this.#leaderId = from;
    this.#contactMs = nowMs;
    this.#resetElection(nowMs, patienceMs);
  }

  #onHeartbeat({ from, commitIndex, sentMs, isDozing }: Heartbeat, nowMs: number): void {
    this.#onContact(from, nowMs, isDozing ? this.#options.doze?.timeoutMs : undefined);
    // Up to its match the leader knows this log to be its own.
    this.#commitUpTo(Math.min(commitIndex, this.#log.lastIndex));
    const { term } = this;
    const hasEntries = this.#follower.appendSentMs !== undefined;
    const reply = { from: this.#self, to: from, term, hasEntries, sentMs };
    this.#outbox.reply({ kind: 'heartbeatReply', ...reply });
  }

  #onAppend(message: Append, nowMs: number): Accepted | undefined {
    this.#onContact(message.from, nowMs);
    const { from: to, prevIndex, sentMs } = message;
    if (!this.#follower.fits(message)) {
      this.#outbox.reply({
        ...{ kind: 'appendRejected', from: this.#self, to, term: this.term, prevIndex, sentMs },
        ...this.#follower.hint(message),
      });
      return undefined;
    }
    const accepted = this.#follower.take(message, this.#commitIndex);
    const kept = accepted?.truncateAfter ?? this.#persistedIndex;
    this.#persistedIndex = Math.min(this.#persistedIndex, kept);
    const { verifiedIndex } = this.#follower;
    this.#commitUpTo(Math.min(message.commitIndex, verifiedIndex));
    // Else the answer comes when the entries are on disk.
    if (this.#persistedIndex >= verifiedIndex) this.#answerAppend();
    return accepted;
  }

  #onSnapshotOffer({ from, base, sentMs }: SnapshotOffer, nowMs: number): void {
    this.#onContact(from, nowMs);
    if (this.lacks(base)) {
      this.#outbox.install({ from, base });
      return;
    }
    this.#commitUpTo(base.index);
    this.#follower.onCovered(this.#commitIndex, sentMs);
    this.#answerAppend();
  }

  /** Tells the leader how far its entries are on disk here. */
  #answerAppend(): void {
    const to = this.#leaderId;
    const { verifiedIndex, appendSentMs: sentMs } = this.#follower;
    if (sentMs === undefined || to === undefined || !this.#outbox.isDurable) return;
    const matched = Math.min(this.#persistedIndex, verifiedIndex);
    const { term } = this;
    this.#outbox.send({ kind: 'appendReply', from: this.#self, to, term, matched, sentMs });
  }

  // Both.

  #commitByMajority(): void {
    const leadership = this.#leadership!;
    const index = leadership.majorityIndex(this.#persistedIndex);
    // Only entries of the own term are counted; the earlier ones come with them (5.4.2).
    if (index < leadership.firstIndex) return;
    this.#commitUpTo(index);
  }

  #commitUpTo(index: number): void {
    this.#commitIndex = Math.max(this.#commitIndex, index);
  }

  #otherVoters(): string[] {
    return this.#memberships.current.voters.filter((voter) => voter !== this.#self);
  }

  #setHardState(hardState: HardState): void {
    if (hardState.term !== this.term) this.#follower.onTerm();
    this.#outbox.setHardState(hardState);
  }

  #resetElection(nowMs: number, patienceMs = this.#options.electionTimeoutMs): void {
    this.#patienceMs = patienceMs;
    this.#electionMs = nowMs + patienceMs * (1 + this.#options.random());
  }
}

/** Only the leader of a term sends these. */
function isLeaders({ kind }: Message): boolean {
  return kind === 'append' || kind === 'heartbeat' || kind === 'snapshotOffer';
}
