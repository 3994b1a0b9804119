import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type FetchRequest,
  type FetchResponseInput,
  fetchRequest,
  fetchResponse,
} from '../protocol/schema/01-fetch.ts';
import { ZERO_UUID } from '../protocol/uuid.ts';
import { FetchPartition, FetchPartitions } from './fetch-partitions.ts';
import { type FetchSession, nextEpoch } from './fetch-session.ts';
import { type Answer, defineHandler, type RequestContext } from './handler.ts';
import { PendingFetch } from './pending-fetch.ts';

/** From this version on topics are named by id alone (KIP-516). */
const topicIdsFrom = 13;
const initialEpoch = 0;
const finalEpoch = -1;

export const fetch = defineHandler({
  request: fetchRequest,
  response: fetchResponse,
  versions: [0, 18],
  handle(request, context, answer) {
    // An answer may be large: it is made only when the ones before it are on their way.
    context.reply.onTurn(() => startFetch(request, context, answer));
  },
});

function startFetch(
  request: FetchRequest,
  context: RequestContext,
  answer: Answer<typeof fetchResponse>,
): void {
  const opened = openPartitions(request, context);
  if (typeof opened === 'number') {
    answer(errorResponse(opened));
    return;
  }
  new PendingFetch(context, request, opened.partitions, opened.session, answer).start();
}

interface Opened {
  readonly partitions: FetchPartitions;
  readonly session: FetchSession | undefined;
  readonly isIncremental: boolean;
}

/** The partitions to look at, by session or by this request alone; or the error of the request. */
function openPartitions(request: FetchRequest, context: RequestContext): Opened | ErrorCode {
  const { broker, apiVersion } = context;
  const { sessionId, sessionEpoch } = request;
  const nowMs = broker.clock.monotonicMs();
  if (sessionEpoch === finalEpoch || apiVersion < 7) {
    if (sessionId !== 0) broker.fetchSessions.close(sessionId);
    const partitions = new FetchPartitions(broker.fetchWaiters);
    addRequested(partitions, request, context);
    return { partitions, session: undefined, isIncremental: false };
  }
  if (sessionEpoch === initialEpoch) {
    if (sessionId !== 0) broker.fetchSessions.close(sessionId);
    const hasPartitions = request.topics.length > 0;
    const session = hasPartitions
      ? broker.fetchSessions.create(apiVersion >= topicIdsFrom, nowMs)
      : undefined;
    const partitions = session?.partitions ?? new FetchPartitions(broker.fetchWaiters);
    addRequested(partitions, request, context);
    return { partitions, session, isIncremental: false };
  }
  const session = broker.fetchSessions.get(sessionId);
  if (session === undefined) return ErrorCode.FETCH_SESSION_ID_NOT_FOUND;
  if (session.usesTopicIds !== apiVersion >= topicIdsFrom) {
    return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR;
  }
  if (sessionEpoch !== session.epoch) return ErrorCode.INVALID_FETCH_SESSION_EPOCH;
  session.finishParked?.();
  session.epoch = nextEpoch(session.epoch);
  broker.fetchSessions.touch(session, nowMs);
  forget(session.partitions, request, apiVersion);
  addRequested(session.partitions, request, context);
  if (request.topics.length > 0 && broker.fetchSessions.hasTooMany) {
    broker.fetchSessions.close(sessionId);
    return ErrorCode.FETCH_SESSION_ID_NOT_FOUND;
  }
  return { partitions: session.partitions, session, isIncremental: true };
}

function keyOf(topicName: string, topicId: string, index: number): string {
  return topicId === ZERO_UUID ? `${index}:${topicName}` : `${index}:${topicId}`;
}

function addRequested(
  partitions: FetchPartitions,
  request: FetchRequest,
  { broker, apiVersion }: RequestContext,
): void {
  const byId = apiVersion >= topicIdsFrom;
  for (const { topic: topicName, topicId, partitions: requested } of request.topics) {
    const topic = byId ? broker.topics.byId(topicId) : broker.topics.byName(topicName);
    for (const item of requested) {
      const index = item.partition;
      const stored = topic?.partitions[index] ?? -1;
      const key = keyOf(topicName, topicId, index);
      let partition = partitions.get(key);
      if (partition === undefined) {
        partition = new FetchPartition(partitions, topicName, topicId, index, stored);
        partitions.add(key, partition);
      } else partitions.markReady(partition);
      if (partition.partition !== stored) partitions.rebind(partition, stored);
      partition.fetchOffset = item.fetchOffset;
      partition.bytesMax = item.partitionMaxBytes;
      partition.currentLeaderEpoch = item.currentLeaderEpoch;
      partition.lastFetchedEpoch = item.lastFetchedEpoch;
    }
  }
}

function forget(partitions: FetchPartitions, request: FetchRequest, apiVersion: number): void {
  for (const { topic, topicId, partitions: indexes } of request.forgottenTopicsData) {
    const id = apiVersion >= topicIdsFrom ? topicId : ZERO_UUID;
    for (const index of indexes) partitions.remove(keyOf(topic, id, index));
  }
}

function errorResponse(errorCode: ErrorCode): FetchResponseInput {
  return { errorCode, sessionId: 0, responses: [] };
}
