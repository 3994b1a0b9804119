import assert from 'node:assert/strict';
import test from 'node:test';
import { isDynamic, settingRule } from '../../src/config/broker-configs.ts';
import { type DeliveryConfigName, deliveryConfigNames } from '../../src/config/delivery-configs.ts';
import { groupConfigs, validateGroupConfigs } from '../../src/config/group-configs.ts';
import { parseValue } from '../../src/config/kafka-values.ts';
import { wrongValues } from '../../src/config/schema.ts';
import { settingsTable } from '../../src/config/settings.ts';
import { topicConfigs, validateTopicConfigs } from '../../src/config/topic-configs.ts';

const good: Readonly<Record<DeliveryConfigName, readonly string[]>> = {
  'delivery.mode': ['log', 'keyed'],
  'delivery.start': ['earliest', 'latest'],
  'lease.ms': ['0', '300000'],
  'delivery.attempts.max': ['0', '5'],
  'retry.backoff.ms': ['0', '1'],
  'retry.backoff.max.ms': ['0', '2147483647'],
  'dead.letter.topic': ['', 'dead', '<topic>.dlq', 'of-<topic>_', '...'],
  'dead.letter.policy': ['continue', 'halt'],
  'delivery.ack': ['commit', 'poll'],
  'delivery.commit.lag': ['-1', '0', '1'],
  'delivery.refetch': ['auto', 'repeat'],
  'delivery.window': ['auto', '1', '500'],
  'delivery.unfinished.max': ['1', '10000000'],
  'ordering.key': ['key', 'none', 'header:tenant', 'header:with space:'],
  'null.key.order': ['none', 'serial'],
};

const bad: Readonly<Record<DeliveryConfigName, readonly string[]>> = {
  'delivery.mode': ['', 'Keyed', 'share'],
  'delivery.start': ['none'],
  'lease.ms': ['-1', '2147483648', 'x', ''],
  'delivery.attempts.max': ['-1', '1.5'],
  'retry.backoff.ms': ['-1'],
  'retry.backoff.max.ms': ['-1'],
  'dead.letter.topic': ['.', '..', 'a b', '<group>.dlq', 'x'.repeat(250)],
  'dead.letter.policy': ['stop'],
  'delivery.ack': ['auto'],
  'delivery.commit.lag': ['-2', ''],
  'delivery.refetch': ['never'],
  'delivery.window': ['0', '-1', '01', '', 'many'],
  'delivery.unfinished.max': ['0'],
  'ordering.key': ['', 'header', 'header:', 'value'],
  'null.key.order': ['key'],
};

function accepts(judged: { readonly error: string } | object): boolean {
  return !('error' in judged);
}

test('settings, topics and groups take the same values', () => {
  for (const name of deliveryConfigNames) {
    const values = [...good[name], ...bad[name]];
    for (const value of values) {
      const isGood = good[name].includes(value);
      const given = new Map([[name, value]]);
      assert.equal(accepts(validateTopicConfigs(given)), isGood, `topic ${name}=${value}`);
      assert.equal(accepts(validateGroupConfigs(given)), isGood, `group ${name}=${value}`);
      const rule = settingRule(name);
      assert.equal(accepts(parseValue(name, value, rule)), isGood, `broker ${name}=${value}`);
      const typed = settingsTable[name].type === 'integer' && value !== '' ? Number(value) : value;
      assert.equal(wrongValues({ [name]: typed }).length === 0, isGood, `file ${name}=${value}`);
    }
  }
});

test('each is a setting that can be changed, a configuration of topics and one of groups', () => {
  for (const name of deliveryConfigNames) {
    assert.ok(isDynamic(name), name);
    assert.equal(topicConfigs.get(name)?.kind, 'enforced', name);
  }
  assert.deepEqual([...groupConfigs.keys()], deliveryConfigNames);
});

test("Kafka's configurations of groups are refused by name, others are unknown", () => {
  for (const [name, why] of [
    ['consumer.session.timeout.ms', /not supported: .* \(KIP-848\), which is not served yet/],
    ['share.auto.offset.reset', /not supported: .* \(KIP-932\)/],
    ['streams.num.standby.replicas', /not supported: .* \(KIP-1071\)/],
    ['retention.ms', /^Unknown group config name: retention\.ms$/],
    ['toString', /^Unknown group config name: toString$/],
  ] as const) {
    const valid = validateGroupConfigs(new Map([[name, '1']]));
    assert.match('error' in valid ? valid.error : '', why);
  }
});

test('names of keyed topics are given as a list', () => {
  for (const text of ['', 'orders', 'chat-*', 'a, b ,c', '*', '*.dlq,a_b']) {
    assert.deepEqual(wrongValues({ 'keyed.topics': text }), [], text);
  }
  for (const text of [',', 'a,', 'a b', 'a;b', 'x'.repeat(250), '/re/', ['a']]) {
    assert.equal(wrongValues({ 'keyed.topics': text }).length, 1, String(text));
  }
});
