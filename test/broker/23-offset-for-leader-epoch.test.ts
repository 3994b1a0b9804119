import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  offsetForLeaderEpochRequest,
  offsetForLeaderEpochResponse,
} from '../../src/protocol/schema/23-offset-for-leader-epoch.ts';
import { batchOf, produceTo } from './records.ts';
import { startTestNode, type TestClient } from './support.ts';

interface Asked {
  readonly leaderEpoch: number;
  readonly currentLeaderEpoch?: number;
  readonly topic?: string;
  readonly partition?: number;
}

async function ask(client: TestClient, asked: Asked, version = 4) {
  const { topic = 'orders', partition = 0, leaderEpoch, currentLeaderEpoch = -1 } = asked;
  const answer = await client.ask(
    offsetForLeaderEpochRequest,
    offsetForLeaderEpochResponse,
    version,
    { topics: [{ topic, partitions: [{ partition, currentLeaderEpoch, leaderEpoch }] }] },
  );
  const found = answer.topics[0]!.partitions[0]!;
  return [found.errorCode, found.leaderEpoch, found.endOffset];
}

test('an epoch ends where the next one began in this partition', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const epochs: number[] = [];
  // Each start is a new term; in the second nothing is written.
  for (const values of [['a', 'b'], [], ['c']]) {
    const client = await node.connect();
    epochs.push(node.broker.replica.leaderEpoch);
    if (values.length > 0) await produceTo(client, { topic: 'orders', records: batchOf(values) });
    await node.restart();
  }
  const client = await node.connect();
  const [first, second, third] = epochs as [number, number, number];
  const present = node.broker.replica.leaderEpoch;
  assert.ok(first < second && second < third && third < present);
  for (let version = 1; version <= 4; version++) {
    assert.deepEqual(await ask(client, { leaderEpoch: first }, version), [0, first, 2]);
  }
  assert.equal((await ask(client, { leaderEpoch: first }, 0))[2], 2);
  assert.deepEqual(await ask(client, { leaderEpoch: second }), [0, second, 2]);
  assert.deepEqual(await ask(client, { leaderEpoch: third }), [0, third, 3]);
  assert.deepEqual(await ask(client, { leaderEpoch: present }), [0, present, 3]);
  assert.deepEqual(await ask(client, { leaderEpoch: present + 1 }), [0, -1, -1]);
  assert.deepEqual(await ask(client, { leaderEpoch: -1 }), [0, -1, -1]);
});

test('what was deleted ends at the log start', async (t) => {
  const node = await startTestNode(t);
  const topic = await node.createTopic('orders');
  const first = node.broker.replica.leaderEpoch;
  await produceTo(await node.connect(), { topic: 'orders', records: batchOf(['a', 'b']) });
  await node.restart();
  const client = await node.connect();
  await produceTo(client, { topic: 'orders', records: batchOf(['c', 'd']) });
  await node.broker.logStarts.moveTo(new Map([[topic.partitions[0]!, 3]]));
  assert.deepEqual(await ask(client, { leaderEpoch: first }), [0, first, 3]);
});

test('a client with another epoch than the present one is told so', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  await node.restart();
  const client = await node.connect();
  const { leaderEpoch } = node.broker.replica;
  const codeOf = async (currentLeaderEpoch: number) =>
    (await ask(client, { leaderEpoch, currentLeaderEpoch }))[0];
  assert.equal(await codeOf(leaderEpoch), ErrorCode.NONE);
  assert.equal(await codeOf(leaderEpoch - 1), ErrorCode.FENCED_LEADER_EPOCH);
  assert.equal(await codeOf(leaderEpoch + 1), ErrorCode.UNKNOWN_LEADER_EPOCH);
});

test('partitions that are not there', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  const unknown = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1];
  assert.deepEqual(await ask(client, { leaderEpoch: 0, topic: 'nothing' }), unknown);
  assert.deepEqual(await ask(client, { leaderEpoch: 0, partition: 1 }), unknown);
});

test('a node without a lease does not say where its log ends', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  await produceTo(client, { topic: 'orders', records: batchOf(['a']) });
  const { replica } = node.broker;
  Object.defineProperty(replica, 'mayAnswer', { get: () => false });
  const [errorCode] = await ask(client, { leaderEpoch: replica.leaderEpoch });
  assert.equal(errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
});
