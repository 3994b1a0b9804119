import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  type CreateTopicsRequestInput,
  createTopicsRequest,
  createTopicsResponse,
} from '../../src/protocol/schema/19-create-topics.ts';
import { ZERO_UUID } from '../../src/protocol/uuid.ts';
import { startTestNode, type TestClient } from './support.ts';

type Topic = CreateTopicsRequestInput['topics'][number];

function topicOf(name: string, extra: Partial<Topic> = {}): Topic {
  const standard = { numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] };
  return { ...standard, name, ...extra };
}

async function create(
  client: TestClient,
  topics: readonly Topic[],
  options: { version?: number; validateOnly?: boolean } = {},
) {
  const { version = 7, validateOnly = false } = options;
  const request = { topics, timeoutMs: 1000, ...(version >= 1 && { validateOnly }) };
  return (await client.ask(createTopicsRequest, createTopicsResponse, version, request)).topics;
}

async function refusal(client: TestClient, topic: Topic): Promise<[number, string | null]> {
  const [result] = await create(client, [topic]);
  return [result!.errorCode, result!.errorMessage];
}

test('a topic is there when the answer comes, in every version', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  for (let version = 0; version <= 7; version++) {
    const name = `topic-${version}`;
    const [result] = await create(client, [topicOf(name, { numPartitions: 3 })], { version });
    assert.equal(result?.errorCode, ErrorCode.NONE);
    const topic = node.broker.topics.byName(name);
    assert.equal(topic?.partitions.length, 3);
    if (version >= 5) assert.deepEqual([result?.numPartitions, result?.replicationFactor], [3, 1]);
    if (version >= 7) assert.equal(result?.topicId, topic?.id);
  }
});

test('the answer describes the configurations', async (t) => {
  const node = await startTestNode(t, { settings: { 'message.max.bytes': 5000 } });
  const client = await node.connect();
  const configs = [{ name: 'retention.ms', value: ' 1000 ' }];
  const [result] = await create(client, [topicOf('orders', { configs })]);
  const found = new Map(result!.configs!.map((config) => [config.name, config]));
  const facts = ['retention.ms', 'max.message.bytes', 'segment.bytes', 'cleanup.policy'].map(
    (name) => [found.get(name)?.value, found.get(name)?.configSource, found.get(name)?.readOnly],
  );
  assert.deepEqual(facts, [
    ['1000', 1, false],
    ['5000', 4, false],
    ['1073741824', 5, false],
    ['delete', 5, false],
  ]);
  assert.equal(node.broker.topics.byName('orders')?.configs.get('retention.ms'), '1000');
});

test('numbers that are left to the broker', async (t) => {
  const node = await startTestNode(t, { settings: { 'num.partitions': 4 } });
  const client = await node.connect();
  const [result] = await create(client, [
    topicOf('orders', { numPartitions: -1, replicationFactor: -1 }),
  ]);
  assert.deepEqual([result?.numPartitions, result?.replicationFactor], [4, 1]);
});

test('names', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const invalid = ErrorCode.INVALID_TOPIC_EXCEPTION;
  for (const [name, why] of [
    ['', 'the empty string is not allowed'],
    ['..', "'..' is not allowed"],
    [
      'a b',
      "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
    ],
  ] as const) {
    assert.deepEqual(await refusal(client, topicOf(name)), [
      invalid,
      `Topic name is invalid: ${why}`,
    ]);
  }
  await create(client, [topicOf('a.b_c')]);
  assert.deepEqual(await refusal(client, topicOf('a.b_c')), [
    ErrorCode.TOPIC_ALREADY_EXISTS,
    "Topic 'a.b_c' already exists.",
  ]);
  const collision = [invalid, "Topic 'a_b.c' collides with existing topic: a.b_c"];
  assert.deepEqual(await refusal(client, topicOf('a_b.c')), collision);
  await node.restart();
  const again = await node.connect();
  assert.deepEqual(await refusal(again, topicOf('a_b.c')), collision);
  await node.broker.topics.delete(node.broker.topics.byName('a.b_c')!);
  assert.equal((await refusal(again, topicOf('a_b.c')))[0], ErrorCode.NONE);
});

test('names that stand twice in a request', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const results = await create(client, [topicOf('twice'), topicOf('once'), topicOf('twice')]);
  assert.deepEqual(
    results.map(({ name, errorCode }) => [name, errorCode]),
    [
      ['once', ErrorCode.NONE],
      ['twice', ErrorCode.INVALID_REQUEST],
    ],
  );
  const colliding = await create(client, [topicOf('x.y'), topicOf('x_y')]);
  assert.deepEqual(
    colliding.map(({ errorCode }) => errorCode),
    [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION],
  );
});

