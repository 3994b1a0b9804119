import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { isNestedName } from '../../src/broker/keyed/dead-letters.ts';
import { Compression } from '../../src/core/compression.ts';
import { murmur2Partition } from '../../src/core/murmur2.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import type { DecodedRecord } from '../../src/protocol/records/decoded-batch.ts';
import { ConfigResource } from '../../src/state/commands.ts';
import { FillableDisk } from './fillable-disk.ts';
import { commit } from './group-client.ts';
import {
  KeyedMember,
  type KeyedRecord,
  laneAnswer,
  offsetsOf,
  send,
  sentMs,
  texts,
} from './keyed-member.ts';
import { fetchFrom } from './records.ts';
import { startTestNode, type TestNode, type TestNodeOptions, until } from './support.ts';

const quick = {
  'retention.ms': '-1',
  'delivery.mode': 'keyed',
  'delivery.window': '1',
  'delivery.attempts.max': '2',
  'retry.backoff.ms': '100',
};

interface Started {
  readonly node: TestNode;
  readonly member: KeyedMember;
}

async function started(
  t: TestContext,
  configs: Readonly<Record<string, string>> = {},
  options: TestNodeOptions & { topic?: string; partitionCount?: number } = {},
): Promise<Started> {
  const { topic = 'orders', partitionCount = 1 } = options;
  const node = await startTestNode(t, options);
  await node.createTopic(topic, partitionCount, { ...quick, ...configs });
  const member = await KeyedMember.connect(node, { groupId: 'g', topics: [topic] });
  await member.own(0);
  return { node, member };
}

/** The record's deliveries fail until it is a dead letter; whatever comes in between is handled. */
async function failFor(started: Started, value: string, attempts: number): Promise<string[]> {
  const handled: string[] = [];
  for (let failed = 0; failed < attempts; ) {
    const { records } = await started.member.await();
    assert.equal(records.length, 1, 'the window is one');
    if (String(records[0]!.value) !== value) {
      handled.push(...texts(records));
      await started.member.commitAll();
      continue;
    }
    failed++;
    started.node.clock.advance(300);
    const { offset } = records[0]!;
    const { records: others } = await started.member.fetch(0, { at: offset });
    if (others.length > 0) {
      handled.push(...texts(others));
      await started.member.commitAll();
    } else {
      // The next fetch is at the lane's end, as that of a client which got nothing.
      started.member.positions.set(0, offset + 1);
    }
  }
  return handled;
}

/** All that was handled in the end: the next record may have come beside the last failure. */
async function withNext({ member }: Started, handled: string[]): Promise<string[]> {
  if (handled.length > 0) return handled;
  const next = texts((await member.await()).records);
  await member.commitAll();
  return next;
}

async function lettersIn(node: TestNode, topic: string, count = 1): Promise<DecodedRecord[]> {
  await until(() => node.broker.topics.byName(topic) !== undefined, `${topic} is made`);
  const { partitions } = node.broker.topics.byName(topic)!;
  const state = node.broker.replica.state.topics.partitions;
  const total = () => partitions.reduce((sum, partition) => sum + state.end(partition), 0);
  await until(() => total() >= count, 'the dead letters are written');
  assert.equal(total(), count);
  const client = await node.connect();
  const records: DecodedRecord[] = [];
  for (const index of partitions.keys()) {
    const answer = await fetchFrom(client, [{ topic, partition: index, offset: 0 }]);
    records.push(...laneAnswer(answer.responses[0]!.partitions[0]!).records);
  }
  return records;
}

function headersOf({ headers }: DecodedRecord): Record<string, string> {
  return Object.fromEntries(headers.map(({ key, value }) => [key, String(value)]));
}

async function unfinished({ node }: Started, topic = 'orders'): Promise<number> {
  const [shown] = await offsetsOf(await node.connect('admin'), 'g', topic, [0]);
  const { partitions } = node.broker.replica.state.topics;
  return partitions.end(node.broker.topics.byName(topic)!.partitions[0]!) - shown!;
}

