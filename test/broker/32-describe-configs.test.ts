import assert from 'node:assert/strict';
import test from 'node:test';
import { settingNames } from '../../src/config/broker-configs.ts';
import { maxLongText } from '../../src/config/kafka-values.ts';
import { topicConfigs } from '../../src/config/topic-configs.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  type DescribeConfigsRequestInput,
  describeConfigsRequest,
  describeConfigsResponse,
} from '../../src/protocol/schema/32-describe-configs.ts';
import { startTestNode, type TestClient } from './support.ts';

const topicType = 2;
const brokerType = 4;

interface Asked extends Partial<Omit<DescribeConfigsRequestInput, 'resources'>> {
  readonly type: number;
  readonly name: string;
  readonly keys?: readonly string[] | null;
  readonly version?: number;
}

async function describe(client: TestClient, asked: Asked) {
  const { type, name, keys = null, version = 4, ...flags } = asked;
  const resource = { resourceType: type, resourceName: name, configurationKeys: keys };
  const answer = await client.ask(describeConfigsRequest, describeConfigsResponse, version, {
    ...flags,
    resources: [resource],
  });
  return answer.results[0]!;
}

test('a topic is described with its own values and those that it falls back to', async (t) => {
  const node = await startTestNode(t, { settings: { 'message.max.bytes': 5000 } });
  const client = await node.connect();
  await node.createTopic('orders', 1, { 'retention.ms': '1000' });
  const { configs } = await describe(client, { type: topicType, name: 'orders' });
  assert.deepEqual(
    configs.map(({ name }) => name),
    [...topicConfigs.keys()],
  );
  const facts = new Map(
    configs.map(({ name, value, configSource, configType }) => [
      name,
      [value, configSource, configType],
    ]),
  );
  assert.deepEqual(facts.get('retention.ms'), ['1000', 1, 5]);
  assert.deepEqual(facts.get('max.message.bytes'), ['5000', 4, 3]);
  assert.deepEqual(facts.get('cleanup.policy'), ['delete', 5, 7]);
  assert.deepEqual(facts.get('min.cleanable.dirty.ratio'), ['0.5', 5, 6]);
  assert.deepEqual(facts.get('message.timestamp.before.max.ms'), [maxLongText, 5, 5]);
  for (const { synonyms, documentation, isSensitive } of configs) {
    assert.deepEqual([synonyms, documentation, isSensitive], [[], null, false]);
  }
});

test('synonyms say what decides, and what would in its place', async (t) => {
  const node = await startTestNode(t, { settings: { 'log.retention.ms': 7000 } });
  const client = await node.connect();
  await node.createTopic('orders', 1, { 'retention.ms': '1000' });
  await node.broker.topics.setConfigs(4, '', new Map([['log.retention.ms', '5000']]));
  await node.broker.topics.setConfigs(4, '0', new Map([['log.retention.ms', '3000']]));
  const { configs } = await describe(client, {
    type: topicType,
    name: 'orders',
    keys: ['retention.ms'],
    includeSynonyms: true,
    includeDocumentation: true,
  });
  assert.equal(configs.length, 1);
  assert.deepEqual(
    configs[0]!.synonyms.map(({ name, value, source }) => [name, value, source]),
    [
      ['retention.ms', '1000', 1],
      ['log.retention.ms', '3000', 2],
      ['log.retention.ms', '5000', 3],
      ['log.retention.ms', '7000', 4],
      ['log.retention.hours', '168', 5],
    ],
  );
  assert.match(configs[0]!.documentation ?? '', /older/);
});

/** As Apache Kafka 4.3.1 answers for a topic of its own, without what is not served here. */
const kafkaSynonyms: Readonly<Record<string, string>> = {
  'cleanup.policy': 'log.cleanup.policy=delete',
  'compression.type': 'compression.type=producer',
  'delete.retention.ms': 'log.cleaner.delete.retention.ms=86400000',
  'file.delete.delay.ms': 'log.segment.delete.delay.ms=60000',
  'flush.messages': `log.flush.interval.messages=${maxLongText}`,
  'flush.ms': '',
  'follower.replication.throttled.replicas': '',
  'index.interval.bytes': 'log.index.interval.bytes=4096',
  'leader.replication.throttled.replicas': '',
  'local.retention.bytes': 'log.local.retention.bytes=-2',
  'local.retention.ms': 'log.local.retention.ms=-2',
  'max.compaction.lag.ms': `log.cleaner.max.compaction.lag.ms=${maxLongText}`,
  'max.message.bytes': 'message.max.bytes=1048588',
  'message.timestamp.after.max.ms': 'log.message.timestamp.after.max.ms=3600000',
  'message.timestamp.before.max.ms': `log.message.timestamp.before.max.ms=${maxLongText}`,
  'message.timestamp.type': 'log.message.timestamp.type=CreateTime',
  'min.cleanable.dirty.ratio': 'log.cleaner.min.cleanable.ratio=0.5',
  'min.compaction.lag.ms': 'log.cleaner.min.compaction.lag.ms=0',
  'min.insync.replicas': 'min.insync.replicas=1',
  preallocate: 'log.preallocate=false',
  'remote.log.copy.disable': '',
  'remote.log.delete.on.disable': '',
  'remote.storage.enable': '',
  'retention.bytes': 'log.retention.bytes=-1',
  'retention.ms': '',
  'segment.bytes': 'log.segment.bytes=1073741824',
  'segment.index.bytes': 'log.index.size.max.bytes=10485760',
  'segment.jitter.ms': '',
  'segment.ms': '',
  'unclean.leader.election.enable': 'unclean.leader.election.enable=false',
};

