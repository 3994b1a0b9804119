import type { Now } from '../deadlines.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { Member } from './member.ts';
import { none } from './record-store.ts';

/** How long a member that could go on, but for what it keeps, is left without anything. */
const takeAgainMs = 1000;

/**
 * What a member that rejoined in the background has in hand of its former ranges. A handler may be
 * at it, so it stays with the member; but the client may have dropped it unhandled too. Once the
 * member proves or commits what it was granted later, or has waited for a session timeout with
 * nothing else in hand, it is through with all that it kept: the rest comes back.
 */
export class Stranded {
  readonly #dispatcher: Dispatcher;

  constructor(dispatcher: Dispatcher) {
    this.#dispatcher = dispatcher;
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

  /** When its waiting is over, monotonic; Infinity if it keeps nothing, or has more in hand. */
  dueMs(member: Member): number {
    const never = Number.POSITIVE_INFINITY;
    if (member.traits.rejoinsBetweenHandlers) return never;
    if (member.inHand === 0 && member.kept.length === 0) return never;
    let isKeeping = false;
    for (const range of member.ranges) {
      if (!range.isPresent) isKeeping = true;
      else if (range.countIn(range.proven, range.end) > 0) return never;
    }
    if (!isKeeping) return never;
    const waitMs = this.#mayTakeAgain(member) ? takeAgainMs : member.sessionMs;
    return member.leaseStartMs + Math.min(waitMs, member.sessionMs);
  }

  /** It waits for records, and none is free that would bring it on. */
  #mayTakeAgain(member: Member): boolean {
    const { waiters, board } = this.#dispatcher;
    return this.keeps(member) && waiters.has(member) && board.ready.peek() === none;
  }

  /** The waiting is over. */
  end(member: Member, now: Now): void {
    const { leaseStartMs, sessionMs } = member;
    if (now.monotonicMs - leaseStartMs < sessionMs) this.#takeAgain(member, now);
    else this.#endAll(member, now);
  }

  /**
   * The oldest key alone goes to the same member once more: a consumer cannot meet itself. When it
   * commits that, the rest comes back.
   */
  #takeAgain(member: Member, now: Now): void {
    const { board } = this.#dispatcher;
    const former = [...member.ranges].filter(
      ({ isPresent, grants }) => !isPresent && grants.records > 0,
    );
    const oldest = former.sort((a, b) => a.ordinalOf(a.finished) - b.ordinalOf(b.finished))[0];
    if (oldest === undefined) return;
    const first = oldest.ref(oldest.grants.firstN);
    if (first === none) return;
    const key = board.store.key[first]!;
    for (let n = oldest.grants.firstN; n < oldest.end; n++) {
      const ref = oldest.ref(n);
      const isOfKey = ref === first || (key >= 0 && ref !== none && board.store.key[ref] === key);
      if (isOfKey) this.#dispatcher.returnRange(oldest, n, n + 1, now);
    }
    this.#dispatcher.dropIfDone(oldest);
  }

  #endAll(member: Member, now: Now): void {
    this.onProgress(member, Number.POSITIVE_INFINITY, now);
    const { board } = this.#dispatcher;
    const isFormer = (id: number) => this.#dispatcher.range(id)?.isPresent !== true;
    const former = member.kept.filter(({ rangeId }) => isFormer(rangeId));
    member.kept = member.kept.filter((kept) => !former.includes(kept));
    for (const { keys, rangeId } of former) {
      for (const key of keys) board.letGo(key);
      const range = this.#dispatcher.range(rangeId);
      if (range !== undefined) this.#dispatcher.dropIfDone(range);
    }
  }
}
