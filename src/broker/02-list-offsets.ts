import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type ListOffsetsRequest,
  type ListOffsetsResponseInput,
  listOffsetsRequest,
  listOffsetsResponse,
} from '../protocol/schema/02-list-offsets.ts';
import type { Broker } from './broker.ts';
import { defineHandler, type RequestContext } from './handler.ts';
import { findMaxTimestampOffset, findTimestampOffset, type NotFound } from './timestamp-search.ts';

type RequestPartition = ListOffsetsRequest['topics'][number]['partitions'][number];
type ResponsePartition = ListOffsetsResponseInput['topics'][number]['partitions'][number];

/** The timestamps that are questions of their own, and since which version. */
const Special = { latest: -1, earliest: -2, maxTimestamp: -3, earliestLocal: -4 } as const;
const latestTiered = -5;
const earliestPendingUpload = -6;

export const listOffsets = defineHandler({
  request: listOffsetsRequest,
  response: listOffsetsResponse,
  versions: [0, 11],
  handle(request, context, answer) {
    const { broker } = context;
    findAll(request, context).then(
      (topics) => topics !== undefined && answer({ topics }),
      (error: unknown) => broker.fatal(error),
    );
  },
});

/** What one turn of the event loop answers, in offsets that are known; a search is like many. */
const turnWorkMax = 1024;
const searchWork = 64;
/** Names of partitions that one turn looks through. */
const countedPerTurn = 10_000;

function nextTurn({ clock }: Broker): Promise<void> {
  return new Promise((resolve) => clock.soon(resolve));
}

/**
 * One partition after the other: each may read a batch, and a request may name very many. Nothing
 * if the client goes meanwhile.
 */
async function findAll(
  request: ListOffsetsRequest,
  context: RequestContext,
): Promise<ListOffsetsResponseInput['topics'] | undefined> {
  const { broker, apiVersion, onClosed } = context;
  const repeated = await repeatedPartitions(request, broker);
  let isGone = false;
  const forgetClose = onClosed(() => {
    isGone = true;
  });
  const topics = [];
  let work = 0;
  for (const { name, partitions } of request.topics) {
    const found: ResponsePartition[] = [];
    for (const partition of partitions) {
      const { partitionIndex, timestamp } = partition;
      work += timestamp >= 0 || timestamp === Special.maxTimestamp ? searchWork : 1;
      if (work > turnWorkMax) {
        await nextTurn(broker);
        work = 0;
      }
      if (isGone) return undefined;
      const isRepeated = repeated.has(name, partitionIndex);
      found.push(
        isRepeated
          ? { partitionIndex, errorCode: ErrorCode.INVALID_REQUEST }
          : (laneEnd(context, name, partition) ??
              (await find(broker, apiVersion, name, partition))),
      );
    }
    topics.push({ name, partitions: found });
  }
  forgetClose();
  return topics;
}

/**
 * As in Kafka a partition that is named twice is refused (ListOffsetsRequest.duplicatePartitions).
 * So a request has no more to search than there are partitions.
 */
async function repeatedPartitions(
  { topics }: ListOffsetsRequest,
  broker: Broker,
): Promise<PartitionSet> {
  const seen = new PartitionSet();
  const repeated = new PartitionSet();
  let count = 0;
  for (const { name, partitions } of topics) {
    for (const { partitionIndex } of partitions) {
      if (++count % countedPerTurn === 0) await nextTurn(broker);
      if (!seen.add(name, partitionIndex)) repeated.add(name, partitionIndex);
    }
  }
  return repeated;
}

class PartitionSet {
  readonly #byTopic = new Map<string, Set<number>>();

  has(topicName: string, index: number): boolean {
    return this.#byTopic.get(topicName)?.has(index) ?? false;
  }

  /** False if it was there before. */
  add(topicName: string, index: number): boolean {
    const indexes = this.#byTopic.get(topicName) ?? new Set();
    this.#byTopic.set(topicName, indexes);
    const before = indexes.size;
    return indexes.add(index).size > before;
  }
}

