import assert from 'node:assert/strict';
import test from 'node:test';
import { codecs } from '../../src/core/codecs.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import { produceRequest, produceResponse } from '../../src/protocol/schema/00-produce.ts';
import { produceTo } from '../broker/records.ts';
import { startTestNode, type TestClient, type TestNode, until } from '../broker/support.ts';

const hourMs = 3_600_000;
const checkMs = 10_000;
const settings = {
  'log.retention.check.interval.ms': checkMs,
  'log.message.timestamp.after.max.ms': Number.MAX_SAFE_INTEGER,
};

/** One batch with one record of that age. */
function aged(node: TestNode, ageMs: number, value = 'v'): Buffer {
  return timed(node.clock.wallMs() - ageMs, value);
}

function timed(timestamp: number, ...values: readonly string[]): Buffer {
  const records = values.map((value) => ({ key: null, value: Buffer.from(value), timestamp }));
  return buildBatch({ records }, codecs);
}

function startOf(node: TestNode, topic: string, index = 0): number {
  const partition = node.broker.topics.byName(topic)!.partitions[index]!;
  return node.broker.replica.state.topics.partitions.logStart(partition);
}

/** Lets the next look happen, and waits until it is through. */
async function look(node: TestNode): Promise<void> {
  await node.broker.retention.settled();
  node.clock.advance(checkMs);
  await node.broker.retention.settled();
}

async function fill(client: TestClient, topic: string, batches: readonly Buffer[]): Promise<void> {
  for (const records of batches) await produceTo(client, { topic, records });
}

test('by age whole batches go, from the oldest on, up to the first that is young', async (t) => {
  const node = await startTestNode(t, { settings });
  const client = await node.connect();
  await node.createTopic('orders', 1, { 'retention.ms': String(hourMs) });
  const ages = [3 * hourMs, 2 * hourMs, hourMs / 2, 2 * hourMs];
  await fill(
    client,
    'orders',
    ages.map((age) => aged(node, age)),
  );
  await look(node);
  assert.equal(startOf(node, 'orders'), 2);
  await look(node);
  assert.equal(startOf(node, 'orders'), 2, 'the old one behind a young one stays');
  node.clock.advance(hourMs);
  await look(node);
  assert.equal(startOf(node, 'orders'), 4, 'time passes, and all of them are old');
});

test('-1 keeps records for ever, and the default of the broker counts', async (t) => {
  const node = await startTestNode(t, { settings: { ...settings, 'log.retention.ms': hourMs } });
  const client = await node.connect();
  await node.createTopic('kept', 1, { 'retention.ms': '-1' });
  await node.createTopic('dropped');
  for (const topic of ['kept', 'dropped']) await fill(client, topic, [aged(node, 2 * hourMs)]);
  await look(node);
  assert.deepEqual([startOf(node, 'kept'), startOf(node, 'dropped')], [0, 1]);
});

test('a change of the default is taken up at the next look', async (t) => {
  const node = await startTestNode(t, { settings });
  const client = await node.connect();
  await node.createTopic('orders');
  await fill(client, 'orders', [aged(node, 2 * hourMs)]);
  await look(node);
  assert.equal(startOf(node, 'orders'), 0);
  const changes = [{ name: 'log.retention.ms', operation: 0, value: String(hourMs) }];
  const change = { resourceType: 4, resourceName: '', changes, replacesAll: false };
  assert.deepEqual(await node.broker.configChanges.alter([change], false), [undefined]);
  await look(node);
  assert.equal(startOf(node, 'orders'), 1);
});

test('by size at least retention.bytes stay', async (t) => {
  const node = await startTestNode(t, { settings });
  const client = await node.connect();
  const batches = Array.from({ length: 10 }, (_, i) => aged(node, 0, `value ${i}`));
  const bytes = batches[0]!.length;
  const limits = { exact: 4 * bytes, less: 4 * bytes - 1, more: 4 * bytes + 1, none: -1, all: 0 };
  for (const [topic, limit] of Object.entries(limits)) {
    await node.createTopic(topic, 1, { 'retention.bytes': String(limit) });
    await fill(client, topic, batches);
  }
  await look(node);
  const starts = Object.fromEntries(
    Object.keys(limits).map((topic) => [topic, startOf(node, topic)]),
  );
  assert.deepEqual(starts, { exact: 6, less: 6, more: 5, none: 0, all: 10 });
});

