import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  describeTopicPartitionsRequest,
  describeTopicPartitionsResponse,
} from '../../src/protocol/schema/75-describe-topic-partitions.ts';
import { startTestNode, type TestClient } from './support.ts';

type Cursor = readonly [topicName: string, partitionIndex: number];

interface Asked {
  readonly names?: readonly string[];
  readonly limit?: number;
  readonly cursor?: Cursor | null;
}

async function describe(client: TestClient, { names = [], limit = 2000, cursor = null }: Asked) {
  const answer = await client.ask(
    describeTopicPartitionsRequest,
    describeTopicPartitionsResponse,
    0,
    {
      topics: names.map((name) => ({ name })),
      responsePartitionLimit: limit,
      cursor: cursor && { topicName: cursor[0], partitionIndex: cursor[1] },
    },
  );
  const topics = answer.topics.map(({ name, errorCode, partitions }) => [
    name,
    errorCode,
    partitions.map(({ partitionIndex }) => partitionIndex),
  ]);
  const { nextCursor } = answer;
  return { topics, next: nextCursor && [nextCursor.topicName, nextCursor.partitionIndex] };
}

test('topics are described in the order of their names, each once', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  for (const [name, count] of [
    ['b', 2],
    ['a', 1],
    ['c', 1],
  ] as const) {
    await node.createTopic(name, count);
  }
  const a = ['a', ErrorCode.NONE, [0]];
  const b = ['b', ErrorCode.NONE, [0, 1]];
  const c = ['c', ErrorCode.NONE, [0]];
  assert.deepEqual(await describe(client, {}), { topics: [a, b, c], next: null });
  const named = await describe(client, { names: ['b', 'a', 'b', 'no', 'a b'] });
  assert.deepEqual(named, {
    topics: [
      a,
      ['a b', ErrorCode.INVALID_TOPIC_EXCEPTION, []],
      b,
      ['no', ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []],
    ],
    next: null,
  });
});

test('what a partition is', async (t) => {
  const node = await startTestNode(t, { settings: { 'node.id': 4 } });
  const client = await node.connect();
  const topic = await node.createTopic('orders');
  const answer = await client.ask(
    describeTopicPartitionsRequest,
    describeTopicPartitionsResponse,
    0,
    { topics: [{ name: 'orders' }] },
  );
  const [found] = answer.topics;
  assert.equal(found?.topicId, topic.id);
  assert.equal(found?.isInternal, false);
  // What Apache Kafka answers where nothing is forbidden.
  assert.equal(found?.topicAuthorizedOperations, 3576);
  assert.deepEqual(found?.partitions, [
    {
      errorCode: ErrorCode.NONE,
      partitionIndex: 0,
      leaderId: 4,
      leaderEpoch: node.broker.replica.leaderEpoch,
      replicaNodes: [4],
      isrNodes: [4],
      eligibleLeaderReplicas: [],
      lastKnownElr: [],
      offlineReplicas: [],
    },
  ]);
});

test('pages end after so many partitions and go on at the cursor', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('a', 3);
  await node.createTopic('b', 2);
  const names = ['a', 'b'];
  const first = await describe(client, { names, limit: 2 });
  assert.deepEqual(first, { topics: [['a', 0, [0, 1]]], next: ['a', 2] });
  const second = await describe(client, { names, limit: 2, cursor: ['a', 2] });
  assert.deepEqual(second, {
    topics: [
      ['a', 0, [2]],
      ['b', 0, [0]],
    ],
    next: ['b', 1],
  });
  const third = await describe(client, { names, limit: 2, cursor: ['b', 1] });
  assert.deepEqual(third, { topics: [['b', 0, [1]]], next: null });
  // A page that ends with its topic names the next one; without a sensible limit there is one.
  assert.deepEqual((await describe(client, { names, limit: 3 })).next, ['b', 0]);
  assert.deepEqual((await describe(client, { limit: -1 })).next, ['a', 1]);
  assert.deepEqual((await describe(client, { limit: 3, cursor: ['b', 0] })).topics, [
    ['b', 0, [0, 1]],
  ]);
});

test('of very many topics each page has the next ones', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const count = 5000;
  // In an order that is not that of their names.
  const names = Array.from({ length: count }, (_, i) => `topic-${(i * 1237) % count}`);
  await Promise.all(names.map((name) => node.createTopic(name)));
  const found: unknown[] = [];
  let cursor: Cursor | null = null;
  do {
    const page = await describe(client, { cursor });
    found.push(...page.topics.map(([name]) => name));
    cursor = page.next as Cursor | null;
  } while (cursor !== null);
  assert.deepEqual(found, names.sort());
});

test('a cursor must point at one of the topics that are asked for', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('a');
  const refused = { topics: [['a', ErrorCode.INVALID_REQUEST, []]], next: null };
  assert.deepEqual(await describe(client, { names: ['a'], cursor: ['b', 0] }), refused);
  assert.deepEqual(await describe(client, { names: ['a'], cursor: ['0', 0] }), refused);
  assert.deepEqual(await describe(client, { names: ['a'], cursor: ['a', -1] }), refused);
  const beyond = await describe(client, { names: ['a'], cursor: ['a', 9] });
  assert.deepEqual(beyond, { topics: [['a', ErrorCode.NONE, []]], next: null });
});
