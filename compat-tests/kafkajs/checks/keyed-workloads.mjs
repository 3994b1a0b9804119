/**
 * Keyed delivery under what a group of consumers goes through in its life. LONG=1 makes it last as
 * long as it does in earnest: ten minutes of poison, two minutes without a dependency.
 */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { check, latch, until } from '../support/harness.mjs';
import { flow, KeyedGroup, keyedTopic, keyNames } from '../support/keyed.mjs';
import { startMember } from '../support/keyed-process.mjs';

const isLong = process.env.LONG === '1';
const isFast = process.env.FAST === '1';

/** As in keyed-failures.mjs; members that fail for minutes may not run out of retries. */
const retry = { initialRetryTime: 300, maxRetryTime: 400, factor: 0.1, retries: 1_000_000 };

/** How long records waited from when they were sent until a handler began. */
class Waits {
  #sorted = [];

  /** Of a record that is begun for the first time, whichever that is to the caller. */
  note({ timestamp }) {
    this.#sorted.push(Date.now() - Number(timestamp));
  }

  /** The value below which this share of them lies. */
  share(part) {
    this.#sorted.sort((a, b) => a - b);
    return this.#sorted[Math.ceil(this.#sorted.length * part) - 1];
  }

  get text() {
    return `waits p50 ${this.share(0.5)} ms, p99 ${this.share(0.99)} ms, most ${this.share(1)} ms`;
  }
}

check('keyed: a zombie that commits late', { slow: true }, async (t) => {
  // The lease is as long as the timeouts that a member gives, at least.
  const topic = await keyedTopic(t, 'zombie', 6, { 'lease.ms': '1000' });
  const group = new KeyedGroup(t, topic);
  const { sentinel } = group;
  const zombie = await startMember(t, group, { handleMs: 20, commitsEach: true });
  const gate = latch();
  let frozenKey;
  const handle = ({ key }) => (key === frozenKey ? gate.opened : delay(1));
  await group.joinSeveral(2, { handle, consumer: { sessionTimeout: 6_000 } });
  const keys = keyNames(50);
  const records = flow(await t.producer(), topic, keys, 50);
  await until('the zombie has handled some', () => zombie.handled > 30);
  await zombie.freeze(() => sentinel.keysOf(zombie.name).length === 1);
  [frozenKey] = sentinel.keysOf(zombie.name);
  const frozenNumber = sentinel.nextOf(frozenKey);
  sentinel.drop(zombie.name);
  const isElsewhere = () => sentinel.inWork.has(frozenKey);
  await until('its record is given to somebody else', isElsewhere, { timeoutMs: 20_000 });
  const { handled } = sentinel;
  await sentinel.reached(handled + 1_000);
  const sent = await records.stop();

  // It wakes, ends its handler and commits the record, which is in the hand of another one.
  zombie.thaw();
  await until('the zombie has tried to commit', () => zombie.refused.length > 0);
  await until('the zombie has joined again', () => !zombie.isFrozen);
  // It may have gone on with what it had in memory until its next heartbeat, each time in vain.
  assert.ok(zombie.late >= 1 && zombie.late <= 20, `${zombie.late} records were handled late`);
  const refused = Array(zombie.late).fill('The coordinator is not aware of this member');
  assert.deepEqual(zombie.refused, refused);
  assert.equal(sentinel.nextOf(frozenKey), frozenNumber);
  assert.ok((await group.lag()) >= sent / keys.length - frozenNumber, 'it finished nothing');
  gate.open();
  await sentinel.reached(sent, { timeoutMs: 20_000 });
  await group.finished();
  sentinel.assertInOrder();
  assert.equal(sentinel.handled, sent);
  // It commits each record, so at most the one that it had just ended comes again.
  assert.ok(sentinel.repeated <= 1, `${sentinel.repeated} records came again`);
});

const memberMax = isFast && !isLong ? 16 : 64;

