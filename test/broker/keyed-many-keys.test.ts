/** Memory of keys: as much as there is unfinished, however many there have been. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { codecs } from '../../src/core/codecs.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import { KeyedMember, send, sentMs, shareLanes } from './keyed-member.ts';
import { produceTo } from './records.ts';
import { startTestNode, type TestClient } from './support.ts';

const keyCount = 1_000_000;
const perBatch = 5_000;
const window = 20_000;
/** What feed.ts loads ahead at most, the window, and the batches at the ends of both. */
const loadedMax = 131_072 + window + 4 * perBatch;

/** The keys from `first` on, one record each. */
async function sendKeys(client: TestClient, partition: number, first: number): Promise<void> {
  const records = Array.from({ length: perBatch }, (_, i) => ({
    key: Buffer.from(String(first + i)),
    value: null,
    timestamp: sentMs,
  }));
  const batch = buildBatch({ records }, codecs);
  const { errorCode } = await produceTo(client, { topic: 'orders', partition, records: batch });
  assert.equal(errorCode, ErrorCode.NONE);
}

test('a million keys beside one that is stuck: nothing is left of them', async (t) => {
  const node = await startTestNode(t, { settings: { 'journal.file.bytes': 16 * 1024 * 1024 } });
  const configs = { 'delivery.mode': 'keyed', 'delivery.window': String(window) };
  await node.createTopic('orders', 2, { 'retention.ms': '-1', ...configs });
  const producer = await node.connect('producer');
  const options = { groupId: 'g', topics: ['orders'], sessionTimeoutMs: 120_000 };
  const stuck = await KeyedMember.connect(node, options);
  const member = await KeyedMember.connect(node, options);
  await stuck.own(0, 1);
  await shareLanes(stuck, member, [[0], [1]]);
  await send(producer, 'orders', ['stuck=1', 'stuck=2']);
  assert.equal((await stuck.await(0)).records.length, 2);

  for (let first = 0, i = 0; first < keyCount; first += perBatch, i++) {
    await sendKeys(producer, i % 2, first);
  }
  const { dispatcher } = [...node.broker.keyed.of('g')][0]!;
  const { keys, store } = dispatcher.board;
  const seen = new Uint8Array(keyCount);
  let [handled, keysMax, recordsMax] = [0, 0, 0];
  while (handled < keyCount) {
    const { records } = await member.await(1);
    for (const { key } of records) seen[Number(key)]!++;
    handled += records.length;
    keysMax = Math.max(keysMax, keys.size);
    recordsMax = Math.max(recordsMax, store.records);
    await member.commitAll(1);
  }
  assert.equal(handled, keyCount);
  assert.ok(
    seen.every((times) => times === 1),
    'each of them once',
  );
  assert.ok(keysMax <= loadedMax, `${keysMax} keys at most`);
  assert.ok(recordsMax <= loadedMax, `${recordsMax} records at most`);
  assert.ok(keys.rows <= loadedMax, 'their places are used again');
  assert.deepEqual([keys.size, store.batches, store.records], [1, 1, 2], 'the stuck ones are left');

  await stuck.commitAll(0);
  assert.deepEqual([keys.size, store.batches, store.records], [0, 0, 0]);
  const { checks, violations } = node.broker.keyed.invariants;
  assert.ok(checks.holder > 0);
  assert.deepEqual(violations, { holder: 0, books: 0 });
});

test('a commit of very many records is answered when all of them are finished', async (t) => {
  const records = 250_000;
  const node = await startTestNode(t);
  const configs = { 'delivery.mode': 'keyed', 'delivery.window': String(records) };
  await node.createTopic('orders', 1, { 'retention.ms': '-1', ...configs });
  const producer = await node.connect('producer');
  for (let first = 0; first < records; first += perBatch) await sendKeys(producer, 0, first);
  const options = { groupId: 'g', topics: ['orders'], sessionTimeoutMs: 120_000 };
  const member = await KeyedMember.connect(node, options);
  await member.own(0);
  let handled = 0;
  while (handled < records) handled += (await member.await()).records.length;
  await member.commitAll();
  const { dispatcher } = [...node.broker.keyed.of('g')][0]!;
  assert.equal(dispatcher.ledger.finished(0).low, records);
  const durable = node.broker.replica.state.keyed.get('g', dispatcher.ledger.topicId);
  assert.equal(durable!.finished(0).low, records, 'and that is durable');
});
