import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { fetchRequest, fetchResponse } from '../../src/protocol/schema/01-fetch.ts';
import {
  listOffsetsRequest,
  listOffsetsResponse,
} from '../../src/protocol/schema/02-list-offsets.ts';
import {
  decoded,
  KeyedMember,
  type KeyedOptions,
  numbersPerSlot,
  offsetsOf,
  type Started,
  send,
  shareLanes,
  started,
  texts,
} from './keyed-member.ts';
import { fetchFrom } from './records.ts';
import { type TestNode, until } from './support.ts';

function join(node: TestNode, options: Partial<KeyedOptions> = {}): Promise<KeyedMember> {
  return KeyedMember.connect(node, { groupId: 'g', topics: ['orders'], ...options });
}

/** The number of unfinished records, as admin tools compute it. */
async function lag({ node, producer }: Started, groupId = 'g'): Promise<number> {
  const { partitions } = node.broker.topics.byName('orders')!;
  const indexes = [...partitions.keys()];
  const shown = await offsetsOf(producer, groupId, 'orders', indexes);
  const { partitions: state } = node.broker.replica.state.topics;
  return indexes.reduce((sum, i) => sum + state.end(partitions[i]!) - shown[i]!, 0);
}

test('a member is told lane offsets, and granted records at the end of its lane', async (t) => {
  const { producer, member } = await started(t);
  await send(producer, 'orders', ['a=1', 'b=1', 'a=2']);
  const start = member.positions.get(0)!;
  assert.equal(Math.floor(start / numbersPerSlot), 1, 'the first slot');
  const got = await member.await();
  assert.deepEqual(texts(got.records), ['a=1', 'b=1', 'a=2']);
  assert.deepEqual(
    got.records.map(({ offset }) => offset - start),
    [0, 1, 2],
  );
  assert.equal(got.highWatermark, start + 3);
  assert.equal(got.lastStableOffset, start + 3);
  assert.equal(got.logStartOffset, numbersPerSlot);
  assert.deepEqual((await member.fetch()).records, []);
});

test('a fetch waits for records', async (t) => {
  const { producer, member } = await started(t);
  const waiting = member.fetch(0, { maxWaitMs: 60_000 });
  await send(producer, 'orders', ['a=1']);
  assert.deepEqual(texts((await waiting).records), ['a=1']);
});

test('a newer fetch of a lane answers the one that waits', async (t) => {
  const { node, producer, member } = await started(t);
  const former = member.fetch(0, { maxWaitMs: 60_000 });
  await until(() => node.broker.parkedCount === 1, 'it waits');
  await member.reconnect();
  const newer = member.fetch(0, { maxWaitMs: 60_000 });
  assert.deepEqual((await former).records, []);
  await send(producer, 'orders', ['a=1']);
  assert.deepEqual(texts((await newer).records), ['a=1']);
});

test('a fetch that is repeated on another connection gets the same bytes', async (t) => {
  const { producer, member } = await started(t);
  await send(producer, 'orders', ['a=1', 'b=1', 'a=2']);
  const at = member.positions.get(0)!;
  const first = await member.await();
  await member.reconnect();
  const again = await member.fetch(0, { at });
  assert.deepEqual(again.bytes, first.bytes);
  await member.reconnect();
  const part = await member.fetch(0, { at: at + 1 });
  assert.deepEqual(texts(part.records), ['b=1', 'a=2']);
  assert.equal(part.records[0]!.offset, at + 1);
});

test('a commit finishes records; what is below it never comes again', async (t) => {
  const all = await started(t);
  const { producer, member } = all;
  await send(producer, 'orders', ['a=1', 'b=1', 'a=2']);
  const at = member.positions.get(0)!;
  await member.await();
  assert.equal(await lag(all), 3);
  assert.equal(await member.commit('orders', 0, at + 2), ErrorCode.NONE);
  assert.equal(await lag(all), 1);
  assert.deepEqual(await member.locate(0), [at + 2]);
  await member.reconnect();
  assert.deepEqual(texts((await member.fetch(0, { at })).records), ['a=2']);
  await member.commitAll();
  assert.equal(await lag(all), 0);
});

