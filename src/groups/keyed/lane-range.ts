import type { GrantRuns } from '../../state/keyed/grant-runs.ts';
import type { Member } from './member.ts';
import type { ReadyQueue } from './ready-queue.ts';
import { grown, none } from './record-store.ts';

const refsMin = 16;

/**
 * What the leader remembers of one range beyond its ledger: which loaded records its lane numbers
 * stand for, and what the client has proven. Invariant: finished <= proven <= end <= grantedEnd,
 * where they are positions; single grants below `end` may be returned or finished out of turn.
 */
export class LaneRange {
  /** Place in the dispatcher's table of ranges, what keys name as their holder. */
  readonly id: number;
  readonly lane: number;
  readonly member: Member;
  readonly start: number;
  /** Behind the last lane number that an answer was made of: where the client asks next. */
  end: number;
  /** The next lane number. From `end` on they are granted ahead of the fetch (ahead.ts). */
  grantedEnd: number;
  /** Everything below is proven handled. */
  proven: number;
  /** Everything below is finished or returned. */
  finished: number;
  /** The lane's present range, whose owner may get more. */
  isPresent = true;
  /**
   * Its member rejoined, and neither has a plan given it the lane since nor has the member asked
   * within the range: what it is answered is dropped.
   */
  isProvisional = false;
  /** How many records its member had been granted when it became a former range. */
  closedAt = 0;
  /** What the ledger has of it: the unfinished grants. */
  readonly grants: GrantRuns;
  /** Records of keys that this range holds, which may be granted here and nowhere else. */
  readonly continuations: ReadyQueue;

  /** First lane number of the last answer with records. */
  lastAnswerStart: number;
  /** Order among the member's answers, of the last one with records. */
  lastAnswerNumber = 0;
  /** A fetch at the end brought nothing since the last answer with records. */
  sawEmpty = false;
  /** The connection that the answer up to `writtenEnd` went out on, whole. */
  writtenConnection = none;
  writtenStart: number;
  writtenEnd: number;

  /** First lane number of each answer, and the member's count of grants before it. */
  #answerStarts: number[] = [];
  #answerOrdinals: number[] = [];
  /**
   * Of the numbers from #base on, which is at #head; `none` where it is finished, returned, or not
   * loaded yet. A column, since a consumer that commits every few seconds has millions of them.
   */
  #refs = new Int32Array(refsMin);
  #base: number;
  #head = 0;

  constructor(
    id: number,
    lane: number,
    member: Member,
    ledger: { readonly start: number; readonly end: number; readonly grants: GrantRuns },
    continuations: ReadyQueue,
  ) {
    this.id = id;
    this.lane = lane;
    this.member = member;
    this.start = ledger.start;
    this.end = ledger.end;
    this.grantedEnd = ledger.end;
    this.proven = ledger.start;
    this.finished = ledger.start;
    this.lastAnswerStart = ledger.start;
    this.writtenStart = ledger.start;
    this.writtenEnd = ledger.start;
    this.grants = ledger.grants;
    this.continuations = continuations;
    this.#base = ledger.start;
    this.#makeRoom(ledger.end - ledger.start);
    this.#refs.fill(none, 0, ledger.end - ledger.start);
  }

  ref(n: number): number {
    return n < this.#base || n >= this.grantedEnd ? none : this.#refs[n - this.#base + this.#head]!;
  }

  push(ref: number): void {
    const at = this.grantedEnd - this.#base + this.#head;
    if (at === this.#refs.length) this.#makeRoom(2 * (this.grantedEnd - this.#base));
    this.#refs[this.grantedEnd - this.#base + this.#head] = ref;
    this.grantedEnd++;
  }

  /** For so many from #base on, twice as many as there are at the least: then it is rarely made. */
  #makeRoom(count: number): void {
    const used = this.#refs.subarray(this.#head, this.#head + this.grantedEnd - this.#base);
    if (count <= this.#refs.length) this.#refs.copyWithin(0, this.#head, this.#head + used.length);
    else this.#refs = grown(used, new Int32Array(count));
    this.#head = 0;
  }

  /** Granted, and in no answer yet. */
  get ahead(): number {
    return this.grantedEnd - this.end;
  }

  /** An answer takes all that is granted; before it, its member had been given so many records. */
  takeAhead(grantsBefore: number): void {
    this.#answerStarts.push(this.end);
    this.#answerOrdinals.push(grantsBefore);
    this.end = this.grantedEnd;
  }

  /** What is in no answer is granted no more, and its numbers will be used again. */
  dropAhead(): void {
    this.grantedEnd = this.end;
  }

  /** How many unfinished grants there are in `[from, to)`, of those below `end`. */
  countIn(from: number, to: number): number {
    if (from <= this.start && to >= this.end) return this.grants.records - this.ahead;
    let count = 0;
    this.grants.forEach(from, to, (_n, records) => {
      count += records;
    });
    return count;
  }

  /** As which one of the member's grants this number was granted, counted from 0. */
  ordinalOf(n: number): number {
    let i = this.#answerStarts.length - 1;
    while (i > 0 && this.#answerStarts[i]! > n) i--;
    return i < 0 ? 0 : this.#answerOrdinals[i]! + Math.max(n - this.#answerStarts[i]!, 0);
  }

  /** Sets what a number stands for, or that it stands for nothing any more. */
  set(n: number, ref: number): void {
    this.#refs[n - this.#base + this.#head] = ref;
  }

  /** Forgets the numbers below `finished`. */
  trim(): void {
    const count = this.finished - this.#base;
    if (count <= 0) return;
    this.#base += count;
    this.#head += count;
    while (this.#answerStarts.length > 1 && this.#answerStarts[1]! <= this.finished) {
      this.#answerStarts.shift();
      this.#answerOrdinals.shift();
    }
    const used = this.#refs.subarray(this.#head, this.#head + this.grantedEnd - this.#base);
    if (this.#refs.length <= refsMin || 8 * used.length > this.#refs.length) return;
    this.#refs = grown(used, new Int32Array(Math.max(2 * used.length, refsMin)));
    this.#head = 0;
  }
}
