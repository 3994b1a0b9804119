import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type OffsetFetchRequest,
  type OffsetFetchResponseInput,
  offsetFetchRequest,
  offsetFetchResponse,
} from '../protocol/schema/09-offset-fetch.ts';
import { Lazy, type LazyInput, lazyMap } from '../protocol/slices.ts';
import { ZERO_UUID } from '../protocol/uuid.ts';
import type { CommittedOffset } from '../state/commands.ts';
import type { Topic } from '../state/topics.ts';
import type { Broker } from './broker.ts';
import { defineHandler, type RequestContext } from './handler.ts';
import { offsetsFor } from './keyed/lane-offsets.ts';

type RequestGroup = OffsetFetchRequest['groups'][number];
type ResponseGroup = NonNullable<OffsetFetchResponseInput['groups']>[number];
type ResponseTopic = LazyInput<ResponseGroup['topics'][number]>;
type ResponsePartition = ResponseGroup['topics'][number]['partitions'][number];

/** From this version on several groups are asked for at once (KIP-709). */
const batchedFrom = 8;
const topicIdsFrom = 10;
/** Lists that are longer are written over several turns. */
const wholePartitionsMax = 1000;
/** How many offsets of a group are gone through in one turn. */
const offsetsPerTurn = 20_000;

/**
 * What is not committed, or names no topic, group or partition that there is, is answered as "no
 * offset" and not as an error. Who wants stable offsets (KIP-447) waits for the commits that are
 * under way, so that a member which takes over a partition goes on where the last one stopped.
 */
export const offsetFetch = defineHandler({
  request: offsetFetchRequest,
  response: offsetFetchResponse,
  versions: [0, 10],
  handle(request, context, answer, answerInSlices) {
    const { broker, apiVersion } = context;
    if (!broker.groups.isCoordinator) {
      answer(notCoordinator(request, apiVersion));
      return;
    }
    const answerNow = () => {
      if (apiVersion >= batchedFrom) {
        const groups = withoutRepeats(request.groups);
        const fetchOne = (group: RequestGroup) => fetchGroup(context, group);
        answerInSlices({ groups: lazyMap(groups, fetchOne) });
        return;
      }
      const topics = request.topics?.map((topic) => ({ ...topic, topicId: ZERO_UUID })) ?? null;
      const { groupId } = request;
      const group = { groupId, memberId: null, memberEpoch: -1, topics };
      answerInSlices({ topics: fetchTopics(context, group, named) });
    };
    const groupIds = apiVersion >= batchedFrom ? request.groups : [request];
    for (const { groupId, memberId } of request.groups) {
      if (memberId !== null) broker.groups.heardFrom(context, groupId, memberId);
    }
    const isUnstable = groupIds.some(({ groupId }) => broker.offsets.isCommitting(groupId));
    // Where a lane begins is told when that is durable: another leader would know nothing of it.
    const tellsLanes = groupIds.some(({ groupId }) => [...broker.keyed.of(groupId)].length > 0);
    if (tellsLanes || (request.requireStable && isUnstable)) {
      broker.replica.afterPlanned((outcome) => {
        if (outcome === 'applied') answerNow();
        else answer(notCoordinator(request, apiVersion));
      });
    } else answerNow();
  },
});

/** Before version 2 there is no place for an error but beside each partition. */
function notCoordinator(request: OffsetFetchRequest, apiVersion: number) {
  const errorCode = ErrorCode.NOT_COORDINATOR;
  if (apiVersion >= batchedFrom) {
    const groups = withoutRepeats(request.groups);
    return { groups: groups.map(({ groupId }) => ({ groupId, topics: [], errorCode })) };
  }
  const topics = (request.topics ?? []).map(({ name, partitionIndexes }) => ({
    name,
    partitions: partitionIndexes.map((index) => absent(index, errorCode)),
  }));
  return { topics, ...(apiVersion >= 2 && { errorCode }) };
}