test('a record that fails too often goes to the dead letter topic, and its key goes on', async (t) => {
  const all = await started(t, {}, { partitionCount: 3 });
  const { node, member } = all;
  const poison: KeyedRecord = {
    key: 'a',
    value: 'poison',
    headers: [{ key: 'own', value: Buffer.from('header') }],
  };
  await send(member.client, 'orders', ['b=0', poison, 'a=later']);
  const handled = await failFor(all, 'poison', 2);
  const [letter] = await lettersIn(node, 'orders.dlq');
  assert.equal(String(letter!.key), 'a');
  assert.equal(String(letter!.value), 'poison');
  const {
    'keylane.first.failure': first,
    'keylane.last.failure': last,
    ...rest
  } = headersOf(letter!);
  assert.deepEqual(rest, {
    own: 'header',
    'keylane.topic': 'orders',
    'keylane.partition': '0',
    'keylane.offset': '1',
    'keylane.timestamp': String(sentMs + 1),
    'keylane.group': 'g',
    'keylane.attempts': '2',
    'keylane.reason': 'rejected',
  });
  assert.ok(Number(last) - Number(first) >= 100, 'there was a backoff in between');
  assert.ok(letter!.timestamp >= Number(last), 'the letter has the time at which it was written');
  const dead = node.broker.topics.byName('orders.dlq')!;
  assert.equal(dead.partitions.length, 3, 'as many partitions as the topic');
  const at = dead.partitions[murmur2Partition(Buffer.from('a'), 3)]!;
  assert.equal(node.broker.replica.state.topics.partitions.end(at), 1, 'by the key');
  while (!handled.includes('a=later')) {
    handled.push(...texts((await member.await()).records));
    await member.commitAll();
  }
  assert.deepEqual(handled.toSorted(), ['a=later', 'b=0']);
  assert.equal(await unfinished(all), 0);
});

test('the letter and the end of its record are of one entry: a restart finds both', async (t) => {
  const all = await started(t);
  const { node, member } = all;
  await send(member.client, 'orders', ['a=poison', 'a=later']);
  const handled = await failFor(all, 'poison', 2);
  await lettersIn(node, 'orders.dlq');
  await node.restart();
  await member.reconnect();
  await member.locate(0);
  assert.deepEqual(await withNext(all, handled), ['a=later']);
  await lettersIn(node, 'orders.dlq');
});

test('letters without a key take turns among the partitions', async (t) => {
  const all = await started(t, { 'delivery.attempts.max': '1' }, { partitionCount: 2 });
  const { node, member } = all;
  const nobody = (value: string) => ({ key: null, value });
  await send(member.client, 'orders', ['1', '2', '3', '4'].map(nobody));
  for (const value of ['1', '2', '3', '4']) {
    const { records } = await member.await();
    assert.deepEqual(texts(records), [`null=${value}`]);
    node.clock.advance(300);
    // It asks for the failed one again and is given the next, which fails too.
    const { offset } = records[0]!;
    const lane = node.broker.keyed.get('g', node.broker.topics.byName('orders')!.id)!;
    lane.dispatcher.settings = { ...lane.dispatcher.settings, window: 1 };
    const next = await member.fetch(0, { at: offset, bytesMax: 1 });
    member.positions.set(0, next.records[0]?.offset ?? offset + 1);
  }
  const letters = await lettersIn(node, 'orders.dlq', 4);
  assert.deepEqual(
    letters.map(({ value }) => String(value)),
    ['1', '3', '2', '4'],
  );
});

test('an empty name skips dead letters', async (t) => {
  const all = await started(t, { 'dead.letter.topic': '' });
  const { node, member } = all;
  await send(member.client, 'orders', ['a=poison', 'a=later']);
  assert.deepEqual(await withNext(all, await failFor(all, 'poison', 2)), ['a=later']);
  assert.equal(await unfinished(all), 0);
  assert.deepEqual(
    [...node.broker.topics.all()].map(({ name }) => name),
    ['orders'],
  );
});

