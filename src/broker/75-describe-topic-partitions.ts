import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type DescribeTopicPartitionsRequest,
  type DescribeTopicPartitionsResponseInput,
  describeTopicPartitionsRequest,
  describeTopicPartitionsResponse,
} from '../protocol/schema/75-describe-topic-partitions.ts';
import { Lazy } from '../protocol/slices.ts';
import { ZERO_UUID } from '../protocol/uuid.ts';
import type { Broker } from './broker.ts';
import { defineHandler } from './handler.ts';
import type { Placement } from './nodes.ts';
import { allTopicOperations } from './operations.ts';
import { topicNameError } from './topic-names.ts';

type TopicResponse = DescribeTopicPartitionsResponseInput['topics'][number];
type PartitionResponse = TopicResponse['partitions'][number];
type Cursor = NonNullable<DescribeTopicPartitionsRequest['cursor']>;

/** Kafka's max.request.partition.size.limit. */
const partitionsMax = 2000;
/** Topics that one turn of the event loop looks through. */
const topicsPerTurn = 10_000;

export const describeTopicPartitions = defineHandler({
  request: describeTopicPartitionsRequest,
  response: describeTopicPartitionsResponse,
  versions: [0, 0],
  handle(request, { broker }, answer, answerInSlices) {
    const { cursor } = request;
    const names = request.topics.length === 0 ? undefined : namesFrom(request);
    // The topic of the cursor must be among those asked for, and its partition be one.
    const isRefused =
      cursor !== null &&
      (cursor.partitionIndex < 0 || (names !== undefined && names[0] !== cursor.topicName));
    if (isRefused) {
      const topics = request.topics.map(({ name }) => failed(name, ErrorCode.INVALID_REQUEST));
      answer({ throttleTimeMs: 0, topics });
      return;
    }
    const limit = Math.max(1, Math.min(request.responsePartitionLimit, partitionsMax));
    const page = new Page(broker, cursor, limit);
    answerInSlices({
      throttleTimeMs: 0,
      topics: new Lazy(page.topics(names)),
      // Known when the topics are written.
      get nextCursor() {
        return page.nextCursor;
      },
    });
  },
});

/** Names in order, from the cursor on, each once. */
function namesFrom({ topics, cursor }: DescribeTopicPartitionsRequest): string[] {
  const from = cursor?.topicName ?? '';
  const names = new Set(topics.map(({ name }) => name));
  return [...names].filter((name) => name >= from).sort(byOrder);
}

/**
 * The first `count` names of topics from a name on. There may be very many topics, of which a page
 * shows few: most are passed over by one comparison, none is sorted in vain. Yields where a turn of
 * the event loop may end.
 */
function* firstTopics(
  from: string,
  count: number,
  broker: Broker,
): Generator<undefined, readonly string[]> {
  let names: string[] = [];
  let bound: string | undefined;
  let looked = 0;
  for (const { name } of broker.topics.all()) {
    if (++looked % topicsPerTurn === 0) yield undefined;
    if (name < from || (bound !== undefined && name > bound)) continue;
    names.push(name);
    if (names.length < 2 * count) continue;
    names = inOrder(names).slice(0, count);
    bound = names.at(-1);
  }
  return inOrder(names).slice(0, count);
}

/** One that is made anew meanwhile comes twice. */
function inOrder(names: readonly string[]): string[] {
  return [...new Set(names)].sort(byOrder);
}

function byOrder(a: string, b: string): number {
  return a < b ? -1 : 1;
}

class Page {
  readonly #broker: Broker;
  readonly #cursor: Cursor | null;
  readonly #placement: Placement;
  #left: number;
  nextCursor: Cursor | null = null;

  constructor(broker: Broker, cursor: Cursor | null, limit: number) {
    this.#broker = broker;
    this.#cursor = cursor;
    this.#left = limit;
    this.#placement = broker.nodes.placement;
  }

  /** Without names those of the first topics; undefined is a pause. */
  *topics(given: readonly string[] | undefined): Generator<TopicResponse | undefined, void> {
    const from = this.#cursor?.topicName ?? '';
    const names = given ?? (yield* firstTopics(from, partitionsMax + 1, this.#broker));
    for (const name of names) {
      if (this.#left === 0) {
        this.nextCursor = { topicName: name, partitionIndex: 0 };
        return;
      }
      const isGone = given === undefined && this.#broker.topics.byName(name) === undefined;
      if (isGone) continue;
      yield this.#topic(name);
      if (this.nextCursor !== null) return;
    }
  }

  #topic(name: string): TopicResponse {
    const broker = this.#broker;
    const topic = broker.topics.byName(name);
    if (topic === undefined) {
      const isWrong = topicNameError(name) !== undefined;
      return {
        ...failed(
          name,
          isWrong ? ErrorCode.INVALID_TOPIC_EXCEPTION : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ),
        topicAuthorizedOperations: allTopicOperations,
      };
    }
    const first = this.#cursor?.topicName === name ? this.#cursor.partitionIndex : 0;
    const end = Math.min(topic.partitions.length, first + this.#left);
    const partitions: PartitionResponse[] = [];
    for (let index = first; index < end; index++) partitions.push(describe(index, this.#placement));
    if (end < topic.partitions.length) this.nextCursor = { topicName: name, partitionIndex: end };
    this.#left -= partitions.length;
    return {
      errorCode: ErrorCode.NONE,
      name,
      topicId: topic.id,
      partitions,
      topicAuthorizedOperations: allTopicOperations,
    };
  }
}

function failed(name: string, errorCode: ErrorCode): TopicResponse {
  return { errorCode, name, topicId: ZERO_UUID, partitions: [] };
}

/** All partitions are led by one node, and every voter has a replica of them. */
function describe(partitionIndex: number, placement: Placement): PartitionResponse {
  return {
    errorCode: ErrorCode.NONE,
    partitionIndex,
    ...placement,
    eligibleLeaderReplicas: [],
    lastKnownElr: [],
  };
}
