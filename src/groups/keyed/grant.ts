import type { Now } from '../deadlines.ts';
import { Proof } from './client-traits.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { LaneRange } from './lane-range.ts';
import type { Member } from './member.ts';
import { none } from './record-store.ts';
import { grantRoom, heldRoom, roomOf } from './room.ts';
import type { Waiter } from './waiters.ts';
import { queueShare } from './window.ts';

/** New lane numbers `[from, to)` of a present range. */
export interface Granted {
  readonly range: LaneRange;
  readonly from: number;
  readonly to: number;
  /** Granted before the fetch came (ahead.ts). */
  readonly isAhead: boolean;
}

/**
 * Where there are fewer keys than this for each member, an answer takes no more than its parts of
 * them: all of them in one answer would leave the others idle, and a slow record among them would
 * hold up the lot.
 */
const keysPerMemberMax = 256;

/** A smaller window is shared out among the lanes of a fetch, for consumers that use them all. */
const spreadRecordsMax = 1024;

interface Draft {
  readonly range: LaneRange;
  /** Count, partition, offset of each run. */
  readonly runs: number[];
  bytes: number;
}

/**
 * The grants that answer one fetch: oldest records first, from keys that are free or held by the
 * asking ranges, as much as the member's window and the fetch have room for.
 */
export function grantRecords(dispatcher: Dispatcher, waiter: Waiter, now: Now): Granted[] {
  const filler = new Filler(dispatcher, waiter);
  const { failures } = dispatcher;
  const { member } = waiter;
  while (filler.hasBytes) {
    const suspect = failures.takeFor(waiter, filler.granted);
    if (suspect === 'wait') return filler.finish(now);
    if (suspect === undefined) break;
    filler.grantSuspect(suspect.ref, suspect.limit);
  }
  filler.fill(grantRoom(dispatcher, member, now), heldRoom(dispatcher, member, now), now);
  return filler.finish(now);
}

/** The same for a fetch that has not come yet. Answers the ranges that have something for it. */
export function grantAhead(dispatcher: Dispatcher, waiter: Waiter, now: Now): LaneRange[] {
  const { member } = waiter;
  const filler = new Filler(dispatcher, waiter);
  const room = grantRoom(dispatcher, member, now) - member.ahead;
  filler.fill(room, room, now);
  return filler.plan();
}

/** What is granted of these ranges goes into an answer, and so into the member's hand. */
export function takeInHand(
  member: Member,
  ranges: readonly LaneRange[],
  now: Now,
  isAhead: boolean,
): Granted[] {
  let records = 0;
  for (const { ahead } of ranges) records += ahead;
  if (records === 0) return [];
  if (member.inHand === 0) member.leaseStartMs = now.monotonicMs;
  member.inHand += records;
  member.unfinished += records;
  return beginAnswer(member, ranges, now, isAhead);
}

/** An answer with all that is granted of these ranges and in no answer yet. */
export function beginAnswer(
  member: Member,
  ranges: readonly LaneRange[],
  now: Now,
  isAhead = false,
): Granted[] {
  member.answers++;
  member.lastAnswerRecords = 0;
  member.sentMs = now.monotonicMs;
  member.handled = 0;
  const granted: Granted[] = [];
  for (const range of ranges) {
    const { ahead, end } = range;
    if (ahead === 0) continue;
    range.takeAhead(member.grants);
    member.grants += ahead;
    member.lastAnswerRecords += ahead;
    range.lastAnswerStart = end;
    range.lastAnswerNumber = member.answers;
    range.sawEmpty = false;
    granted.push({ range, from: end, to: range.end, isAhead });
  }
  return granted;
}