test('the bytes of a partition stay right when its log start moves in other ways', async (t) => {
  const node = await startTestNode(t, { settings });
  const client = await node.connect();
  const topic = await node.createTopic('orders', 1, { 'retention.ms': String(hourMs) });
  const partition = topic.partitions[0]!;
  const ages = [3, 3, 2, 0].map((hours) => hours * hourMs);
  await fill(
    client,
    'orders',
    ages.map((age) => timed(node.clock.wallMs() - age, 'a', 'b')),
  );
  const { partitions } = node.broker.replica.state.topics;
  const before = partitions.bytes(partition);
  await node.broker.logStarts.moveTo(new Map([[partition, 3]]));
  await look(node);
  assert.equal(partitions.logStart(partition), 6);
  assert.equal(partitions.bytes(partition), before / 4);
});

test('batches without timestamps go with the next one that has some', async (t) => {
  const node = await startTestNode(t, { settings });
  const client = await node.connect();
  await node.createTopic('orders', 1, { 'retention.ms': String(hourMs) });
  await fill(client, 'orders', [timed(-1, 'v'), timed(-1, 'v')]);
  await look(node);
  assert.equal(startOf(node, 'orders'), 0);
  await fill(client, 'orders', [aged(node, 2 * hourMs), timed(-1, 'v')]);
  await look(node);
  assert.equal(startOf(node, 'orders'), 3);
});

test('a clock that jumps deletes nothing by age, and holds up nothing by size', async (t) => {
  const node = await startTestNode(t, {
    settings: { ...settings, 'clock.settle.ms': 60_000, 'log.retention.ms': hourMs },
  });
  const client = await node.connect();
  await node.createTopic('aging');
  await node.createTopic('large', 1, { 'retention.bytes': '0' });
  for (const topic of ['aging', 'large']) await fill(client, topic, [aged(node, 0)]);
  node.clock.jumpWall(10 * 365 * 24 * hourMs);
  await look(node);
  assert.deepEqual([startOf(node, 'aging'), startOf(node, 'large')], [0, 1]);
  node.clock.jumpWall(-10 * 365 * 24 * hourMs);
  node.clock.advance(2 * hourMs);
  await look(node);
  assert.equal(startOf(node, 'aging'), 1);
});

test('many partitions and many batches are looked at over several turns', async (t) => {
  const node = await startTestNode(t, { settings });
  const client = await node.connect();
  const count = 1200;
  await node.createTopic('many', count, { 'retention.ms': String(hourMs) });
  const records = aged(node, 2 * hourMs);
  const partitionData = Array.from({ length: count }, (_, index) => ({ index, records }));
  await client.ask(produceRequest, produceResponse, 9, {
    acks: -1,
    timeoutMs: 1000,
    topicData: [{ name: 'many', partitionData }],
  });
  await node.createTopic('long', 1, { 'retention.ms': String(hourMs) });
  const long = 12_000;
  const appends: Promise<unknown>[] = [];
  for (let i = 0; i < long; i++) appends.push(produceTo(client, { topic: 'long', records }));
  await Promise.all(appends);
  await look(node);
  const starts = Array.from({ length: count }, (_, index) => startOf(node, 'many', index));
  assert.ok(starts.every((start) => start === 1));
  assert.equal(startOf(node, 'long'), long);
});

test('topics that are deleted while a look is under way do not matter', async (t) => {
  const node = await startTestNode(t, { settings });
  const client = await node.connect();
  for (let i = 0; i < 20; i++) {
    await node.createTopic(`topic-${i}`, 100, { 'retention.ms': String(hourMs) });
    await produceTo(client, { topic: `topic-${i}`, records: aged(node, 2 * hourMs) });
  }
  node.clock.advance(checkMs);
  const { topics } = node.broker;
  await Promise.all([...topics.all()].map((topic) => topics.delete(topic)));
  await node.broker.retention.settled();
  assert.deepEqual([...topics.all()], []);
});

test('journal files in which nothing is left are removed', async (t) => {
  const node = await startTestNode(t, { settings });
  const client = await node.connect();
  await node.createTopic('orders', 1, { 'retention.bytes': '100000' });
  const { journal } = node.broker.replica;
  const value = 'x'.repeat(100_000);
  for (let i = 0; i < 40; i++) await fill(client, 'orders', [aged(node, 0, value)]);
  const before = journal.logFiles.length;
  assert.ok(before > 3, 'several files');
  await look(node);
  await until(() => {
    node.clock.advance(1000);
    return journal.logFiles.length < 3;
  }, 'the files are gone');
  assert.equal(startOf(node, 'orders'), 39);
  await node.restart();
  assert.equal(startOf(node, 'orders'), 39);
});
