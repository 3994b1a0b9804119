import { validateTopicConfigs } from '../config/topic-configs.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type CreateTopicsRequest,
  type CreateTopicsResponseInput,
  createTopicsRequest,
  createTopicsResponse,
} from '../protocol/schema/19-create-topics.ts';
import { ZERO_UUID } from '../protocol/uuid.ts';
import type { NewTopic } from '../replica/topic-planner.ts';
import { assignmentError } from './assignments.ts';
import type { Broker } from './broker.ts';
import { topicConfigEntries } from './config-entries.ts';
import { defaultPartitionCount } from './default-partitions.ts';
import { defineHandler } from './handler.ts';
import { outcomeError, type Refusal, refuse } from './refusal.ts';
import { topicNameError } from './topic-names.ts';

type TopicResult = CreateTopicsResponseInput['topics'][number];
type AskedTopic = CreateTopicsRequest['topics'][number];

/**
 * Kafka's bound for one request (ReplicationControlManager.MAX_PARTITIONS_PER_BATCH). Here it
 * bounds how long applying one topic takes.
 */
export const partitionsPerRequestMax = 10_000;
export const tooManyPartitions = 'Excessively large number of partitions per request.';

/** From this version on the answer describes what was created (KIP-525). */
const detailsFrom = 5;
/** The topic in which Kafka keeps its own metadata. */
const metadataTopic = '__cluster_metadata';

export const createTopics = defineHandler({
  request: createTopicsRequest,
  response: createTopicsResponse,
  versions: [0, 7],
  handle(request, { broker, apiVersion }, answer) {
    const { topics, validateOnly } = request;
    const { once, twice } = countNames(topics.map((topic) => topic.name));
    const single = topics.filter((topic) => once.has(topic.name));
    const creation = { broker, validateOnly, withDetails: apiVersion >= detailsFrom };
    const isTooMuch = totalPartitions(single, broker) > partitionsPerRequestMax;
    const created = single.map((topic) =>
      isTooMuch
        ? refused(topic.name, {
            errorCode: ErrorCode.POLICY_VIOLATION,
            errorMessage: tooManyPartitions,
          })
        : create(topic, creation),
    );
    const duplicates = [...twice].map((name) => refused(name, duplicateName));
    Promise.all([...created, ...duplicates]).then(
      (results) => answer({ topics: results }),
      (error: unknown) => broker.fatal(error),
    );
  },
});

interface Creation {
  readonly broker: Broker;
  readonly validateOnly: boolean;
  readonly withDetails: boolean;
}

export const duplicateName: Refusal = {
  errorCode: ErrorCode.INVALID_REQUEST,
  errorMessage: 'Duplicate topic name.',
};

/** Names that stand once in a request, and those that stand there more often. */
export function countNames(names: readonly string[]): { once: Set<string>; twice: Set<string> } {
  const once = new Set<string>();
  const twice = new Set<string>();
  for (const name of names) {
    if (once.has(name)) twice.add(name);
    once.add(name);
  }
  for (const name of twice) once.delete(name);
  return { once, twice };
}

function totalPartitions(topics: readonly AskedTopic[], broker: Broker): number {
  let total = 0;
  for (const topic of topics) total += Math.max(0, partitionCountOf(topic, broker));
  return total;
}

function partitionCountOf(topic: AskedTopic, broker: Broker): number {
  if (topic.assignments.length > 0) return topic.assignments.length;
  if (topic.numPartitions !== -1) return topic.numPartitions;
  const configs = topic.configs.map(({ name, value }) => [name, value ?? ''] as const);
  return defaultPartitionCount(broker, topic.name, new Map(configs));
}

async function create(topic: AskedTopic, creation: Creation): Promise<TopicResult> {
  const { name } = topic;
  const { broker, validateOnly, withDetails } = creation;
  // What becomes of a creation that is under way decides about this one.
  for (let other = broker.topics.creating(name); other !== undefined; ) {
    await other;
    other = broker.topics.creating(name);
  }
  const planned = judge(topic, broker);
  if ('errorCode' in planned) return refused(name, planned);
  if (!validateOnly) {
    broker.collisions.add(name);
    const outcome = await broker.topics.create(planned);
    const error = outcomeError(outcome);
    if (error !== undefined) {
      broker.collisions.drop(name);
      return refused(name, error);
    }
  }
  return {
    name,
    topicId: validateOnly ? ZERO_UUID : (broker.topics.byName(name)?.id ?? ZERO_UUID),
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    numPartitions: planned.partitionCount,
    replicationFactor: broker.nodes.voterIds.length,
    configs: withDetails ? describeConfigs(planned, broker) : null,
  };
}

/** The topic as it is to be created, or why it cannot be. The order of checks is Kafka's. */
function judge(topic: AskedTopic, broker: Broker): NewTopic | Refusal {
  const { name } = topic;
  const nameError = judgeName(name, broker);
  if (nameError !== undefined) return nameError;
  const configs = judgeConfigs(topic);
  if ('errorCode' in configs) return configs;
  const shapeError = judgeShape(topic, broker);
  if (shapeError !== undefined) return shapeError;
  const partitionCount = partitionCountOf(topic, broker);
  const room = broker.settings['max.partitions'] - broker.topics.partitionCount;
  if (partitionCount > room) {
    return {
      errorCode: ErrorCode.INVALID_PARTITIONS,
      errorMessage: `There is room for ${Math.max(0, room)} more partition(s) (max.partitions).`,
    };
  }
  if (!broker.replica.disk.mayGrow(0)) {
    return {
      errorCode: ErrorCode.KAFKA_STORAGE_ERROR,
      errorMessage: 'The disk of the broker is nearly full',
    };
  }
  return { name, partitionCount, configs: configs.configs };
}

