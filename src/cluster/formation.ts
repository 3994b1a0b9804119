import { type Configuration, membersOf } from '../raft/membership.ts';
import type { ClusterNode } from '../state/commands.ts';

/** Whom the leader may take in, and how far it is. */
export interface Candidate {
  readonly node: ClusterNode;
  /** It has all but the newest of the log. */
  readonly isCaughtUp: boolean;
}

/** A member of the group: node id and directory id. A wiped folder is another one. */
export function memberId({ nodeId, directoryId }: Pick<ClusterNode, 'nodeId' | 'directoryId'>) {
  return `${nodeId}:${directoryId}`;
}

export function nodeIdOf(member: string): number {
  return Number.parseInt(member, 10);
}

export function directoryIdOf(member: string): string {
  return member.slice(member.indexOf(':') + 1);
}

/**
 * The next step towards a group of all candidates, one at a time: a node comes in as a learner, and
 * becomes a voter when it has the log. Nobody is put out: a node that comes back with a wiped
 * folder is taken in when an operator has removed its former self. Undefined if nothing is to be
 * done.
 */
export function nextConfiguration(
  present: Configuration,
  candidates: readonly Candidate[],
): Configuration | undefined {
  const { voters, learners } = present;
  const caughtUp = candidates.find(
    ({ node, isCaughtUp }) => isCaughtUp && learners.includes(memberId(node)),
  );
  if (caughtUp !== undefined) {
    const id = memberId(caughtUp.node);
    return { voters: [...voters, id], learners: learners.filter((learner) => learner !== id) };
  }
  const known = new Set(membersOf(present).map(nodeIdOf));
  const fresh = candidates.find(({ node }) => !known.has(node.nodeId));
  if (fresh === undefined) return undefined;
  return { voters, learners: [...learners, memberId(fresh.node)] };
}

/** A node, and up to which feature level it understands entries. */
export interface Announced {
  readonly member: string;
  readonly level: number;
}

/** The highest feature level that all members have announced; 0 while one of them has not. */
export function nextFeatureLevel(
  configuration: Configuration,
  announced: readonly Announced[],
): number {
  const levels = membersOf(configuration).map((id) => {
    return announced.find(({ member }) => member === id)?.level ?? 0;
  });
  return Math.min(...levels);
}
