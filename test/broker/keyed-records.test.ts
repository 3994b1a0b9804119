import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import test, { type TestContext } from 'node:test';
import { Compression, type CompressionId } from '../../src/core/compression.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  readBatchBytes,
  readCompressionBits,
  readLeaderEpoch,
} from '../../src/protocol/records/batch-header.ts';
import {
  deleteTopicsRequest,
  deleteTopicsResponse,
} from '../../src/protocol/schema/20-delete-topics.ts';
import {
  deleteRecordsRequest,
  deleteRecordsResponse,
} from '../../src/protocol/schema/21-delete-records.ts';
import {
  createPartitionsRequest,
  createPartitionsResponse,
} from '../../src/protocol/schema/37-create-partitions.ts';
import {
  deleteGroupsRequest,
  deleteGroupsResponse,
} from '../../src/protocol/schema/42-delete-groups.ts';
import { ZERO_UUID } from '../../src/protocol/uuid.ts';
import {
  KeyedMember,
  type KeyedRecord,
  keyedConfigs,
  offsetsOf,
  send,
  sentMs,
  shareLanes,
  started,
  texts,
} from './keyed-member.ts';
import { type TestClient, until } from './support.ts';

/** Two members with a lane each. */
async function startedByTwo(t: TestContext, configs: Readonly<Record<string, string>> = {}) {
  const all = await started(t, configs, 2);
  const second = await KeyedMember.connect(all.node, { groupId: 'g', topics: ['orders'] });
  await shareLanes(all.member, second, [[0], [1]]);
  return { ...all, second };
}

async function deleteRecords(client: TestClient, offset: number): Promise<number> {
  const answer = await client.ask(deleteRecordsRequest, deleteRecordsResponse, 2, {
    topics: [{ name: 'orders', partitions: [{ partitionIndex: 0, offset }] }],
    timeoutMs: 1000,
  });
  return answer.topics[0]!.partitions[0]!.errorCode;
}

test('a batch of which all records go to one lane goes as it is, but for its head', async (t) => {
  const { producer, member } = await started(t);
  for (const compression of Object.values(Compression)) {
    const sent = await send(producer, 'orders', ['a=1', 'b=1', 'a=2'], { compression });
    const { bytes, records } = await member.await();
    assert.deepEqual(texts(records), ['a=1', 'b=1', 'a=2']);
    assert.equal(bytes.length, sent.length);
    assert.equal(readCompressionBits(bytes, 0), compression);
    assert.equal(readLeaderEpoch(bytes, 0), -1);
    assert.deepEqual(bytes.subarray(16), sent.subarray(16));
    await member.commitAll();
  }
});

test('of a batch, in any codec, each lane is given its records whole', async (t) => {
  const { producer, member, second } = await startedByTwo(t);
  for (const compression of Object.values(Compression)) {
    await checkParts(producer, member, second, compression);
  }
});

async function checkParts(
  producer: TestClient,
  first: KeyedMember,
  second: KeyedMember,
  compression: CompressionId,
): Promise<void> {
  await send(producer, 'orders', ['a=0', 'c=0']);
  assert.deepEqual(texts((await first.await(0)).records), ['a=0', 'c=0']);
  const headers = [
    { key: 'h', value: Buffer.from('1') },
    { key: 'h', value: null },
  ];
  const batch: KeyedRecord[] = ['a', 'b', 'a', null, 'c', 'd'].map((key, i) => ({
    ...{ key, value: `value ${i}`, headers },
  }));
  await send(producer, 'orders', batch, { compression });
  const free = await second.await(1);
  // Keys a and c are the other's.
  assert.deepEqual(
    free.records.map(({ key, value, timestamp }) => [key?.toString(), String(value), timestamp]),
    [
      ['b', 'value 1', sentMs + 1],
      [undefined, 'value 3', sentMs + 3],
      ['d', 'value 5', sentMs + 5],
    ],
  );
  const start = free.records[0]!.offset;
  assert.deepEqual(
    free.records.map(({ offset }) => offset - start),
    [0, 1, 2],
  );
  assert.deepEqual(free.records[2]!.headers, headers);
  assert.equal(readBatchBytes(free.bytes, 0), free.bytes.length, 'one batch');
  assert.equal(readLeaderEpoch(free.bytes, 0), -1);
  const own = await first.await(0);
  assert.deepEqual(texts(own.records), ['a=value 0', 'a=value 2', 'c=value 4']);
  await first.commitAll(0);
  await second.commitAll(1);
}

