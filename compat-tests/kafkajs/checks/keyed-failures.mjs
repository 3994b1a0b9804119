/** Keyed delivery when a handler throws: its key waits, the others and the consumer go on. */
import assert from 'node:assert/strict';
import { check } from '../support/harness.mjs';
import { KeyedGroup, keyedTopic, keyNames, sendNumbered } from '../support/keyed.mjs';

/**
 * The pauses of kafkajs after an error: at their default beginning, because shorter ones are no
 * failure to the broker (FINDINGS.md), and not growing, because they would fill the check's time.
 */
const retry = { initialRetryTime: 300, maxRetryTime: 400, factor: 0.1, retries: 1_000 };

check('keyed: a handler that throws twice', {}, async (t) => {
  const topic = await keyedTopic(t, 'throws', 6, { 'retry.backoff.ms': '100' });
  const keys = keyNames(100);
  await sendNumbered(await t.producer(), topic, keys, 0, 5);
  const group = new KeyedGroup(t, topic);
  let thrown = 0;
  const handle = ({ key, number }) => {
    if (key !== 'key-7' || number !== 2 || thrown === 2) return;
    thrown++;
    throw new Error('as the check wants');
  };
  await group.joinSeveral(3, { handle, consumer: { retry } });
  await group.sentinel.reached(500);
  await group.finished();
  group.sentinel.assertOnce(500);
  assert.equal(thrown, 2);
});

check('keyed: a handler that always throws for one key in a hundred', {}, async (t) => {
  const config = { 'retry.backoff.ms': '100', 'delivery.attempts.max': '0' };
  const topic = await keyedTopic(t, 'poison', 6, config);
  const keys = keyNames(100);
  await sendNumbered(await t.producer(), topic, keys, 0, 5);
  const group = new KeyedGroup(t, topic);
  let thrown = 0;
  const handle = ({ key }) => {
    if (key !== 'key-7') return;
    thrown++;
    throw new Error('as the check wants');
  };
  await group.joinSeveral(3, { handle, consumer: { retry } });
  await group.sentinel.reached(495);
  await sendNumbered(await t.producer(), topic, keys, 5, 10);
  await group.sentinel.reached(990);
  group.sentinel.assertOnce(990);
  assert.equal(await group.lag(), 10);
  assert.ok(thrown > 0);
  assert.ok(group.members.every(({ crashes }) => crashes === 0));
});
