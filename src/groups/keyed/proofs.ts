import { Proof } from './client-traits.ts';
import type { LaneRange } from './lane-range.ts';

/**
 * Up to which lane number a fetch proves each of the ranges handled that it names at their ends, by
 * what is known of its client.
 */
export function provenBy(proof: Proof, ranges: readonly LaneRange[]): number[] {
  switch (proof) {
    case Proof.everything:
      return ranges.map(({ end }) => end);
    case Proof.afterEmpty:
      return ranges.map(({ sawEmpty, end, lastAnswerStart }) => (sawEmpty ? end : lastAnswerStart));
    case Proof.afterLater: {
      const newest = Math.max(...ranges.map(({ lastAnswerNumber }) => lastAnswerNumber));
      return ranges.map(({ lastAnswerNumber, end, lastAnswerStart }) =>
        lastAnswerNumber < newest ? end : lastAnswerStart,
      );
    }
    case Proof.nothing:
      return ranges.map(({ proven }) => proven);
  }
}
