/** One consumer: handlers, starting points, seek, pause, what a batch says, and redelivery. */
import assert from 'node:assert/strict';
import kafkajs from 'kafkajs';
import { nextEvent, sampleValues, texts, uniqueName, untilServed } from '../support/context.mjs';
import { check, latch, until } from '../support/harness.mjs';

const { CompressionTypes } = kafkajs;

/** Subscribes and runs; resolves with the array that fills. */
async function collect(consumer, topics, { fromBeginning = true, ...options } = {}) {
  const received = [];
  await consumer.subscribe({ topics: [topics].flat(), fromBeginning });
  await consumer.run({
    eachMessage: async ({ topic, partition, message }) => {
      received.push({ topic, partition, message });
    },
    ...options,
  });
  return received;
}

/** Resolves once the consumer has joined and has fetched once, so that its positions are fixed. */
async function positioned(consumer) {
  await nextEvent(consumer, consumer.events.GROUP_JOIN);
  await nextEvent(consumer, consumer.events.FETCH);
}

check('consume: eachMessage, from the beginning', { fast: true }, async (t) => {
  const topic = await t.topic('each-message');
  await t.send(topic, sampleValues(25, 'first'), { compression: CompressionTypes.GZIP });
  await t.send(topic, sampleValues(25, 'second'));
  const received = await t.readAll(topic, 50);
  assert.deepEqual(texts(received), [...sampleValues(25, 'first'), ...sampleValues(25, 'second')]);
  received.forEach(({ message }, index) => {
    assert.equal(message.offset, String(index));
    assert.ok(Math.abs(Number(message.timestamp) - Date.now()) < 60_000);
  });
});

check('consume: fromBeginning false sees only what comes later', { fast: true }, async (t) => {
  const topic = await t.topic('latest');
  await t.send(topic, ['old']);
  const consumer = await t.consumer();
  const ready = positioned(consumer);
  const received = await collect(consumer, topic, { fromBeginning: false });
  await ready;
  await t.send(topic, ['new']);
  await until('the new record arrived', () => received.length > 0);
  assert.deepEqual(texts(received), ['new']);
  assert.equal(received[0].message.offset, '1');
});

check('consume: a fetch waits for records', { fast: true }, async (t) => {
  const topic = await t.topic('wait');
  const consumer = await t.consumer({ maxWaitTimeInMs: 8_000, heartbeatInterval: 9_000 });
  const ready = nextEvent(consumer, consumer.events.GROUP_JOIN);
  const started = nextEvent(consumer, consumer.events.FETCH_START);
  const received = await collect(consumer, topic);
  await Promise.all([ready, started]);
  const producer = await t.producer();
  await producer.send({ topic, messages: [{ value: 'x' }] });
  // Far below the 8 seconds that an empty fetch would have waited.
  await until('the record arrived', () => received.length === 1, { timeoutMs: 4_000 });
  // Lets the fetch return that is waiting by now, so that the consumer stops at once.
  await producer.send({ topic, messages: [{ value: 'y' }] });
  await consumer.stop();
});

check('consume: several topics and partitions', { fast: true }, async (t) => {
  const topics = [await t.topic('multi', 3), await t.topic('multi', 2)];
  const producer = await t.producer();
  await producer.sendBatch({
    topicMessages: topics.map((topic, index) => ({
      topic,
      messages: Array.from({ length: 30 }, (_, i) => ({
        value: `${i}`,
        partition: i % (3 - index),
      })),
    })),
  });
  const received = await t.readAll(topics, 60);
  for (const topic of topics) {
    assert.equal(received.filter((record) => record.topic === topic).length, 30);
  }
});

check('consume: subscription by regular expression', {}, async (t) => {
  const stem = uniqueName('regex');
  const producer = await t.producer();
  const topics = [`${stem}-one`, `${stem}-two`];
  for (const topic of [...topics, `${stem}x`]) {
    t.suite.topics.add(topic);
    await untilServed(() => producer.send({ topic, messages: [{ value: topic }] }));
  }
  const received = await t.readAll(new RegExp(`^${stem}-.*`), 2);
  assert.deepEqual(texts(received).sort(), topics);
});