test('names that do not do are told of once, and the records skipped', async (t) => {
  const warnings: string[] = [];
  const warn = (_: object, message: string) => warnings.push(message);
  const log = { debug: () => {}, info: () => {}, warn, error: () => {} };
  const topic = 't'.repeat(246);
  const all = await started(t, {}, { topic, log });
  await send(all.member.client, topic, ['a=poison', 'a=poison2', 'a=later']);
  await failFor(all, 'poison', 2);
  assert.deepEqual(await withNext(all, await failFor(all, 'poison2', 2)), ['a=later']);
  assert.equal(warnings.filter((message) => message.includes('cannot be')).length, 1);
});

test('a topic is not its own dead letter topic', async (t) => {
  const all = await started(t, { 'dead.letter.topic': 'orders' });
  await send(all.member.client, 'orders', ['a=poison', 'a=later']);
  assert.deepEqual(await withNext(all, await failFor(all, 'poison', 2)), ['a=later']);
  assert.equal(await unfinished(all), 0);
});

test('dead letters of a dead letter topic are skipped', async (t) => {
  const all = await started(t, {}, { topic: 'orders.dlq' });
  await send(all.member.client, 'orders.dlq', ['a=poison', 'a=later']);
  assert.deepEqual(await withNext(all, await failFor(all, 'poison', 2)), ['a=later']);
  const names = [...all.node.broker.topics.all()].map(({ name }) => name);
  assert.deepEqual(names, ['orders.dlq']);
  assert.ok(isNestedName('x-dead', 'x-dead-dead'));
  assert.ok(isNestedName('dlq.x', 'dlq.dlq.x'));
  assert.ok(!isNestedName('x', 'x.dlq'));
  assert.ok(!isNestedName('x', 'dead'));
});

test('two topics that are the dead letter topics of each other make no circle', async (t) => {
  const all = await started(t, { 'dead.letter.topic': 'there' });
  const { node, member } = all;
  await node.createTopic('there', 1, { ...quick, 'dead.letter.topic': 'orders' });
  await send(member.client, 'orders', ['a=poison']);
  await failFor(all, 'poison', 2);
  await lettersIn(node, 'there');
  const other = await KeyedMember.connect(node, { groupId: 'g2', topics: ['there'] });
  await other.own(0);
  await failFor({ node, member: other }, 'poison', 2);
  const client = await node.connect('admin');
  await until(async () => (await offsetsOf(client, 'g2', 'there', [0]))[0] === 1, 'it is skipped');
  const { partitions } = node.broker.replica.state.topics;
  assert.equal(partitions.end(node.broker.topics.byName('orders')!.partitions[0]!), 1);
});

test('halt: the key stops until the policy changes, other keys go on', async (t) => {
  const all = await started(t, { 'dead.letter.policy': 'halt' });
  const { node, member } = all;
  await send(member.client, 'orders', ['a=poison', 'a=later', 'b=1', 'b=2']);
  const handled = await failFor(all, 'poison', 2);
  while (handled.length < 2) {
    handled.push(...texts((await member.await()).records));
    await member.commitAll();
  }
  assert.deepEqual(handled, ['b=1', 'b=2']);
  node.clock.advance(20_000);
  assert.deepEqual((await member.fetch()).records, []);
  assert.equal(await unfinished(all), 2);
  assert.equal(node.broker.topics.byName('orders.dlq'), undefined);
  const { id } = node.broker.topics.byName('orders')!;
  const changes = new Map([['dead.letter.policy', 'continue']]);
  await node.broker.topics.setConfigs(ConfigResource.topic, id, changes);
  assert.deepEqual(texts((await member.await()).records), ['a=later']);
  await lettersIn(node, 'orders.dlq');
});

test('halt: the deletion of the record frees its key', async (t) => {
  const all = await started(t, { 'dead.letter.policy': 'halt' });
  const { node, member } = all;
  await send(member.client, 'orders', ['a=poison']);
  await send(member.client, 'orders', ['a=later']);
  await failFor(all, 'poison', 2);
  assert.deepEqual((await member.fetch()).records, []);
  const [partition] = node.broker.topics.byName('orders')!.partitions;
  await node.broker.topics.moveLogStarts([{ partition: partition!, offset: 1, droppedBytes: 0 }]);
  assert.deepEqual(texts((await member.await()).records), ['a=later']);
  assert.equal(node.broker.topics.byName('orders.dlq'), undefined);
});