test('offsets of the log, and lane offsets that were never given, change nothing', async (t) => {
  const all = await started(t);
  const { producer, member } = all;
  await send(producer, 'orders', ['a=1', 'b=1']);
  const at = member.positions.get(0)!;
  await member.await();
  for (const offset of [0, 1, 2, at + 100, at + 5 * numbersPerSlot]) {
    assert.equal(await member.commit('orders', 0, offset), ErrorCode.NONE, String(offset));
  }
  assert.equal(await lag(all), 2);
});

test('fetches where nothing can be: beyond the end, in a slot that is free', async (t) => {
  const { producer, member } = await started(t);
  await send(producer, 'orders', ['a=1']);
  const at = member.positions.get(0)!;
  for (const offset of [at + 1, at - 1, at + numbersPerSlot, at + 500 * numbersPerSlot]) {
    const { errorCode, records } = await member.fetch(0, { at: offset });
    assert.deepEqual([errorCode, records], [ErrorCode.NONE, []], String(offset - at));
  }
  assert.deepEqual(texts((await member.await()).records), ['a=1']);
});

test('two groups do not affect each other, and have a slot each', async (t) => {
  const all = await started(t);
  const { node, producer, member } = all;
  const other = await join(node, { groupId: 'g2' });
  await other.own(0);
  assert.equal(Math.floor(other.positions.get(0)! / numbersPerSlot), 2);
  await send(producer, 'orders', ['a=1', 'a=2']);
  assert.deepEqual(texts((await member.await()).records), ['a=1', 'a=2']);
  assert.deepEqual(texts((await other.await()).records), ['a=1', 'a=2']);
  await member.commitAll();
  assert.equal(await lag(all), 0);
  assert.equal(await lag(all, 'g2'), 2);
});

test('a group that never committed leaves its slot, whose numbers are not used again', async (t) => {
  const { node, producer, member } = await started(t);
  await send(producer, 'orders', ['a=1']);
  const before = (await member.await()).records[0]!.offset;
  await member.leave();
  const other = await join(node, { groupId: 'g2' });
  await other.own(0);
  const after = other.positions.get(0)!;
  assert.equal(Math.floor(after / numbersPerSlot), 1, 'the same slot');
  assert.ok(after > before + 1);
  assert.deepEqual(
    (await member.fetch(0, { at: before })).records,
    [],
    'the former one is a stranger',
  );
  assert.deepEqual(texts((await other.await()).records), ['a=1']);
});

test('a member that lost its lane gets nothing of it; the new owner begins elsewhere', async (t) => {
  const { node, producer, member } = await started(t, {}, 2);
  await send(producer, 'orders', ['a=1']);
  const got = await member.await();
  const at = got.records[0]!.offset;
  const second = await join(node);
  await shareLanes(member, second, [[1], [0]]);
  assert.ok(second.positions.get(0)! > at + 1);
  assert.deepEqual((await member.fetch(0, { at })).records, []);
  assert.deepEqual((await member.fetch(0, { at: at + 1 })).records, []);
  const { records } = await second.await();
  assert.deepEqual(texts(records), ['a=1'], 'it gave it back when it rejoined');
});

test('a key stays with its consumer, other keys go to whoever asks', async (t) => {
  const { node, producer, member } = await started(t, {}, 2);
  const second = await join(node);
  await shareLanes(member, second, [[0], [1]]);
  await send(producer, 'orders', ['a=1', 'b=1']);
  assert.deepEqual(texts((await member.await(0)).records), ['a=1', 'b=1']);
  await send(producer, 'orders', ['a=2', 'c=1'], { partition: 1 });
  assert.deepEqual(texts((await second.await(1)).records), ['c=1']);
  assert.deepEqual((await second.fetch(1)).records, []);
  await member.commitAll(0);
  assert.deepEqual(texts((await second.await(1)).records), ['a=2']);
});

test('what a member had in hand when it left or died goes to another one', async (t) => {
  const { node, producer, member } = await started(t, {}, 2);
  const second = await join(node, { sessionTimeoutMs: 120_000 });
  await shareLanes(member, second, [[0], [1]]);
  await send(producer, 'orders', ['a=1', 'a=2']);
  assert.deepEqual(texts((await member.await(0)).records), ['a=1', 'a=2']);
  assert.deepEqual((await second.fetch(1)).records, []);
  // kafkajs sends heartbeats only between handlers: it dies when its connection is gone, too.
  member.client.close();
  await member.client.closed;
  node.clock.advance(31_000);
  const taken: string[] = [];
  while (taken.length < 2) {
    taken.push(...texts((await second.await(1)).records));
    await second.commitAll(1);
  }
  assert.deepEqual(taken, ['a=1', 'a=2']);
});

