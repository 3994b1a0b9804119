import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { TermLog } from '../../src/raft/term-log.ts';

/** The term of each entry from the base on, written down one by one. */
class NaiveLog {
  base = 0;
  terms = [0];

  get last(): number {
    return this.base + this.terms.length - 1;
  }
  get lastTerm(): number {
    return this.terms.at(-1)!;
  }
  termAt(index: number): number | undefined {
    return index < this.base ? undefined : this.terms[index - this.base];
  }
  lastUpTo(index: number, term: number): number {
    let found = Math.min(index, this.last);
    while (found > this.base && this.termAt(found)! > term) found--;
    return Math.max(found, this.base);
  }
}

const step = fc.oneof(
  fc.record({
    kind: fc.constant('append' as const),
    more: fc.nat(3),
    count: fc.integer({ min: 1, max: 5 }),
  }),
  fc.record({ kind: fc.constant('one' as const), more: fc.nat(2) }),
  fc.record({
    kind: fc.constant('truncate' as const),
    part: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  fc.record({
    kind: fc.constant('compact' as const),
    part: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
);

test('runs of terms say the same as a list of all entries', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const log = new TermLog({ index: 0, term: 0 }, [], 0);
      const naive = new NaiveLog();
      for (const one of steps) {
        if (one.kind === 'append') {
          const term = naive.lastTerm + one.more;
          const first = naive.last + 1;
          for (let i = 0; i < one.count; i++) naive.terms.push(term);
          log.append([{ index: first, term }], naive.last);
        } else if (one.kind === 'one') {
          naive.terms.push(naive.lastTerm + one.more);
          assert.equal(log.appendOne(naive.lastTerm), naive.last);
        } else {
          const index = naive.base + Math.floor(one.part * (naive.last - naive.base));
          if (one.kind === 'truncate') {
            naive.terms.length = index - naive.base + 1;
            log.truncateAfter(index);
          } else {
            naive.terms.splice(0, index - naive.base);
            naive.base = index;
            log.compactTo(index);
          }
        }
        assert.deepEqual(
          [log.baseIndex, log.lastIndex, log.lastTerm],
          [naive.base, naive.last, naive.lastTerm],
        );
      }
      for (let index = Math.max(0, naive.base - 1); index <= naive.last + 1; index++) {
        assert.equal(log.termAt(index), naive.termAt(index));
        for (let term = 0; term <= naive.lastTerm; term++) {
          assert.equal(log.lastUpTo(index, term), naive.lastUpTo(index, term));
        }
      }
      const copy = new TermLog(
        { index: naive.base, term: naive.terms[0]! },
        log.runsOf(naive.base + 1, naive.last),
        naive.last,
      );
      for (let index = naive.base; index <= naive.last; index++) {
        assert.equal(copy.termAt(index), naive.termAt(index));
      }
    }),
  );
});
