import { memberId, nodeIdOf } from '../cluster/formation.ts';
import { type Configuration, majorityOf } from '../raft/membership.ts';
import type { Broker } from './broker.ts';
import type { Client } from './handler.ts';

/** The way to the other nodes of the cluster. */
export interface ClusterPort {
  /** Asks another node; undefined if it cannot be reached, or goes away before it answers. */
  askNode(nodeId: number, request: readonly Uint8Array[]): Promise<Buffer | undefined>;
}

/** A node as clients are told of it. */
export interface NodeEndpoint {
  readonly nodeId: number;
  readonly host: string;
  readonly port: number;
}

export interface CurrentLeader {
  readonly leaderId: number;
  readonly leaderEpoch: number;
}

/** Where a partition is, which is the same for all of them. */
export interface Placement extends CurrentLeader {
  /** Voters: all of them have a replica. */
  readonly replicaNodes: readonly number[];
  /** Those of them that follow the leader. */
  readonly isrNodes: readonly number[];
  /** Those of them that are not there. */
  readonly offlineReplicas: readonly number[];
}

const unknownLeader = -1;
/** A node that has said nothing for so long is not there: clients would wait for it. */
const silentMsMax = 2000;
/** How often it is looked whether more than a majority has something. */
const replicaLookMs = 2;

/** Which nodes there are, and which one leads, as far as this one knows. */
export class Nodes {
  readonly port: ClusterPort | undefined;
  readonly #broker: Broker;

  constructor(broker: Broker, port: ClusterPort | undefined) {
    this.#broker = broker;
    this.port = port;
  }

  /** Whether there are others, or may be. */
  get isCluster(): boolean {
    return this.port !== undefined;
  }

  /** Of all nodes that this one knows of. */
  get ids(): number[] {
    const { nodeId, replica } = this.#broker;
    const known = [...replica.state.nodes.keys()];
    return known.length > 0 ? known.sort((a, b) => a - b) : [nodeId];
  }

  /** Where clients reach each node that is there, as far as this one knows; the leader does. */
  endpoints(client: Client): NodeEndpoint[] {
    const { nodeId, replica } = this.#broker;
    const nodes = [...replica.state.nodes.values()].filter((node) => this.#isThere(node));
    if (nodes.length === 0) return [{ nodeId, ...this.#broker.endpointFor(client) }];
    nodes.sort((a, b) => a.nodeId - b.nodeId);
    return nodes.map(({ nodeId, host, port }) => ({ nodeId, host, port }));
  }

  /** Where the leader is reached, for those who are told to go there (KIP-951). */
  leaderEndpoints(client: Client): NodeEndpoint[] {
    const { leaderId } = this;
    return this.endpoints(client).filter(({ nodeId }) => nodeId === leaderId);
  }

  /**
   * Calls back once so many voters have on disk all that is applied here now: true at once where a
   * majority is enough, false if they do not within `timeoutMs`.
   */
  awaitReplicas(count: number, timeoutMs: number, done: (areThere: boolean) => void): void {
    const { replica, clock } = this.#broker;
    if (count <= majorityOf(replica.raft.configuration.voters.length)) {
      done(true);
      return;
    }
    const { appliedIndex } = replica.state;
    const endMs = clock.monotonicMs() + timeoutMs;
    const look = (): void => {
      const { raft } = replica;
      const having = raft.configuration.voters.filter((voter) => {
        const isSelf = nodeIdOf(voter) === this.#broker.nodeId;
        return (
          (isSelf ? raft.persistedIndex : (raft.peer(voter)?.matchIndex ?? -1)) >= appliedIndex
        );
      });
      if (having.length >= count) done(true);
      else if (clock.monotonicMs() >= endMs) done(false);
      else clock.after(replicaLookMs, look);
    };
    look();
  }

  get placement(): Placement {
    const { nodes } = this.#broker.replica.state;
    const { voterIds: replicaNodes, inSyncIds: isrNodes } = this;
    const offlineReplicas = replicaNodes.filter((id) => {
      const node = nodes.get(id);
      return node !== undefined && !this.#isThere(node);
    });
    return { ...this.leader, replicaNodes, isrNodes, offlineReplicas };
  }

  #isThere(node: { readonly nodeId: number; readonly directoryId: string }): boolean {
    const { nodeId, replica, clock } = this.#broker;
    if (node.nodeId === nodeId) return true;
    const answeredMs = replica.raft.peer(memberId(node))?.answeredSentMs;
    return answeredMs === undefined || clock.monotonicMs() - answeredMs < silentMsMax;
  }

  /** -1 while it is not known. */
  get leaderId(): number {
    const { nodeId, replica } = this.#broker;
    if (replica.mayAnswer || replica.consensus.isAsleep) return nodeId;
    const { leaderId } = replica.raft;
    if (leaderId === undefined || nodeIdOf(leaderId) === nodeId) return unknownLeader;
    return nodeIdOf(leaderId);
  }

  get leader(): CurrentLeader {
    return { leaderId: this.leaderId, leaderEpoch: this.#broker.replica.leaderEpoch };
  }

  /** All of them have a replica of every partition. */
  get voterIds(): number[] {
    return this.members.voters.map(nodeIdOf).sort((a, b) => a - b);
  }

  /**
   * Who is in the cluster, as it is committed. The last change counts in consensus before that, but
   * may be lost with its leader; then who relied on one more replica would have too few.
   */
  get members(): Configuration {
    const { state, raft } = this.#broker.replica;
    return state.members ?? raft.configuration;
  }

  /** Those of them that follow the leader, as the leader knows it. */
  get inSyncIds(): number[] {
    const { replica, nodeId, clock } = this.#broker;
    const nowMs = clock.monotonicMs();
    const inSync = this.members.voters.filter(
      (voter) => nodeIdOf(voter) === nodeId || replica.raft.isInSync(voter, nowMs),
    );
    return inSync.map(nodeIdOf).sort((a, b) => a - b);
  }
}