check('consume: eachBatch and what a batch says', { fast: true }, async (t) => {
  const topic = await t.topic('each-batch');
  await t.send(topic, sampleValues(40));
  const consumer = await t.consumer();
  const batches = [];
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    eachBatch: async ({ batch, isRunning, isStale, uncommittedOffsets }) => {
      assert.ok(isRunning());
      assert.ok(!isStale());
      assert.ok(Array.isArray(uncommittedOffsets().topics));
      batches.push(batch);
    },
  });
  await until('all arrived', () => batches.flatMap(({ messages }) => messages).length === 40);
  const [batch] = batches;
  assert.equal(batch.topic, topic);
  assert.equal(batch.partition, 0);
  assert.equal(batch.firstOffset(), '0');
  assert.equal(batches.at(-1).lastOffset(), '39');
  assert.equal(batch.highWatermark, '40');
  assert.equal(batches.at(-1).offsetLag(), '0');
});

check('consume: eachBatch without auto resolve', { fast: true }, async (t) => {
  const topic = await t.topic('auto-resolve');
  await t.send(topic, sampleValues(20));
  const groupId = uniqueName('group');
  const resolveHalf = await t.consumer({ groupId });
  let isDone = false;
  await resolveHalf.subscribe({ topics: [topic], fromBeginning: true });
  await resolveHalf.run({
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset, commitOffsetsIfNecessary, isStale }) => {
      // Kafka may hand the batch out again before the consumer stops; only the first counts.
      if (isDone || isStale()) return;
      for (const { offset } of batch.messages.slice(0, 10)) resolveOffset(offset);
      await commitOffsetsIfNecessary({
        topics: [{ topic, partitions: [{ partition: 0, offset: '10' }] }],
      });
      isDone = true;
    },
  });
  await until('half of it is resolved', () => isDone);
  await resolveHalf.disconnect();
  assert.deepEqual(await t.committed(groupId, topic), [10]);
  const rest = await t.readAll(topic, 10, { groupId });
  assert.deepEqual(texts(rest), sampleValues(20).slice(10));
});

check('consume: partitionsConsumedConcurrently', { fast: true }, async (t) => {
  const topic = await t.topic('concurrent', 4);
  for (const partition of [0, 1, 2, 3]) await t.send(topic, sampleValues(5), { partition });
  const consumer = await t.consumer();
  const gate = latch();
  const inside = new Set();
  let insideMax = 0;
  let handled = 0;
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    partitionsConsumedConcurrently: 3,
    eachMessage: async ({ partition }) => {
      assert.ok(!inside.has(partition), 'a partition is handled by one handler at a time');
      inside.add(partition);
      insideMax = Math.max(insideMax, inside.size);
      await gate.opened;
      inside.delete(partition);
      handled++;
    },
  });
  await until('three handlers are inside', () => inside.size === 3);
  gate.open();
  await until('all are handled', () => handled === 20);
  assert.equal(insideMax, 3);
});

check('consume: seek', { fast: true }, async (t) => {
  const topic = await t.topic('seek');
  await t.send(topic, sampleValues(30));
  const consumer = await t.consumer();
  const received = await collect(consumer, topic);
  consumer.seek({ topic, partition: 0, offset: '25' });
  await until('the last five arrived', () => received.length >= 5);
  assert.deepEqual(texts(received), sampleValues(30).slice(25));
  consumer.seek({ topic, partition: 0, offset: '28' });
  await until('the last two arrived again', () => received.length >= 7);
  assert.deepEqual(texts(received.slice(5)), sampleValues(30).slice(28));
});

check('consume: seek to the special offset for the earliest', {}, async (t) => {
  const topic = await t.topic('seek-special');
  await t.send(topic, ['a', 'b', 'c']);
  const consumer = await t.consumer();
  const received = await collect(consumer, topic);
  await until('all arrived', () => received.length === 3);
  // kafkajs commits the -2, reads it back, and then lets fromBeginning decide; see FINDINGS.md.
  consumer.seek({ topic, partition: 0, offset: '-2' });
  await until('all arrived again', () => received.length === 6);
  assert.deepEqual(texts(received), ['a', 'b', 'c', 'a', 'b', 'c']);
});

