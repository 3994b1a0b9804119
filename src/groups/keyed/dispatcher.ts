import { assert } from '../../core/assert.ts';
import type { KeyedEffect } from '../../state/keyed/effects.ts';
import type { Ledger, LedgerRange } from '../../state/keyed/ledger.ts';
import { Deadlines, type Now } from '../deadlines.ts';
import { Ahead } from './ahead.ts';
import { Board } from './board.ts';
import { DeliveryCounters } from './counters.ts';
import { type FailureSettings, Failures, type RangePart } from './failures.ts';
import { Filing } from './filing.ts';
import { type Granted, grantRecords } from './grant.ts';
import { LaneRange } from './lane-range.ts';
import { type KeptKeys, Member, type NewMember } from './member.ts';
import { provenBy } from './proofs.ts';
import { none } from './record-store.ts';
import { demandOf } from './room.ts';
import { Stranded } from './stranded.ts';
import { type Waiter, Waiters } from './waiters.ts';
import { Window } from './window.ts';

/** After so long without work nothing is known of what comes next. */
const idleMs = 200;
/** How many timers one tick looks at, so that a turn of the loop stays short. */
const timersPerTickMax = 1_000;

export interface DispatcherSettings extends FailureSettings {
  /** `delivery.ack=poll`: what is proven is finished. */
  readonly finishesProven: boolean;
  /** `delivery.window`; undefined: auto. */
  readonly window: number | undefined;
  /** `delivery.unfinished.max` */
  readonly unfinishedMax: number;
  /** `delivery.refetch=repeat`: no refetch is a rejection. */
  readonly neverRejects: boolean;
}

/** Why records come back from a member. */
export type ReturnCause = 'left' | 'died' | 'lease' | 'rejected' | 'given up';

/**
 * Decides which record goes to which member of a group, for one topic. Pure: it is told what
 * happens and when, plans effects on its own ledger, and collects them for the journal. It may run
 * ahead of the journal; if the journal refuses, it is thrown away and made again from the state.
 */
export class Dispatcher {
  readonly ledger: Ledger;
  settings: DispatcherSettings;
  readonly board: Board;
  readonly members = new Map<string, Member>();
  readonly failures: Failures;
  readonly deadlines = new Deadlines();
  readonly waiters: Waiters;
  readonly ahead: Ahead;
  readonly filing: Filing;
  readonly counters: DeliveryCounters;
  /** Records behind those that are loaded: they count as ready when windows are measured. */
  backlog = 0;
  readonly stranded: Stranded;
  readonly #ranges: (LaneRange | undefined)[] = [];
  #nextMember = 0;
  #effects: KeyedEffect[] = [];

  constructor(
    ledger: Ledger,
    settings: DispatcherSettings,
    counters: DeliveryCounters = new DeliveryCounters(),
    hashSeed = 0,
  ) {
    this.ledger = ledger;
    this.counters = counters;
    this.settings = settings;
    const onContinuation = (rangeId: number, ref: number): void =>
      this.#ranges[rangeId]?.continuations.add(ref);
    this.board = new Board({ onContinuation }, hashSeed);
    this.failures = new Failures(this);
    this.waiters = new Waiters(this);
    this.ahead = new Ahead(this);
    this.stranded = new Stranded(this);
    this.filing = new Filing(this);
  }

