import type { Now } from '../deadlines.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { Granted } from './grant.ts';
import type { LaneRange } from './lane-range.ts';
import type { Member } from './member.ts';
import { none } from './record-store.ts';
import { roomOf } from './room.ts';

/** One waiting fetch: a member's lanes that it may answer with. */
export interface Waiter {
  readonly member: Member;
  /** Present ranges that were asked for at their ends. */
  readonly ranges: readonly LaneRange[];
  readonly bytesMax: number;
  readonly laneBytesMax: number;
}

export type AnswerWaiter = (waiter: Waiter, granted: Granted[]) => void;

/** Fetches that wait for records, the longest waiting first. */
export class Waiters {
  readonly #dispatcher: Dispatcher;
  readonly #waiters = new Set<Waiter>();
  #given: [Waiter, Granted[]][] = [];

  constructor(dispatcher: Dispatcher) {
    this.#dispatcher = dispatcher;
  }

  get size(): number {
    return this.#waiters.size;
  }

  /** Those that have nothing to do. Clients that fetch in the background wait with much in hand. */
  countIdle(): number {
    let idle = 0;
    for (const { member } of this.#waiters) if (member.inHand === 0) idle++;
    return idle;
  }

  /** Is there one that records would be granted to? */
  haveRoom(now: Now): boolean {
    for (const { member } of this.#waiters)
      if (roomOf(this.#dispatcher, member, now) > 0) return true;
    return false;
  }

  of(member: Member): Waiter | undefined {
    for (const waiter of this.#waiters) if (waiter.member === member) return waiter;
    return undefined;
  }

  /** It was granted something out of turn, which goes out when fetches are served. */
  give(waiter: Waiter, granted: Granted[]): void {
    this.unpark(waiter);
    this.#given.push([waiter, granted]);
  }

  all(): Waiter[] {
    return [...this.#waiters];
  }

  park(waiter: Waiter): void {
    this.#waiters.add(waiter);
  }

  unpark(waiter: Waiter): void {
    this.#waiters.delete(waiter);
  }

  unparkAll(member: Member): void {
    for (const waiter of [...this.#waiters]) if (waiter.member === member) this.unpark(waiter);
  }

  /**
   * Grants to waiting fetches until there is nothing to grant or nobody to grant it to. A key goes
   * to the member that had it last, if that waits with nothing in hand, else to the one that has
   * least; among those to whoever waits longest. Before all others comes one that keeps records of
   * former ranges.
   */
  serve(now: Now, answer: AnswerWaiter): void {
    for (const [waiter, granted] of this.#given.splice(0)) answer(waiter, granted);
    for (const waiter of [...this.#waiters]) {
      if (!waiter.ranges.some(({ continuations }) => continuations.peek() !== none)) continue;
      this.#serveOne(waiter, now, answer);
    }
    const passed = new Set<Waiter>();
    for (;;) {
      const waiter = this.#waiterForSuspect(passed) ?? this.#nextWaiter(passed, now);
      if (waiter === undefined) {
        if (!this.#withdrawAhead(now)) return;
        continue;
      }
      if (!this.#serveOne(waiter, now, answer)) passed.add(waiter);
    }
  }

  /** What was granted ahead of a fetch is for those that wait, if there is nothing else. */
  #withdrawAhead(now: Now): boolean {
    if (this.#dispatcher.board.ready.peek() !== none) return false;
    for (const { member } of this.#waiters) {
      if (this.#dispatcher.ahead.withdrawFor(member, now)) return true;
    }
    return false;
  }

  #serveOne(waiter: Waiter, now: Now, answer: AnswerWaiter): boolean {
    const granted = this.#dispatcher.grant(waiter, now);
    if (granted.length === 0) return false;
    this.unpark(waiter);
    answer(waiter, granted);
    return true;
  }

  #waiterForSuspect(passed: ReadonlySet<Waiter>): Waiter | undefined {
    if (this.#dispatcher.failures.isEmpty) return undefined;
    for (const waiter of this.#waiters) {
      if (!passed.has(waiter) && this.#dispatcher.failures.canTake(waiter)) return waiter;
    }
    return undefined;
  }

  #nextWaiter(passed: ReadonlySet<Waiter>, now: Now): Waiter | undefined {
    const ref = this.#waiters.size === 0 ? none : this.#dispatcher.board.ready.peek();
    if (ref === none) return undefined;
    const key = this.#dispatcher.board.store.key[ref]!;
    const last = key < 0 ? none : this.#dispatcher.board.keys.lastMember[key]!;
    let best: Waiter | undefined;
    let leastQueued = Number.POSITIVE_INFINITY;
    for (const waiter of this.#waiters) {
      const { member } = waiter;
      if (passed.has(waiter) || roomOf(this.#dispatcher, member, now) <= 0) continue;
      // One record is enough to get back all that it keeps of former ranges.
      if (this.#dispatcher.stranded.keeps(member)) return waiter;
      // Clients that fetch in the background wait here with much in hand.
      if (member.number === last && member.inHand === 0) return waiter;
      const queued = member.window.queuedOf(member.inHand, now.monotonicMs);
      if (best !== undefined && queued > leastQueued) continue;
      if (queued === leastQueued && member.inHand >= best!.member.inHand) continue;
      best = waiter;
      leastQueued = queued;
    }
    return best;
  }
}
