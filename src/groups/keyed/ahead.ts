import type { Now } from '../deadlines.ts';
import type { Dispatcher } from './dispatcher.ts';
import { type Granted, grantAhead, takeInHand } from './grant.ts';
import type { LaneRange } from './lane-range.ts';
import type { Member } from './member.ts';
import { none } from './record-store.ts';
import { demandOf, roomOf } from './room.ts';
import type { Waiter } from './waiters.ts';

/** When the fetch has not come by then, others may have the records. */
const awaitedMs = 50;
/** A client that takes longer than this from answer to answer has little to gain. */
const roundMsMax = 20;
/** So many answers like the last one have to be there for it. */
const readyAnswersMin = 4;

/**
 * Grants for the next fetch of a client. While one that is through with one full answer after the
 * other works on the present one, they are decided and made durable, as log delivery reads ahead;
 * with a commit of all that a client has, if it asks for more right after that, they need no sync
 * of their own. Nobody was told of them: they are in nobody's hand, prove nothing, and have no
 * lease. If the fetch does not come, or anything else happens to the range, they are withdrawn as
 * if they had never been.
 */
export class Ahead {
  readonly #dispatcher: Dispatcher;
  /** When each range is no longer waited for, monotonic. */
  readonly #dueMs = new Map<LaneRange, number>();
  /** The last fetch of each that was answered with records: the next one will be like it. */
  readonly #answered = new WeakMap<Member, Waiter>();

  constructor(dispatcher: Dispatcher) {
    this.#dispatcher = dispatcher;
  }

  /** A fetch was answered with records. */
  onAnswered({ member, ranges, bytesMax, laneBytesMax }: Waiter): void {
    this.#answered.set(member, { member, ranges, bytesMax, laneBytesMax });
  }

  /**
   * The member committed something. Answers the ranges that have records for the fetch that will
   * follow, if it has nothing in hand now and nobody waits for them.
   */
  grantAtCommit(member: Member, now: Now): LaneRange[] {
    const { waiters, board } = this.#dispatcher;
    const answered = this.#answered.get(member);
    const mayGrant =
      answered !== undefined &&
      member.inHand === 0 &&
      member.commitsPromptly &&
      board.ready.peek() !== none &&
      !this.#isSetApart(member) &&
      !waiters.haveRoom(now);
    return mayGrant ? this.grant(answered, now) : [];
  }

  /** Some records go their own ways: those that failed, and what it keeps of former ranges. */
  #isSetApart(member: Member): boolean {
    const { failures, stranded } = this.#dispatcher;
    return !failures.isEmpty || stranded.keeps(member);
  }

  /** Whether to grant ahead of a fetch like this one, which has just been answered. */
  isWorthwhile({ member }: Waiter): boolean {
    const { waiters } = this.#dispatcher;
    const { readyRecords, heldRecords, members } = demandOf(this.#dispatcher, member);
    return (
      member.isAnswerFull &&
      member.roundMs <= roundMsMax &&
      // Nobody else would have them.
      waiters.size === 0 &&
      !this.#isSetApart(member) &&
      readyRecords / members + heldRecords >= readyAnswersMin * member.lastAnswerRecords
    );
  }

  /** Grants ahead of a fetch like this one. Answers the ranges that have something for it. */
  grant(waiter: Waiter, now: Now): LaneRange[] {
    const ranges = waiter.ranges.filter(({ isPresent, ahead }) => isPresent && ahead === 0);
    if (ranges.length === 0) return [];
    const granted = grantAhead(this.#dispatcher, { ...waiter, ranges }, now);
    for (const range of granted) {
      waiter.member.ahead += range.ahead;
      this.#dueMs.set(range, now.monotonicMs + awaitedMs);
    }
    return granted;
  }

  /** The fetch has come: what waits for it goes into its answer, unless things have changed. */
  take({ member, ranges }: Waiter, now: Now): Granted[] {
    if (member.ahead === 0) return [];
    const awaited = ranges.filter(({ ahead }) => ahead > 0);
    if (!this.#dispatcher.failures.isEmpty || roomOf(this.#dispatcher, member, now) <= 0) {
      for (const range of awaited) this.withdraw(range);
      return [];
    }
    for (const range of awaited) this.#forget(range);
    return takeInHand(member, awaited, now, true);
  }

  /** As if nothing of the range had been granted ahead. */
  withdraw(range: LaneRange): void {
    if (range.ahead === 0) return;
    this.#forget(range);
    const { lane, end, grantedEnd } = range;
    this.#dispatcher.counters.returned += range.ahead;
    for (let n = end; n < grantedEnd; n++) {
      const ref = range.ref(n);
      range.set(n, none);
      this.#dispatcher.takeBack(ref);
    }
    range.dropAhead();
    this.#dispatcher.plan({ kind: 'withdrawn', lane, from: end });
  }

  /** Somebody wants records and there are no others. Answers whether there were any. */
  withdrawFor(member: Member, now: Now): boolean {
    if (this.#dueMs.size === 0 || roomOf(this.#dispatcher, member, now) <= 0) return false;
    this.withdrawAll();
    return true;
  }

  withdrawAll(): void {
    for (const range of [...this.#dueMs.keys()]) this.withdraw(range);
  }

  /** When `expire` has something to do, monotonic. */
  nextDueMs(): number {
    let dueMs = Number.POSITIVE_INFINITY;
    for (const rangeMs of this.#dueMs.values()) dueMs = Math.min(dueMs, rangeMs);
    return dueMs;
  }

  expire({ monotonicMs }: Now): void {
    for (const [range, dueMs] of [...this.#dueMs]) if (dueMs <= monotonicMs) this.withdraw(range);
  }

  #forget(range: LaneRange): void {
    this.#dueMs.delete(range);
    range.member.ahead -= range.ahead;
  }
}
