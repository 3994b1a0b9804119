import { ErrorCode } from '../protocol/error-codes.ts';
import { fetchRequest } from '../protocol/schema/01-fetch.ts';
import type { Topic } from '../state/topics.ts';
import type { Broker } from './broker.ts';
import { type FetchPartitions, noRow } from './fetch-partitions.ts';
import {
  type FetchOptions,
  type FetchRequestView,
  type NamedTopic,
  RequestedPartitions,
  topicIdsFrom,
  viewFetchRequest,
} from './fetch-request.ts';
import { FetchResponseWriter } from './fetch-response.ts';
import { type FetchSession, nextEpoch } from './fetch-session.ts';
import type { Handler, RequestContext } from './handler.ts';
import { LaneFetch, namesLanes } from './keyed/lane-fetch.ts';
import { type Opened, PendingFetch } from './pending-fetch.ts';

const initialEpoch = 0;
const finalEpoch = -1;
const versions = [0, 18] as const;
/** Partitions of a request that are taken in one turn of the loop: less than a millisecond. */
const partitionsPerTurn = 1000;

/**
 * It does without the codec, which would make objects of what may be 100,000 partitions: see
 * fetch-request.ts and fetch-response.ts.
 */
export const fetch: Handler = {
  apiKey: fetchRequest.apiKey,
  versions,
  advertisedMin: versions[0],
  serve(frame, bodyStart, correlationId, context) {
    const request = viewFetchRequest(frame, bodyStart, context.apiVersion);
    // An answer may be large: it is made only when the ones before it are on their way.
    context.reply.onTurn(() => {
      startFetch(request, correlationId, context).catch((error: unknown) => {
        context.broker.fatal(error);
      });
    });
  },
};

async function startFetch(
  request: FetchRequestView,
  correlationId: number,
  context: RequestContext,
): Promise<void> {
  const { broker } = context;
  const hasLanes = namesLanes(request);
  if (hasLanes && broker.replica.mayAnswer) {
    new LaneFetch(context, correlationId, request).start();
    return;
  }
  // A node that does not lead knows no lanes: it is asked for partitions, and refers to the leader.
  // Lanes belong to no session: the next one might reach this node as the leader.
  const options = hasLanes ? { ...request.options, sessionEpoch: finalEpoch } : request.options;
  const opening = openSession(options, request.partitionCount, broker);
  const opened =
    typeof opening === 'number' ? opening : await openPartitions(opening, request, broker);
  if (typeof opened === 'number') {
    const writer = new FetchResponseWriter(context.apiVersion, correlationId, false);
    writer.begin(opened, 0, 0);
    context.reply.send(writer.finish());
    return;
  }
  await new PendingFetch(context, correlationId, request.options, opened).start();
}

/** What is asked about partitions that are known already, or about new ones; or an error. */
function openSession(
  options: FetchOptions,
  partitionCount: number,
  broker: Broker,
): Opened | ErrorCode {
  const { apiVersion, sessionId, sessionEpoch } = options;
  const { fetchSessions } = broker;
  const nowMs = broker.clock.monotonicMs();
  const usesTopicIds = apiVersion >= topicIdsFrom;
  const isInitial = sessionEpoch === initialEpoch;
  if (isInitial || sessionEpoch === finalEpoch || apiVersion < 7) {
    if (sessionId !== 0) fetchSessions.close(sessionId);
    const session =
      isInitial && partitionCount > 0
        ? fetchSessions.create(usesTopicIds, partitionCount, nowMs)
        : undefined;
    const partitions = session?.partitions ?? fetchSessions.newPartitions(partitionCount);
    return { partitions, session, isIncremental: false };
  }
  const session = fetchSessions.get(sessionId);
  if (session === undefined) return ErrorCode.FETCH_SESSION_ID_NOT_FOUND;
  if (session.usesTopicIds !== usesTopicIds) return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR;
  if (sessionEpoch !== session.epoch) return ErrorCode.INVALID_FETCH_SESSION_EPOCH;
  session.epoch = nextEpoch(session.epoch);
  fetchSessions.touch(session, nowMs);
  return { partitions: session.partitions, session, isIncremental: true };
}

/** Takes over what the request says of its partitions, when it is its turn in the session. */
async function openPartitions(
  opened: Opened,
  request: FetchRequestView,
  broker: Broker,
): Promise<Opened | ErrorCode> {
  const { partitions, session } = opened;
  if (session !== undefined) await session.enter();
  if (opened.isIncremental) await forget(partitions, request, broker);
  await addRequested(partitions, request, broker);
  if (opened.isIncremental && request.partitionCount > 0 && broker.fetchSessions.hasTooMany) {
    closeSession(session!, broker);
    return ErrorCode.FETCH_SESSION_ID_NOT_FOUND;
  }
  return opened;
}

async function addRequested(
  partitions: FetchPartitions,
  request: FetchRequestView,
  broker: Broker,
): Promise<void> {
  const byId = request.options.apiVersion >= topicIdsFrom;
  const requested = new RequestedPartitions(request);
  let named: NamedTopic | undefined;
  let topic: Topic | undefined;
  let number = -1;
  for (let steps = 1; requested.next(); steps++) {
    if (requested.topic !== named) {
      named = requested.topic!;
      topic = byId ? broker.topics.byId(named.id) : broker.topics.byName(named.name);
      number = partitions.topicNumber(named);
    }
    const { index, fetchOffset, bytesMax, currentLeaderEpoch } = requested;
    const stored = topic?.partitions[index] ?? -1;
    let row = partitions.find(number, index);
    if (row === noRow) row = partitions.add(number, index, stored);
    else partitions.markReady(row);
    partitions.ask(row, stored, fetchOffset, bytesMax, currentLeaderEpoch);
    if (steps % partitionsPerTurn === 0) {
      await nextTurn(broker);
      // Topics may have come and gone.
      named = undefined;
    }
  }
}

async function forget(
  partitions: FetchPartitions,
  request: FetchRequestView,
  broker: Broker,
): Promise<void> {
  let steps = 0;
  for (const topic of request.forgotten) {
    for (const index of topic.indexes) {
      // The topic goes with the last of its partitions, and comes anew with the next one.
      const number = partitions.findTopic(topic);
      const row = number === undefined ? noRow : partitions.find(number, index);
      if (row !== noRow) partitions.remove(row);
      if (++steps % partitionsPerTurn === 0) await nextTurn(broker);
    }
  }
}

function nextTurn({ clock }: Broker): Promise<void> {
  return new Promise((resolve) => clock.soon(resolve));
}

function closeSession(session: FetchSession, { fetchSessions }: Broker): void {
  fetchSessions.close(session.id);
  session.leave();
}
