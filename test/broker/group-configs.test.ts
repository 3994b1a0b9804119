import assert from 'node:assert/strict';
import test from 'node:test';
import { deliveryConfigNames } from '../../src/config/delivery-configs.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  describeConfigsRequest,
  describeConfigsResponse,
} from '../../src/protocol/schema/32-describe-configs.ts';
import {
  alterConfigsRequest,
  alterConfigsResponse,
} from '../../src/protocol/schema/33-alter-configs.ts';
import {
  incrementalAlterConfigsRequest,
  incrementalAlterConfigsResponse,
} from '../../src/protocol/schema/44-incremental-alter-configs.ts';
import {
  listConfigResourcesRequest,
  listConfigResourcesResponse,
} from '../../src/protocol/schema/74-list-config-resources.ts';
import { startTestNode, type TestClient, type TestNode } from './support.ts';

/** Configurations of groups: Kafka's resource type GROUP. */
const groupType = 32;
const topicType = 2;

const set = 0;
const remove = 1;
const append = 2;

type Change = readonly [operation: number, name: string, value?: string];

async function alter(client: TestClient, resourceName: string, ...changes: readonly Change[]) {
  const configs = changes.map(([configOperation, name, value = null]) => {
    return { name, configOperation, value };
  });
  const resource = { resourceType: groupType, resourceName, configs };
  const answer = await client.ask(
    incrementalAlterConfigsRequest,
    incrementalAlterConfigsResponse,
    1,
    { validateOnly: false, resources: [resource] },
  );
  const { errorCode, errorMessage } = answer.responses[0]!;
  return [errorCode, errorMessage] as const;
}

async function replace(
  client: TestClient,
  resourceName: string,
  values: Readonly<Record<string, string>>,
) {
  const configs = Object.entries(values).map(([name, value]) => ({ name, value }));
  const answer = await client.ask(alterConfigsRequest, alterConfigsResponse, 2, {
    validateOnly: false,
    resources: [{ resourceType: groupType, resourceName, configs }],
  });
  return answer.responses[0]!.errorCode;
}

async function describe(client: TestClient, resourceType: number, resourceName: string) {
  const answer = await client.ask(describeConfigsRequest, describeConfigsResponse, 4, {
    resources: [{ resourceType, resourceName, configurationKeys: null }],
    includeSynonyms: true,
  });
  const { errorCode, errorMessage, configs } = answer.results[0]!;
  const facts = new Map(
    configs.map(({ name, value, configSource, synonyms }) => [
      name,
      {
        value,
        configSource,
        synonyms: synonyms.map((each) => `${each.name}=${each.value}@${each.source}`),
      },
    ]),
  );
  return { errorCode, errorMessage, facts };
}

async function list(client: TestClient): Promise<string[]> {
  const answer = await client.ask(listConfigResourcesRequest, listConfigResourcesResponse, 1, {
    resourceTypes: [groupType],
  });
  return answer.configResources.map(({ resourceName }) => resourceName);
}

function configsOf(node: TestNode, groupId: string): Record<string, string> {
  return Object.fromEntries(node.broker.replica.state.groupConfigs.get(groupId) ?? []);
}

const ok = [ErrorCode.NONE, null];

test('what is set for a group is kept, listed, and gone when it is deleted', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const changes: Change[] = [
    [set, 'delivery.mode', 'keyed'],
    [set, 'lease.ms', ' 1000 '],
  ];
  assert.deepEqual(await alter(client, 'billing', ...changes), ok);
  assert.deepEqual(await alter(client, 'a b', [set, 'delivery.mode', 'log']), ok);
  assert.deepEqual(configsOf(node, 'billing'), { 'delivery.mode': 'keyed', 'lease.ms': '1000' });
  await node.restart();
  const again = await node.connect();
  assert.deepEqual(await list(again), ['billing', 'a b']);
  assert.deepEqual(await alter(again, 'billing', [remove, 'lease.ms'], [remove, 'x']), ok);
  assert.deepEqual(configsOf(node, 'billing'), { 'delivery.mode': 'keyed' });
  assert.equal(await replace(again, 'billing', { 'delivery.ack': 'poll' }), ErrorCode.NONE);
  assert.deepEqual(configsOf(node, 'billing'), { 'delivery.ack': 'poll' });
  assert.equal(await replace(again, 'billing', {}), ErrorCode.NONE);
  assert.deepEqual(await list(again), ['a b']);
});

