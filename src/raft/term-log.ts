import { assert } from '../core/assert.ts';

/** Entries of one term, from `index` up to where the next run begins. */
export interface TermRun {
  readonly index: number;
  readonly term: number;
}

/**
 * What the core has to know of the log: which term each entry is of. Terms never fall from one
 * entry to the next (section 5.4.1), so a log is a few runs however many entries it has. What is in
 * the entries is the driver's.
 */
export class TermLog {
  /** The entry before the first one: covered by a snapshot, or index 0. Its term is known. */
  #base: TermRun;
  /** Behind the base, in order, each of another term than the one before. */
  #runs: TermRun[] = [];
  #lastIndex: number;

  constructor(base: TermRun, runs: readonly TermRun[], lastIndex: number) {
    this.#base = base;
    this.#lastIndex = base.index;
    this.append(runs, lastIndex);
  }

  get baseIndex(): number {
    return this.#base.index;
  }
  get base(): TermRun {
    return this.#base;
  }
  get runs(): readonly TermRun[] {
    return this.#runs;
  }
  get lastIndex(): number {
    return this.#lastIndex;
  }
  get lastTerm(): number {
    return (this.#runs.at(-1) ?? this.#base).term;
  }

  /** Undefined for entries that are not in the log, or no longer. */
  termAt(index: number): number | undefined {
    if (index < this.#base.index || index > this.#lastIndex) return undefined;
    return this.#runAt(index).term;
  }

  /** Appends entries up to `lastIndex`; the first run begins right behind the log. */
  append(runs: readonly TermRun[], lastIndex: number): void {
    if (runs.length === 0) return;
    assert(runs[0]!.index === this.#lastIndex + 1, 'entries follow each other');
    for (const run of runs) {
      assert(run.term >= this.lastTerm, 'terms never fall');
      const isSame = this.#runs.length > 0 && run.term === this.lastTerm;
      if (!isSame) this.#runs.push(run);
      this.#lastIndex = run.index;
    }
    assert(lastIndex >= this.#lastIndex, 'a run has an entry');
    this.#lastIndex = lastIndex;
  }

  /** Appends one entry, and answers its index. */
  appendOne(term: number): number {
    assert(term >= this.lastTerm, 'terms never fall');
    const index = this.#lastIndex + 1;
    if (this.#runs.length === 0 || term !== this.lastTerm) this.#runs.push({ index, term });
    this.#lastIndex = index;
    return index;
  }

  /** Takes back all entries after `index`. */
  truncateAfter(index: number): void {
    assert(index >= this.#base.index, 'what a snapshot covers stays');
    while (this.#runs.length > 0 && this.#runs.at(-1)!.index > index) this.#runs.pop();
    this.#lastIndex = Math.min(this.#lastIndex, index);
  }

  /** Entries up to `index` are gone: a snapshot covers them. */
  compactTo(index: number): void {
    if (index <= this.#base.index) return;
    const term = this.termAt(index);
    assert(term !== undefined, 'a snapshot covers what is in the log');
    const behind = this.#runs.filter((run) => run.index > index);
    const follows = behind[0]?.index === index + 1 || index === this.#lastIndex;
    this.#base = { index, term };
    this.#runs = follows ? behind : [{ index: index + 1, term }, ...behind];
  }

  /** The runs of the entries `[first, last]`. */
  runsOf(first: number, last: number): TermRun[] {
    if (last < first) return [];
    const runs: TermRun[] = [{ index: first, term: this.#runAt(first).term }];
    for (const run of this.#runs) if (run.index > first && run.index <= last) runs.push(run);
    return runs;
  }

  /** The last entry up to `index` whose term is not above `term`; the base if there is none. */
  lastUpTo(index: number, term: number): number {
    let found = Math.min(index, this.#lastIndex);
    for (let i = this.#runs.length - 1; i >= 0 && found > this.#base.index; i--) {
      const run = this.#runs[i]!;
      if (run.index > found) continue;
      if (run.term <= term) return found;
      found = run.index - 1;
    }
    return Math.max(found, this.#base.index);
  }

  #runAt(index: number): TermRun {
    for (let i = this.#runs.length - 1; i >= 0; i--) {
      if (this.#runs[i]!.index <= index) return this.#runs[i]!;
    }
    return this.#base;
  }
}
