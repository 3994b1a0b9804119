import { assert } from '../core/assert.ts';
import type { Configuration, Memberships } from './membership.ts';
import { membersOf, reachedByMajority } from './membership.ts';
import type { AppendRejected, AppendReply, HeartbeatReply, Message } from './messages.ts';
import { Peer, PeerState } from './peer.ts';
import type { TermLog, TermRun } from './term-log.ts';

export interface LeadershipOptions {
  readonly self: string;
  readonly term: number;
  readonly log: TermLog;
  readonly memberships: Memberships;
  /** Elections begin after this long without a leader. */
  readonly electionTimeoutMs: number;
  /** A peer that was silent for longer may have to begin with a snapshot when it comes back. */
  readonly missedMs: number;
  readonly appendsUnderWayMax: number;
  /** The last of the entries `[first, last]` that fits into one message with those before it. */
  readonly lastFitting: (to: string, first: number, last: number) => number;
  readonly send: (message: Message) => void;
  /** The last entry that the newest snapshot covers. */
  readonly snapshot: () => TermRun;
}

/** Clocks of two machines may differ in speed by this much within an election timeout. */
const leaseShare = 0.9;

/** What a member does and knows as the leader of one term. */
export class Leadership {
  /** The first entry of this term: what is before it is known to be committed with it. */
  readonly firstIndex: number;
  readonly #options: LeadershipOptions;
  readonly #peers = new Map<string, Peer>();
  /** When this member began to lead; a majority has heard of it in order to vote. */
  readonly #sinceMs: number;
  /** When it was last awakened: until then nobody had to answer often. */
  #awokeMs = Number.NEGATIVE_INFINITY;
  /** The peer that is to lead next, and until when. */
  #successor: { readonly id: string; readonly untilMs: number; isTold: boolean } | undefined;

  constructor(options: LeadershipOptions, nowMs: number) {
    this.#options = options;
    this.#sinceMs = nowMs;
    this.firstIndex = options.log.lastIndex + 1;
    this.onConfiguration();
  }

  get peers(): ReadonlyMap<string, Peer> {
    return this.#peers;
  }

  /** Nothing is proposed while leadership is being handed over. */
  get isHandingOver(): boolean {
    return this.#successor !== undefined;
  }

  onConfiguration(): void {
    const { self, memberships, log } = this.#options;
    const members = new Set(membersOf(memberships.current));
    members.delete(self);
    for (const id of this.#peers.keys()) if (!members.has(id)) this.#peers.delete(id);
    for (const id of members) {
      if (!this.#peers.has(id)) this.#peers.set(id, new Peer(id, log.lastIndex + 1));
    }
  }

  /** The greatest index that a majority of the voters has on disk. */
  majorityIndex(persistedIndex: number): number {
    return this.#reached((id) => this.#peers.get(id)!.matchIndex, persistedIndex);
  }

  /**
   * When the newest round of messages was sent that a majority of the voters has answered: nobody
   * else can have become leader before an election timeout after that (thesis, section 6.4.1).
   */
  #answeredMs(nowMs: number): number {
    return this.#reached((id) => this.#peers.get(id)!.answeredSentMs, nowMs);
  }

  #reached(of: (id: string) => number, own: number): number {
    const { self, memberships } = this.#options;
    const { voters } = memberships.current;
    return reachedByMajority(voters.map((id) => (id === self ? own : of(id))));
  }