test('halt: more attempts are given after a restart too', async (t) => {
  const all = await started(t, { 'dead.letter.policy': 'halt' });
  const { node, member } = all;
  await send(member.client, 'orders', ['a=poison']);
  await failFor(all, 'poison', 2);
  await node.restart();
  await member.reconnect();
  await member.locate(0);
  assert.deepEqual((await member.fetch()).records, []);
  const { id } = node.broker.topics.byName('orders')!;
  const changes = new Map([['delivery.attempts.max', '3']]);
  await node.broker.topics.setConfigs(ConfigResource.topic, id, changes);
  assert.deepEqual(texts((await member.await()).records), ['a=poison']);
});

test('a full disk: the record waits, and goes when there is room', async (t) => {
  const disk = new FillableDisk();
  const all = await started(t, {}, { files: disk.files });
  const { node, member } = all;
  await send(member.client, 'orders', ['a=poison', 'a=later', 'b=1']);
  await failFor(all, 'poison', 1);
  // The last failure is that of which the disk takes no note.
  const { records } = await member.await();
  assert.deepEqual(texts(records), ['a=poison']);
  disk.isFull = true;
  node.clock.advance(300);
  assert.deepEqual((await member.fetch(0, { at: records[0]!.offset })).records, []);
  await until(() => !node.broker.replica.disk.mayGrow(1), 'the broker knows that the disk is full');
  for (let i = 0; i < 5; i++) {
    node.clock.advance(1000);
    assert.deepEqual((await member.fetch(0, { at: records[0]!.offset + 1 })).records, []);
  }
  disk.isFull = false;
  node.clock.advance(2000);
  await until(() => node.broker.replica.disk.mayGrow(1), 'there is room again');
  member.positions.set(0, (await member.locate(0))[0]!);
  await failFor(all, 'poison', 1);
  await lettersIn(node, 'orders.dlq');
  assert.equal(await unfinished(all), 1);
});

test('a full disk takes neither the letter nor the end of its record', async (t) => {
  const disk = new FillableDisk();
  const all = await started(t, { 'dead.letter.policy': 'halt' }, { files: disk.files });
  const { node, member } = all;
  await node.createTopic('orders.dlq');
  await send(member.client, 'orders', ['a=poison', 'a=later']);
  await failFor(all, 'poison', 2);
  const { id } = node.broker.topics.byName('orders')!;
  const changes = new Map([['dead.letter.policy', 'continue']]);
  await node.broker.topics.setConfigs(ConfigResource.topic, id, changes);
  disk.isFull = true;
  node.clock.advance(100);
  await until(() => !node.broker.replica.disk.mayGrow(1), 'it was tried');
  const { partitions } = node.broker.replica.state.topics;
  const [dead] = node.broker.topics.byName('orders.dlq')!.partitions;
  for (let i = 0; i < 5; i++) {
    node.clock.advance(1000);
    assert.deepEqual((await member.fetch()).records, []);
  }
  assert.equal(partitions.end(dead!), 0);
  assert.equal(await unfinished(all), 2);
  disk.isFull = false;
  assert.deepEqual(texts((await member.await()).records), ['a=later']);
  const [letter] = await lettersIn(node, 'orders.dlq');
  assert.equal(letter!.offset, 0);
  await member.commitAll();
  assert.equal(await unfinished(all), 0);
});

test('attempts are counted over restarts', async (t) => {
  const all = await started(t, { 'delivery.attempts.max': '3' });
  const { node, member } = all;
  await send(member.client, 'orders', ['a=poison', 'a=later']);
  for (let attempt = 1; attempt <= 3; attempt++) {
    await failFor(all, 'poison', 1);
    await node.restart();
    await member.reconnect();
    await member.locate(0);
  }
  const [letter] = await lettersIn(node, 'orders.dlq');
  assert.equal(headersOf(letter!)['keylane.attempts'], '3');
  assert.deepEqual(texts((await member.await()).records), ['a=later']);
});

