import type { Now } from '../deadlines.ts';
import type { Dispatcher } from './dispatcher.ts';
import { beginAnswer, type Granted } from './grant.ts';
import type { LaneRange } from './lane-range.ts';
import type { KeptKeys, Member } from './member.ts';
import { none } from './record-store.ts';

/**
 * What a member that rejoined in the background has in hand of its former ranges. A handler may be
 * at it, so it stays with the member; but the client may have dropped it unhandled too. Once the
 * member proves or commits what it was granted later, it is through with all that it kept: the rest
 * comes back. If nothing else is there to be granted later, it gets one of the keys again that it
 * keeps: nobody else may, and a consumer cannot meet itself.
 */
export class Stranded {
  readonly #dispatcher: Dispatcher;

  constructor(dispatcher: Dispatcher) {
    this.#dispatcher = dispatcher;
  }

  /** What is in hand of a range that has ended is kept: only now can it be waited beside that. */
  onClosed({ member, grants }: LaneRange, now: Now): void {
    if (grants.records > 0) member.keptSinceMs = now.monotonicMs;
  }

  /** The member proved or committed what was granted to it as its `ordinal`th, from 0. */
  onProgress(member: Member, ordinal: number, now: Now): void {
    if (member.traits.rejoinsBetweenHandlers) return;
    for (const range of [...member.ranges]) {
      if (range.isPresent || range.grants.records === 0) continue;
      // Records of one poll may be handled in any order of lanes.
      if (ordinal < range.closedAt) continue;
      this.#dispatcher.returnFrom(range, range.start, now);
      this.#dispatcher.dropIfDone(range);
    }
  }

  /** Whether it has something in hand of a former range. */
  keeps(member: Member): boolean {
    if (member.traits.rejoinsBetweenHandlers) return false;
    for (const { isPresent, grants } of member.ranges) {
      if (!isPresent && grants.records > 0) return true;
    }
    return false;
  }

  /** When it takes up again what it keeps, monotonic; Infinity if it need not, or cannot. */
  dueMs(member: Member): number {
    const never = Number.POSITIVE_INFINITY;
    if (member.traits.rejoinsBetweenHandlers) return never;
    if (member.inHand === 0 && member.kept.length === 0) return never;
    if (member.inHandOfPresent > 0) return never;
    const { waiters, board } = this.#dispatcher;
    if (waiters.of(member) === undefined || board.ready.peek() !== none) return never;
    const isKeeping = this.keeps(member) || this.#keptOfFormer(member).length > 0;
    return isKeeping ? Math.max(member.leaseStartMs, member.keptSinceMs) + member.sessionMs : never;
  }

  /** It has waited long enough. */
  takeAgain(member: Member, now: Now): void {
    // It is looked at again after as long a wait, should it come to nothing now.
    member.keptSinceMs = now.monotonicMs;
    member.takenAgain = member.takenAgain.filter(({ range, n }) => range.countIn(n, n + 1) > 0);
    const { waiters, board } = this.#dispatcher;
    const waiter = waiters.of(member)!;
    const to = waiter.ranges[0]!;
    this.#moveKept(member, to);
    const last = this.#lastKept(member);
    if (last === undefined) return;
    const { range } = last;
    const key = board.store.key[last.ref]!;
    const { store } = board;
    const isGone = (ref: number) =>
      this.#dispatcher.ledger
        .finished(store.partition[store.batchOf[ref]!]!)
        .has(store.offset(ref));
    const numbers: number[] = [];
    let unproven = member.inHand;
    for (let n = range.grants.firstN; n < range.end; n++) {
      const ref = range.ref(n);
      const isOfKey = ref !== none && key >= 0 && store.key[ref] === key;
      if (!isOfKey && n !== last.n) continue;
      // The order of a key that has a deleted record in hand is not touched: its lease will end.
      if (isGone(ref)) return;
      numbers.push(n);
      if (n < range.proven) unproven++;
    }
    // A suspect in its hand is not to be with more than few others.
    if (unproven > member.suspectLimit) return;
    waiters.give(waiter, [this.#regrant(range, numbers, to, now)]);
    this.#dispatcher.dropIfDone(range);
  }

  /**
   * Records of one key that a member has in a former range are its own in a present one: nobody
   * else could get them in between.
   */
  #regrant(former: LaneRange, numbers: readonly number[], to: LaneRange, now: Now): Granted {
    const { member } = to;
    const { store, keys } = this.#dispatcher.board;
    this.#dispatcher.ahead.withdraw(to);
    const runs: number[] = [];
    for (const n of numbers) {
      const ref = former.ref(n);
      this.#noteTakenAgain(former, n, to);
      if (n < former.proven) member.inHand++;
      former.set(n, none);
      this.#dispatcher.plan({ kind: 'returned', lane: former.lane, from: n, to: n + 1 });
      runs.push(1, store.partition[store.batchOf[ref]!]!, store.offset(ref));
      to.push(ref);
      const key = store.key[ref]!;
      if (key >= 0 && keys.holder[key] === former.id) this.#dispatcher.board.moveHold(key, to.id);
    }
    this.#dispatcher.plan({ kind: 'granted', lane: to.lane, runs });
    member.leaseStartMs = now.monotonicMs;
    return beginAnswer(member, [to], now)[0]!;
  }

  /** The next number of `to` will stand for what was number `n` of `former`. */
  #noteTakenAgain(former: LaneRange, n: number, to: LaneRange): void {
    const { member } = to;
    for (const taken of member.takenAgain) {
      if (taken.range !== former || taken.n !== n) continue;
      taken.range = to;
      taken.n = to.grantedEnd;
    }
    member.takenAgain.push({ former, formerN: n, range: to, n: to.grantedEnd });
  }

