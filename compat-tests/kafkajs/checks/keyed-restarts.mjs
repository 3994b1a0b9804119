/** Keyed delivery when consumers restart, die or take long, and when the broker dies. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { check, until } from '../support/harness.mjs';
import { flow, KeyedGroup, keyedTopic, keyNames, sendNumbered } from '../support/keyed.mjs';
import { startBroker, startMember } from '../support/keyed-process.mjs';

check('keyed: rolling restart of all consumers', {}, async (t) => {
  const topic = await keyedTopic(t, 'rolling');
  const group = new KeyedGroup(t, topic);
  await group.joinSeveral(3, { handle: () => delay(1) });
  const records = flow(await t.producer(), topic, keyNames(50), 20);
  await group.sentinel.reached(500);
  for (const member of [...group.members]) {
    await member.leave();
    await group.join({ handle: () => delay(1) });
    await group.sentinel.reached(group.sentinel.handled + 200);
  }
  const sent = await records.stop();
  await group.sentinel.reached(sent);
  await group.finished();
  group.sentinel.assertOnce(sent);
});

check('keyed: commit and resume over a restart of the consumer', { fast: true }, async (t) => {
  const topic = await keyedTopic(t, 'resume');
  const keys = keyNames(30);
  const producer = await t.producer();
  await sendNumbered(producer, topic, keys, 0, 10);
  const group = new KeyedGroup(t, topic);
  const first = await group.join({ handle: () => delay(2) });
  await group.sentinel.reached(50);
  await first.leave();
  const { handled } = group.sentinel;
  assert.ok(handled < 300, 'it left in the middle');
  assert.equal(await group.lag(), 300 - handled);
  await sendNumbered(producer, topic, keys, 10, 12);
  await group.join();
  await group.sentinel.reached(360);
  await group.finished();
  group.sentinel.assertOnce(360);
});

check('keyed: kill -9 of a consumer', { slow: true }, async (t) => {
  const topic = await keyedTopic(t, 'kill');
  const group = new KeyedGroup(t, topic);
  const victim = await startMember(t, group, { handleMs: 20 });
  await group.joinSeveral(2, { handle: () => delay(1), consumer: { sessionTimeout: 6_000 } });
  const records = flow(await t.producer(), topic, keyNames(50), 50);
  await until('the victim has handled some', () => victim.handled > 30);
  victim.child.kill('SIGKILL');
  await once(victim.child, 'exit');
  // What came over its pipe before it died is still to be read.
  await delay(50);
  const heldKeys = new Set(group.sentinel.keysOf(victim.name));
  group.sentinel.drop(victim.name);
  await group.sentinel.reached(group.sentinel.handled + 2_000);
  const sent = await records.stop();
  await group.sentinel.reached(sent, { timeoutMs: 20_000 });
  await group.finished();
  const { sentinel } = group;
  sentinel.assertInOrder();
  assert.equal(sentinel.handled, sent);
  // Only what the victim had handled of its last answers, not yet committed, comes again.
  assert.ok(sentinel.repeated <= 50, `${sentinel.repeated} records came again`);
  assert.ok(heldKeys.size <= 1);
});

check('keyed: a handler longer than the session timeout', { slow: true }, async (t) => {
  const topic = await keyedTopic(t, 'long');
  const group = new KeyedGroup(t, topic);
  const handle = ({ key, number }) => (key === 'long' && number === 0 ? delay(12_000) : undefined);
  await group.joinSeveral(2, { handle, consumer: { sessionTimeout: 6_000 } });
  const producer = await t.producer();
  await sendNumbered(producer, topic, ['long'], 0, 2);
  await until('the long one is in work', () => group.sentinel.inWork.has('long'));
  await sendNumbered(producer, topic, keyNames(20), 0, 5);
  await group.sentinel.reached(100, { timeoutMs: 5_000 });
  await until('the long one is done', () => group.sentinel.next.get('long') === 2, {
    timeoutMs: 20_000,
  });
  await group.finished();
  group.sentinel.assertOnce(102);
});

check('keyed: commit and resume over kill -9 of the broker', {}, async (t) => {
  const { broker, context } = await startBroker(t);
  const topic = await keyedTopic(context, 'resume-broker');
  await sendNumbered(await context.producer(), topic, keyNames(30), 0, 10);
  const group = new KeyedGroup(context, topic);
  const first = await group.join({ handle: () => delay(2) });
  await group.sentinel.reached(50);
  await first.leave();
  const lag = await group.lag();
  assert.equal(lag, 300 - group.sentinel.handled);
  await broker.kill();
  await broker.start();
  assert.equal(await group.lag(), lag);
  await group.join();
  await group.sentinel.reached(300);
  await group.finished();
  group.sentinel.assertOnce(300);
});

check('keyed: kill -9 of the broker while consumers are at work', {}, async (t) => {
  const { broker, context } = await startBroker(t);
  const topic = await keyedTopic(context, 'kill-broker');
  await sendNumbered(await context.producer(), topic, keyNames(100), 0, 20);
  const group = new KeyedGroup(context, topic);
  await group.joinSeveral(3, { handle: () => delay(2), consumer: { retry: { retries: 20 } } });
  await group.sentinel.reached(500);
  await broker.kill();
  await broker.start();
  await group.sentinel.reached(2_000, { timeoutMs: 30_000 });
  await group.finished();
  const { sentinel } = group;
  sentinel.assertInOrder();
  // What was handled and not committed when the broker died comes again.
  assert.ok(sentinel.repeated <= 150, `${sentinel.repeated} records came again`);
});
