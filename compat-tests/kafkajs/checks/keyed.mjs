/** Keyed delivery when nothing fails: everything once, per-key order, no wait for other keys. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { check, latch, until } from '../support/harness.mjs';
import { flow, KeyedGroup, keyedTopic, keyNames, sendNumbered } from '../support/keyed.mjs';

check('keyed: 10,000 records, 500 keys, 3 consumers: each once', { fast: true }, async (t) => {
  const topic = await keyedTopic(t, 'once');
  const producer = await t.producer();
  const keys = keyNames(500);
  await sendNumbered(producer, topic, keys, 0, 10);
  const group = new KeyedGroup(t, topic);
  await group.joinSeveral(3);
  await sendNumbered(producer, topic, keys, 10, 20);
  await group.sentinel.reached(10_000, { timeoutMs: 30_000 });
  await group.finished();
  group.sentinel.assertOnce(10_000);
  for (const member of group.members) assert.ok(member.handled > 0, `${member.name} had nothing`);
});

check('keyed: offsets are those of lanes', { fast: true }, async (t) => {
  const topic = await keyedTopic(t, 'offsets', 2);
  await sendNumbered(await t.producer(), topic, keyNames(4), 0, 5);
  const offsets = [];
  const group = new KeyedGroup(t, topic);
  await group.join({ handle: ({ message }) => offsets.push(Number(message.offset)) });
  await group.sentinel.reached(20);
  // Otherwise the group reads the log, and most of the other checks would pass as well.
  assert.ok(offsets.every((offset) => offset >= 2 ** 44 && Number.isSafeInteger(offset)));
  await group.finished();
  group.sentinel.assertOnce(20);
});

for (const byBatch of [false, true]) {
  for (const partitionsConsumedConcurrently of [1, 4]) {
    const handler = byBatch ? 'eachBatch' : 'eachMessage';
    const name = `keyed: ${handler}, ${partitionsConsumedConcurrently} partitions at a time`;
    check(name, { fast: true }, async (t) => {
      const topic = await keyedTopic(t, 'handler', 8);
      const keys = keyNames(50);
      await sendNumbered(await t.producer(), topic, keys, 0, 10);
      const group = new KeyedGroup(t, topic);
      const handle = () => delay(2);
      await group.joinSeveral(2, { handle, byBatch, partitionsConsumedConcurrently });
      await group.sentinel.reached(500);
      await group.finished();
      group.sentinel.assertOnce(500);
    });
  }
}

check('keyed: a slow record delays its own key only', { fast: true }, async (t) => {
  const topic = await keyedTopic(t, 'slow');
  const producer = await t.producer();
  const group = new KeyedGroup(t, topic);
  const gate = latch();
  let slowMember = null;
  const handle = async ({ key, number, member }) => {
    if (key !== 'slow' || number > 0) return delay(1);
    slowMember = member;
    await gate.opened;
  };
  await group.joinSeveral(3, { handle });
  await sendNumbered(producer, topic, ['slow'], 0, 1);
  await until('the slow record is in work', () => slowMember !== null);
  const keys = keyNames(200);
  const startedMs = performance.now();
  await sendNumbered(producer, topic, ['slow'], 1, 101);
  await sendNumbered(producer, topic, keys, 0, 10);
  // The slow one was alone when it was handed out, so nothing at all may wait behind it.
  await group.sentinel.reached(2_000, { timeoutMs: 5_000 });
  assert.equal(group.sentinel.next.get('slow'), undefined);
  assert.equal(await group.lag(), 101, 'the lag is the slow record and those behind it');
  // As long as a session timeout of others; the broker may not lose patience.
  await delay(Math.max(0, 5_000 - (performance.now() - startedMs)));
  assert.equal(slowMember.handled, 0);
  gate.open();
  await group.sentinel.reached(2_101);
  await group.finished();
  group.sentinel.assertOnce(2_101);
});

check('keyed: behind a slow record wait only those in the same hand', {}, async (t) => {
  const topic = await keyedTopic(t, 'in-hand');
  const keys = keyNames(300);
  const producer = await t.producer();
  await sendNumbered(producer, topic, keys, 0, 1);
  await sendNumbered(producer, topic, ['slow'], 0, 2);
  await sendNumbered(producer, topic, keys, 1, 10);
  const group = new KeyedGroup(t, topic);
  const gate = latch();
  let slowMember = null;
  const handle = async ({ key, member }) => {
    if (key !== 'slow' || slowMember !== null) return delay(2);
    slowMember = member;
    await gate.opened;
  };
  await group.joinSeveral(3, { handle });
  await until('the slow record is in work', () => slowMember !== null);
  // The window is what a member handles in 100 ms, at first 16 records. Those in the same hand wait,
  // and later ones of their keys behind them.
  const inHandMax = 64;
  const waiting = () => keys.filter((key) => group.sentinel.next.get(key) !== 10);
  await until('all other keys are through', () => waiting().length <= inHandMax);
  const handledBefore = slowMember.handled;
  gate.open();
  await group.sentinel.reached(3_002);
  await group.finished();
  group.sentinel.assertOnce(3_002);
  assert.ok(slowMember.handled > handledBefore);
});

check('keyed: records without a key are handled in parallel', { fast: true }, async (t) => {
  const topic = await keyedTopic(t, 'null-keys', 4);
  const values = Array.from({ length: 40 }, (_, index) => String(index));
  await t.send(topic, values, { partition: 0 });
  const group = new KeyedGroup(t, topic);
  await group.joinSeveral(4, { handle: () => delay(100) });
  await group.sentinel.reached(40);
  await group.finished();
  group.sentinel.assertOnce(40);
  assert.ok(group.sentinel.inWorkMax >= 3, `${group.sentinel.inWorkMax} at a time at most`);
});

check('keyed: the lag is the number of unfinished records', { fast: true }, async (t) => {
  const topic = await keyedTopic(t, 'lag');
  const keys = keyNames(20);
  await sendNumbered(await t.producer(), topic, keys, 0, 10);
  const group = new KeyedGroup(t, topic);
  const gate = latch();
  // Even keys stop at their fourth record, so that holes are left all over the partitions.
  const isHeld = (key, number) => Number(key.slice(4)) % 2 === 0 && number === 3;
  const handle = ({ key, number }) => (isHeld(key, number) ? gate.opened : undefined);
  // Otherwise what was handled is committed only when the batch around a held record ends.
  const autoCommitThreshold = 1;
  await group.joinSeveral(3, { handle, autoCommitThreshold, partitionsConsumedConcurrently: 6 });
  let lag = 0;
  await until('the lag agrees with what was handled', async () => {
    const { handled, inWork } = group.sentinel;
    lag = await group.lag();
    return inWork.size > 0 && handled === group.sentinel.handled && lag === 200 - handled;
  });
  assert.ok(lag >= 10 && lag <= 170, `the lag is ${lag}`);
  gate.open();
  await group.finished();
  group.sentinel.assertOnce(200);
});

check('keyed: nobody pauses while members join and leave', {}, async (t) => {
  const topic = await keyedTopic(t, 'join-leave');
  const keys = keyNames(50);
  const group = new KeyedGroup(t, topic);
  await group.joinSeveral(2, { handle: () => delay(1) });
  const records = flow(await t.producer(), topic, keys, 20);
  await group.sentinel.reached(1_000);
  const stayed = [...group.members];
  const guest = await group.join();
  await until('the guest has work', () => guest.handled > 20);
  await guest.leave();
  const { handled } = group.sentinel;
  await group.sentinel.reached(handled + 1_000);
  const sent = await records.stop();
  await group.sentinel.reached(sent);
  await group.finished();
  group.sentinel.assertOnce(sent);
  for (const member of stayed) {
    const pauseMs = member.longestPauseMs();
    assert.ok(pauseMs < 3_000, `${member.name} had nothing for ${pauseMs.toFixed()} ms`);
  }
});
