import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type OffsetFetchRequest,
  type OffsetFetchResponseInput,
  offsetFetchRequest,
  offsetFetchResponse,
} from '../protocol/schema/09-offset-fetch.ts';
import { ZERO_UUID } from '../protocol/uuid.ts';
import type { CommittedOffset } from '../state/commands.ts';
import type { Topic } from '../state/topics.ts';
import type { Broker } from './broker.ts';
import { defineHandler } from './handler.ts';

type RequestGroup = OffsetFetchRequest['groups'][number];
type ResponseGroup = NonNullable<OffsetFetchResponseInput['groups']>[number];
type ResponseTopic = ResponseGroup['topics'][number];
type ResponsePartition = ResponseTopic['partitions'][number];

/** From this version on several groups are asked for at once (KIP-709). */
const batchedFrom = 8;
const topicIdsFrom = 10;

/**
 * What is not committed, or names no topic, group or partition that there is, is answered as "no
 * offset" and not as an error. Who wants stable offsets (KIP-447) waits for the commits that are
 * under way, so that a member which takes over a partition goes on where the last one stopped.
 */
export const offsetFetch = defineHandler({
  request: offsetFetchRequest,
  response: offsetFetchResponse,
  versions: [0, 10],
  handle(request, context, answer) {
    const { broker, apiVersion } = context;
    const answerNow = () => {
      if (apiVersion >= batchedFrom) {
        const groups = withoutRepeats(request.groups).map((group) =>
          fetchGroup(broker, apiVersion, group),
        );
        answer({ groups });
        return;
      }
      const topics = request.topics?.map((topic) => ({ ...topic, topicId: ZERO_UUID })) ?? null;
      const { groupId } = request;
      const group = { groupId, memberId: null, memberEpoch: -1, topics };
      answer({ topics: fetchGroup(broker, apiVersion, group).topics.map(named) });
    };
    const groupIds = apiVersion >= batchedFrom ? request.groups : [request];
    const isUnstable = groupIds.some(({ groupId }) => broker.offsets.isCommitting(groupId));
    if (request.requireStable && isUnstable) broker.replica.afterPlanned(answerNow);
    else answerNow();
  },
});

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

function fetchGroup(broker: Broker, apiVersion: number, group: RequestGroup): ResponseGroup {
  const { groupId } = group;
  const offsets = broker.replica.state.offsets.of(groupId);
  if (group.topics === null) return { groupId, topics: offsets ? all(broker, offsets) : [] };
  const byId = apiVersion >= topicIdsFrom;
  const topics = group.topics.map(({ name, topicId, partitionIndexes }): ResponseTopic => {
    const topic = byId ? broker.topics.byId(topicId) : broker.topics.byName(name);
    const partitions = partitionIndexes.map((index) => {
      if (topic === undefined && byId) return absent(index, ErrorCode.UNKNOWN_TOPIC_ID);
      const offset = committed(topic, index, offsets);
      return offset === undefined ? absent(index) : present(index, offset);
    });
    return { name, topicId, partitions };
  });
  return { groupId, topics };
}

/** Every offset of the group, by topic. */
function all(broker: Broker, offsets: ReadonlyMap<number, CommittedOffset>): ResponseTopic[] {
  const { partitions } = broker.replica.state.topics;
  const byTopic = new Map<Topic, ResponsePartition[]>();
  for (const [partition, offset] of offsets) {
    const topic = partitions.topic(partition)!;
    const found = byTopic.get(topic) ?? [];
    byTopic.set(topic, found);
    found.push(present(partitions.index(partition), offset));
  }
  return [...byTopic].map(([{ name, id }, found]) => ({ name, topicId: id, partitions: found }));
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
