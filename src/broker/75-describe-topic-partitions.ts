import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type DescribeTopicPartitionsRequest,
  type DescribeTopicPartitionsResponseInput,
  describeTopicPartitionsRequest,
  describeTopicPartitionsResponse,
} from '../protocol/schema/75-describe-topic-partitions.ts';
import { ZERO_UUID } from '../protocol/uuid.ts';
import type { Broker } from './broker.ts';
import { defineHandler } from './handler.ts';
import { allTopicOperations } from './operations.ts';
import { topicNameError } from './topic-names.ts';

type TopicResponse = DescribeTopicPartitionsResponseInput['topics'][number];
type PartitionResponse = TopicResponse['partitions'][number];
type Cursor = NonNullable<DescribeTopicPartitionsRequest['cursor']>;

/** Kafka's max.request.partition.size.limit. */
const partitionsMax = 2000;

export const describeTopicPartitions = defineHandler({
  request: describeTopicPartitionsRequest,
  response: describeTopicPartitionsResponse,
  versions: [0, 0],
  handle(request, { broker }, answer) {
    const { cursor } = request;
    const names = namesFrom(request, broker);
    // The topic of the cursor must be among those asked for, and its partition be one.
    const isRefused =
      cursor !== null &&
      (cursor.partitionIndex < 0 || (request.topics.length > 0 && names[0] !== cursor.topicName));
    if (isRefused) {
      const topics = request.topics.map(({ name }) => failed(name, ErrorCode.INVALID_REQUEST));
      answer({ throttleTimeMs: 0, topics });
      return;
    }
    const limit = Math.max(1, Math.min(request.responsePartitionLimit, partitionsMax));
    answer({ throttleTimeMs: 0, ...describePage(names, cursor, limit, broker) });
  },
});

/** Names in order, from the cursor on, each once; without names all topics. */
function namesFrom({ topics, cursor }: DescribeTopicPartitionsRequest, broker: Broker): string[] {
  const asked = topics.length > 0 ? topics : broker.topics.all();
  const names = new Set<string>();
  for (const { name } of asked) if (name >= (cursor?.topicName ?? '')) names.add(name);
  return [...names].sort((a, b) => (a < b ? -1 : 1));
}

function describePage(
  names: readonly string[],
  cursor: Cursor | null,
  limit: number,
  broker: Broker,
): { topics: TopicResponse[]; nextCursor: Cursor | null } {
  const topics: TopicResponse[] = [];
  let left = limit;
  for (const name of names) {
    if (left === 0) return { topics, nextCursor: { topicName: name, partitionIndex: 0 } };
    const topic = broker.topics.byName(name);
    if (topic === undefined) {
      const isWrong = topicNameError(name) !== undefined;
      topics.push({
        ...failed(
          name,
          isWrong ? ErrorCode.INVALID_TOPIC_EXCEPTION : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ),
        topicAuthorizedOperations: allTopicOperations,
      });
      continue;
    }
    const first = cursor?.topicName === name ? cursor.partitionIndex : 0;
    const end = Math.min(topic.partitions.length, first + left);
    const partitions: PartitionResponse[] = [];
    for (let index = first; index < end; index++) partitions.push(describe(index, broker));
    topics.push({
      errorCode: ErrorCode.NONE,
      name,
      topicId: topic.id,
      partitions,
      topicAuthorizedOperations: allTopicOperations,
    });
    if (end < topic.partitions.length) {
      return { topics, nextCursor: { topicName: name, partitionIndex: end } };
    }
    left -= partitions.length;
  }
  return { topics, nextCursor: null };
}

function failed(name: string, errorCode: ErrorCode): TopicResponse {
  return { errorCode, name, topicId: ZERO_UUID, partitions: [] };
}

/** Every partition is led by this node and has its only replica here. */
function describe(partitionIndex: number, { nodeId, replica }: Broker): PartitionResponse {
  return {
    errorCode: ErrorCode.NONE,
    partitionIndex,
    leaderId: nodeId,
    leaderEpoch: replica.leaderEpoch,
    replicaNodes: [nodeId],
    isrNodes: [nodeId],
    eligibleLeaderReplicas: [],
    lastKnownElr: [],
    offlineReplicas: [],
  };
}
