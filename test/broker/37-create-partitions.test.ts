import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  createPartitionsRequest,
  createPartitionsResponse,
} from '../../src/protocol/schema/37-create-partitions.ts';
import { batchOf, produceTo } from './records.ts';
import { startTestNode, type TestClient } from './support.ts';

interface Asked {
  readonly count: number;
  readonly name?: string;
  readonly assigned?: readonly (readonly number[])[];
}

async function growAll(
  client: TestClient,
  asked: readonly Asked[],
  { version = 3, validateOnly = false } = {},
) {
  const topics = asked.map(({ count, name = 'orders', assigned }) => ({
    name,
    count,
    assignments: assigned?.map((brokerIds) => ({ brokerIds })) ?? null,
  }));
  const request = { topics, timeoutMs: 1000, validateOnly };
  const answer = await client.ask(
    createPartitionsRequest,
    createPartitionsResponse,
    version,
    request,
  );
  return answer.results.map(({ errorCode, errorMessage }) => [errorCode, errorMessage]);
}

async function grow(client: TestClient, asked: Asked) {
  return (await growAll(client, [asked]))[0]!;
}

test('partitions are there when the answer comes, in every version', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('orders');
  await produceTo(client, { topic: 'orders', records: batchOf(['a']) });
  for (let version = 0; version <= 3; version++) {
    const count = version + 2;
    assert.deepEqual(await growAll(client, [{ count }], { version }), [[ErrorCode.NONE, null]]);
    assert.equal(node.broker.topics.byName('orders')?.partitions.length, count);
  }
  await node.restart();
  const again = await node.connect();
  const to = { topic: 'orders', records: batchOf(['b']) };
  assert.equal((await produceTo(again, { ...to, partition: 4 })).baseOffset, 0);
  assert.equal((await produceTo(again, { ...to, partition: 0 })).baseOffset, 1);
});

test('counts that are no increase, or too much', async (t) => {
  const node = await startTestNode(t, { settings: { 'max.partitions': 100 } });
  const client = await node.connect();
  await node.createTopic('orders', 3);
  const invalid = ErrorCode.INVALID_PARTITIONS;
  assert.deepEqual(await grow(client, { count: 3 }), [
    invalid,
    'Topic already has 3 partition(s).',
  ]);
  for (const count of [2, 0, -1]) {
    assert.deepEqual(await grow(client, { count }), [
      invalid,
      `The topic orders currently has 3 partition(s); ${count} would not be an increase.`,
    ]);
  }
  assert.equal((await grow(client, { count: 101 }))[0], invalid);
  assert.equal((await grow(client, { count: 20_000 }))[0], ErrorCode.POLICY_VIOLATION);
  assert.equal((await grow(client, { count: 100 }))[0], ErrorCode.NONE);
});

test('manual assignments', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('orders', 1);
  const wrong = ErrorCode.INVALID_REPLICA_ASSIGNMENT;
  for (const assigned of [[], [[0], [0]], [[]], [[7]], [[0, 0]]]) {
    assert.equal((await grow(client, { count: 2, assigned }))[0], wrong);
  }
  assert.equal((await grow(client, { count: 3, assigned: [[0], [0]] }))[0], ErrorCode.NONE);
});

test('unknown topics, duplicates and validations', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('orders');
  const [code] = await grow(client, { count: 2, name: 'nothing' });
  assert.equal(code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  assert.deepEqual(await growAll(client, [{ count: 2 }, { count: 2 }]), [
    [ErrorCode.INVALID_REQUEST, 'Duplicate topic name.'],
  ]);
  const validated = await growAll(client, [{ count: 2 }], { validateOnly: true });
  assert.deepEqual(validated, [[ErrorCode.NONE, null]]);
  assert.equal(node.broker.topics.byName('orders')?.partitions.length, 1);
});

test('requests that arrive together are judged one after the other', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const clients = await Promise.all([node.connect(), node.connect(), node.connect()]);
  const results = await Promise.all(clients.map((client) => grow(client, { count: 3 })));
  const codes = results.map(([code]) => code).sort((a, b) => Number(a) - Number(b));
  const invalid = ErrorCode.INVALID_PARTITIONS;
  assert.deepEqual(codes, [ErrorCode.NONE, invalid, invalid]);
  assert.equal(node.broker.topics.byName('orders')?.partitions.length, 3);
});
