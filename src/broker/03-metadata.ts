import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type MetadataRequest,
  type MetadataResponseInput,
  metadataRequest,
  metadataResponse,
} from '../protocol/schema/03-metadata.ts';
import { type LazyInput, lazyMap } from '../protocol/slices.ts';
import { ZERO_UUID } from '../protocol/uuid.ts';
import type { Topic } from '../state/topics.ts';
import { partitionsPerRequestMax } from './19-create-topics.ts';
import type { Broker } from './broker.ts';
import { defaultPartitionCount } from './default-partitions.ts';
import { distinctBy } from './distinct.ts';
import { defineHandler, type RequestContext } from './handler.ts';
import type { Placement } from './nodes.ts';
import { allClusterOperations, allTopicOperations } from './operations.ts';
import { topicNameError } from './topic-names.ts';

type TopicResponse = LazyInput<MetadataResponseInput['topics'][number]>;
type PartitionResponse = MetadataResponseInput['topics'][number]['partitions'][number];
type Requested = NonNullable<MetadataRequest['topics']>[number];

/** Topics with more partitions are written over several turns. */
const wholePartitionsMax = 1000;

export const metadata = defineHandler({
  request: metadataRequest,
  response: metadataResponse,
  versions: [0, 13],
  handle(request, context, _answer, answerInSlices) {
    const { broker, apiVersion } = context;
    const wantsAll = request.topics === null || (apiVersion === 0 && request.topics.length === 0);
    if (wantsAll) {
      const all = [...broker.topics.all()];
      const { placement } = broker.nodes;
      // One that is deleted before its turn comes is as if it had been deleted before.
      const describeIfThere = (topic: Topic) =>
        broker.topics.byId(topic.id) === undefined ? undefined : describe(topic, placement);
      answerInSlices(response(all, describeIfThere, request, context));
      return;
    }
    const topics = distinctBy(request.topics!, ({ name, topicId }) => `${topicId} ${name ?? ''}`);
    const mayCreate =
      (request.allowAutoTopicCreation || apiVersion < 4) &&
      broker.settings['auto.create.topics.enable'];
    const missing = mayCreate ? topics.filter((topic) => isMissing(topic, broker)) : [];
    const answerNow = () => {
      const { placement } = broker.nodes;
      const lookUpOne = (topic: Requested) => lookUp(topic, context, placement);
      answerInSlices(response(topics, lookUpOne, request, context));
    };
    if (missing.length === 0) answerNow();
    else {
      createAll(missing, broker).then(answerNow, (error: unknown) => broker.fatal(error));
    }
  },
});

function isMissing({ name, topicId }: Requested, broker: Broker): boolean {
  if (topicId !== ZERO_UUID || name === null) return false;
  return broker.topics.byName(name) === undefined && topicNameError(name) === undefined;
}

/**
 * Auto creation. The answer waits until the topics are there: kafkajs does not try again on the
 * errors with which Kafka asks for patience.
 */
async function createAll(missing: readonly Requested[], broker: Broker): Promise<void> {
  const names = new Set(missing.map(({ name }) => name!));
  // Those that are too many for one request come with the next: clients ask again.
  let left = partitionsPerRequestMax;
  const first: string[] = [];
  for (const name of names) {
    left -= defaultPartitionCount(broker, name, new Map());
    if (left < 0) break;
    first.push(name);
  }
  await Promise.all(
    first.map((name) => {
      const underWay = broker.topics.creating(name);
      if (underWay !== undefined) return underWay;
      const partitionCount = defaultPartitionCount(broker, name, new Map());
      const room = broker.settings['max.partitions'] - broker.topics.partitionCount;
      if (partitionCount > room) return undefined;
      return broker.topics.create({ name, partitionCount, configs: new Map() });
    }),
  );
}

function lookUp(
  { name, topicId }: Requested,
  { broker, apiVersion }: RequestContext,
  placement: Placement,
): TopicResponse {
  if (topicId !== ZERO_UUID || name === null) {
    const byId = apiVersion >= 12 ? broker.topics.byId(topicId) : undefined;
    if (byId !== undefined) return describe(byId, placement);
    return unknown(ErrorCode.UNKNOWN_TOPIC_ID, apiVersion >= 12 ? null : (name ?? ''), topicId);
  }
  const topic = broker.topics.byName(name);
  if (topic !== undefined) return describe(topic, placement);
  const errorCode =
    topicNameError(name) === undefined
      ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
      : ErrorCode.INVALID_TOPIC_EXCEPTION;
  return unknown(errorCode, name, ZERO_UUID);
}

function unknown(errorCode: ErrorCode, name: string | null, topicId: string): TopicResponse {
  return { errorCode, name, topicId, partitions: [] };
}

/** All partitions are led by one node, and every voter has a replica of them. */
function describe(topic: Topic, placement: Placement): TopicResponse {
  const { partitions } = topic;
  const isLed = placement.leaderId >= 0;
  const errorCode = isLed ? ErrorCode.NONE : ErrorCode.LEADER_NOT_AVAILABLE;
  const describePartition = (_: number, partitionIndex: number): PartitionResponse => ({
    errorCode,
    partitionIndex,
    ...placement,
  });
  return {
    errorCode: ErrorCode.NONE,
    name: topic.name,
    topicId: topic.id,
    partitions:
      partitions.length <= wholePartitionsMax
        ? partitions.map(describePartition)
        : lazyMap(partitions, describePartition),
  };
}

function response<T>(
  topics: readonly T[],
  describeTopic: (topic: T) => TopicResponse | undefined,
  request: MetadataRequest,
  context: RequestContext,
): LazyInput<MetadataResponseInput> {
  const { broker, client } = context;
  const hasOperations = request.includeTopicAuthorizedOperations;
  const describeOne = (topic: T): TopicResponse | undefined => {
    const described = describeTopic(topic);
    return described !== undefined && hasOperations ? withOperations(described) : described;
  };
  return {
    brokers: broker.nodes.endpoints(client),
    clusterId: broker.replica.state.clusterId,
    controllerId: broker.nodes.leaderId,
    topics: lazyMap(topics, describeOne),
    ...(request.includeClusterAuthorizedOperations && {
      clusterAuthorizedOperations: allClusterOperations,
    }),
  };
}

function withOperations(topic: TopicResponse): TopicResponse {
  if (topic.errorCode !== ErrorCode.NONE) return topic;
  return { ...topic, topicAuthorizedOperations: allTopicOperations };
}