test('without values of its own a topic has the synonyms that Kafka lists', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('orders');
  const asked = { type: topicType, name: 'orders', keys: Object.keys(kafkaSynonyms) };
  const { configs } = await describe(client, { ...asked, includeSynonyms: true });
  const found = configs.map(({ name, configSource, synonyms }) => {
    assert.equal(configSource, 5, name);
    assert.ok(synonyms.every(({ source }) => source === 5));
    return [name, synonyms.map((synonym) => `${synonym.name}=${synonym.value}`).join(' ')];
  });
  assert.deepEqual(Object.fromEntries(found), kafkaSynonyms);
});

test('a value of its own comes before what Kafka falls back to', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const own = { 'cleanup.policy': 'delete', 'retention.ms': '1000', 'segment.ms': '7000' };
  await node.createTopic('orders', 1, own);
  const asked = { type: topicType, name: 'orders', keys: Object.keys(own) };
  const { configs } = await describe(client, { ...asked, includeSynonyms: true });
  const found = configs.map(({ synonyms }) =>
    synonyms.map(({ name, value, source }) => `${name}=${value}@${source}`).join(' '),
  );
  assert.deepEqual(found, [
    'cleanup.policy=delete@1 log.cleanup.policy=delete@5',
    'retention.ms=1000@1',
    'segment.ms=7000@1',
  ]);
});

test('only the keys that are asked for, where any are', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('orders');
  const asked = { type: topicType, name: 'orders' };
  const some = await describe(client, { ...asked, keys: ['segment.ms', 'nothing'] });
  assert.deepEqual(
    some.configs.map(({ name }) => name),
    ['segment.ms'],
  );
  const all = await describe(client, { ...asked, keys: [] });
  assert.equal(all.configs.length, topicConfigs.size);
});

test('every version, the first of which knows only defaults and others', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await node.createTopic('orders', 1, { 'retention.ms': '1000' });
  const asked = { type: topicType, name: 'orders', keys: ['retention.ms', 'segment.ms'] };
  for (let version = 0; version <= 4; version++) {
    const { configs } = await describe(client, { ...asked, version });
    const found = configs.map(({ name, value }) => [name, value]);
    assert.deepEqual(found, [
      ['retention.ms', '1000'],
      ['segment.ms', '604800000'],
    ]);
    if (version > 0) continue;
    assert.deepEqual(
      configs.map(({ isDefault }) => isDefault),
      [false, true],
    );
  }
});

test('a broker is described with all settings and what is fixed', async (t) => {
  const node = await startTestNode(t, {
    settings: { 'node.id': 3, 'num.partitions': 5 },
  });
  const client = await node.connect();
  await node.broker.topics.setConfigs(4, '', new Map([['message.max.bytes', '5000']]));
  const { configs } = await describe(client, { type: brokerType, name: '3' });
  const facts = new Map(
    configs.map(({ name, value, configSource, readOnly }) => [
      name,
      [value, configSource, readOnly],
    ]),
  );
  for (const name of settingNames) assert.ok(facts.has(name), name);
  assert.deepEqual(facts.get('num.partitions'), ['5', 4, true]);
  assert.deepEqual(facts.get('message.max.bytes'), ['5000', 3, false]);
  assert.deepEqual(facts.get('auto.create.topics.enable'), ['true', 5, true]);
  assert.deepEqual(facts.get('default.replication.factor'), ['1', 5, true]);
  assert.deepEqual(facts.get('broker.id'), ['3', 5, true]);
  const defaults = await describe(client, { type: brokerType, name: '' });
  assert.deepEqual(
    defaults.configs.map(({ name, value, configSource }) => [name, value, configSource]),
    [['message.max.bytes', '5000', 3]],
  );
});

test('a node may be named as Java reads an integer, and shows its own values first', async (t) => {
  const node = await startTestNode(t, { settings: { 'message.max.bytes': 7000 } });
  const client = await node.connect();
  await node.broker.topics.setConfigs(4, '0', new Map([['message.max.bytes', '5000']]));
  for (const name of ['0', '+0', '00']) {
    const keys = ['message.max.bytes'];
    const { configs } = await describe(client, {
      type: brokerType,
      name,
      keys,
      includeSynonyms: true,
    });
    const [{ value, configSource, synonyms } = assert.fail('not described')] = configs;
    assert.deepEqual([value, configSource], ['5000', 2]);
    assert.deepEqual(
      synonyms.map((synonym) => [synonym.value, synonym.source]),
      [
        ['5000', 2],
        ['7000', 4],
        ['1048588', 5],
      ],
    );
  }
  const defaults = await describe(client, { type: brokerType, name: '' });
  assert.deepEqual(defaults.configs, []);
});

test('resources that are not there', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  for (const [type, name, code] of [
    [topicType, 'nothing', ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    [topicType, 'a b', ErrorCode.INVALID_TOPIC_EXCEPTION],
    [topicType, '', ErrorCode.INVALID_TOPIC_EXCEPTION],
    [brokerType, '9', ErrorCode.INVALID_REQUEST],
    [brokerType, 'zero', ErrorCode.INVALID_REQUEST],
    [8, '0', ErrorCode.INVALID_REQUEST],
    [77, 'x', ErrorCode.INVALID_REQUEST],
  ] as const) {
    const { errorCode, configs } = await describe(client, { type, name });
    assert.deepEqual([errorCode, configs], [code, []], `${type} ${name}`);
  }
});
