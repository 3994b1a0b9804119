import type { Now } from '../deadlines.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { Member } from './member.ts';

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

  /** The member proved or committed the record that was granted to it as its `ordinal`th. */
  onProgress(member: Member, ordinal: number, now: Now): void {
    if (member.traits.rejoinsBetweenHandlers) return;
    for (const range of [...member.ranges]) {
      if (range.isPresent || range.grants.records === 0) continue;
      if (range.ordinalOf(range.end - 1) >= ordinal) continue;
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
    return isKeeping ? member.leaseStartMs + member.sessionMs : never;
  }

  end(member: Member, now: Now): void {
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
