import { directoryIdOf, nodeIdOf } from '../cluster/formation.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type DescribeQuorumResponseInput,
  describeQuorumRequest,
  describeQuorumResponse,
} from '../protocol/schema/55-describe-quorum.ts';
import { ZERO_UUID } from '../protocol/uuid.ts';
import type { Broker } from './broker.ts';
import { defineHandler } from './handler.ts';

type Partition = DescribeQuorumResponseInput['topics'][number]['partitions'][number];
type ReplicaState = Partition['currentVoters'][number];

/** The log of Kafka's controllers; here, the journal. */
const metadataTopic = '__cluster_metadata';

/** Who is in the Raft group, and how far each is (KIP-595, KIP-836): offsets are Raft indexes. */
export const describeQuorum = defineHandler({
  request: describeQuorumRequest,
  response: describeQuorumResponse,
  versions: [0, 2],
  handle(request, { broker, client, apiVersion }, answer) {
    const { state } = broker.replica;
    answer({
      errorCode: ErrorCode.NONE,
      errorMessage: null,
      topics: request.topics.map(({ topicName, partitions }) => ({
        topicName,
        partitions: partitions.map(({ partitionIndex }) =>
          topicName === metadataTopic && partitionIndex === 0
            ? describe(broker)
            : unknown(partitionIndex),
        ),
      })),
      ...(apiVersion >= 2 && {
        nodes: broker.nodes.endpoints(client).map(({ nodeId, host, port }) => {
          const peer = state.nodes.get(nodeId);
          const at = { host: peer?.peerHost ?? host, port: peer?.peerPort ?? port };
          return { nodeId, listeners: [{ name: 'CONTROLLER', ...at }] };
        }),
      }),
    });
  },
});

function unknown(partitionIndex: number): Partition {
  return {
    partitionIndex,
    errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    errorMessage: null,
    ...{ leaderId: -1, leaderEpoch: -1, highWatermark: -1, currentVoters: [], observers: [] },
  };
}

function describe(broker: Broker): Partition {
  const { raft } = broker.replica;
  const { voters, learners } = raft.configuration;
  const stateOf = (member: string): ReplicaState => replicaState(broker, member);
  return {
    partitionIndex: 0,
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    ...broker.nodes.leader,
    highWatermark: raft.commitIndex,
    currentVoters: voters.map(stateOf),
    observers: learners.map(stateOf),
  };
}

function uuidOf(directoryId: string): string {
  const hex = directoryId.replaceAll('-', '');
  return /^[0-9a-f]{32}$/.test(hex) ? hex : ZERO_UUID;
}

function replicaState({ replica, nodeId, clock }: Broker, member: string): ReplicaState {
  const { raft } = replica;
  const isSelf = nodeIdOf(member) === nodeId;
  const nowMs = clock.monotonicMs();
  const caughtUpMs = isSelf ? nowMs : (raft.peer(member)?.caughtUpMs ?? Number.NEGATIVE_INFINITY);
  const isKnown = Number.isFinite(caughtUpMs);
  const timestamp = isKnown ? clock.wallMs() - Math.round(nowMs - caughtUpMs) : -1;
  return {
    replicaId: nodeIdOf(member),
    replicaDirectoryId: uuidOf(directoryIdOf(member)),
    logEndOffset: isSelf ? raft.lastIndex : (raft.peer(member)?.matchIndex ?? -1),
    lastFetchTimestamp: timestamp,
    lastCaughtUpTimestamp: timestamp,
  };
}
