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

/** Names in order, from the cursor on, each once; without names as many topics as a page takes. */
function namesFrom({ topics, cursor }: DescribeTopicPartitionsRequest, broker: Broker): string[] {
  const from = cursor?.topicName ?? '';
  if (topics.length === 0) return firstTopics(from, partitionsMax + 1, broker);
  const names = new Set(topics.map(({ name }) => name));
  return [...names].filter((name) => name >= from).sort(byOrder);
}

/**
 * The first `count` names of topics from a name on. There may be very many topics, of which a page
 * shows few: most are passed over by one comparison, none is sorted in vain.
 */
function firstTopics(from: string, count: number, broker: Broker): string[] {
  let names: string[] = [];
  let bound: string | undefined;
  for (const { name } of broker.topics.all()) {
    if (name < from || (bound !== undefined && name > bound)) continue;
    names.push(name);
    if (names.length < 2 * count) continue;
    names = names.sort(byOrder).slice(0, count);
    bound = names.at(-1);
  }
  return names.sort(byOrder).slice(0, count);
}

function byOrder(a: string, b: string): number {
  return a < b ? -1 : 1;
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