check(
  `keyed: from 1 to ${memberMax} consumers under load`,
  { slow: true, fast: true },
  async (t) => {
    const topic = await keyedTopic(t, 'joins', memberMax);
    const group = new KeyedGroup(t, topic);
    const { sentinel } = group;
    const waits = new Waits();
    const handle = ({ message }) => {
      waits.note(message);
      return delay(1);
    };
    const join = () => group.join({ handle });
    await join();
    const records = flow(await t.producer(), topic, keyNames(4 * memberMax), 100);
    while (group.members.length < memberMax) {
      await Promise.all(Array.from({ length: group.members.length }, join));
      await sentinel.reached(sentinel.handled + 500);
    }
    const idle = () => group.members.filter(({ handled }) => handled === 0);
    await until('everybody has work', () => idle().length === 0);
    const sent = await records.stop();
    await sentinel.reached(sent);
    await group.finished();
    sentinel.assertOnce(sent);
    console.log(`# ${memberMax} consumers, ${sent} records: ${waits.text}`);
    assert.ok(waits.share(1) < 5_000, waits.text);
  },
);

const poisonMs = isLong ? 600_000 : 8_000;

check(
  'keyed: poison at one key in a hundred',
  { fast: true, msMax: poisonMs + 60_000 },
  async (t) => {
    const config = { 'retry.backoff.ms': '100', 'retry.backoff.max.ms': '1000' };
    const topic = await keyedTopic(t, 'poisoned', 6, { ...config, 'delivery.attempts.max': '0' });
    const group = new KeyedGroup(t, topic);
    const keys = keyNames(200);
    const poison = new Set(['key-50', 'key-150']);
    const waits = new Waits();
    let thrown = 0;
    const handle = async ({ key, message }) => {
      if (poison.has(key)) {
        thrown++;
        throw new Error('as the check wants');
      }
      waits.note(message);
      await delay(1);
    };
    await group.joinSeveral(4, { handle, consumer: { retry } });
    const records = flow(await t.producer(), topic, keys, 250);
    await delay(poisonMs);
    const sent = await records.stop();
    const healthy = (sent / keys.length) * (keys.length - poison.size);
    await group.sentinel.reached(healthy, { timeoutMs: 5_000 });
    group.sentinel.assertOnce(healthy);
    const poisoned = sent - healthy;
    await until('the lag is that of the poison', async () => (await group.lag()) === poisoned);
    assert.ok(group.members.every(({ crashes }) => crashes === 0));
    console.log(`# ${thrown} failures beside ${healthy} records: ${waits.text}`);
    // Both keys fail at least once in two seconds, the longest backoff and what it takes to be served.
    assert.ok(thrown >= poisonMs / 1_000, `it was tried ${thrown} times`);
    // A record behind a failed one in the same hand waits for the pause of kafkajs, some times.
    assert.ok(waits.share(0.99) < 2_000, waits.text);
  },
);

const deadMs = isLong ? 120_000 : 5_000;
/** The longest backoff, the pause of kafkajs, and a turn of each key that is tried alone. */
const firstMsMax = 10_000;
/** And then the backlog goes at 500 records a second at least, on a machine that others use too. */
const drainMsPerRecord = 2;

check(
  'keyed: a dead dependency, and recovery',
  { fast: true, msMax: 2 * deadMs + 60_000 },
  async (t) => {
    const config = { 'retry.backoff.ms': '100', 'retry.backoff.max.ms': '2000' };
    const topic = await keyedTopic(t, 'dead', 6, { ...config, 'delivery.attempts.max': '0' });
    const group = new KeyedGroup(t, topic);
    let isDead = false;
    let thrown = 0;
    const handle = async () => {
      await delay(1);
      if (!isDead) return;
      thrown++;
      throw new Error('as the check wants');
    };
    await group.joinSeveral(4, { handle, consumer: { retry } });
    const { sentinel } = group;
    const keys = keyNames(100);
    const records = flow(await t.producer(), topic, keys, 250);
    await sentinel.reached(500);
    isDead = true;
    await delay(deadMs);
    const nextOf = new Map(sentinel.next);
    const { handled } = sentinel;
    isDead = false;
    const startMs = performance.now();
    const sent = await records.stop();
    const isServed = (key) => sentinel.nextOf(key) > (nextOf.get(key) ?? 0);
    await until('each key is served again', () => keys.every(isServed), { timeoutMs: firstMsMax });
    const firstMs = Math.round(performance.now() - startMs);
    const behind = sent - handled;
    await sentinel.reached(sent, { timeoutMs: firstMsMax + behind * drainMsPerRecord });
    const allMs = Math.round(performance.now() - startMs);
    await group.finished();
    sentinel.assertOnce(sent);
    assert.ok(group.members.every(({ crashes }) => crashes === 0));
    const times = `each key served again after ${firstMs} ms, all done after ${allMs} ms`;
    console.log(`# ${thrown} failures, ${behind} records behind: ${times}`);
  },
);
