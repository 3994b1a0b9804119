import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type CreatePartitionsRequest,
  type CreatePartitionsResponseInput,
  createPartitionsRequest,
  createPartitionsResponse,
} from '../protocol/schema/37-create-partitions.ts';
import type { Topic } from '../state/topics.ts';
import {
  countNames,
  duplicateName,
  partitionsPerRequestMax,
  tooManyPartitions,
} from './19-create-topics.ts';
import { assignmentError } from './assignments.ts';
import type { Broker } from './broker.ts';
import { defineHandler } from './handler.ts';
import { outcomeError, type Refusal } from './refusal.ts';

type TopicResult = CreatePartitionsResponseInput['results'][number];
type AskedTopic = CreatePartitionsRequest['topics'][number];

export const createPartitions = defineHandler({
  request: createPartitionsRequest,
  response: createPartitionsResponse,
  versions: [0, 3],
  handle(request, { broker }, answer) {
    const { topics, validateOnly } = request;
    const { once, twice } = countNames(topics.map((topic) => topic.name));
    const changed = topics
      .filter((topic) => once.has(topic.name))
      .map((topic) => grow(topic, validateOnly, broker));
    const duplicates = [...twice].map((name) => ({ name, ...duplicateName }));
    Promise.all([...changed, ...duplicates]).then(
      (results) => answer({ throttleTimeMs: 0, results }),
      (error: unknown) => broker.fatal(error),
    );
  },
});

async function grow(
  asked: AskedTopic,
  validateOnly: boolean,
  broker: Broker,
): Promise<TopicResult> {
  const { name } = asked;
  const { topics, replica } = broker;
  await topics.creating(name);
  let topic = topics.byName(name);
  // Counts are judged on what is applied, so a change that is under way comes first.
  while (topic !== undefined && topics.isGrowing(topic.id)) {
    await new Promise((resolve) => replica.afterPlanned(resolve));
    topic = topics.byName(name);
  }
  if (topic === undefined) {
    return {
      name,
      errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      errorMessage: 'This server does not host this topic-partition.',
    };
  }
  const refusal = judge(asked, topic, broker);
  if (refusal !== undefined) return { name, ...refusal };
  const result = { name, errorCode: ErrorCode.NONE, errorMessage: null };
  if (validateOnly) return result;
  const outcome = await topics.addPartitions(topic, asked.count - topic.partitions.length);
  return { ...result, ...outcomeError(outcome) };
}

function judge(asked: AskedTopic, topic: Topic, broker: Broker): Refusal | undefined {
  const { count, assignments } = asked;
  const present = topic.partitions.length;
  if (count <= present) {
    return {
      errorCode: ErrorCode.INVALID_PARTITIONS,
      errorMessage:
        count === present
          ? `Topic already has ${present} partition(s).`
          : `The topic ${topic.name} currently has ${present} partition(s); ${count} would not ` +
            'be an increase.',
    };
  }
  const added = count - present;
  const assignedWrongly = assignments === null ? undefined : wrong(assignments, added, broker);
  if (assignedWrongly !== undefined) {
    return {
      errorCode: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
      errorMessage: assignedWrongly,
    };
  }
  if (added > partitionsPerRequestMax) {
    return { errorCode: ErrorCode.POLICY_VIOLATION, errorMessage: tooManyPartitions };
  }
  const room = broker.settings['max.partitions'] - broker.topics.partitionCount;
  if (added > room) {
    return {
      errorCode: ErrorCode.INVALID_PARTITIONS,
      errorMessage: `There is room for ${Math.max(0, room)} more partition(s) (max.partitions).`,
    };
  }
  if (broker.replica.disk.mayGrow(0)) return undefined;
  return {
    errorCode: ErrorCode.KAFKA_STORAGE_ERROR,
    errorMessage: 'The disk of the broker is nearly full',
  };
}

function wrong(
  assignments: NonNullable<AskedTopic['assignments']>,
  added: number,
  broker: Broker,
): string | undefined {
  if (assignments.length !== added) {
    return (
      `Attempted to add ${added} additional partition(s), but only ${assignments.length} ` +
      'assignment(s) were specified.'
    );
  }
  for (const { brokerIds } of assignments) {
    const why = assignmentError(brokerIds, broker.nodes.voterIds);
    if (why !== undefined) return why;
  }
  return undefined;
}
