/** Keyed delivery: each record once, per-key order, slow records, lag. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { MessagesStreamFallbackModes, MessagesStreamModes } from '@platformatic/kafka';
import { check, latch, until } from '../../kafkajs/support/harness.mjs';
import { Sentinel } from '../../kafkajs/support/sentinel.mjs';
import { uniqueName } from '../support/context.mjs';

const partitions = 6;

class KeyedGroup {
  constructor(t, topic) {
    this.t = t;
    this.topic = topic;
    this.groupId = uniqueName('keyed-group');
    this.sentinel = new Sentinel();
    this.consumers = [];
    this.left = new Set();
  }

  /** A member that handles one record at a time, and commits it itself unless `autocommit`. */
  async join({ handle = () => {}, autocommit = false } = {}) {
    const consumer = this.t.consumer({ groupId: this.groupId, autocommit });
    const name = `member ${this.consumers.length + 1}`;
    this.consumers.push(consumer);
    const stream = await consumer.consume({
      topics: [this.topic],
      mode: MessagesStreamModes.COMMITTED,
      fallbackMode: MessagesStreamFallbackModes.EARLIEST,
    });
    const work = async () => {
      for await (const message of stream) {
        const number = Number(message.value);
        this.sentinel.begin(name, message.key, number);
        await handle(message, consumer);
        this.sentinel.end(message.key, number);
        if (!autocommit) await message.commit();
      }
    };
    work().catch((error) => {
      // A commit that is under way when its consumer is closed fails.
      if (!this.left.has(consumer)) this.t.faults.push(error);
    });
    return consumer;
  }

  async leave(consumer) {
    this.left.add(consumer);
    await consumer.close(true);
  }

  /** Everybody has joined and owns lanes, so that no rebalance comes in between. */
  async joinSeveral(count, options) {
    for (let index = 0; index < count; index++) await this.join(options);
    await until('all lanes have an owner', () => {
      const owned = this.consumers.map(({ assignments }) => assignments?.[0]?.partitions ?? []);
      return owned.every(({ length }) => length > 0) && owned.flat().length === partitions;
    });
  }

  /** What an admin tool computes, by a client that nobody takes for a member. */
  async lag() {
    this.stranger ??= this.t.newAdmin({ clientId: 'keylane-compat-stranger' });
    const indexes = Array.from({ length: partitions }, (_, index) => index);
    const topics = [{ name: this.topic, partitionIndexes: indexes }];
    const groups = [{ groupId: this.groupId, topics }];
    const [group] = await this.stranger.listConsumerGroupOffsets({ groups });
    const [{ partitions: found }] = group.topics;
    const ends = await this.t.endOffsets(this.topic, partitions);
    return found.reduce((sum, { partitionIndex, committedOffset }) => {
      return committedOffset < 0n ? sum : sum + Number(ends[partitionIndex] - committedOffset);
    }, 0);
  }

  async finished() {
    await until('all is finished', async () => (await this.lag()) === 0);
  }
}

function keyedTopic(t, label) {
  return t.topic(label, partitions, {}, 'keyed-');
}

function keyNames(count) {
  return Array.from({ length: count }, (_, index) => `key-${index}`);
}

async function sendNumbered(t, topic, keys, from, to) {
  const producer = t.producer();
  for (let number = from; number < to; number++) {
    const messages = keys.map((key) => ({ topic, key, value: String(number) }));
    await producer.send({ messages });
  }
  await producer.close();
}

for (const autocommit of [false, true]) {
  const name = autocommit ? 'autocommit' : 'commit after each record';
  check(`keyed: 3 consumers, each record once, ${name}`, { fast: true }, async (t) => {
    const topic = await keyedTopic(t, 'once');
    const group = new KeyedGroup(t, topic);
    const offsets = [];
    const handle = ({ offset }) => offsets.push(offset);
    await group.joinSeveral(3, { autocommit, handle });
    await sendNumbered(t, topic, keyNames(100), 0, 10);
    await group.sentinel.reached(1_000);
    await group.finished();
    group.sentinel.assertOnce(1_000);
    assert.ok(
      offsets.every((offset) => offset >= 2n ** 44n),
      'offsets are those of lanes',
    );
  });
}

check('keyed: a slow record delays its own key only', { fast: true }, async (t) => {
  const topic = await keyedTopic(t, 'slow');
  const group = new KeyedGroup(t, topic);
  const gate = latch();
  let isBegun = false;
  const handle = async ({ key, value }) => {
    if (key !== 'slow' || value !== '0') return delay(1);
    isBegun = true;
    await gate.opened;
  };
  await group.joinSeveral(3, { handle });
  await sendNumbered(t, topic, ['slow'], 0, 1);
  await until('the slow record is in work', () => isBegun);
  await sendNumbered(t, topic, ['slow'], 1, 21);
  await sendNumbered(t, topic, keyNames(500), 0, 1);
  await delay(2_000);
  const { sentinel } = group;
  assert.equal(sentinel.next.get('slow'), undefined);
  // This client fetches ahead while a handler runs, and the first window is of 256 records.
  assert.ok(sentinel.handled >= 500 - 256, `${sentinel.handled} of 500 were handled beside it`);
  await until(
    'the lag is what is not handled',
    async () => (await group.lag()) === 521 - sentinel.handled,
  );
  gate.open();
  await group.sentinel.reached(521);
  await group.finished();
  group.sentinel.assertOnce(521);
});

check('keyed: commit and resume over a restart of the consumer', { fast: true }, async (t) => {
  const topic = await keyedTopic(t, 'resume');
  const group = new KeyedGroup(t, topic);
  await sendNumbered(t, topic, keyNames(30), 0, 10);
  const first = await group.join({ handle: () => delay(2) });
  await group.sentinel.reached(50);
  await group.leave(first);
  await group.join();
  await group.sentinel.reached(300);
  await group.finished();
  // The record that was in work when its consumer was closed may come again.
  assert.ok(group.sentinel.repeated <= 1, `${group.sentinel.repeated} came again`);
});