test('small fetches take a batch apart, and lose nothing of it', async (t) => {
  const { producer, member } = await started(t);
  const records = Array.from({ length: 50 }, (_, i) => `${i % 7}=${i}`);
  await send(producer, 'orders', records, { compression: Compression.gzip });
  const got: string[] = [];
  while (got.length < 50) {
    const answer = await member.await(0, { maxBytes: 60, bytesMax: 60 });
    got.push(...texts(answer.records));
    assert.ok(answer.records.length < 50);
  }
  assert.deepEqual(got, records);
  await member.commitAll();
});

test('large compressed batches are opened elsewhere, whole ones and parts', async (t) => {
  const { producer, member, second } = await startedByTwo(t);
  // Text of random digits packs badly, so the batch stays large.
  const text = () => randomBytes(8192).toString('hex');
  const records = Array.from({ length: 12 }, (_, i) => `${i % 3}=${i} ${text()}`);
  await send(producer, 'orders', ['0=first']);
  assert.deepEqual(texts((await member.await(0)).records), ['0=first']);
  await send(producer, 'orders', records, { compression: Compression.gzip });
  const isOfFirst = (record: string) => record.startsWith('0=');
  const free = await second.await(1);
  const others = records.filter((record) => !isOfFirst(record));
  assert.deepEqual(texts(free.records), others);
  const own = await member.await(0);
  assert.deepEqual(texts(own.records), records.filter(isOfFirst));
});

test('records may be ordered by a header', async (t) => {
  const configs = { 'ordering.key': 'header:customer' };
  const { producer, member, second } = await startedByTwo(t, configs);
  const order = (key: string, customer: string | null, value: string): KeyedRecord => {
    const headers = customer === null ? [] : [{ key: 'customer', value: Buffer.from(customer) }];
    return { key, value, headers };
  };
  await send(producer, 'orders', [order('1', 'x', 'first')]);
  assert.deepEqual(texts((await member.await(0)).records), ['1=first']);
  await send(producer, 'orders', [
    order('2', 'x', 'second'),
    order('1', 'y', 'other'),
    order('1', null, 'nobody'),
  ]);
  assert.deepEqual(texts((await second.await(1)).records), ['1=other', '1=nobody']);
  assert.deepEqual(texts((await member.await(0)).records), ['2=second']);
});

test('records without a key are bound to no other', async (t) => {
  const { producer, member, second } = await startedByTwo(t);
  const nobody = (value: string) => ({ key: null, value });
  await send(producer, 'orders', [nobody('1')]);
  assert.deepEqual(texts((await member.await(0)).records), ['null=1']);
  await send(producer, 'orders', [nobody('2'), { key: '', value: 'empty' }]);
  assert.deepEqual(texts((await second.await(1)).records), ['null=2', '=empty']);
  await send(producer, 'orders', [{ key: '', value: 'empty too' }]);
  assert.deepEqual((await member.fetch(0)).records, [], 'an empty key is one');
  assert.deepEqual(texts((await second.await(1)).records), ['=empty too']);
});

test('null.key.order=serial: records without a key are in order', async (t) => {
  const configs = { 'null.key.order': 'serial' };
  const { producer, member, second } = await startedByTwo(t, configs);
  const nobody = (value: string) => ({ key: null, value });
  await send(producer, 'orders', [nobody('1')]);
  assert.deepEqual(texts((await member.await(0)).records), ['null=1']);
  await send(producer, 'orders', [nobody('2'), { key: '', value: 'empty' }]);
  assert.deepEqual(texts((await second.await(1)).records), ['=empty']);
  assert.deepEqual(texts((await member.await(0)).records), ['null=2']);
});

test('deleted records wake their keys; in hand they are a gap when they are asked for again', async (t) => {
  const { producer, member, second } = await startedByTwo(t);
  await send(producer, 'orders', ['a=1']);
  await send(producer, 'orders', ['b=1', 'a=2']);
  await send(producer, 'orders', ['a=3']);
  const at = member.positions.get(0)!;
  await until(async () => (await member.fetch(0)).highWatermark > at, 'it is granted some');
  while (member.positions.get(0)! < at + 4) await member.await(0);
  assert.equal(await deleteRecords(producer, 3), ErrorCode.NONE);
  await member.reconnect();
  const again = await member.fetch(0, { at });
  assert.deepEqual(texts(again.records), ['a=3']);
  assert.equal(again.records[0]!.offset, at + 3);
  await send(producer, 'orders', ['b=2', 'c=1']);
  assert.deepEqual(texts((await second.await(1)).records), ['c=1'], 'its key stays where it is');
  assert.deepEqual(texts((await member.await(0)).records), ['b=2']);
  await member.commitAll(0);
  await second.commitAll(1);
  const admin = await producer.ask(deleteRecordsRequest, deleteRecordsResponse, 2, {
    topics: [{ name: 'orders', partitions: [{ partitionIndex: 0, offset: -1 }] }],
    timeoutMs: 1000,
  });
  assert.equal(admin.topics[0]!.partitions[0]!.lowWatermark, 6);
  assert.deepEqual(await offsetsOf(producer, 'g', 'orders', [0]), [6]);
});

