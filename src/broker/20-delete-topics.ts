import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type DeleteTopicsRequest,
  type DeleteTopicsResponseInput,
  deleteTopicsRequest,
  deleteTopicsResponse,
} from '../protocol/schema/20-delete-topics.ts';
import { ZERO_UUID } from '../protocol/uuid.ts';
import type { Topic } from '../state/topics.ts';
import type { Broker } from './broker.ts';
import { defineHandler } from './handler.ts';
import { outcomeError, type Refusal } from './refusal.ts';

type TopicResult = DeleteTopicsResponseInput['responses'][number];
/** A name or an id; never both, in what is worth looking up. */
type Asked = DeleteTopicsRequest['topics'][number];

/** From this version on topics are given as structs, by name or by id. */
const structsFrom = 6;

export const deleteTopics = defineHandler({
  request: deleteTopicsRequest,
  response: deleteTopicsResponse,
  versions: [0, 6],
  handle(request, { broker, apiVersion }, answer) {
    const asked =
      apiVersion >= structsFrom
        ? request.topics
        : request.topicNames.map((name) => ({ name, topicId: ZERO_UUID }));
    deleteAll(asked, broker).then(
      (responses) => answer({ responses }),
      (error: unknown) => broker.fatal(error),
    );
  },
});

async function deleteAll(asked: readonly Asked[], broker: Broker): Promise<TopicResult[]> {
  // A topic whose creation is under way is there to be deleted once that is through.
  await Promise.all(asked.map(({ name }) => (name === null ? null : broker.topics.creating(name))));
  const results: (TopicResult | Promise<TopicResult>)[] = [];
  // All are looked up before any is deleted, so that a name and an id of one topic are noticed.
  const found: { topic: Topic; asked: Asked }[] = [];
  for (const { each, isDuplicate } of withoutRepeats(asked)) {
    const target = isDuplicate ? duplicate(each) : lookUp(each, broker);
    if ('errorCode' in target) results.push(refused(each, target));
    else found.push({ topic: target, asked: each });
  }
  const times = new Map<Topic, number>();
  for (const { topic } of found) times.set(topic, (times.get(topic) ?? 0) + 1);
  for (const { topic, asked: each } of found) {
    if (times.get(topic) === 1) results.push(deleteOne(topic, broker));
    else if (each.name !== null) results.push(refused({ ...each, topicId: topic.id }, sameTopic));
  }
  return Promise.all(results);
}

const sameTopic: Refusal = {
  errorCode: ErrorCode.INVALID_REQUEST,
  errorMessage: 'The provided topic name maps to an ID that was already supplied.',
};

function withoutRepeats(asked: readonly Asked[]): { each: Asked; isDuplicate: boolean }[] {
  const seen = new Map<string, { each: Asked; isDuplicate: boolean }>();
  for (const each of asked) {
    const key = `${each.name ?? ''} ${each.topicId}`;
    const before = seen.get(key);
    if (before === undefined) seen.set(key, { each, isDuplicate: false });
    else before.isDuplicate = true;
  }
  return [...seen.values()];
}

function duplicate({ name }: Asked): Refusal {
  return {
    errorCode: ErrorCode.INVALID_REQUEST,
    errorMessage: name === null ? 'Duplicate topic id.' : 'Duplicate topic name.',
  };
}

function lookUp({ name, topicId }: Asked, broker: Broker): Topic | Refusal {
  if (name !== null && topicId !== ZERO_UUID) {
    return {
      errorCode: ErrorCode.INVALID_REQUEST,
      errorMessage: 'You may not specify both topic name and topic id.',
    };
  }
  if (name !== null) {
    return (
      broker.topics.byName(name) ?? {
        errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        errorMessage: 'This server does not host this topic-partition.',
      }
    );
  }
  if (topicId === ZERO_UUID) {
    return {
      errorCode: ErrorCode.INVALID_REQUEST,
      errorMessage: 'Neither topic name nor id were specified.',
    };
  }
  return (
    broker.topics.byId(topicId) ?? {
      errorCode: ErrorCode.UNKNOWN_TOPIC_ID,
      errorMessage: 'This server does not host this topic ID.',
    }
  );
}

async function deleteOne(topic: Topic, broker: Broker): Promise<TopicResult> {
  const { name, id } = topic;
  const error = outcomeError(await broker.topics.delete(topic));
  return { name, topicId: id, errorCode: ErrorCode.NONE, errorMessage: null, ...error };
}

function refused({ name, topicId }: Asked, refusal: Refusal): TopicResult {
  return { name, topicId, ...refusal };
}