  /** Effects since the last call, for the journal. */
  takeEffects(): KeyedEffect[] {
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  plan(effect: KeyedEffect): void {
    this.ledger.apply(effect);
    this.#effects.push(effect);
  }

  // Members and lanes.

  /** Idempotent; the member's habits and lease may change with each JoinGroup. */
  addMember({ id, traits, leaseMs, sessionMs }: NewMember): Member {
    const known = this.members.get(id);
    if (known !== undefined) {
      known.leaseMs = leaseMs;
      known.sessionMs = sessionMs;
      if (known.traits.name !== traits.name)
        known.window = new Window(traits, this.settings.window);
      known.traits = traits;
      return known;
    }
    const number = this.#nextMember++;
    const window = new Window(traits, this.settings.window);
    const member = new Member(id, number, traits, window, leaseMs);
    member.sessionMs = sessionMs;
    this.members.set(id, member);
    return member;
  }

  /** After all members that are there were added: takes over what the ledger says they hold. */
  restore(now: Now): void {
    for (const [index, lane] of this.ledger.lanes) {
      const present = this.ledger.present(index);
      for (const range of lane.ranges) {
        const member = this.members.get(range.memberId);
        if (range !== present && range.grants.records === 0) continue;
        if (member === undefined) {
          const { start, end } = range;
          if (range.grants.records > 0) {
            this.plan({ kind: 'returned', lane: index, from: start, to: end });
          }
          if (range === present) this.plan({ kind: 'rangeClosed', lane: index });
          continue;
        }
        const restored = this.#addRange(index, member, range);
        restored.isPresent = range === present;
        restored.finished = Math.min(range.grants.firstN, range.end);
        member.inHand += range.grants.records;
        member.unfinished += range.grants.records;
        member.grants += range.grants.records;
        member.leaseStartMs = now.monotonicMs;
        this.filing.expect(restored);
      }
    }
    for (const member of this.members.values()) {
      for (const range of member.ranges) if (!range.isPresent) range.closedAt = member.grants;
    }
  }

  /** A lane gets an owner, who begins at the returned lane number. */
  openRange(lane: number, memberId: string, now: Now): number {
    const member = this.members.get(memberId);
    assert(member !== undefined, 'lanes go to members');
    this.closeLane(lane, now);
    this.plan({ kind: 'rangeOpened', lane, memberId });
    return this.#addRange(lane, member, this.ledger.present(lane)!).start;
  }

  #addRange(lane: number, member: Member, ledgerRange: LedgerRange): LaneRange {
    const id = this.#freeRangeId();
    const range = new LaneRange(id, lane, member, ledgerRange, this.board.continuationsOf(id));
    this.#ranges[id] = range;
    member.ranges.add(range);
    return range;
  }