/**
 * A small request that wants everything of one group a million times must not cost a million
 * lists: only the first counts.
 */
function withoutRepeats(groups: readonly RequestGroup[]): RequestGroup[] {
  const wholly = new Set<string>();
  return groups.filter(({ groupId, topics }) => {
    const isRepeat = topics === null && wholly.has(groupId);
    if (topics === null) wholly.add(groupId);
    return !isRepeat;
  });
}

/** The field is optional in later versions only. */
function named(topic: ResponseTopic) {
  return { ...topic, name: topic.name ?? '' };
}

function fetchGroup(context: RequestContext, group: RequestGroup): LazyInput<ResponseGroup> {
  const same = (topic: ResponseTopic) => topic;
  return { groupId: group.groupId, topics: fetchTopics(context, group, same) };
}

/** The topics of a group, each in the form that the version wants. */
function fetchTopics<T>(
  { broker, apiVersion, client, clientId }: RequestContext,
  { groupId, memberId, topics }: RequestGroup,
  form: (topic: ResponseTopic) => T,
): Lazy<T> {
  const offsets = offsetsFor(broker, groupId, { memberId, clientId, client });
  if (topics === null) return new Lazy(offsets ? all(broker, offsets, form) : []);
  const byId = apiVersion >= topicIdsFrom;
  return lazyMap(topics, ({ name, topicId, partitionIndexes }) => {
    const topic = byId ? broker.topics.byId(topicId) : broker.topics.byName(name);
    const fetchOne = (index: number): ResponsePartition => {
      if (topic === undefined && byId) return absent(index, ErrorCode.UNKNOWN_TOPIC_ID);
      const offset = committed(topic, index, offsets);
      return offset === undefined ? absent(index) : present(index, offset);
    };
    return form({ name, topicId, partitions: listOf(partitionIndexes, fetchOne) });
  });
}

/** Every offset of the group, by topic. Of very many only those of one turn are of one moment. */
function* all<T>(
  broker: Broker,
  offsets: ReadonlyMap<number, CommittedOffset>,
  form: (topic: ResponseTopic) => T,
): Generator<T | undefined, void> {
  const { partitions } = broker.replica.state.topics;
  const byTopic = new Map<Topic, [index: number, offset: CommittedOffset][]>();
  let count = 0;
  for (const [partition, offset] of offsets) {
    const topic = partitions.topic(partition);
    // The group may be deleted meanwhile, and then the topic.
    if (topic === undefined) continue;
    const found = byTopic.get(topic);
    const one: [number, CommittedOffset] = [partitions.index(partition), offset];
    if (found === undefined) byTopic.set(topic, [one]);
    else found.push(one);
    if (++count % offsetsPerTurn === 0) yield undefined;
  }
  for (const [{ name, id }, found] of byTopic) {
    const list = listOf(found, ([index, offset]) => present(index, offset));
    yield form({ name, topicId: id, partitions: list });
  }
}

function listOf<T>(
  items: readonly T[],
  make: (item: T) => ResponsePartition,
): ResponsePartition[] | Lazy<ResponsePartition> {
  return items.length <= wholePartitionsMax ? items.map(make) : lazyMap(items, make);
}

function committed(
  topic: Topic | undefined,
  index: number,
  offsets: ReadonlyMap<number, CommittedOffset> | undefined,
): CommittedOffset | undefined {
  const partition = topic?.partitions[index];
  return partition === undefined ? undefined : offsets?.get(partition);
}

function present(partitionIndex: number, offset: CommittedOffset): ResponsePartition {
  return {
    partitionIndex,
    committedOffset: offset.offset,
    committedLeaderEpoch: offset.leaderEpoch,
    metadata: offset.metadata,
    errorCode: ErrorCode.NONE,
  };
}

function absent(partitionIndex: number, errorCode: ErrorCode = ErrorCode.NONE): ResponsePartition {
  return { partitionIndex, committedOffset: -1, metadata: '', errorCode };
}