test('records that wait are deleted, and what is behind them goes on', async (t) => {
  const { producer, member, second } = await startedByTwo(t);
  await send(producer, 'orders', ['a=1']);
  assert.deepEqual(texts((await member.await(0)).records), ['a=1']);
  await send(producer, 'orders', ['a=2']);
  await send(producer, 'orders', ['a=3']);
  assert.deepEqual((await second.fetch(1)).records, []);
  assert.equal(await deleteRecords(producer, 2), ErrorCode.NONE);
  await member.commitAll(0);
  assert.deepEqual(texts((await second.await(1)).records), ['a=3']);
});

test('a topic that is deleted and made anew begins anew', async (t) => {
  const { node, producer, member } = await started(t);
  await send(producer, 'orders', ['a=1', 'b=1']);
  const before = (await member.await()).records.at(-1)!.offset;
  const waiting = member.fetch(0, { maxWaitMs: 60_000 });
  await until(() => node.broker.parkedCount === 1, 'it waits');
  const answer = await producer.ask(deleteTopicsRequest, deleteTopicsResponse, 6, {
    topics: [{ name: 'orders', topicId: ZERO_UUID }],
    timeoutMs: 1000,
  });
  assert.equal(answer.responses[0]!.errorCode, ErrorCode.NONE);
  assert.deepEqual((await waiting).records, [], 'whoever waited is answered');
  assert.deepEqual([...node.broker.keyed.of('g')], []);
  await node.createTopic('orders', 1, keyedConfigs);
  await send(producer, 'orders', ['c=1']);
  assert.deepEqual((await member.fetch(0)).records, [], 'nobody has a lane of it yet');
  await member.join();
  await member.assign({ [member.memberId]: [0] });
  const [after] = await member.locate(0);
  assert.ok(after! > before + 1, 'no number is used again');
  assert.deepEqual((await member.fetch(0, { at: before + 1 })).records, []);
  assert.deepEqual(texts((await member.await()).records), ['c=1']);
});

test('a group that is deleted is forgotten', async (t) => {
  const { node, producer, member } = await started(t);
  await send(producer, 'orders', ['a=1']);
  await member.await();
  await member.commitAll();
  await member.leave();
  const ledgers = () => [...node.broker.replica.state.keyed.ofGroup('g')].length;
  assert.equal(ledgers(), 1);
  const answer = await producer.ask(deleteGroupsRequest, deleteGroupsResponse, 2, {
    groupsNames: ['g'],
  });
  assert.equal(answer.results[0]!.errorCode, ErrorCode.NONE);
  assert.equal(ledgers(), 0);
  const anew = await KeyedMember.connect(node, { groupId: 'g', topics: ['orders'] });
  await anew.own(0);
  assert.deepEqual(texts((await anew.await()).records), ['a=1'], 'from the start');
});

test('partitions that are added are read, and are lanes once they are assigned', async (t) => {
  const { producer, member } = await started(t);
  await send(producer, 'orders', ['a=1']);
  assert.deepEqual(texts((await member.await()).records), ['a=1']);
  const answer = await producer.ask(createPartitionsRequest, createPartitionsResponse, 3, {
    topics: [{ name: 'orders', count: 3, assignments: null }],
    timeoutMs: 1000,
    validateOnly: false,
  });
  assert.equal(answer.results[0]!.errorCode, ErrorCode.NONE);
  await send(producer, 'orders', ['b=1'], { partition: 2 });
  assert.deepEqual(texts((await member.await()).records), ['b=1'], 'in the lane that there is');
  await member.commitAll();
  await member.join();
  await member.assign({ [member.memberId]: [0, 1, 2] });
  await member.locate(0, 1, 2);
  await send(producer, 'orders', ['c=1'], { partition: 1 });
  assert.deepEqual(texts((await member.await(2)).records), ['c=1'], 'any lane gives any record');
  await member.commitAll(2);
  assert.deepEqual(await offsetsOf(producer, 'g', 'orders', [0, 1, 2]), [1, 1, 1]);
});
