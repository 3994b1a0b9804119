/** Fetch sessions of many partitions: what a fetch costs, and what comes between its slices. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { FetchLook } from '../../src/broker/fetch-look.ts';
import { fetchRequest, fetchResponse } from '../../src/protocol/schema/01-fetch.ts';
import { batchOf, produceTo, recordsOf } from './records.ts';
import { startTestNode, type TestClient, type TestNode, until } from './support.ts';

const topics = 10;
const partitions = 1000;

interface Ask {
  readonly sessionId?: number;
  readonly sessionEpoch: number;
  readonly maxWaitMs?: number;
  readonly named?: readonly (readonly [topic: number, partition: number, offset: number])[];
}

async function ask(
  client: TestClient,
  { sessionId = 0, sessionEpoch, maxWaitMs, named = [] }: Ask,
) {
  const numbers = [...new Set(named.map(([topic]) => topic))];
  const answer = await client.ask(fetchRequest, fetchResponse, 12, {
    ...{ sessionId, sessionEpoch, maxWaitMs: maxWaitMs ?? 0, minBytes: 1 },
    topics: numbers.map((number) => ({
      topic: `t${number}`,
      partitions: named
        .filter(([topic]) => topic === number)
        .map(([, partition, fetchOffset]) => ({
          ...{ partition, fetchOffset, partitionMaxBytes: 1_000_000 },
        })),
    })),
    forgottenTopicsData: [],
  });
  assert.equal(answer.errorCode, 0);
  const told = answer.responses.flatMap(({ topic, partitions: some }) =>
    some.map(({ partitionIndex, records }) => ({
      ...{ topic, partitionIndex, count: recordsOf(records).length },
    })),
  );
  return { sessionId: answer.sessionId, told };
}

/** How many partitions the next fetch of the session would look at. */
function looksOf({ broker }: TestNode, sessionId: number): number {
  const session = broker.fetchSessions.get(sessionId)!;
  const look = new FetchLook(broker, session.partitions, {
    ...{ bytesMax: 1_000_000, knowsTopicIds: false, endsWhenFull: true, oneOfEach: false },
  });
  let next = look.run();
  while (next === 'pause') next = look.run();
  assert.equal(next, undefined);
  return look.looks;
}

test('a fetch of a large session costs what has news, and nothing for the rest', async (t) => {
  const node = await startTestNode(t);
  for (let topic = 0; topic < topics; topic++) await node.createTopic(`t${topic}`, partitions);
  const client = await node.connect();
  const named = Array.from({ length: topics * partitions }, (_, i) => {
    return [i % topics, Math.floor(i / topics), 0] as const;
  });
  const { sessionId, told } = await ask(client, { sessionEpoch: 0, named });
  assert.equal(new Set(told.map((each) => `${each.topic}:${each.partitionIndex}`)).size, 10_000);
  assert.equal(told.length, 10_000);
  assert.equal(looksOf(node, sessionId), 0);
  for (const partition of [7, 700]) {
    await produceTo(client, { topic: 't3', partition, records: batchOf(['a', 'b']) });
  }
  await produceTo(client, { topic: 't5', partition: 1, records: batchOf(['c']) });
  assert.equal(looksOf(node, sessionId), 3);
  const news = await ask(client, { sessionId, sessionEpoch: 1 });
  assert.deepEqual(news.told, [
    { topic: 't3', partitionIndex: 7, count: 2 },
    { topic: 't3', partitionIndex: 700, count: 2 },
    { topic: 't5', partitionIndex: 1, count: 1 },
  ]);
  const moved = await ask(client, {
    sessionId,
    sessionEpoch: 2,
    named: [
      [3, 7, 2],
      [5, 1, 1],
    ],
  });
  assert.deepEqual(moved.told, [{ topic: 't3', partitionIndex: 700, count: 2 }]);
  // The one whose position has not moved is looked at each time.
  assert.equal(looksOf(node, sessionId), 1);
  // A topic that goes is news of its own partitions only.
  await node.broker.topics.delete(node.broker.topics.byName('t8')!);
  assert.equal(looksOf(node, sessionId), 1 + partitions);
  const registered = node.broker.fetchWaiters.count;
  assert.equal(registered, topics * partitions);
  await ask(client, { sessionId, sessionEpoch: -1 });
  assert.equal(node.broker.fetchWaiters.count, 0);
});

test('what is appended while an answer is read from disk is told by the next one', async (t) => {
  const node = await startTestNode(t, { settings: { 'journal.recent.bytes': 0 } });
  await node.createTopic('t0', 2);
  const client = await node.connect();
  const producer = await node.connect();
  await produceTo(producer, { topic: 't0', partition: 0, records: batchOf(['old']) });
  const { reader } = node.broker;
  const read = reader.read.bind(reader);
  let reads = 0;
  reader.readRecent = () => undefined;
  reader.read = async (plans) => {
    if (reads++ === 0) {
      await produceTo(producer, { topic: 't0', partition: 1, records: batchOf(['new']) });
    }
    return read(plans);
  };
  const named = [
    [0, 0, 0],
    [0, 1, 0],
  ] as const;
  const first = await ask(client, { sessionEpoch: 0, named });
  assert.deepEqual(
    first.told.map(({ count }) => count),
    [1, 0],
  );
  const { sessionId } = first;
  const next = await ask(client, { sessionId, sessionEpoch: 1, named: [[0, 0, 1]] });
  assert.deepEqual(next.told, [{ topic: 't0', partitionIndex: 1, count: 1 }]);
});

test('a session serves one fetch at a time, also over several connections', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('t0', 2);
  const client = await node.connect();
  const other = await node.connect();
  const named = [
    [0, 0, 0],
    [0, 1, 0],
  ] as const;
  const { sessionId } = await ask(client, { sessionEpoch: 0, named });
  const parked = ask(client, { sessionId, sessionEpoch: 1, maxWaitMs: 60_000 });
  await until(() => node.broker.parkedCount === 1, 'the fetch is parked');
  const second = ask(other, { sessionId, sessionEpoch: 2, maxWaitMs: 60_000 });
  assert.deepEqual((await parked).told, []);
  await until(() => node.broker.parkedCount === 1, 'the second one is parked');
  other.close();
  await assert.rejects(second);
  await until(() => node.broker.parkedCount === 0, 'nothing is parked');
  // Its client is gone, and the session is free for the next fetch.
  await produceTo(client, { topic: 't0', partition: 1, records: batchOf(['a']) });
  const third = await ask(client, { sessionId, sessionEpoch: 3 });
  assert.deepEqual(third.told, [{ topic: 't0', partitionIndex: 1, count: 1 }]);
});