class Filler {
  readonly #dispatcher: Dispatcher;
  readonly #waiter: Waiter;
  readonly #drafts: Draft[];
  #bytesLeft: number;
  granted = 0;
  #turn = 0;
  /** Records of keys that nobody holds. */
  #roomLeft = 0;
  /** Keys that nobody holds, and that may still be taken. */
  #keysLeft = Number.POSITIVE_INFINITY;
  /**
   * All that waits of one key comes before another key: few keys are held then. Where a member
   * keeps its keys for seconds, as those do that prove nothing, else all keys would be held after a
   * while, and members with nothing in hand would wait for others that have much.
   */
  #takesRuns = false;

  constructor(dispatcher: Dispatcher, waiter: Waiter) {
    this.#dispatcher = dispatcher;
    this.#waiter = waiter;
    this.#bytesLeft = waiter.bytesMax;
    this.#drafts = waiter.ranges.map((range) => ({ range, runs: [], bytes: 0 }));
  }

  grantSuspect(ref: number, limit: number): void {
    const { board } = this.#dispatcher;
    const key = board.store.key[ref]!;
    if (key >= 0) board.resume(key);
    else board.unpark(ref);
    const holder = key < 0 ? none : board.keys.holder[key]!;
    const draft = this.#drafts.find(({ range }) => range.id === holder) ?? this.#drafts[0]!;
    const { range } = draft;
    const { suspects } = range.member;
    suspects.push({ range, n: range.grantedEnd, limit });
    this.#take(draft, ref);
    range.member.suspectLimit = Math.min(range.member.suspectLimit, limit);
  }

