import { assert } from '../core/assert.ts';
import type { Memberships } from './membership.ts';
import type { Append, AppendRejected } from './messages.ts';
import type { Accepted } from './ready.ts';
import type { TermLog, TermRun } from './term-log.ts';

/** What a member does with the entries of the leader of its term. */
export class Follower {
  readonly #log: TermLog;
  readonly #memberships: Memberships;
  /** Up to here the log is the same as that of the leader of this term. */
  #verifiedIndex = 0;
  /** The newest append of this term; its answer waits for the disk. */
  #appendSentMs: number | undefined;

  constructor(log: TermLog, memberships: Memberships) {
    this.#log = log;
    this.#memberships = memberships;
  }

  get verifiedIndex(): number {
    return this.#verifiedIndex;
  }
  /** Undefined if no append of this term has come, and none is to be answered. */
  get appendSentMs(): number | undefined {
    return this.#appendSentMs;
  }

  /** Of the leader of another term nothing is known yet. */
  onTerm(): void {
    this.#verifiedIndex = 0;
    this.#appendSentMs = undefined;
  }

  onTruncated(index: number): void {
    this.#verifiedIndex = Math.min(this.#verifiedIndex, index);
  }

  /** The log has all that a snapshot of the leader covers. */
  onCovered(index: number, sentMs: number): void {
    this.#verifiedIndex = Math.max(this.#verifiedIndex, index);
    this.#appendSentMs = sentMs;
  }

  /** Whether it has the entry before the new ones; what a snapshot covers is committed. */
  fits({ prevIndex, prevTerm }: Append): boolean {
    return prevIndex < this.#log.baseIndex || this.#log.termAt(prevIndex) === prevTerm;
  }

  /** Where the logs may still be the same, for the leader to try next. */
  hint({ prevIndex, prevTerm }: Append): Pick<AppendRejected, 'hintIndex' | 'hintTerm'> {
    const hintIndex = this.#log.lastUpTo(prevIndex, prevTerm);
    return { hintIndex, hintTerm: this.#log.termAt(hintIndex)! };
  }

  /** Takes in what is new of an append that fits; undefined if nothing is. */
  take(message: Append, commitIndex: number): Accepted | undefined {
    const { prevIndex, lastIndex, sentMs } = message;
    const base = this.#log.baseIndex;
    const first = this.#firstMissing(message, Math.max(prevIndex, base) + 1);
    const accepted = first <= lastIndex ? this.#append(message, first, commitIndex) : undefined;
    this.#verifiedIndex = Math.max(this.#verifiedIndex, lastIndex, base);
    this.#appendSentMs = sentMs;
    return accepted;
  }

  /** The first entry from `from` on that is not in the log, or of another term. */
  #firstMissing({ runs, lastIndex }: Append, from: number): number {
    for (const [i, run] of runs.entries()) {
      const end = runs[i + 1]?.index ?? lastIndex + 1;
      for (let index = Math.max(run.index, from); index < end; index++) {
        if (this.#log.termAt(index) !== run.term) return index;
      }
    }
    return lastIndex + 1;
  }

  /** If an existing entry conflicts with a new one, it and all that follow it go (5.3). */
  #append(message: Append, first: number, commitIndex: number): Accepted {
    const { runs, lastIndex, configurations } = message;
    let truncateAfter: number | undefined;
    if (first <= this.#log.lastIndex) {
      assert(first > commitIndex, 'what is committed is never truncated');
      truncateAfter = first - 1;
      this.#log.truncateAfter(truncateAfter);
      this.#memberships.truncateAfter(truncateAfter);
    }
    const missing: TermRun[] = [];
    for (const [i, { index, term }] of runs.entries()) {
      const end = runs[i + 1]?.index ?? lastIndex + 1;
      if (end > first) missing.push({ index: Math.max(index, first), term });
    }
    this.#log.append(missing, lastIndex);
    for (const entry of configurations) if (entry.index >= first) this.#memberships.add(entry);
    return { truncateAfter, first };
  }
}
