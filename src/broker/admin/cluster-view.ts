import { directoryIdOf, memberId, nodeIdOf } from '../../cluster/formation.ts';
import type { Broker } from '../broker.ts';

/** One member of the group. */
export interface MemberView {
  readonly nodeId: number;
  readonly directoryId: string;
  readonly role: 'leader' | 'voter' | 'learner';
  /** HOST:PORT for clients, and for the other nodes; null where it is not known. */
  readonly address: string | null;
  readonly peerAddress: string | null;
  /** Entries that it is known to have; null but for those that the leader tells of. */
  readonly matchIndex: number | null;
  readonly inSync: boolean | null;
}

export interface ClusterView {
  readonly clusterId: string;
  readonly nodeId: number;
  /** -1 while this node knows none. */
  readonly leaderId: number;
  readonly term: number;
  /** The end of this node's log. */
  readonly lastIndex: number;
  readonly lastTerm: number;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  /** What all members understand: see state/entry-types.ts. */
  readonly featureLevel: number;
  readonly members: readonly MemberView[];
}

/** What this node knows of the cluster; of the others only the leader knows how far they are. */
export function clusterView(broker: Broker): ClusterView {
  const { replica, nodes, nodeId, clock } = broker;
  const { raft, state } = replica;
  const { voters, learners } = nodes.members;
  const nowMs = clock.monotonicMs();
  const { leaderId } = nodes;
  const view = (member: string, isVoter: boolean): MemberView => {
    const id = nodeIdOf(member);
    const node = state.nodes.get(id);
    const isKnown = node !== undefined && memberId(node) === member;
    const isSelf = id === nodeId;
    const leads = replica.mayAnswer;
    return {
      nodeId: id,
      directoryId: directoryIdOf(member),
      role: id === leaderId ? 'leader' : isVoter ? 'voter' : 'learner',
      address: isKnown ? `${node.host}:${node.port}` : null,
      peerAddress: isKnown ? `${node.peerHost}:${node.peerPort}` : null,
      matchIndex: isSelf
        ? raft.persistedIndex
        : leads
          ? (raft.peer(member)?.matchIndex ?? null)
          : null,
      inSync: isSelf ? leads || raft.isLed(nowMs) : leads ? raft.isInSync(member, nowMs) : null,
    };
  };
  return {
    ...{ clusterId: state.clusterId, nodeId, leaderId, term: raft.term },
    ...{ lastIndex: raft.lastIndex, lastTerm: raft.lastTerm, commitIndex: raft.commitIndex },
    appliedIndex: state.appliedIndex,
    featureLevel: state.featureLevel,
    members: [
      ...voters.map((voter) => view(voter, true)),
      ...learners.map((learner) => view(learner, false)),
    ],
  };
}