  #freeRangeId(): number {
    const free = this.#ranges.indexOf(undefined);
    return free === -1 ? this.#ranges.length : free;
  }

  /** As `openRange`, for a member that rejoins: the lane stays its own until there is a plan. */
  keepLane(lane: number, memberId: string, now: Now): void {
    this.openRange(lane, memberId, now);
    this.presentRange(lane)!.isProvisional = true;
  }

  /**
   * The lane's present range ends; what is in hand stays where it is. But a client that rejoins
   * between handlers drops what it is answered before it knows the plan, and does not say so.
   */
  closeLane(lane: number, now: Now): void {
    const range = this.presentRange(lane);
    if (range === undefined) return;
    const isDropped = range.isProvisional && range.member.traits.rejoinsBetweenHandlers;
    if (isDropped) this.returnFrom(range, range.start, now);
    this.ahead.withdraw(range);
    this.plan({ kind: 'rangeClosed', lane });
    range.isPresent = false;
    range.closedAt = range.member.grants;
    this.stranded.onClosed(range, now);
    this.dropIfDone(range);
  }

  presentRange(lane: number): LaneRange | undefined {
    for (const range of this.#ranges) {
      if (range !== undefined && range.lane === lane && range.isPresent) return range;
    }
    return undefined;
  }

  range(id: number): LaneRange | undefined {
    return this.#ranges[id];
  }

  rangesOf(memberId: string, lane: number): LaneRange[] {
    const member = this.members.get(memberId);
    if (member === undefined) return [];
    return [...member.ranges].filter((range) => range.lane === lane);
  }

  /** Forgets a former range of which nothing is in hand or kept. */
  dropIfDone(range: LaneRange): void {
    if (range.isPresent || range.grants.records > 0) return;
    if (range.member.kept.some(({ rangeId }) => rangeId === range.id)) return;
    range.member.ranges.delete(range);
    this.#ranges[range.id] = undefined;
  }

  /**
   * A member gave lanes up: what it had of them comes back, unless a handler may be at it still
   * (clients that rejoin in the background). `isAsked`: the group wanted it to.
   */
  giveUp(memberId: string, lanes: readonly number[], isAsked: boolean, now: Now): void {
    const member = this.members.get(memberId);
    if (member === undefined) return;
    const given = [...member.ranges].filter(({ lane }) => lanes.includes(lane));
    if (!member.traits.rejoinsBetweenHandlers) {
      for (const range of given) if (range.isPresent) this.closeLane(range.lane, now);
      return;
    }
    if (!isAsked) this.failures.onFailure(member, fromStarts(given), 'given up', now);
    for (const range of given) {
      this.returnFrom(range, range.start, now);
      if (range.isPresent) this.closeLane(range.lane, now);
      else this.dropIfDone(range);
    }
    this.failures.settle(now);
  }

  /** The member is gone: all that it had comes back. */
  removeMember(memberId: string, cause: ReturnCause, now: Now): void {
    const member = this.members.get(memberId);
    if (member === undefined) return;
    this.waiters.unparkAll(member);
    const ranges = [...member.ranges];
    this.failures.onFailure(member, fromStarts(ranges), cause, now);
    for (const kept of member.kept.splice(0)) for (const key of kept.keys) this.board.letGo(key);
    for (const range of ranges) {
      this.returnFrom(range, range.start, now);
      if (range.isPresent) this.closeLane(range.lane, now);
      else this.dropIfDone(range);
    }
    this.members.delete(memberId);
    this.failures.onMemberGone(member, now);
    this.failures.settle(now);
  }

  // Records.

  /** Records that may be granted now or after others of their key, those not loaded included. */
  get readyRecords(): number {
    return this.board.readyRecords + this.backlog;
  }

  /** Grants what there is to a fetch; the answer holds nothing if there is nothing, or no room. */
  grant(waiter: Waiter, now: Now): Granted[] {
    const { window, inHand, leaseStartMs } = waiter.member;
    // Nothing has been in its hand since that time.
    if (inHand === 0 && now.monotonicMs - leaseStartMs > idleMs) window.onIdle();
    const ahead = this.ahead.take(waiter, now);
    if (ahead.length > 0) return ahead;
    const granted = grantRecords(this, waiter, now);
    const isRetried = granted.length === 0 && this.ahead.withdrawFor(waiter.member, now);
    return isRetried ? grantRecords(this, waiter, now) : granted;
  }

  // What consumers say.

  /** A fetch names these present ranges at their ends, and so proves what was handled. */
  prove(member: Member, ranges: readonly LaneRange[], now: Now): void {
    member.roundMs = now.monotonicMs - member.sentMs;
    const proven = provenBy(member.traits.proof, ranges);
    for (const [i, range] of ranges.entries()) this.#advanceProven(range, proven[i]!, now);
  }

  /**
   * The member starts over at these lane numbers: all from there on comes back. If that tells of a
   * failed handler, its record is charged.
   */
  reject(member: Member, parts: readonly RangePart[], isFailure: boolean, now: Now): void {
    if (isFailure) this.failures.onFailure(member, parts, 'rejected', now);
    for (const { range, from } of parts) this.returnFrom(range, from, now);
    this.failures.settle(now);
  }

  /** The member's speed is what it handled since its last answer left. */
  #noteHandled(member: Member, count: number, now: Now): void {
    member.handled += count;
    member.window.onHandled(member.handled, now.monotonicMs - member.sentMs);
  }

  /** A fetch at the ends of these ranges was answered with nothing for them. */
  sawEmpty(ranges: readonly LaneRange[]): void {
    for (const range of ranges) range.sawEmpty = true;
  }

  #advanceProven(range: LaneRange, to: number, now: Now): void {
    if (to <= range.proven) return;
    const { member } = range;
    const count = range.countIn(range.proven, to);
    range.proven = to;
    if (count > 0) {
      member.promptCommits = 0;
      member.inHand -= count;
      member.leaseStartMs = now.monotonicMs;
      this.#noteHandled(member, count, now);
      if (range.lastAnswerNumber === member.answers) {
        member.lastAnswerRecords = range.countIn(to, range.end);
      }
      this.failures.onProgress(member);
      this.stranded.onProgress(member, range.ordinalOf(to - 1), now);
    }
    if (!this.settings.finishesProven) return;
    const ordinal = this.#finish(range, range.finished, to, now, false);
    this.#onCameBack(member, ordinal, member.kept.length, now);
  }

  /**
   * A commit of lanes, each up to a lane number: it finishes what is below that of the range in
   * which it lies. It says nothing of former ranges: a client that rejoined in the background has
   * dropped what it had queued of them, and goes on in the new one. It is one statement: what it
   * tells of the rest that the member has is looked at when all lanes are finished. Answers lanes
   * whose number lies beyond all that the member was given; there it changes nothing.
   */
  commit(memberId: string, lanes: ReadonlyMap<number, number>, now: Now): number[] {
    const member = this.members.get(memberId);
    if (member === undefined) return [];
    const before = member.unfinished;
    const keptBefore = member.kept.length;
    const beyond: number[] = [];
    let ordinal = -1;
    for (const [lane, to] of lanes) {
      const ranges = this.rangesOf(memberId, lane);
      if (ranges.length > 0 && ranges.every(({ end }) => to > end)) beyond.push(lane);
      for (const range of ranges) {
        if (to <= range.start || to > range.end) continue;
        ordinal = Math.max(ordinal, this.#finish(range, range.start, to, now));
      }
      this.stranded.finishTakenAgain(member, lane, to, now);
    }
    this.counters.commitsBeyond += beyond.length;
    const finished = before - member.unfinished;
    this.#onCameBack(member, ordinal, keptBefore, now);
    for (const range of [...member.ranges]) this.dropIfDone(range);
    if (finished > 0) this.#onCommitted(member, finished, now);
    return beyond;
  }

  #onCommitted(member: Member, finished: number, { monotonicMs }: Now): void {
    const demand = demandOf(this, member);
    member.window.onCommit(finished, member.unfinished, member.wasFull, demand, monotonicMs);
    member.wasFull = false;
    if (member.inHand === 0) member.promptCommits++;
    this.failures.onProgress(member);
  }

  /**
   * Finishes the grants of `[from, to)`, and keeps their keys where a commit covers more than what
   * is handled (see `KeptKeys`). Answers as which one of the member's grants the last one was
   * granted, -1 if there were none.
   */
  #finish(range: LaneRange, from: number, to: number, now: Now, keeps = keepsKeys(range)): number {
    const count = range.countIn(from, to);
    if (count === 0) return -1;
    const { member } = range;
    const unproven = range.countIn(Math.max(from, range.proven), to);
    const keys: number[] = [];
    const { commitLag, isLagDeclared } = member.traits;
    const keepsFrom = isLagDeclared ? to - commitLag : 0;
    for (let n = Math.max(from, range.finished); n < to; n++) {
      const ref = range.ref(n);
      if (ref === none) continue;
      const key = this.board.store.key[ref]!;
      const keepsThis = keeps && key >= 0 && n >= keepsFrom;
      if (keepsThis) keys.push(key);
      this.failures.forget(ref);
      this.board.finish(ref, keepsThis);
      range.set(n, none);
    }
    this.plan({ kind: 'finished', lane: range.lane, from: Math.max(from, range.start), to });
    this.counters.finished += count;
    member.unfinished -= count;
    member.inHand -= unproven;
    if (unproven > 0) {
      member.leaseStartMs = now.monotonicMs;
      this.#noteHandled(member, unproven, now);
    }
    // What is trimmed has no ordinal of its own any more.
    const ordinal = range.ordinalOf(to - 1);
    if (keys.length > 0) member.keep(keys, range.id, ordinal);
    range.proven = Math.max(range.proven, to);
    range.finished = Math.max(range.finished, to);
    range.trim();
    return ordinal;
  }

  /** The member committed what was granted as its `ordinal`th: it came back for more. */
  #onCameBack(member: Member, ordinal: number, keptBefore: number, now: Now): void {
    if (ordinal < 0) return;
    this.#letGoBefore(member, ordinal, keptBefore);
    this.stranded.onProgress(member, ordinal, now);
  }

  /** Of what the member kept before this commit; the handler may be at any record of its own. */
  #letGoBefore(member: Member, ordinal: number, keptBefore: number): void {
    if (keptBefore === 0) return;
    const isOver = ({ untilGrant }: KeptKeys, i: number) => i < keptBefore && untilGrant <= ordinal;
    const over = member.kept.filter(isOver);
    member.kept = member.kept.filter((kept, i) => !isOver(kept, i));
    for (const { keys, rangeId } of over) {
      for (const key of keys) this.board.letGo(key);
      const range = this.#ranges[rangeId];
      if (range !== undefined) this.dropIfDone(range);
    }
  }

  /** Gives back what the range has from lane number `from` on; nobody is charged here. */
  returnFrom(range: LaneRange, from: number, now: Now, wasSent = true): void {
    this.returnRange(range, from, range.end, now, wasSent);
  }

  /** The same for lane numbers `[from, to)`. `wasSent`: somebody may have seen it. */
  returnRange(range: LaneRange, from: number, to: number, now: Now, wasSent = true): void {
    const count = range.countIn(from, to);
    if (count === 0) return;
    const { member, lane } = range;
    // It may be of the same keys.
    this.ahead.withdraw(range);
    member.unfinished -= count;
    member.inHand -= range.countIn(Math.max(from, range.proven), to);
    if (member.inHand === 0) member.leaseStartMs = now.monotonicMs;
    this.counters.returned += count;
    this.plan({ kind: 'returned', lane, from, to });
    for (let n = Math.max(from, range.finished); n < to; n++) {
      const ref = range.ref(n);
      if (ref === none) continue;
      range.set(n, none);
      if (wasSent) this.board.store.wasSent[ref] = 1;
      this.takeBack(ref);
    }
    if (from <= range.proven) range.proven = Math.max(range.proven, to);
    if (from <= range.finished) range.finished = Math.max(range.finished, to);
    range.trim();
    this.failures.onProgress(member);
  }

  /** A granted record may be granted again, unless it was deleted meanwhile. */
  takeBack(ref: number): void {
    const { store } = this.board;
    this.board.giveBack(ref);
    const finished = this.ledger.finished(store.partition[store.batchOf[ref]!]!);
    if (!finished.has(store.offset(ref))) return;
    this.failures.forget(ref);
    this.board.delete(ref);
  }

  /** When `tick` has something to do, monotonic; Infinity if it has nothing to wait for. */
  nextDueMs(): number {
    let dueMs = Math.min(this.deadlines.nextMs(), this.ahead.nextDueMs());
    for (const member of this.members.values()) {
      dueMs = Math.min(dueMs, leaseEndMs(member), this.stranded.dueMs(member));
    }
    return dueMs;
  }

  /** Lets what is due happen; answers members whose lease has ended: they are to be expelled. */
  tick(now: Now): Member[] {
    this.deadlines.expire(now, timersPerTickMax);
    this.ahead.expire(now);
    const expired: Member[] = [];
    for (const member of this.members.values()) {
      if (leaseEndMs(member) <= now.monotonicMs) expired.push(member);
      else if (this.stranded.dueMs(member) <= now.monotonicMs) this.stranded.takeAgain(member, now);
    }
    return expired;
  }
}

/** Whether the record in the handler may be among those that its member commits. */
function keepsKeys({ member }: LaneRange): boolean {
  return !member.traits.commitsHandledOnly;
}

function fromStarts(ranges: readonly LaneRange[]): RangePart[] {
  return ranges.map((range) => ({ range, from: range.start }));
}

/** When the lease of the oldest record in the member's hand ends, monotonic. */
function leaseEndMs({ inHand, leaseStartMs, leaseMs }: Member): number {
  return inHand === 0 ? Number.POSITIVE_INFINITY : leaseStartMs + leaseMs;
}