test('of two requests for one name the second learns that it exists', async (t) => {
  const node = await startTestNode(t);
  const clients = await Promise.all([node.connect(), node.connect(), node.connect()]);
  const results = await Promise.all(clients.map((client) => create(client, [topicOf('orders')])));
  const codes = results.map(([result]) => result!.errorCode).sort((a, b) => a - b);
  const exists = ErrorCode.TOPIC_ALREADY_EXISTS;
  assert.deepEqual(codes, [ErrorCode.NONE, exists, exists]);
});

test('partitions and replication', async (t) => {
  const node = await startTestNode(t, { settings: { 'max.partitions': 12_000 } });
  const client = await node.connect();
  const codeOf = async (extra: Partial<Topic>) =>
    (await refusal(client, topicOf('orders', extra)))[0];
  for (const numPartitions of [0, -2]) {
    assert.equal(await codeOf({ numPartitions }), ErrorCode.INVALID_PARTITIONS);
  }
  for (const replicationFactor of [0, -2, 2]) {
    assert.equal(await codeOf({ replicationFactor }), ErrorCode.INVALID_REPLICATION_FACTOR);
  }
  const violation = ErrorCode.POLICY_VIOLATION;
  assert.equal(await codeOf({ numPartitions: 10_001 }), violation);
  assert.equal(await codeOf({ numPartitions: 2 ** 31 - 1 }), violation);
  const half = { numPartitions: 6000 };
  const together = await create(client, [topicOf('a', half), topicOf('b', half)]);
  assert.deepEqual(
    together.map(({ errorCode }) => errorCode),
    [violation, violation],
  );
  await node.createTopic('large', 5000);
  assert.equal(await codeOf({ numPartitions: 7001 }), ErrorCode.INVALID_PARTITIONS);
  assert.equal(await codeOf({ numPartitions: 7000 }), ErrorCode.NONE);
});

test('manual assignments', async (t) => {
  const node = await startTestNode(t, { settings: { 'node.id': 7 } });
  const client = await node.connect();
  const manual = { numPartitions: -1, replicationFactor: -1 };
  const assigned = (...partitions: readonly (readonly number[])[]) =>
    partitions.map(([partitionIndex = 0, ...brokerIds]) => ({ partitionIndex, brokerIds }));
  const good = topicOf('good', { ...manual, assignments: assigned([1, 7], [0, 7]) });
  const [result] = await create(client, [good]);
  assert.equal(result?.numPartitions, 2);
  const wrong = ErrorCode.INVALID_REPLICA_ASSIGNMENT;
  for (const assignments of [
    assigned([0, 4711]),
    assigned([1, 7]),
    assigned([0, 7], [0, 7]),
    assigned([0, 7, 7]),
    assigned([0]),
  ]) {
    assert.equal((await refusal(client, topicOf('bad', { ...manual, assignments })))[0], wrong);
  }
  for (const extra of [{ numPartitions: 1 }, { replicationFactor: 1 }]) {
    const topic = topicOf('bad', { ...manual, ...extra, assignments: assigned([0, 7]) });
    assert.equal((await refusal(client, topic))[0], ErrorCode.INVALID_REQUEST);
  }
});

test('configurations that are refused', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const withConfig = (name: string, value: string | null) =>
    refusal(client, topicOf('orders', { configs: [{ name, value }] }));
  const invalid = ErrorCode.INVALID_CONFIG;
  assert.deepEqual(await withConfig('retention.ms', 'soon'), [
    invalid,
    'Invalid value soon for configuration retention.ms: Not a number of type LONG',
  ]);
  assert.deepEqual(await withConfig('retention.ms', null), [
    invalid,
    'Null value not supported for topic configs: retention.ms',
  ]);
  assert.equal((await withConfig('cleanup.policy', 'compact'))[0], invalid);
  assert.equal(node.broker.topics.byName('orders'), undefined);
});

test('a validation creates nothing', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const validateOnly = true;
  const [good] = await create(client, [topicOf('orders')], { validateOnly });
  assert.deepEqual([good?.errorCode, good?.topicId], [ErrorCode.NONE, ZERO_UUID]);
  assert.equal(node.broker.topics.byName('orders'), undefined);
  const [bad] = await create(client, [topicOf('a b')], { validateOnly });
  assert.equal(bad?.errorCode, ErrorCode.INVALID_TOPIC_EXCEPTION);
});

test('nothing is created while the disk is nearly full', async (t) => {
  const node = await startTestNode(t, {
    settings: { 'disk.low.water.bytes': Number.MAX_SAFE_INTEGER },
  });
  const client = await node.connect();
  const [code] = await refusal(client, topicOf('orders'));
  assert.equal(code, ErrorCode.KAFKA_STORAGE_ERROR);
});