test('a group is described whether it is there or not', async (t) => {
  const node = await startTestNode(t, { settings: { 'lease.ms': 7000 } });
  const client = await node.connect();
  await alter(client, 'billing', [set, 'lease.ms', '1000']);
  const { errorCode, facts } = await describe(client, groupType, 'billing');
  assert.equal(errorCode, ErrorCode.NONE);
  assert.deepEqual([...facts.keys()], deliveryConfigNames);
  assert.deepEqual(facts.get('lease.ms'), {
    value: '1000',
    configSource: 8,
    synonyms: ['lease.ms=1000@8', 'lease.ms=7000@4', 'lease.ms=300000@5'],
  });
  const other = await describe(client, groupType, 'other');
  assert.deepEqual(other.facts.get('lease.ms')?.value, '7000');
});

test('errors are those of Kafka', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const good: Change = [set, 'lease.ms', '1'];
  const { INVALID_CONFIG, INVALID_REQUEST } = ErrorCode;
  for (const [groupId, change, code, message] of [
    ['', good, INVALID_REQUEST, 'Default group resources are not allowed.'],
    ['g', [set, 'no.such', '5'], INVALID_CONFIG, 'Unknown group config name: no.such'],
    [
      'g',
      [set, 'lease.ms', 'x'],
      INVALID_CONFIG,
      'Invalid value x for configuration lease.ms: Not a number of type INT',
    ],
    [
      'g',
      [append, 'lease.ms', '5'],
      INVALID_CONFIG,
      "Can't APPEND to key lease.ms because its type is not LIST.",
    ],
    [
      'g',
      [set, 'consumer.session.timeout.ms', '50000'],
      INVALID_CONFIG,
      'The group config consumer.session.timeout.ms is not supported: it is about the consumer ' +
        'group protocol (KIP-848), which is not served yet',
    ],
  ] as const) {
    assert.deepEqual(await alter(client, groupId, change), [code, message]);
  }
  assert.equal(await replace(client, '', { 'lease.ms': '1' }), INVALID_REQUEST);
  assert.equal(await replace(client, 'g', { x: '1' }), INVALID_CONFIG);
  const { errorCode, errorMessage } = await describe(client, groupType, '');
  assert.deepEqual([errorCode, errorMessage], [INVALID_REQUEST, 'Group name must not be empty']);
  assert.equal(node.broker.replica.state.groupConfigs.size, 0);
});

test('the delivery of a topic to a group changes with the configurations', async (t) => {
  const node = await startTestNode(t);
  const { broker } = node;
  const client = await node.connect();
  await node.createTopic('orders');
  let changes = 0;
  broker.configs.onChange(() => changes++);
  const { version } = broker.configs;
  const before = broker.deliveryOf('billing', 'orders');
  assert.deepEqual([before.mode, before.leaseMs], ['log', 300_000]);
  assert.equal(broker.deliveryOf('other', 'orders'), before);
  await broker.topics.setConfigs(4, '', new Map([['keyed.topics', 'ord*']]));
  await alter(client, 'billing', [set, 'lease.ms', '1']);
  const topicId = broker.topics.byName('orders')!.id;
  await broker.topics.setConfigs(topicType, topicId, new Map([['delivery.ack', 'poll']]));
  assert.deepEqual([changes, broker.configs.version], [3, version + 3]);
  const after = broker.deliveryOf('billing', 'orders');
  assert.deepEqual([after.mode, after.leaseMs, after.ack], ['keyed', 1, 'poll']);
  assert.equal(broker.deliveryOf('billing', 'orders'), after);
  const other = broker.deliveryOf('other', 'orders');
  assert.deepEqual([other.mode, other.leaseMs, other.ack], ['keyed', 300_000, 'poll']);
  const unknown = broker.deliveryOf('billing', 'ordinary');
  assert.deepEqual([unknown.mode, unknown.leaseMs, unknown.ack], ['keyed', 1, 'commit']);
});

test('a topic that keyed.topics names is described as keyed', async (t) => {
  const node = await startTestNode(t, { settings: { 'keyed.topics': 'chat-*' } });
  const client = await node.connect();
  await node.createTopic('chat-1');
  await node.createTopic('chat-2', 1, { 'delivery.mode': 'log' });
  await node.createTopic('orders');
  const found = [];
  for (const name of ['chat-1', 'chat-2', 'orders']) {
    const { facts } = await describe(client, topicType, name);
    const { value, synonyms } = facts.get('delivery.mode')!;
    found.push([value, synonyms.join(' ')]);
  }
  assert.deepEqual(found, [
    ['keyed', 'keyed.topics=keyed@4 delivery.mode=log@5'],
    ['log', 'delivery.mode=log@1 keyed.topics=keyed@4 delivery.mode=log@5'],
    ['log', 'delivery.mode=log@5'],
  ]);
});
