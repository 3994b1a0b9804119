import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { KeyedMember, offsetsOf, send, shareLanes, started, texts } from './keyed-member.ts';
import { until } from './support.ts';

/** Its client sends the next fetch before the handler starts. */
async function startedWithJava(t: TestContext) {
  const { node, producer, member: first } = await started(t, { 'delivery.window': 'auto' });
  await first.leave();
  const options = { groupId: 'g', topics: ['orders'], software: 'apache-kafka-java' };
  const member = await KeyedMember.connect(node, options);
  await member.own(0);
  return { node, producer, member };
}

test('what is granted ahead of a fetch comes in its answer, and the same bytes again', async (t) => {
  const { node, producer, member } = await started(t);
  // Only who comes back quickly is granted something ahead.
  node.clock.stop();
  const unfinished = async () => 40 - (await offsetsOf(producer, 'g', 'orders', [0]))[0]!;
  const sent = Array.from({ length: 40 }, (_, i) => `k${i}=${'x'.repeat(50)}`);
  for (const record of sent) await send(producer, 'orders', [record]);
  const { dispatcher } = [...node.broker.keyed.of('g')][0]!;
  const isAhead = () => [...dispatcher.members.values()][0]!.ahead > 0;
  const got: string[] = [];
  const fetchFull = async () => {
    const { records } = await member.fetch(0, { bytesMax: 200 });
    got.push(...texts(records));
    return records;
  };
  await fetchFull();
  await fetchFull();
  await until(isAhead, 'the next answer is granted');
  const at = member.positions.get(0)!;
  const ahead = await fetchFull();
  await until(isAhead, 'and the one after it');
  assert.equal(await unfinished(), 40);
  await member.reconnect();
  const again = await member.fetch(0, { at, bytesMax: 200 });
  assert.deepEqual(again.records.slice(0, ahead.length), ahead);
  got.push(...texts(again.records.slice(ahead.length)));
  while (got.length < sent.length) got.push(...texts((await member.await(0)).records));
  assert.deepEqual(got, sent);
  await member.commitAll();
  assert.equal(await unfinished(), 0);
});

test('what is granted ahead of a fetch that does not come goes to others', async (t) => {
  const { node, producer, member } = await started(t, {}, 2);
  node.clock.stop();
  const sent = Array.from({ length: 60 }, (_, i) => `k${i}=${'x'.repeat(50)}`);
  for (const record of sent) await send(producer, 'orders', [record]);
  const other = await KeyedMember.connect(node, { groupId: 'g', topics: ['orders'] });
  await shareLanes(member, other, [[0], [1]]);
  const { dispatcher } = [...node.broker.keyed.of('g')][0]!;
  for (let i = 0; i < 2; i++) await member.fetch(0, { bytesMax: 200 });
  await until(() => [...dispatcher.members.values()].some(({ ahead }) => ahead > 0), 'granted');
  const taken: string[] = [];
  while (dispatcher.readyRecords > 0) taken.push(...texts((await other.await(1)).records));
  // Nothing else is left.
  taken.push(...texts((await other.fetch(1)).records));
  const held = dispatcher.members.get(member.memberId)!.unfinished;
  assert.equal(taken.length + held, sent.length);
});

test('a fetch that comes before the handler starts is answered with what the commit makes room for', async (t) => {
  const { node, producer, member } = await startedWithJava(t);
  node.clock.stop();
  const [a, b, c, d] = ['a=1', 'b=1', 'c=1', 'd=1'] as const;
  // Until its habit is known the fetch is answered at once.
  for (const record of [a, b, c]) {
    await send(producer, 'orders', [record]);
    assert.deepEqual(texts((await member.await()).records), [record]);
    await member.commitAll();
  }
  await send(producer, 'orders', [d]);
  assert.deepEqual(texts((await member.await()).records), [d]);
  const waiting = member.fetch(0, { maxWaitMs: 60_000 });
  await until(() => node.broker.parkedCount === 1, 'it waits for the commit');
  await send(producer, 'orders', ['e=1', 'f=1']);
  assert.equal(node.broker.parkedCount, 1, 'records beside those in the handler do not answer it');
  await member.reconnect();
  await member.commitAll();
  assert.deepEqual(texts((await waiting).records), ['e=1', 'f=1']);
});

test('a fetch waits for a commit that does not come for a moment only', async (t) => {
  const { node, producer, member } = await startedWithJava(t);
  node.clock.stop();
  for (const record of ['a=1', 'b=1', 'c=1']) {
    await send(producer, 'orders', [record]);
    await member.await();
    await member.commitAll();
  }
  await send(producer, 'orders', ['d=1']);
  await member.await();
  const waiting = member.fetch(0, { maxWaitMs: 60_000 });
  await until(() => node.broker.parkedCount === 1, 'it waits for the commit');
  node.clock.advance(50);
  assert.deepEqual((await waiting).records, []);
  // This one proves that the client is through with what it has: its habit is another one now.
  await send(producer, 'orders', ['e=1']);
  assert.deepEqual(texts((await member.await()).records), ['e=1']);
  assert.deepEqual((await member.fetch(0, { maxWaitMs: 60_000 })).records, []);
});

test('a commit is followed by a fetch whose records were granted with it', async (t) => {
  const { node, producer, member } = await started(t, {}, 2);
  node.clock.stop();
  const other = await KeyedMember.connect(node, { groupId: 'g', topics: ['orders'] });
  await shareLanes(member, other, [[0], [1]]);
  const { dispatcher } = [...node.broker.keyed.of('g')][0]!;
  const { counters } = dispatcher;
  const state = () => dispatcher.members.get(member.memberId)!;
  for (const record of ['a=1', 'b=1', 'c=1']) {
    await send(producer, 'orders', [record]);
    await member.await();
    await member.commitAll();
    assert.equal(state().ahead, 0);
  }
  await send(producer, 'orders', ['d=1']);
  await member.await();
  await send(producer, 'orders', ['e=1']);
  await until(() => dispatcher.readyRecords === 1, 'it is filed');
  await member.commitAll();
  assert.equal(state().ahead, 1);
  const granted = counters.granted;
  assert.deepEqual(texts((await member.fetch()).records), ['e=1']);
  assert.equal(counters.granted, granted);
  // If somebody waits for records, they are not kept for a fetch that is not there yet.
  await send(producer, 'orders', ['f=1']);
  await until(() => dispatcher.readyRecords === 1, 'it is filed');
  await member.commitAll();
  assert.equal(state().ahead, 1);
  assert.deepEqual(texts((await other.await(1)).records), ['f=1']);
  assert.equal(state().ahead, 0);
});
