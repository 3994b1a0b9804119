import { Proof } from './client-traits.ts';
import type { Dispatcher } from './dispatcher.ts';

/** A commit of so many takes some five milliseconds. */
const recordsMax = 100_000;

/**
 * What a commit of very many records may begin with, so that no turn of the loop is long; undefined
 * if it is to be taken as it is. A commit of less is as true as the whole one. But where commits
 * are all that is known of a client, it matters how often it commits, and how much.
 */
export function partOf(
  dispatcher: Dispatcher,
  memberId: string,
  lanes: ReadonlyMap<number, number>,
): ReadonlyMap<number, number> | undefined {
  const member = dispatcher.members.get(memberId);
  if (member === undefined || member.unfinished <= recordsMax) return undefined;
  const { commitsHandledOnly, proof } = member.traits;
  if (!commitsHandledOnly || proof === Proof.nothing) return undefined;
  for (const [lane, to] of lanes) {
    for (const { start, end, finished } of dispatcher.rangesOf(memberId, lane)) {
      const part = finished + recordsMax;
      if (to > start && to <= end && part < to) return new Map([[lane, part]]);
    }
  }
  return undefined;
}
