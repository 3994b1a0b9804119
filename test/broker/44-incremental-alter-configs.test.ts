import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  alterConfigsRequest,
  alterConfigsResponse,
} from '../../src/protocol/schema/33-alter-configs.ts';
import {
  incrementalAlterConfigsRequest,
  incrementalAlterConfigsResponse,
} from '../../src/protocol/schema/44-incremental-alter-configs.ts';
import { batchOf, produceTo } from './records.ts';
import { startTestNode, type TestClient, type TestNode } from './support.ts';

const set = 0;
const remove = 1;
const append = 2;
const subtract = 3;

type Change = readonly [operation: number, name: string, value?: string | null];

interface Resource {
  readonly type?: number;
  readonly name: string;
  readonly changes: readonly Change[];
}

async function alterAll(
  client: TestClient,
  resources: readonly Resource[],
  { validateOnly = false, version = 1 } = {},
) {
  const answer = await client.ask(
    incrementalAlterConfigsRequest,
    incrementalAlterConfigsResponse,
    version,
    {
      validateOnly,
      resources: resources.map(({ type = 2, name: resourceName, changes }) => ({
        resourceType: type,
        resourceName,
        configs: changes.map(([configOperation, name, value = null]) => ({
          name,
          configOperation,
          value,
        })),
      })),
    },
  );
  return answer.responses.map(({ errorCode, errorMessage }) => [errorCode, errorMessage] as const);
}

async function alter(client: TestClient, name: string, ...changes: readonly Change[]) {
  return (await alterAll(client, [{ name, changes }]))[0]!;
}

async function alterBroker(client: TestClient, ...changes: readonly Change[]) {
  return (await alterAll(client, [{ type: 4, name: '', changes }]))[0]!;
}

async function alterNode(client: TestClient, name: string, ...changes: readonly Change[]) {
  return (await alterAll(client, [{ type: 4, name, changes }]))[0]!;
}

/** AlterConfigs: replaces all. */
async function replace(
  client: TestClient,
  resourceType: number,
  resourceName: string,
  values: Readonly<Record<string, string>>,
) {
  const configs = Object.entries(values).map(([name, value]) => ({ name, value }));
  const answer = await client.ask(alterConfigsRequest, alterConfigsResponse, 2, {
    validateOnly: false,
    resources: [{ resourceType, resourceName, configs }],
  });
  return answer.responses[0]!.errorCode;
}

function configsOf(node: TestNode, topic: string): Record<string, string> {
  return Object.fromEntries(node.broker.topics.byName(topic)!.configs);
}

const ok = [ErrorCode.NONE, null];

test('set and delete, in every version, and over a restart', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('orders', 1, { 'retention.ms': '1' });
  for (let version = 0; version <= 1; version++) {
    const changes: Change[] = [
      [set, 'retention.bytes', ` ${version} `],
      [remove, 'retention.ms'],
      [remove, 'segment.ms'],
    ];
    const [result] = await alterAll(client, [{ name: 'orders', changes }], { version });
    assert.deepEqual(result, ok);
    assert.deepEqual(configsOf(node, 'orders'), { 'retention.bytes': String(version) });
  }
  await node.restart();
  assert.deepEqual(configsOf(node, 'orders'), { 'retention.bytes': '1' });
});

test('a change is in force at once', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('orders');
  const produce = async () =>
    (await produceTo(client, { topic: 'orders', records: batchOf(['x'.repeat(5000)]) })).errorCode;
  assert.equal(await produce(), ErrorCode.NONE);
  assert.deepEqual(await alter(client, 'orders', [set, 'max.message.bytes', '2000']), ok);
  assert.equal(await produce(), ErrorCode.MESSAGE_TOO_LARGE);
  assert.deepEqual(await alter(client, 'orders', [remove, 'max.message.bytes']), ok);
  assert.equal(await produce(), ErrorCode.NONE);
});

test('lists can be added to and taken from', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('orders');
  const name = 'leader.replication.throttled.replicas';
  assert.deepEqual(await alter(client, 'orders', [append, name, '0:1,1:1']), ok);
  assert.deepEqual(await alter(client, 'orders', [append, name, '1:1,2:1']), ok);
  assert.deepEqual(configsOf(node, 'orders'), { [name]: '0:1,1:1,2:1' });
  assert.deepEqual(await alter(client, 'orders', [subtract, name, '1:1,9:9']), ok);
  assert.deepEqual(configsOf(node, 'orders'), { [name]: '0:1,2:1' });
  assert.deepEqual(await alter(client, 'orders', [append, 'cleanup.policy', 'delete']), ok);
  const [code] = await alter(client, 'orders', [append, 'cleanup.policy', 'compact']);
  assert.equal(code, ErrorCode.INVALID_CONFIG);
  assert.deepEqual(await alter(client, 'orders', [append, 'retention.ms', '1']), [
    ErrorCode.INVALID_CONFIG,
    "Can't APPEND to key retention.ms because its type is not LIST.",
  ]);
});