check('consume: pause and resume', { fast: true }, async (t) => {
  const topic = await t.topic('pause', 2);
  const consumer = await t.consumer();
  const received = await collect(consumer, topic);
  consumer.pause([{ topic, partitions: [0] }]);
  assert.deepEqual(consumer.paused(), [{ topic, partitions: [0] }]);
  await t.send(topic, ['zero'], { partition: 0 });
  await t.send(topic, ['one'], { partition: 1 });
  await until('partition 1 arrived', () => received.length === 1);
  await nextEvent(consumer, consumer.events.FETCH);
  await nextEvent(consumer, consumer.events.FETCH);
  assert.deepEqual(texts(received), ['one']);
  consumer.resume([{ topic, partitions: [0] }]);
  await until('partition 0 arrived', () => received.length === 2);
  assert.deepEqual(texts(received), ['one', 'zero']);
});

check('consume: pause from inside a handler', {}, async (t) => {
  const topic = await t.topic('pause-inside');
  await t.send(topic, sampleValues(6));
  const consumer = await t.consumer();
  const received = [];
  let resume = null;
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ message, pause }) => {
      received.push({ message });
      if (received.length === 3) resume = pause();
    },
  });
  await until('the handler paused', () => resume !== null);
  await nextEvent(consumer, consumer.events.FETCH_START);
  assert.equal(received.length, 3);
  resume();
  await until('the rest arrived', () => received.length === 6);
  assert.deepEqual(texts(received), sampleValues(6));
});

check('consume: a record whose handler throws is delivered again', { fast: true }, async (t) => {
  const topic = await t.topic('throws');
  await t.send(topic, sampleValues(6));
  const consumer = await t.consumer();
  const seen = [];
  let faults = 2;
  const received = await collect(consumer, topic, {
    eachMessage: async ({ message }) => {
      seen.push(Number(message.offset));
      if (message.offset === '3' && faults-- > 0) throw new Error('not yet');
      received.push({ message });
    },
  });
  await until('all are handled', () => received.length === 6);
  assert.deepEqual(texts(received), sampleValues(6));
  assert.deepEqual(seen, [0, 1, 2, 3, 3, 3, 4, 5]);
});

check('consume: a handler that goes on throwing crashes and restarts', {}, async (t) => {
  const topic = await t.topic('crash');
  await t.send(topic, sampleValues(3));
  const consumer = await t.consumer({ retry: { retries: 1, initialRetryTime: 20 } });
  const crashed = nextEvent(consumer, consumer.events.CRASH);
  let isBroken = true;
  const received = await collect(consumer, topic, {
    eachMessage: async ({ message }) => {
      if (isBroken) throw new Error('broken');
      received.push({ message });
    },
  });
  assert.equal((await crashed).restart, true);
  isBroken = false;
  await until('the restarted consumer goes on', () => received.length === 3);
  assert.deepEqual(texts(received), sampleValues(3));
});

check('consume: a position out of range is reset', { fast: true }, async (t) => {
  const topic = await t.topic('out-of-range');
  await t.send(topic, sampleValues(3));
  const consumer = await t.consumer();
  const received = await collect(consumer, topic);
  consumer.seek({ topic, partition: 0, offset: '1000' });
  await until('it starts again', () => received.length === 3);
  assert.deepEqual(texts(received), sampleValues(3));
});

check('consume: stop and run again', {}, async (t) => {
  const topic = await t.topic('run-again');
  await t.send(topic, ['a', 'b']);
  const consumer = await t.consumer();
  const received = await collect(consumer, topic);
  await until('both arrived', () => received.length === 2);
  await consumer.stop();
  await t.send(topic, ['c']);
  await consumer.run({ eachMessage: async ({ message }) => received.push({ message }) });
  await until('the third arrived', () => received.length === 3);
  assert.deepEqual(texts(received), ['a', 'b', 'c']);
});

check('consume: 5,000 records in compressed batches', { fast: true }, async (t) => {
  const topic = await t.topic('volume', 3);
  const producer = await t.producer();
  const codecs = Object.values(CompressionTypes);
  for (let round = 0; round < 25; round++) {
    const messages = Array.from({ length: 200 }, (_, index) => ({
      value: `${round}-${index}`,
      partition: index % 3,
    }));
    await producer.send({ topic, messages, compression: codecs[round % codecs.length] });
  }
  const received = await t.readAll(topic, 5_000, { maxBytesPerPartition: 4_000 });
  assert.equal(new Set(texts(received)).size, 5_000);
});