test('a member whose lease ends is expelled, and its records go on', async (t) => {
  const all = await started(t, { 'lease.ms': '5000' }, 2);
  const { node, producer, member } = all;
  const second = await join(node, { software: 'apache-kafka-java' });
  await shareLanes(member, second, [[0], [1]]);
  await send(producer, 'orders', ['a=1']);
  assert.deepEqual(texts((await member.await(0)).records), ['a=1']);
  // Its lease is at least its session and rebalance timeouts.
  for (let i = 0; i < 3; i++) {
    node.clock.advance(9_000);
    assert.notEqual(await member.heartbeat(), ErrorCode.UNKNOWN_MEMBER_ID);
    await second.heartbeat();
  }
  node.clock.advance(4_000);
  await until(async () => (await member.heartbeat()) === ErrorCode.UNKNOWN_MEMBER_ID, 'expelled');
  assert.deepEqual(texts((await second.await(1)).records), ['a=1']);
  const late = await member.commit('orders', 0, member.positions.get(0)!);
  assert.equal(late, ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(await lag(all), 1, 'what it commits late is not its own any more');
  assert.deepEqual((await member.fetch(0)).records, []);
});

test('a restart keeps slots, positions, grants and what is finished', async (t) => {
  const all = await started(t);
  const { node, producer, member } = all;
  await send(producer, 'orders', ['a=1', 'b=1', 'a=2']);
  await send(producer, 'orders', ['c=1']);
  const at = member.positions.get(0)!;
  await member.fetch(0);
  while ((await member.fetch(0, { at: at + 4 })).highWatermark < at + 4) await member.fetch(0);
  await member.commit('orders', 0, at + 1);
  await node.restart();
  await member.reconnect();
  assert.deepEqual(await member.locate(0), [at + 1]);
  assert.equal(await member.heartbeat(), ErrorCode.NONE, 'it is a member still');
  const again: string[] = [];
  while (again.length < 3) again.push(...texts((await member.await()).records));
  assert.deepEqual(again, ['b=1', 'a=2', 'c=1']);
  assert.equal(member.positions.get(0), at + 4);
  await member.commitAll();
  const admin = await node.connect('admin');
  assert.equal(await lag({ ...all, producer: admin }), 0);
});

test('a client that wants to know the end before it fetches is told that of its lane', async (t) => {
  const { producer, member } = await started(t);
  await send(producer, 'orders', ['a=1', 'a=2']);
  const [position] = await member.locate(0);
  const latest = async () => {
    const answer = await member.client.ask(listOffsetsRequest, listOffsetsResponse, 5, {
      replicaId: -1,
      topics: [{ name: 'orders', partitions: [{ partitionIndex: 0, timestamp: -1 }] }],
    });
    return answer.topics[0]!.partitions[0]!.offset;
  };
  assert.equal(await latest(), position);
  await member.fetch();
  assert.equal(await latest(), 2, 'later that of the log');
});

test('an answer names a lane of a topic by its id, too', async (t) => {
  const { node, producer, member } = await started(t);
  await send(producer, 'orders', ['a=1']);
  const { id } = node.broker.topics.byName('orders')!;
  const fetchOffset = member.positions.get(0)!;
  const partition = { partition: 0, fetchOffset, partitionMaxBytes: 1024 };
  const answer = await member.client.ask(fetchRequest, fetchResponse, 13, {
    maxWaitMs: 1000,
    minBytes: 1,
    topics: [{ topicId: id, partitions: [partition] }],
    forgottenTopicsData: [],
  });
  assert.equal(answer.responses[0]!.topicId, id);
  assert.equal(answer.responses[0]!.partitions[0]!.highWatermark, fetchOffset + 1);
});

test('lanes and partitions of the log in one fetch', async (t) => {
  const { node, producer, member } = await started(t);
  await node.createTopic('events', 2);
  const at = member.positions.get(0)!;
  const ask = (maxWaitMs: number) =>
    fetchFrom(
      member.client,
      [
        { topic: 'events', partition: 0, offset: 0 },
        { topic: 'orders', offset: at },
        { topic: 'events', partition: 1, offset: 7 },
      ],
      { maxWaitMs },
    );
  await send(producer, 'events', ['e=1']);
  const both = await ask(0);
  const found = new Map(both.responses.map((topic) => [topic.topic, topic.partitions]));
  const [event, unknown] = found.get('events')!;
  assert.deepEqual([event!.errorCode, event!.highWatermark], [ErrorCode.NONE, 1]);
  assert.ok(event!.records!.length > 0);
  assert.equal(unknown!.errorCode, ErrorCode.OFFSET_OUT_OF_RANGE);
  assert.equal(found.get('orders')![0]!.highWatermark, at);
});

test('a fetch of a lane waits for what is appended to a partition of the log, too', async (t) => {
  const { node, producer, member } = await started(t);
  await node.createTopic('events');
  const at = member.positions.get(0)!;
  const ask = () =>
    fetchFrom(
      member.client,
      [
        { topic: 'events', offset: 0 },
        { topic: 'orders', offset: at },
      ],
      { maxWaitMs: 60_000 },
    );
  const waiting = ask();
  await until(() => node.broker.parkedCount === 1, 'it waits');
  await send(producer, 'events', ['e=1']);
  const [events, orders] = (await waiting).responses;
  assert.ok(events!.partitions[0]!.records!.length > 0);
  assert.equal(orders!.partitions[0]!.records?.length ?? 0, 0);
  assert.equal(node.broker.parkedCount, 0);
  assert.equal(node.broker.fetchWaiters.count, 0, 'nobody waits any more');
});

test('a fetch session ends when a lane is asked for', async (t) => {
  const { node, member } = await started(t);
  await node.createTopic('events');
  const first = await fetchFrom(member.client, [{ topic: 'events', offset: 0 }], {
    sessionEpoch: 0,
  });
  assert.notEqual(first.sessionId, 0);
  const at = member.positions.get(0)!;
  const next = await fetchFrom(member.client, [{ topic: 'orders', offset: at }], {
    sessionId: first.sessionId,
    sessionEpoch: 1,
  });
  assert.deepEqual([next.errorCode, next.sessionId], [ErrorCode.NONE, 0]);
  assert.deepEqual(
    next.responses.map(({ topic }) => topic),
    ['orders'],
  );
  const late = await fetchFrom(member.client, [], { sessionId: first.sessionId, sessionEpoch: 2 });
  assert.equal(late.errorCode, ErrorCode.FETCH_SESSION_ID_NOT_FOUND);
});

test('a lane that is named twice in one fetch counts once', async (t) => {
  const { producer, member } = await started(t);
  await send(producer, 'orders', ['a=1', 'b=1']);
  const offset = member.positions.get(0)!;
  await until(async () => {
    const twice = [
      { topic: 'orders', offset },
      { topic: 'orders', offset },
    ];
    const answer = await fetchFrom(member.client, twice);
    return answer.responses[0]!.partitions[0]!.highWatermark === offset + 2;
  }, 'it gets them');
  await member.reconnect();
  assert.deepEqual(texts((await member.fetch(0, { at: offset })).records), ['a=1', 'b=1']);
});

test('whatever a fetch says of a lane, it gets an answer', async (t) => {
  const { producer, member } = await started(t, {}, 2);
  await send(producer, 'orders', ['a=1', 'b=1']);
  const at = member.positions.get(0)!;
  const top = 2 ** 53 - 1;
  for (const offset of [at, at + 1, numbersPerSlot, 2 * numbersPerSlot - 1, top]) {
    for (const partition of [0, 1, 2, -1, 2 ** 31 - 1]) {
      for (const bytesMax of [0, -1, 1, 2 ** 31 - 1]) {
        const from = [{ topic: 'orders', partition, offset, bytesMax }];
        const answer = await fetchFrom(member.client, from, { maxBytes: bytesMax });
        assert.equal(answer.responses[0]!.partitions[0]!.errorCode, ErrorCode.NONE);
      }
    }
  }
  const unknown = await fetchFrom(member.client, [{ topic: 'nothing', offset: at }]);
  assert.equal(unknown.responses[0]!.partitions[0]!.records?.length ?? 0, 0);
});

test('every version of Fetch serves lanes', async (t) => {
  const { node, producer, member } = await started(t);
  const topicId = node.broker.topics.byName('orders')!.id;
  for (let version = 0; version <= 18; version++) {
    await send(producer, 'orders', [`a=${version}`]);
    const fetchOffset = member.positions.get(0)!;
    const partition = { partition: 0, fetchOffset, partitionMaxBytes: 1024 };
    const name = version >= 13 ? { topicId } : { topic: 'orders' };
    let records: Buffer | null = null;
    while (records === null || records.length === 0) {
      const answer = await member.client.ask(fetchRequest, fetchResponse, version, {
        maxWaitMs: 100,
        minBytes: 1,
        topics: [{ ...name, partitions: [partition] }],
        ...(version >= 7 && { forgottenTopicsData: [] }),
      });
      records = answer.responses[0]!.partitions[0]!.records;
    }
    const found = decoded(records);
    assert.deepEqual(texts(found), [`a=${version}`]);
    assert.equal(found[0]!.offset, fetchOffset);
    // Below version 4 clients do not know record batches (magic 2).
    assert.equal(records.readInt8(16), version >= 4 ? 2 : version >= 2 ? 1 : 0);
    member.positions.set(0, fetchOffset + 1);
    await member.commitAll();
  }
});

test('after a restart a fetch of what was granted before waits until it is loaded', async (t) => {
  const { node, producer, member } = await started(t, { 'delivery.window': '100000' });
  const records = Array.from({ length: 500 }, (_, i) => `k${i}=${i}`);
  for (let batch = 0; batch < 80; batch++) await send(producer, 'orders', records);
  const at = member.positions.get(0)!;
  while (member.positions.get(0)! < at + 40_000) await member.await();
  // All but the last hundred come back: they are ready, and stand before those in hand.
  const [delivery] = [...node.broker.keyed.of('g')];
  const { dispatcher } = delivery!;
  const range = dispatcher.presentRange(0)!;
  dispatcher.plan({ kind: 'returned', lane: 0, from: range.start, to: range.end - 100 });
  delivery!.flush();
  await node.restart();
  await member.reconnect();
  const first = at + 39_900;
  assert.deepEqual(await member.locate(0), [first]);
  const { records: found } = await member.fetch(0, { at: first, maxWaitMs: 60_000 });
  assert.equal(found.length, 100, 'at once, and whole');
  assert.equal(found[0]!.offset, first);
  assert.equal(String(found[0]!.value), '400');
});

test('delivery.start=latest: a new group begins behind what is there, one that committed goes on', async (t) => {
  const { node, producer, member } = await started(t, { 'delivery.start': 'latest' });
  await send(producer, 'orders', ['a=1', 'b=1']);
  assert.deepEqual(texts((await member.await()).records), ['a=1', 'b=1'], 'it was there before');
  const other = await join(node, { groupId: 'g2' });
  await other.own(0);
  await send(producer, 'orders', ['a=2']);
  assert.deepEqual(texts((await other.await()).records), ['a=2']);
  await member.commitAll();
  await member.leave();
  await send(producer, 'orders', ['b=2']);
  const again = await join(node);
  await again.own(0);
  assert.deepEqual(texts((await again.await()).records), ['a=2', 'b=2']);
});

for (const [lag, free] of [
  ['0', ['a=2', 'b=2', 'c=2']],
  ['2', ['a=2']],
] as const) {
  test(`delivery.commit.lag=${lag}: all but so many committed records free their keys`, async (t) => {
    const { node, producer } = await started(t, { 'delivery.commit.lag': lag }, 2);
    const librdkafka = { software: 'librdkafka' };
    const first = await join(node, { ...librdkafka, groupId: 'g2' });
    await first.own(0, 1);
    const second = await join(node, { ...librdkafka, groupId: 'g2' });
    await shareLanes(first, second, [[0], [1]]);
    await send(producer, 'orders', ['a=1', 'b=1', 'c=1']);
    assert.deepEqual(texts((await first.await(0)).records), ['a=1', 'b=1', 'c=1']);
    await send(producer, 'orders', ['a=2', 'b=2', 'c=2', 'd=1']);
    assert.deepEqual(texts((await second.await(1)).records), ['d=1']);
    await first.commitAll(0);
    assert.deepEqual(texts((await second.await(1)).records), free);
    assert.deepEqual((await second.fetch(1)).records, []);
  });
}