test('changes to one list that arrive together are all kept', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const name = 'follower.replication.throttled.replicas';
  const clients = await Promise.all(Array.from({ length: 8 }, () => node.connect()));
  await Promise.all(clients.map((client, i) => alter(client, 'orders', [append, name, `${i}:0`])));
  const found = configsOf(node, 'orders')[name]!.split(',').sort();
  assert.deepEqual(
    found,
    clients.map((_, i) => `${i}:0`),
  );
});

test('of a resource all changes are made or none', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('one');
  await node.createTopic('two');
  const results = await alterAll(client, [
    {
      name: 'one',
      changes: [
        [set, 'retention.ms', '1'],
        [set, 'retention.bytes', 'x'],
      ],
    },
    { name: 'two', changes: [[set, 'retention.ms', '1']] },
  ]);
  assert.deepEqual(results, [
    [
      ErrorCode.INVALID_CONFIG,
      'Invalid value x for configuration retention.bytes: Not a number of type LONG',
    ],
    ok,
  ]);
  assert.deepEqual([configsOf(node, 'one'), configsOf(node, 'two')], [{}, { 'retention.ms': '1' }]);
});

test('a validation changes nothing', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('orders');
  const good = { name: 'orders', changes: [[set, 'retention.ms', '1']] as const };
  assert.deepEqual(await alterAll(client, [good], { validateOnly: true }), [ok]);
  assert.deepEqual(configsOf(node, 'orders'), {});
});

test('requests that are wrong in themselves', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('orders');
  const invalid = ErrorCode.INVALID_REQUEST;
  const good: Change = [set, 'retention.ms', '1'];
  const twice = await alterAll(client, [
    { name: 'orders', changes: [good] },
    { name: 'orders', changes: [good] },
  ]);
  const once = [invalid, 'Each resource must appear at most once.'];
  assert.deepEqual(twice, [once, once]);
  for (const [changes, message] of [
    [[good, good], 'Error due to duplicate config keys'],
    [[[set, 'retention.ms', null]], 'Null value not supported for : retention.ms'],
    [[[9, 'retention.ms', '1']], 'Unknown operations type 9'],
  ] as const) {
    assert.deepEqual(await alter(client, 'orders', ...changes), [invalid, message]);
  }
  for (const [name, code] of [
    ['nothing', ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    ['a b', ErrorCode.INVALID_TOPIC_EXCEPTION],
    ['', invalid],
  ] as const) {
    assert.equal((await alter(client, name, good))[0], code);
  }
  const strange = await alterAll(client, [{ type: 64, name: 'x', changes: [good] }]);
  assert.deepEqual(strange, [[invalid, 'Unknown resource type 64']]);
  assert.deepEqual(configsOf(node, 'orders'), {});
});

test('the defaults of the broker', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('orders');
  assert.deepEqual(await alterBroker(client, [set, 'message.max.bytes', '2000']), ok);
  const produce = async () =>
    (await produceTo(client, { topic: 'orders', records: batchOf(['x'.repeat(5000)]) })).errorCode;
  assert.equal(await produce(), ErrorCode.MESSAGE_TOO_LARGE);
  await node.restart();
  assert.equal(node.broker.settings['message.max.bytes'], 2000);
  const again = await node.connect();
  assert.deepEqual(await alterBroker(again, [remove, 'message.max.bytes']), ok);
  assert.equal(node.broker.settings['message.max.bytes'], 1_048_588);
});

test('the configurations of one node win over those of all', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const inForce = () => node.broker.settings['message.max.bytes'];
  assert.deepEqual(await alterNode(client, '0', [set, 'message.max.bytes', '3000']), ok);
  assert.deepEqual(await alterBroker(client, [set, 'message.max.bytes', '2000']), ok);
  await node.createTopic('orders');
  const produce = async (size: number) =>
    (await produceTo(client, { topic: 'orders', records: batchOf(['x'.repeat(size)]) })).errorCode;
  assert.equal(await produce(2500), ErrorCode.NONE);
  assert.equal(await produce(3500), ErrorCode.MESSAGE_TOO_LARGE);
  await node.restart();
  assert.equal(inForce(), 3000);
  const again = await node.connect();
  // As Java reads an integer.
  assert.deepEqual(await alterNode(again, '+00', [remove, 'message.max.bytes']), ok);
  assert.equal(inForce(), 2000);
  assert.equal(node.broker.replica.state.nodeConfigs.size, 0);
  assert.equal(await replace(again, 4, '0', { 'message.max.bytes': '4000' }), ErrorCode.NONE);
  assert.equal(await replace(again, 4, '0', { 'log.retention.ms': '1' }), ErrorCode.NONE);
  assert.deepEqual([inForce(), node.broker.settings['log.retention.ms']], [2000, 1]);
});

