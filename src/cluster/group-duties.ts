/** What the leader of any group does for it, be it the system group or that of a tenant. */
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import { membersOf } from '../raft/membership.ts';
import type { Replica } from '../replica/replica.ts';
import { type ClusterNode, encodeNodeStored } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import { type Candidate, memberId, nodeIdOf } from './formation.ts';
import type { Hello } from './hello.ts';

/** While the disk is low it is looked so often for a node with more room. */
const roomMs = 1000;
/** A learner that lacks no more than this has the log. */
const caughtUpEntries = 1000;

/** Notes in the state where members are reached, as they say themselves. */
export function noteNodes(replica: Replica, present: readonly ClusterNode[]): void {
  const members = membersOf(replica.raft.configuration);
  for (const node of present) {
    const known = replica.state.nodes.get(node.nodeId);
    if (!members.includes(memberId(node)) || isSame(known, node)) continue;
    replica.propose({ type: EntryType.nodeStored, meta: encodeNodeStored(node) });
  }
}

function isSame(a: ClusterNode | undefined, b: ClusterNode): boolean {
  return a !== undefined && encodeNodeStored(a).equals(encodeNodeStored(b));
}

/** How far a node is that may be taken in. */
export function candidateOf({ raft }: Replica, node: ClusterNode): Candidate {
  const lacks = raft.lastIndex - (raft.peer(memberId(node))?.matchIndex ?? 0);
  return { node, isCaughtUp: lacks <= caughtUpEntries };
}

export interface DiskReliefOptions {
  readonly replica: Replica;
  /** Whether another node has room on its disk; false if it cannot be asked. */
  readonly hasRoom: (nodeId: number) => Promise<boolean>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What is refused here for want of space is taken by a voter that has some: it is to lead. */
export class DiskRelief {
  readonly #options: DiskReliefOptions;
  /** When it was last looked for a node with more room. */
  #soughtMs = Number.NEGATIVE_INFINITY;

  constructor(options: DiskReliefOptions) {
    this.#options = options;
  }

  /** If the disk is low, and not too often. */
  seek(present: readonly Hello[]): void {
    const { replica, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    if (!replica.disk.isLow || nowMs - this.#soughtMs < roomMs) return;
    this.#soughtMs = nowMs;
    void this.#passOn(present, nowMs);
  }

  async #passOn(present: readonly Hello[], nowMs: number): Promise<void> {
    const { replica, hasRoom, log } = this.#options;
    const { raft, consensus } = replica;
    const members = present.map(({ node }) => memberId(node));
    for (const member of members.filter((one) => raft.configuration.voters.includes(one))) {
      if (!raft.isInSync(member, nowMs) || !(await hasRoom(nodeIdOf(member)))) continue;
      if (!consensus.handOver(member)) return;
      log.warn({ nodeId: nodeIdOf(member) }, 'the disk is nearly full: another node is to lead');
      return;
    }
  }
}
