import assert from 'node:assert/strict';
import test from 'node:test';
import {
  type DeliverySettings,
  isKeyedTopic,
  matchesPattern,
  resolveDelivery,
} from '../../src/config/delivery-settings.ts';
import { type Settings, withDefaults } from '../../src/config/settings.ts';
import { seededRandom } from '../../src/core/random.ts';

type Texts = Readonly<Record<string, string>>;

interface Given {
  readonly group?: Texts;
  readonly topic?: Texts;
  readonly broker?: Partial<Settings>;
  readonly topicName?: string;
}

function resolve({ group = {}, topic = {}, broker = {}, topicName = 'orders' }: Given) {
  return resolveDelivery({
    group: new Map(Object.entries(group)),
    topicName,
    topic: new Map(Object.entries(topic)),
    broker: withDefaults(broker),
  });
}

const standard: DeliverySettings = {
  mode: 'log',
  start: 'earliest',
  leaseMs: 300_000,
  attemptsMax: 5,
  retryBackoffMs: 1000,
  retryBackoffMaxMs: 60_000,
  deadLetterTopic: 'orders.dlq',
  deadLetterPolicy: 'continue',
  ack: 'commit',
  commitLag: undefined,
  refetch: 'auto',
  window: undefined,
  unfinishedMax: 10_000_000,
  orderingKey: { kind: 'key' },
  nullKeyOrder: 'none',
};

test('with nothing set, everything is at its default', () => {
  const found = resolve({});
  assert.deepEqual(found, standard);
  assert.ok(Object.isFrozen(found));
});

test('the group wins over the topic, and the topic over the broker', () => {
  const broker = { 'lease.ms': 1 };
  const topic = { 'lease.ms': '2' };
  const group = { 'lease.ms': '3' };
  assert.equal(resolve({ broker }).leaseMs, 1);
  assert.equal(resolve({ broker, topic }).leaseMs, 2);
  assert.equal(resolve({ broker, topic, group }).leaseMs, 3);
  assert.equal(resolve({ broker, group }).leaseMs, 3);
});

test('every configuration reaches its setting', () => {
  const group = {
    'delivery.mode': 'keyed',
    'delivery.start': 'latest',
    'lease.ms': '0',
    'delivery.attempts.max': '0',
    'retry.backoff.ms': '5',
    'retry.backoff.max.ms': '50',
    'dead.letter.topic': '',
    'dead.letter.policy': 'halt',
    'delivery.ack': 'poll',
    'delivery.commit.lag': '1',
    'delivery.refetch': 'repeat',
    'delivery.window': '7',
    'delivery.unfinished.max': '9',
    'ordering.key': 'header:tenant:id',
    'null.key.order': 'serial',
  };
  assert.deepEqual(resolve({ group }), {
    mode: 'keyed',
    start: 'latest',
    leaseMs: 0,
    attemptsMax: 0,
    retryBackoffMs: 5,
    retryBackoffMaxMs: 50,
    deadLetterTopic: undefined,
    deadLetterPolicy: 'halt',
    ack: 'poll',
    commitLag: 1,
    refetch: 'repeat',
    window: 7,
    unfinishedMax: 9,
    orderingKey: { kind: 'header', name: 'tenant:id' },
    nullKeyOrder: 'serial',
  } satisfies DeliverySettings);
});

test('keyed.topics stands above delivery.mode of the broker, and below topic and group', () => {
  const broker = { 'keyed.topics': 'chat-*,orders' };
  assert.equal(resolve({ broker }).mode, 'keyed');
  assert.equal(resolve({ broker, topicName: 'other' }).mode, 'log');
  assert.equal(resolve({ broker, topic: { 'delivery.mode': 'log' } }).mode, 'log');
  assert.equal(resolve({ broker, group: { 'delivery.mode': 'log' } }).mode, 'log');
  const both = { ...broker, 'delivery.mode': 'keyed' };
  assert.equal(resolve({ broker: both, topicName: 'other' }).mode, 'keyed');
});

test('a group may take back what the topic declares', () => {
  const topic = { 'delivery.commit.lag': '1', 'delivery.window': '5' };
  const group = { 'delivery.commit.lag': '-1', 'delivery.window': 'auto' };
  const { commitLag, window } = resolve({ topic, group });
  assert.deepEqual([commitLag, window], [undefined, undefined]);
});

test('a backoff is never longer than the longest', () => {
  const { retryBackoffMs } = resolve({ group: { 'retry.backoff.max.ms': '10' } });
  assert.equal(retryBackoffMs, 10);
});

test('the name of the topic is put in as it is', () => {
  const topic = { 'dead.letter.topic': '<topic>-<topic>' };
  assert.equal(resolve({ topic, topicName: "$&a$'" }).deadLetterTopic, "$&a$'-$&a$'");
  assert.equal(resolve({ topic: { 'dead.letter.topic': 'one' } }).deadLetterTopic, 'one');
});

test('patterns match as a regular expression would', () => {
  const random = seededRandom(7);
  const word = (letters: string): string => {
    const length = Math.floor(random.next() * 7);
    const letter = () => letters[Math.floor(random.next() * letters.length)]!;
    return Array.from({ length }, letter).join('');
  };
  let matches = 0;
  for (let i = 0; i < 20_000; i++) {
    const name = word('ab.');
    const pattern = word('ab.**');
    const regular = new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '.*')}$`);
    assert.equal(matchesPattern(name, pattern), regular.test(name), `${name} ${pattern}`);
    if (regular.test(name)) matches++;
  }
  assert.ok(matches > 500);
});

test('a pattern of many stars takes no long time', () => {
  const pattern = `${'*a'.repeat(120)}*b`;
  assert.equal(matchesPattern('a'.repeat(249), pattern), false);
});

test('no patterns name no topic', () => {
  assert.equal(isKeyedTopic('orders', withDefaults()), false);
  assert.equal(isKeyedTopic('orders', withDefaults({ 'keyed.topics': '*' })), true);
});