test('what is set for another node is not in force here', async (t) => {
  const node = await startTestNode(t);
  await node.broker.topics.setConfigs(4, '7', new Map([['message.max.bytes', '5000']]));
  assert.equal(node.broker.settings['message.max.bytes'], 1_048_588);
});

test('lists of the broker can be added to and taken from, beginning with what counts', async (t) => {
  const node = await startTestNode(t, { settings: { 'keyed.topics': 'orders' } });
  const client = await node.connect();
  const name = 'keyed.topics';
  assert.deepEqual(await alterBroker(client, [append, name, 'chat-*, orders']), ok);
  assert.equal(node.broker.settings[name], 'orders,chat-*');
  assert.deepEqual(await alterNode(client, '0', [subtract, name, 'orders']), ok);
  assert.equal(node.broker.settings[name], 'chat-*');
  assert.deepEqual(await alterBroker(client, [set, name, 'a,b c']), [
    ErrorCode.INVALID_REQUEST,
    `Invalid value [a, b c] for configuration ${name}: Value must be names of topics, in which ` +
      '* stands for any text',
  ]);
});

test('a number that is too large to be exact means no limit', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const name = 'log.message.timestamp.after.max.ms';
  assert.deepEqual(await alterNode(client, '0', [set, name, '9223372036854775807']), ok);
  assert.equal(node.broker.settings[name], Number.MAX_SAFE_INTEGER);
});

test('what of a broker cannot be changed', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const invalid = ErrorCode.INVALID_REQUEST;
  for (const [changes, code, message] of [
    [
      [[set, 'num.partitions', '3']],
      invalid,
      'Cannot update these configs dynamically: [num.partitions]',
    ],
    [
      [[set, 'default.replication.factor', '3']],
      invalid,
      'Cannot update these configs dynamically: [default.replication.factor]',
    ],
    [[[set, 'no.such', '3']], ErrorCode.INVALID_CONFIG, 'Unknown broker config name: no.such'],
    [
      [[set, 'message.max.bytes', '-5']],
      invalid,
      'Invalid value -5 for configuration message.max.bytes: Value must be at least 0',
    ],
    [
      [[append, 'message.max.bytes', '5']],
      ErrorCode.INVALID_CONFIG,
      'Config value append is not allowed for config key: message.max.bytes',
    ],
  ] as const) {
    assert.deepEqual(await alterBroker(client, ...changes), [code, message]);
  }
  for (const [name, message] of [
    ['1', 'Unexpected broker id, expected 0, but received 1'],
    ['-1', 'Unexpected broker id, expected 0, but received -1'],
    ['zero', 'Node id must be an integer, but it is: zero'],
  ] as const) {
    const change: Change = [set, 'message.max.bytes', '5'];
    assert.deepEqual(await alterNode(client, name, change), [invalid, message]);
  }
  const { brokerConfigs, nodeConfigs } = node.broker.replica.state;
  assert.deepEqual([brokerConfigs.size, nodeConfigs.size], [0, 0]);
});

test('AlterConfigs replaces everything that was set', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('orders', 1, { 'retention.ms': '1', 'segment.ms': '1000' });
  assert.equal(await replace(client, 2, 'orders', { 'retention.ms': '2' }), ErrorCode.NONE);
  assert.deepEqual(configsOf(node, 'orders'), { 'retention.ms': '2' });
  const invalid = await replace(client, 2, 'orders', { 'retention.ms': 'x' });
  assert.equal(invalid, ErrorCode.INVALID_CONFIG);
  assert.equal(await replace(client, 2, 'orders', {}), ErrorCode.NONE);
  assert.deepEqual(configsOf(node, 'orders'), {});
  assert.equal(await replace(client, 4, '', { 'message.max.bytes': '5000' }), ErrorCode.NONE);
  assert.equal(node.broker.settings['message.max.bytes'], 5000);
  assert.equal(await replace(client, 4, '', {}), ErrorCode.NONE);
  assert.equal(node.broker.settings['message.max.bytes'], 1_048_588);
});