  /** Until when nobody else can lead. Votes count for nothing here: they were asked for before. */
  leaseEndMs(nowMs: number): number {
    if (this.#successor?.isTold === true) return Number.NEGATIVE_INFINITY;
    return this.#answeredMs(nowMs) + this.#options.electionTimeoutMs * leaseShare;
  }

  /** No majority has answered for so long that there may be another leader (thesis, 6.2). */
  isForsaken(nowMs: number, timeoutMs: number): boolean {
    const heardMs = Math.max(this.#answeredMs(nowMs), this.#sinceMs, this.#awokeMs);
    return nowMs - heardMs > timeoutMs;
  }

  /** Nothing is under way to any peer that is there. */
  isSettled(commitIndex: number, nowMs: number): boolean {
    const { log, electionTimeoutMs } = this.#options;
    if (commitIndex < log.lastIndex || this.isHandingOver) return false;
    for (const { matchIndex, answeredSentMs } of this.#peers.values()) {
      const isThere = nowMs - answeredSentMs < electionTimeoutMs;
      if (isThere && matchIndex < log.lastIndex) return false;
    }
    return true;
  }

  onAwake(nowMs: number): void {
    this.#awokeMs = nowMs;
  }

  sendHeartbeats(commitIndex: number, nowMs: number, isDozing: boolean): void {
    const { self, term, send } = this.#options;
    for (const peer of this.#peers.values()) {
      // It may have less than the leader: what it has beyond its match is not known to be the same.
      const known = Math.min(commitIndex, peer.matchIndex);
      send({
        ...{ kind: 'heartbeat', from: self, to: peer.id, term },
        ...{ commitIndex: known, sentMs: nowMs, isDozing },
      });
    }
  }

  /** Sends to each peer what it lacks, as far as there is room on the way. */
  sendAppends(commitIndex: number, nowMs: number): void {
    for (const peer of this.#peers.values()) this.#sendTo(peer, commitIndex, nowMs);
  }

  #sendTo(peer: Peer, commitIndex: number, nowMs: number): void {
    const { log, memberships, appendsUnderWayMax, lastFitting, send, self, term } = this.#options;
    while (peer.mayAppend(appendsUnderWayMax)) {
      const first = peer.nextIndex;
      const isEmpty = first > log.lastIndex;
      // Only a peer whose log is known needs nothing.
      if (isEmpty && peer.state === PeerState.replicate) return;
      const prevTerm = log.termAt(first - 1);
      if (prevTerm === undefined) {
        peer.awaitSnapshot(this.#options.snapshot().index);
        this.#offerSnapshot(peer, nowMs);
        return;
      }
      const last = isEmpty ? first - 1 : lastFitting(peer.id, first, log.lastIndex);
      assert(last >= first - 1 && last <= log.lastIndex, 'a message holds entries of the log');
      send({
        ...{ kind: 'append', from: self, to: peer.id, term, commitIndex, sentMs: nowMs },
        ...{ prevIndex: first - 1, prevTerm, lastIndex: last },
        runs: log.runsOf(first, last),
        configurations: memberships.between(first, last),
      });
      peer.onSent(last);
      if (isEmpty) return;
    }
  }

  #offerSnapshot({ id: to }: Peer, nowMs: number): void {
    const { self: from, term, send, snapshot } = this.#options;
    send({ kind: 'snapshotOffer', from, to, term, base: snapshot(), sentMs: nowMs });
  }

  /** Peers that are there may still need all that follows this entry. */
  neededAfter(nowMs: number): number {
    const { missedMs } = this.#options;
    let index = Number.POSITIVE_INFINITY;
    for (const peer of this.#peers.values()) {
      if (nowMs - peer.answeredSentMs < missedMs) index = Math.min(index, peer.neededAfter);
    }
    return index;
  }

  /** Answers whether more entries may be committed now. */
  onAppendReply(reply: AppendReply, commitIndex: number, nowMs: number): boolean {
    const peer = this.#peers.get(reply.from);
    if (peer === undefined) return false;
    assert(reply.matched <= this.#options.log.lastIndex, 'a follower has what the leader sent');
    peer.onAnswered(reply.sentMs);
    const isNews = peer.onMatched(reply.matched);
    peer.noteProgress(commitIndex, nowMs);
    this.#sendTo(peer, commitIndex, nowMs);
    this.#tellSuccessor();
    return isNews;
  }

  onAppendRejected(reply: AppendRejected, commitIndex: number, nowMs: number): void {
    const peer = this.#peers.get(reply.from);
    if (peer === undefined) return;
    peer.onAnswered(reply.sentMs);
    if (peer.state === PeerState.snapshot || !peer.isRejectionOf(reply.prevIndex)) return;
    const last = this.#options.log.lastUpTo(reply.hintIndex, reply.hintTerm);
    peer.probe(Math.min(last + 1, reply.prevIndex));
    this.#sendTo(peer, commitIndex, nowMs);
  }

  onHeartbeatReply(reply: HeartbeatReply, commitIndex: number, nowMs: number): void {
    const peer = this.#peers.get(reply.from);
    if (peer === undefined) return;
    peer.onAnswered(reply.sentMs);
    peer.onHeartbeatReply(reply.hasEntries);
    peer.noteProgress(commitIndex, nowMs);
    // The offer may have been lost, and a peer that was taken in from it answers only to another.
    if (peer.state === PeerState.snapshot) this.#offerSnapshot(peer, nowMs);
    else this.#sendTo(peer, commitIndex, nowMs);
  }

  /** Hands over to a voter, within an election timeout or not at all (thesis, section 3.10). */
  handOver(id: string, nowMs: number): void {
    assert(this.#peers.has(id), 'leadership goes to a peer');
    const untilMs = nowMs + this.#options.electionTimeoutMs;
    this.#successor = { id, untilMs, isTold: false };
    this.#tellSuccessor();
  }

  /**
   * Whether a hand-over takes too long. This member must not lead on then: who was told may yet
   * begin an election that no lease holds back, and what was proposed meanwhile was refused, though
   * the driver may have planned on it.
   */
  isHandOverLate(nowMs: number): boolean {
    return this.#successor !== undefined && nowMs >= this.#successor.untilMs;
  }

  /** Once it has all entries. The lease is given up before: see `leaseEndMs`. */
  #tellSuccessor(): void {
    const successor = this.#successor;
    if (successor === undefined || successor.isTold) return;
    const { self, term, log, send } = this.#options;
    if (this.#peers.get(successor.id)?.matchIndex !== log.lastIndex) return;
    successor.isTold = true;
    send({ kind: 'timeoutNow', from: self, to: successor.id, term });
  }

  /** The voter to hand over to: the one that has most. */
  bestSuccessor({ voters }: Configuration): string | undefined {
    let best: Peer | undefined;
    for (const peer of this.#peers.values()) {
      if (!voters.includes(peer.id)) continue;
      if (best === undefined || peer.matchIndex > best.matchIndex) best = peer;
    }
    return best?.id;
  }
}
