/** Records that fail too often in keyed delivery end in the dead letter topic. */
import assert from 'node:assert/strict';
import { check, until } from '../support/harness.mjs';
import { KeyedGroup, keyedTopic, keyNames, sendNumbered } from '../support/keyed.mjs';

/** As in keyed-failures.mjs. */
const retry = { initialRetryTime: 300, maxRetryTime: 400, factor: 0.1, retries: 1_000 };

check('keyed: dead letters', {}, async (t) => {
  const attempts = 3;
  const config = { 'retry.backoff.ms': '50', 'delivery.attempts.max': String(attempts) };
  const topic = await keyedTopic(t, 'dead', 6, config);
  const deadTopic = `${topic}.dlq`;
  t.suite.topics.add(deadTopic);
  const keys = keyNames(100);
  await sendNumbered(await t.producer(), topic, keys, 0, 5);
  const group = new KeyedGroup(t, topic);
  let thrown = 0;
  const handle = ({ key, number }) => {
    if (key !== 'key-7' || number !== 2) return;
    thrown++;
    throw new Error('as the check wants');
  };
  // The sentinel would take the records behind the dead letter for overtaking.
  group.sentinel.skip('key-7', 2);
  await group.joinSeveral(3, { handle, consumer: { retry } });
  await group.sentinel.reached(499, { timeoutMs: 30_000 });
  await group.finished();
  group.sentinel.assertOnce(499);
  assert.ok(thrown >= attempts, `it was tried ${thrown} times`);

  await until('the dead letter topic is there', async () => {
    return (await t.admin.listTopics()).includes(deadTopic);
  });
  const [{ message }] = await t.readAll(deadTopic, 1);
  assert.equal(message.key.toString(), 'key-7');
  assert.equal(message.value.toString(), '2');
  const headers = Object.entries(message.headers).map(([name, value]) => [name, value.toString()]);
  const values = headers.map(([, value]) => value);
  for (const value of [topic, group.groupId, String(attempts)]) {
    assert.ok(values.includes(value), `no header says ${value}: ${JSON.stringify(headers)}`);
  }
});
