/**
 * Completes the plan of a leader in keyed delivery: a partition that it gives to nobody goes to
 * the present member with the fewest. Cooperative assignors withhold what a member must give up
 * first; an absent one may take minutes for that, and here nobody has to wait for it (ownership
 * ranges keep the former and the new owner of a lane apart).
 */

import {
  type Assignment,
  encodeAssignment,
  readAssignment,
  type TopicPartitions,
} from './consumer-protocol.ts';

/** A member that may be given more. */
export interface Candidate {
  readonly memberId: string;
  readonly topics: ReadonlySet<string>;
}

/** An assignment that grows. */
interface Share {
  readonly memberId: string;
  readonly assignment: Assignment;
  readonly partitions: Map<string, number[]>;
  count: number;
  hasGrown: boolean;
}

/**
 * The plan with all partitions of these topics (topic => how many there are) given to someone who
 * subscribes to them, if there is any such candidate. A plan with bytes that are no assignment is
 * left alone: what is withheld in it cannot be known.
 */
export function withLeftovers(
  plan: ReadonlyMap<string, Buffer>,
  topics: ReadonlyMap<string, number>,
  candidates: readonly Candidate[],
): ReadonlyMap<string, Buffer> {
  const given = new Map<string, Assignment>();
  for (const [memberId, bytes] of plan) {
    const assignment = readAssignment(bytes);
    if (assignment === null) return plan;
    given.set(memberId, assignment);
  }
  const shares = candidates.map(({ memberId }) => shareOf(memberId, given));
  let hasGrown = false;
  for (const [topic, count] of topics) {
    const leftovers = unassigned(topic, count, given.values());
    const takers = shares.filter((_, i) => candidates[i]!.topics.has(topic));
    if (leftovers.length === 0 || takers.length === 0) continue;
    hasGrown = true;
    share(topic, leftovers, takers);
  }
  return hasGrown ? merged(plan, shares) : plan;
}

/** A member that the plan leaves out gets an assignment in the plan's own version. */
function shareOf(memberId: string, given: ReadonlyMap<string, Assignment>): Share {
  const assignment = given.get(memberId) ?? {
    version: Math.max(0, ...[...given.values()].slice(0, 1).map(({ version }) => version)),
    partitions: new Map(),
    userData: null,
  };
  const partitions = new Map<string, number[]>();
  for (const [topic, indexes] of assignment.partitions) partitions.set(topic, [...indexes]);
  return { memberId, assignment, partitions, count: countOf(partitions), hasGrown: false };
}

function countOf(partitions: TopicPartitions): number {
  let count = 0;
  for (const indexes of partitions.values()) count += indexes.length;
  return count;
}

function unassigned(topic: string, count: number, given: Iterable<Assignment>): number[] {
  const isGiven = new Uint8Array(count);
  for (const { partitions } of given) {
    for (const index of partitions.get(topic) ?? []) {
      if (index >= 0 && index < count) isGiven[index] = 1;
    }
  }
  const leftovers: number[] = [];
  for (let index = 0; index < count; index++) if (isGiven[index] === 0) leftovers.push(index);
  return leftovers;
}

/** One each to those who have the fewest, until they have as many as the next ones; and so on. */
function share(topic: string, leftovers: readonly number[], takers: Share[]): void {
  takers.sort((a, b) => a.count - b.count);
  let poorestCount = 1;
  let next = 0;
  for (const index of leftovers) {
    if (next === poorestCount) next = 0;
    if (next === 0) {
      const level = takers[0]!.count;
      while (poorestCount < takers.length && takers[poorestCount]!.count <= level) poorestCount++;
    }
    const taker = takers[next++]!;
    const indexes = taker.partitions.get(topic);
    if (indexes === undefined) taker.partitions.set(topic, [index]);
    else indexes.push(index);
    taker.count++;
    taker.hasGrown = true;
  }
}

function merged(plan: ReadonlyMap<string, Buffer>, shares: readonly Share[]) {
  const result = new Map(plan);
  for (const { memberId, assignment, partitions, hasGrown } of shares) {
    if (hasGrown) result.set(memberId, encodeAssignment({ ...assignment, partitions }));
  }
  return result;
}