  /** `room`: for records of keys that nobody holds; `forHeld`: for all of them. */
  fill(room: number, forHeld: number, now: Now): void {
    const { member } = this.#waiter;
    const { proof } = member.traits;
    const isByCommits = proof === Proof.nothing;
    const { board, members, settings, waiters } = this.#dispatcher;
    // Nobody else is to wait in vain.
    const parts = isByCommits || waiters.countIdle() > 1 ? 1 : queueShare;
    const keysEach = Math.max(Math.ceil((parts * board.readyKeys) / members.size), 1);
    const isScarce = settings.window === undefined && keysEach < keysPerMemberMax;
    this.#keysLeft = isScarce && members.size > 1 ? keysEach : Number.POSITIVE_INFINITY;
    // Many records at a time cost less in the order of their batches.
    const isSpread = room < spreadRecordsMax;
    this.#takesRuns = isScarce && isByCommits && isSpread;
    const share = isSpread ? Math.max(Math.ceil(room / this.#drafts.length), 1) : forHeld;
    // The rooms are those of before this fetch.
    this.#roomLeft = room - this.granted;
    let left = Math.max(room, forHeld) - this.granted;
    while (left > 0 && this.hasBytes) {
      const [ref, draft] = this.#next();
      if (ref === none || draft === undefined) break;
      const count = this.#sweep(draft, ref, Math.min(left, share), now);
      // Nothing, if what looked ready has to be held back: then the next one is looked at.
      left -= count;
    }
    if (isByCommits && roomOf(this.#dispatcher, member, now) <= this.granted) member.wasFull = true;
  }

  get #mayTakeKey(): boolean {
    return this.#keysLeft > 0 && this.#roomLeft > 0;
  }

  get hasBytes(): boolean {
    return this.#bytesLeft > 0 || this.granted === 0;
  }

  /** The oldest record that may be granted, and in which lane. */
  #next(): [number, Draft | undefined] {
    const { board } = this.#dispatcher;
    let oldest: number = none;
    let found: Draft | undefined;
    for (const draft of this.#drafts) {
      if (draft.bytes >= this.#waiter.laneBytesMax) continue;
      const ref = draft.range.continuations.peek();
      if (ref === none) continue;
      if (found !== undefined && !board.store.isBefore(ref, oldest)) continue;
      oldest = ref;
      found = draft;
    }
    const isRun = found !== undefined && this.#takesRuns;
    const ready = isRun || !this.#mayTakeKey ? none : board.ready.peek();
    if (ready === none || (found !== undefined && board.store.isBefore(oldest, ready))) {
      return [oldest, found];
    }
    return [ready, this.#nextDraft()];
  }

  /** Lanes take turns. */
  #nextDraft(): Draft | undefined {
    for (let i = 0; i < this.#drafts.length; i++) {
      const draft = this.#drafts[this.#turn++ % this.#drafts.length]!;
      if (draft.bytes < this.#waiter.laneBytesMax) return draft;
    }
    return undefined;
  }

  /**
   * From one record on through its batch: whatever may be granted is, so that a stored batch whose
   * keys are all free goes out whole.
   */
  #sweep(draft: Draft, start: number, most: number, now: Now): number {
    const { board, failures } = this.#dispatcher;
    const { store, keys } = board;
    const { range } = draft;
    const batch = store.batchOf[start]!;
    const end = store.first[batch]! + store.count[batch]!;
    const mayTry = !failures.isEmpty;
    const isTooLarge = draft.bytes + store.end[end - 1]! > this.#waiter.laneBytesMax;
    if (isTooLarge && draft.runs.length > 0 && start === store.first[batch]) {
      // Another lane, or the next answer, has room for all of it.
      draft.bytes = this.#waiter.laneBytesMax;
      return 0;
    }
    const grantedBefore = this.granted;
    let count = 0;
    for (let ref = start; ref < end; ref++) {
      if (!board.canGrant(ref, range.id)) continue;
      if (mayTry && failures.holdBack(ref, now)) continue;
      if (count === most) break;
      const key = store.key[ref]!;
      const isNewKey = key < 0 || keys.holder[key] === none;
      if (isNewKey && (!this.#mayTakeKey || (this.#takesRuns && ref > start))) continue;
      const bytes = store.recordBytes(ref);
      const isFull = bytes > this.#bytesLeft || draft.bytes + bytes > this.#waiter.laneBytesMax;
      if (isFull && this.granted > 0) {
        // The lane is full even if a smaller record would fit, or it would never end.
        draft.bytes = this.#waiter.laneBytesMax;
        if (bytes > this.#bytesLeft) this.#bytesLeft = 0;
        break;
      }
      if (isNewKey) this.#keysLeft--;
      this.#roomLeft--;
      this.#take(draft, ref);
      count++;
    }
    return this.granted - grantedBefore;
  }

  #take(draft: Draft, ref: number): void {
    const { board, counters } = this.#dispatcher;
    const { store, keys } = board;
    const { range, runs } = draft;
    const next = board.grant(ref, range.id, range.member.number);
    if (next !== none) range.continuations.add(next, keys.nextBatch[store.key[ref]!]!);
    range.push(ref);
    this.granted++;
    counters.redelivered += store.wasSent[ref]!;
    const bytes = store.recordBytes(ref);
    draft.bytes += bytes;
    this.#bytesLeft -= bytes;
    const partition = store.partition[store.batchOf[ref]!]!;
    const offset = store.offset(ref);
    const last = runs.length - 3;
    const continues =
      last >= 0 && runs[last + 1] === partition && runs[last + 2]! + runs[last]! === offset;
    if (continues) runs[last]!++;
    else runs.push(1, partition, offset);
  }

  finish(now: Now): Granted[] {
    return takeInHand(this.#waiter.member, this.plan(), now, false);
  }

  /** Answers the ranges of which something was granted. */
  plan(): LaneRange[] {
    const { member, laneBytesMax } = this.#waiter;
    member.isAnswerFull = !this.hasBytes || this.#drafts.some(({ bytes }) => bytes >= laneBytesMax);
    this.#dispatcher.counters.granted += this.granted;
    const granted = this.#drafts.filter(({ runs }) => runs.length > 0);
    for (const { range, runs } of granted) {
      this.#dispatcher.plan({ kind: 'granted', lane: range.lane, runs });
    }
    return granted.map(({ range }) => range);
  }
}
