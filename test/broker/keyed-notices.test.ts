/** What the log tells operators of groups in keyed delivery. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { silentLogger } from '../../src/core/logger.ts';
import { KeyedMember, send } from './keyed-member.ts';
import { startTestNode, type TestNode } from './support.ts';

interface Line {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

interface Told {
  readonly node: TestNode;
  readonly warnings: Line[];
  readonly errors: Line[];
}

const longSession = { sessionTimeoutMs: 1_200_000 };

async function started(t: TestContext, configs: Record<string, string> = {}): Promise<Told> {
  const warnings: Line[] = [];
  const errors: Line[] = [];
  const log = {
    ...silentLogger,
    warn: (fields: object, message: string) => warnings.push({ fields: { ...fields }, message }),
    error: (fields: object, message: string) => errors.push({ fields: { ...fields }, message }),
  };
  const node = await startTestNode(t, { log });
  await node.createTopic('orders', 1, {
    // The records are of 1970, and time passes.
    ...{ 'delivery.mode': 'keyed', 'delivery.window': '1', 'retention.ms': '-1' },
    ...configs,
  });
  return { node, warnings, errors };
}

function matching(lines: readonly Line[], pattern: RegExp): Line[] {
  return lines.filter(({ message }) => pattern.test(message));
}

function advance({ node }: Told, seconds: number): void {
  for (let i = 0; i < seconds; i++) node.clock.advance(1000);
}

test('a lease beyond lease.warn.ms is logged when it is, and at doubling ages', async (t) => {
  const told = await started(t);
  await send(await told.node.connect(), 'orders', ['order 7=1', 'order 7=2']);
  const options = { groupId: 'g', topics: ['orders'], ...longSession };
  const member = await KeyedMember.connect(told.node, options);
  await member.own(0);
  await member.await();
  const long = () => matching(told.warnings, /had a record in hand for long/);
  advance(told, 28);
  assert.equal(long().length, 0);
  advance(told, 4);
  assert.equal(long().length, 1);
  const { ageMs, ...facts } = long()[0]!.fields;
  assert.deepEqual(facts, {
    ...{ groupId: 'g', topic: 'orders', key: 'order 7', memberId: member.memberId },
    ...{ client: 'kafkajs', partition: 0, offset: 0 },
  });
  assert.ok(Number(ageMs) >= 30_000 && Number(ageMs) < 33_000, `${ageMs}`);
  advance(told, 25);
  assert.equal(long().length, 1);
  advance(told, 10);
  assert.equal(long().length, 2);
  advance(told, 70);
  assert.equal(long().length, 3);
  // The next record is another lease.
  await member.commitAll();
  await member.await();
  advance(told, 32);
  assert.equal(long().length, 4);
  assert.equal(long()[3]!.fields['offset'], 1);
});

test('more consumers than lanes: once for each generation', async (t) => {
  const told = await started(t);
  const members: KeyedMember[] = [];
  for (let i = 0; i < 2; i++) {
    const options = { groupId: 'g', topics: ['orders'], ...longSession };
    members.push(await KeyedMember.connect(told.node, options));
  }
  const [first, second] = members as [KeyedMember, KeyedMember];
  const idle = () => matching(told.warnings, /more consumers than lanes/);
  await first.own(0);
  assert.equal(idle().length, 0);
  await Promise.all([second.join(), first.join()]);
  await first.assign({ [first.memberId]: [0] });
  assert.equal(idle().length, 1);
  const { generationId } = first;
  assert.deepEqual(idle()[0]!.fields, { groupId: 'g', generationId, members: 2, lanes: 1 });
  await Promise.all([second.join(), first.join()]);
  await first.assign({ [second.memberId]: [0] });
  assert.equal(idle().length, 2);
});

test('keys that wait for the commit of a busy consumer: what to set, once', async (t) => {
  const told = await started(t, { 'delivery.window': 'auto' });
  const client = await told.node.connect();
  const options = { groupId: 'g', topics: ['orders'], software: 'apache-kafka-java' };
  const member = await KeyedMember.connect(told.node, { ...options, ...longSession });
  await member.own(0);
  // It handles a record, asks for more, and is stuck in the next one before it has committed.
  await send(client, 'orders', ['a=1']);
  await member.await();
  await send(client, 'orders', ['b=1']);
  await member.await();
  await member.fetch();
  await send(client, 'orders', ['a=2']);
  const hints = () => matching(told.warnings, /set delivery\.ack=poll/);
  advance(told, 9);
  assert.equal(hints().length, 0);
  advance(told, 3);
  assert.equal(hints().length, 1);
  const { pinnedKeys, recordsWaiting, handledNotCommitted, memberId } = hints()[0]!.fields;
  assert.deepEqual([pinnedKeys, recordsWaiting, handledNotCommitted], [1, 1, 1]);
  assert.equal(memberId, member.memberId);
  advance(told, 30);
  assert.equal(hints().length, 1);
});

test('a record whose key somebody else holds is found when it leaves', async (t) => {
  const told = await started(t);
  const { node, errors } = told;
  await send(await node.connect(), 'orders', ['a=1']);
  const options = { groupId: 'g', topics: ['orders'], software: 'sarama', ...longSession };
  const member = await KeyedMember.connect(node, options);
  await member.own(0);
  const at = member.positions.get(0)!;
  await member.await();
  const { invariants } = node.broker.keyed;
  const { checks } = invariants;
  assert.ok(checks.holder > 0);
  assert.equal(invariants.violations.holder, 0);
  const [delivery] = node.broker.keyed.all();
  const { keys } = delivery!.dispatcher.board;
  const key = keys.find('a')!;
  const holder = keys.holder[key]!;
  keys.holder[key] = holder + 1;
  // Asked for again, it leaves again.
  for (let i = 0; i < 3; i++) await member.fetch(0, { at });
  assert.equal(invariants.violations.holder, 3);
  const lines = matching(errors, /an invariant of keyed delivery is violated/);
  assert.equal(lines.length, 1, 'one line a minute');
  assert.deepEqual([lines[0]!.fields['invariant'], lines[0]!.fields['key']], ['holder', 'a']);
  keys.holder[key] = holder;
});