/** The end of a lane, for the member that was told its position and asks for the end of it. */
function laneEnd(
  { broker, client, clientId }: RequestContext,
  topicName: string,
  { partitionIndex, timestamp }: RequestPartition,
): ResponsePartition | undefined {
  if (timestamp !== Special.latest) return undefined;
  const asker = { memberId: null, client, clientId };
  const offset = broker.keyed.laneEnd(topicName, partitionIndex, asker);
  if (offset === undefined) return undefined;
  return { partitionIndex, errorCode: ErrorCode.NONE, timestamp: -1, offset, leaderEpoch: -1 };
}

interface Found {
  readonly offset: number;
  readonly timestamp: number;
}

async function find(
  broker: Broker,
  apiVersion: number,
  topicName: string,
  asked: RequestPartition,
): Promise<ResponsePartition> {
  const { partitionIndex, currentLeaderEpoch, timestamp } = asked;
  const partition = broker.topics.byName(topicName)?.partitions[partitionIndex];
  const error = (errorCode: ErrorCode): ResponsePartition => ({ partitionIndex, errorCode });
  if (partition === undefined) return error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  const { leaderEpoch, mayAnswer } = broker.replica;
  if (!mayAnswer) return error(ErrorCode.NOT_LEADER_OR_FOLLOWER);
  if (currentLeaderEpoch >= 0 && currentLeaderEpoch < leaderEpoch) {
    return error(ErrorCode.FENCED_LEADER_EPOCH);
  }
  if (currentLeaderEpoch > leaderEpoch) return error(ErrorCode.UNKNOWN_LEADER_EPOCH);
  if (!isAskable(timestamp, apiVersion)) return error(ErrorCode.UNSUPPORTED_VERSION);
  const found = await lookUp(broker, partition, timestamp);
  if (found === 'damaged') return error(ErrorCode.CORRUPT_MESSAGE);
  if (found === 'stopped') return error(ErrorCode.NOT_LEADER_OR_FOLLOWER);
  if (apiVersion === 0) {
    return {
      partitionIndex,
      errorCode: ErrorCode.NONE,
      oldStyleOffsets: oldStyle(broker, partition, asked, found),
    };
  }
  return {
    partitionIndex,
    errorCode: ErrorCode.NONE,
    timestamp: found.timestamp,
    offset: found.offset,
    ...(apiVersion >= 4 && { leaderEpoch: found.offset < 0 ? -1 : leaderEpoch }),
  };
}

/** Special timestamps came one by one (KIP-734, KIP-405, KIP-1005, KIP-1023). */
function isAskable(timestamp: number, apiVersion: number): boolean {
  switch (timestamp) {
    case Special.maxTimestamp:
      return apiVersion >= 7;
    case Special.earliestLocal:
      return apiVersion >= 8;
    case latestTiered:
      return apiVersion >= 9;
    case earliestPendingUpload:
      return apiVersion >= 11;
    default:
      return timestamp >= Special.earliest;
  }
}

async function lookUp(
  broker: Broker,
  partition: number,
  timestamp: number,
): Promise<Found | NotFound> {
  const state = broker.replica.state.topics.partitions;
  switch (timestamp) {
    case Special.latest:
      return { offset: state.end(partition), timestamp: -1 };
    case Special.earliest:
    case Special.earliestLocal:
      return { offset: state.logStart(partition), timestamp: -1 };
    case Special.maxTimestamp:
      return findMaxTimestampOffset(broker, partition);
    case latestTiered:
    case earliestPendingUpload:
      return { offset: -1, timestamp: -1 };
    default:
      return findTimestampOffset(broker, partition, timestamp);
  }
}

/**
 * Version 0 answers with segment starts, newest first: here a partition has one segment, from
 * its log start to its end.
 */
function oldStyle(
  broker: Broker,
  partition: number,
  asked: RequestPartition,
  found: Found,
): number[] {
  const state = broker.replica.state.topics.partitions;
  const start = state.logStart(partition);
  const { timestamp } = asked;
  // After the last record come those that are later than any time so far.
  const isAtEnd = timestamp === Special.latest || (timestamp >= 0 && found.offset < 0);
  const offsets = [isAtEnd ? state.end(partition) : found.offset, start];
  return [...new Set(offsets)].slice(0, Math.max(0, asked.maxNumOffsets));
}