  /**
   * A commit covers what the member was given again since, as it had it before: that comes back to
   * nobody. It is in its hand once more, though, so its key stays there; and the commit tells
   * nothing of what was granted later.
   */
  finishTakenAgain(member: Member, lane: number, to: number, now: Now): void {
    for (const { former, formerN, range, n } of member.takenAgain) {
      if (former.lane !== lane || formerN >= to || to > former.end) continue;
      if (range.countIn(n, n + 1) === 1) this.#finish(range, n, now);
    }
  }

  /** A single grant, whatever is before it. */
  #finish(range: LaneRange, n: number, now: Now): void {
    const { board, failures, counters } = this.#dispatcher;
    const { member } = range;
    const ref = range.ref(n);
    const key = board.store.key[ref]!;
    failures.forget(ref);
    board.finish(ref, key >= 0);
    range.set(n, none);
    this.#dispatcher.plan({ kind: 'finished', lane: range.lane, from: n, to: n + 1 });
    counters.finished++;
    member.unfinished--;
    if (n >= range.proven) {
      member.inHand--;
      member.leaseStartMs = now.monotonicMs;
    }
    if (key >= 0) member.keep([key], range.id, range.ordinalOf(n));
  }

  /**
   * The oldest record of the key, of all that it keeps, that it was granted last: the handler is
   * hardly at that one.
   */
  #lastKept(member: Member): KeptRecord | undefined {
    let last: KeptRecord | undefined;
    const keys = new Set<number>();
    for (const range of member.ranges) {
      if (range.isPresent) continue;
      range.grants.forEach(range.start, range.end, (from, count, partition, offset) => {
        const finished = this.#dispatcher.ledger.finished(partition);
        for (let n = from; n < from + count; n++) {
          const ref = range.ref(n);
          // Not loaded yet after a restart, or deleted.
          if (ref === none || finished.has(offset + n - from)) continue;
          const key = this.#dispatcher.board.store.key[ref]!;
          if (key >= 0 && keys.has(key)) continue;
          keys.add(key);
          const ordinal = range.ordinalOf(n);
          if (last === undefined || ordinal >= last.ordinal) last = { range, n, ref, ordinal };
        }
      });
    }
    return last;
  }

  #keptOfFormer(member: Member): KeptKeys[] {
    return member.kept.filter(({ rangeId }) => this.#dispatcher.range(rangeId)?.isPresent !== true);
  }

  /** Keys that commits could not free go on in the lane that it has now. */
  #moveKept(member: Member, to: LaneRange): void {
    const { board } = this.#dispatcher;
    const former = this.#keptOfFormer(member);
    if (former.length === 0) return;
    for (const { keys, rangeId } of former) {
      for (const key of keys) {
        if (board.keys.holder[key] === rangeId && board.keys.inHand[key] === 0) {
          board.moveHold(key, to.id);
        }
      }
    }
    member.kept = member.kept.map((kept) => {
      const isMoved =
        former.includes(kept) && kept.keys.every((key) => board.keys.holder[key] === to.id);
      return isMoved ? { ...kept, rangeId: to.id } : kept;
    });
    for (const { rangeId } of former) {
      const range = this.#dispatcher.range(rangeId);
      if (range !== undefined) this.#dispatcher.dropIfDone(range);
    }
  }
}

interface KeptRecord {
  readonly range: LaneRange;
  readonly n: number;
  readonly ref: number;
  readonly ordinal: number;
}