function judgeName(name: string, broker: Broker): Refusal | undefined {
  if (name === metadataTopic) {
    return {
      errorCode: ErrorCode.INVALID_REQUEST,
      errorMessage: `Creation of internal topic ${name} is prohibited.`,
    };
  }
  const why = topicNameError(name);
  if (why !== undefined) {
    return refuse(ErrorCode.INVALID_TOPIC_EXCEPTION, `Topic name is invalid: ${why}`);
  }
  if (broker.topics.byName(name) !== undefined) {
    return {
      errorCode: ErrorCode.TOPIC_ALREADY_EXISTS,
      errorMessage: `Topic '${name}' already exists.`,
    };
  }
  for (const other of broker.collisions.with(name)) {
    const isThere = broker.topics.byName(other) ?? broker.topics.creating(other);
    if (isThere === undefined) continue;
    return {
      errorCode: ErrorCode.INVALID_TOPIC_EXCEPTION,
      errorMessage: `Topic '${name}' collides with existing topic: ${other}`,
    };
  }
  return undefined;
}

function judgeConfigs({ configs }: AskedTopic): Pick<NewTopic, 'configs'> | Refusal {
  const given = new Map<string, string>();
  const nulls: string[] = [];
  for (const { name, value } of configs) {
    if (value === null) nulls.push(name);
    else given.set(name, value);
  }
  if (nulls.length > 0) {
    return refuse(
      ErrorCode.INVALID_CONFIG,
      `Null value not supported for topic configs: ${nulls.join(',')}`,
    );
  }
  const valid = validateTopicConfigs(given);
  return 'error' in valid ? refuse(ErrorCode.INVALID_CONFIG, valid.error) : valid;
}

function judgeShape(topic: AskedTopic, broker: Broker): Refusal | undefined {
  const { numPartitions, replicationFactor } = topic;
  if (topic.assignments.length > 0) return judgeAssignments(topic, broker.nodes.voterIds);
  if (replicationFactor < -1 || replicationFactor === 0) {
    return {
      errorCode: ErrorCode.INVALID_REPLICATION_FACTOR,
      errorMessage: 'Replication factor must be larger than 0, or -1 to use the default value.',
    };
  }
  if (numPartitions < -1 || numPartitions === 0) {
    return {
      errorCode: ErrorCode.INVALID_PARTITIONS,
      errorMessage: 'Number of partitions was set to an invalid non-positive value.',
    };
  }
  const registered = broker.nodes.voterIds.length;
  if (replicationFactor > registered) {
    return {
      errorCode: ErrorCode.INVALID_REPLICATION_FACTOR,
      errorMessage:
        `Unable to replicate the partition ${replicationFactor} time(s): The target replication ` +
        `factor of ${replicationFactor} cannot be reached because only ${registered} broker(s) ` +
        'are registered.',
    };
  }
  return undefined;
}

function judgeAssignments(topic: AskedTopic, nodeIds: readonly number[]): Refusal | undefined {
  const { assignments } = topic;
  for (const [field, value] of [
    ['replication factor', topic.replicationFactor],
    ['numPartitions', topic.numPartitions],
  ] as const) {
    if (value === -1) continue;
    return {
      errorCode: ErrorCode.INVALID_REQUEST,
      errorMessage: `A manual partition assignment was specified, but ${field} was not set to -1.`,
    };
  }
  const why = assignmentsError(assignments, nodeIds);
  return why === undefined
    ? undefined
    : { errorCode: ErrorCode.INVALID_REPLICA_ASSIGNMENT, errorMessage: why };
}

function assignmentsError(
  assignments: AskedTopic['assignments'],
  nodeIds: readonly number[],
): string | undefined {
  const seen = new Set<number>();
  for (const { partitionIndex, brokerIds } of assignments) {
    if (seen.has(partitionIndex)) {
      return `Found multiple manual partition assignments for partition ${partitionIndex}`;
    }
    const why = assignmentError(brokerIds, nodeIds);
    if (why !== undefined) return why;
    seen.add(partitionIndex);
  }
  for (let index = 0; index < seen.size; index++) {
    if (!seen.has(index)) return 'partitions should be a consecutive 0-based integer sequence';
  }
  return undefined;
}

function describeConfigs(
  { name: topic, configs }: NewTopic,
  broker: Broker,
): TopicResult['configs'] {
  return topicConfigEntries(topic, configs, broker).map(({ name, value, readOnly, source }) => ({
    name,
    value,
    readOnly,
    configSource: source,
    isSensitive: false,
  }));
}

function refused(name: string, refusal: Refusal): TopicResult {
  return { name, topicId: ZERO_UUID, configs: [], ...refusal };
}