test('a consumer that dies of a record is its failure; of several nobody is charged', async (t) => {
  const all = await started(t, { 'delivery.window': '3' });
  const { node } = all;
  await send(all.member.client, 'orders', ['a=1', 'b=poison', 'c=1', 'd=1']);
  await all.member.leave();
  const handled: string[] = [];
  const options = { groupId: 'g', topics: ['orders'], software: 'apache-kafka-java' };
  let deaths = 0;
  let member = await KeyedMember.connect(node, options);
  await member.own(0);
  while (node.broker.topics.byName('orders.dlq') === undefined || handled.length < 3) {
    const { records } = await member.fetch();
    if (!texts(records).includes('b=poison')) {
      handled.push(...texts(records));
      if (records.length > 0) await member.commitAll();
      else node.clock.advance(60);
      continue;
    }
    assert.ok(++deaths <= 4, 'it is found out in a few rounds');
    node.clock.advance(31_000);
    assert.equal(await member.heartbeat(), ErrorCode.UNKNOWN_MEMBER_ID);
    member = await KeyedMember.connect(node, options);
    await member.own(0);
  }
  assert.deepEqual(handled.toSorted(), ['a=1', 'c=1', 'd=1']);
  const [letter] = await lettersIn(node, 'orders.dlq');
  assert.equal(String(letter!.value), 'poison');
  assert.equal(headersOf(letter!)['keylane.reason'], 'died');
});

test('halt: a reset of the group frees the key', async (t) => {
  const all = await started(t, { 'dead.letter.policy': 'halt' });
  const { node, member } = all;
  await send(member.client, 'orders', ['b=1', 'a=poison', 'a=later']);
  await failFor(all, 'poison', 2);
  while ((await unfinished(all)) > 2) {
    await member.await();
    await member.commitAll();
  }
  await member.leave();
  const admin = await node.connect('admin');
  assert.equal(await commit(admin, 'g', 'orders', 0, 1), ErrorCode.NONE);
  assert.equal(await unfinished(all), 2);
  const next = await KeyedMember.connect(node, { groupId: 'g', topics: ['orders'] });
  await next.own(0);
  assert.deepEqual((await next.fetch()).records, [], 'that offset is what was shown');
  await next.leave();
  assert.equal(await commit(admin, 'g', 'orders', 0, 2), ErrorCode.NONE);
  const last = await KeyedMember.connect(node, { groupId: 'g', topics: ['orders'] });
  await last.own(0);
  assert.deepEqual(texts((await last.await()).records), ['a=later']);
});

test('letters that are dead at once by the hundred all go, in few entries', async (t) => {
  const all = await started(t, { 'delivery.attempts.max': '1', 'delivery.window': '1000' });
  const { node, member } = all;
  for (let batch = 0; batch < 4; batch++) {
    const records = Array.from({ length: 300 }, (_, i) => `${i}=${batch}`);
    await send(member.client, 'orders', records, { compression: Compression.lz4 });
  }
  const { partitions } = node.broker.topics.byName('orders')!;
  const trial = { quarters: 4, limit: 1, firstMs: 1, lastMs: 2, dueMs: 0, reason: 'died' };
  const [delivery] = [...node.broker.keyed.of('g')];
  // As if each of them had been tried alone.
  for (let offset = 0; offset < 1200; offset++) {
    delivery!.dispatcher.plan({ kind: 'tried', partition: partitions[0]!, offset, trial });
  }
  delivery!.flush();
  await node.restart();
  const before = node.broker.replica.state.appliedIndex;
  await member.reconnect();
  await member.locate(0);
  // Only when a key's first record is gone its next one is looked at, by who asks for records.
  await until(async () => {
    assert.deepEqual((await member.fetch()).records, []);
    return (await unfinished(all)) === 0;
  }, 'all of them are finished');
  const letters = await lettersIn(node, 'orders.dlq', 1200);
  assert.equal(letters.length, 1200);
  assert.ok(node.broker.replica.state.appliedIndex - before < 30);
});
