import assert from 'node:assert/strict';
import test from 'node:test';
import { KeyedMember, offsetsOf, send, shareLanes, started, texts } from './keyed-member.ts';
import { until } from './support.ts';

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
