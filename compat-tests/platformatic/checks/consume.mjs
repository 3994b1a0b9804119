/** One consumer and its streams: modes, commits, pausing, positions out of range. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  allowedCompressionsAlgorithms,
  MessagesStreamFallbackModes,
  MessagesStreamModes,
} from '@platformatic/kafka';
import { check, until } from '../../kafkajs/support/harness.mjs';
import { collect, sampleValues, uniqueName, valuesOf } from '../support/context.mjs';

check('consume: mode earliest', { fast: true }, async (t) => {
  const topic = await t.topic('earliest');
  await t.send(topic, sampleValues(20));
  const received = await t.readAll(topic, 20);
  assert.deepEqual(valuesOf(received), sampleValues(20));
  assert.deepEqual(
    received.map(({ offset }) => offset),
    Array.from({ length: 20 }, (_, index) => BigInt(index)),
  );
  assert.ok(received.every((message) => message.topic === topic && message.partition === 0));
});

check('consume: mode latest', { fast: true }, async (t) => {
  const topic = await t.topic('latest');
  await t.send(topic, ['old']);
  const received = [];
  // The stream has its positions when consume() resolves.
  await collect(t.consumer(), topic, received, { mode: MessagesStreamModes.LATEST });
  await t.send(topic, ['new']);
  await until('the new record arrived', () => received.length > 0);
  assert.deepEqual(valuesOf(received), ['new']);
  assert.equal(received[0].offset, 1n);
});

check('consume: mode committed goes on where the group was', { fast: true }, async (t) => {
  const topic = await t.topic('committed');
  const groupId = uniqueName('group');
  for (const label of ['first', 'second']) {
    await t.send(topic, sampleValues(10, label));
    const received = [];
    const consumer = t.consumer({ groupId });
    await collect(consumer, topic, received);
    await until('ten arrived', () => received.length >= 10);
    await consumer.close(true);
    assert.deepEqual(valuesOf(received), sampleValues(10, label));
  }
});

check('consume: mode committed without a commit, fallback latest', { fast: true }, async (t) => {
  const topic = await t.topic('fallback-latest');
  await t.send(topic, ['old']);
  const received = [];
  await collect(t.consumer(), topic, received, {
    fallbackMode: MessagesStreamFallbackModes.LATEST,
  });
  await t.send(topic, ['new']);
  await until('the new record arrived', () => received.length > 0);
  assert.deepEqual(valuesOf(received), ['new']);
});

check('consume: mode committed without a commit, fallback fail', {}, async (t) => {
  const topic = await t.topic('fallback-fail');
  const stream = await t.consumer().consume({
    topics: [topic],
    mode: MessagesStreamModes.COMMITTED,
    fallbackMode: MessagesStreamFallbackModes.FAIL,
  });
  const [error] = await once(stream, 'error');
  assert.match(error.message, /no committed offset/);
});

check('consume: mode manual', { fast: true }, async (t) => {
  const topic = await t.topic('manual', 2);
  for (const partition of [0, 1]) await t.send(topic, sampleValues(10), { partition });
  const received = await t.readAll(topic, 5, {
    mode: MessagesStreamModes.MANUAL,
    offsets: [
      { topic, partition: 0, offset: 7n },
      { topic, partition: 1, offset: 8n },
    ],
  });
  const values = (partition) =>
    valuesOf(received.filter((message) => message.partition === partition));
  assert.deepEqual(values(0), sampleValues(10).slice(7));
  assert.deepEqual(values(1), sampleValues(10).slice(8));
});

check('consume: autocommit at once', { fast: true }, async (t) => {
  const topic = await t.topic('autocommit');
  const groupId = uniqueName('group');
  await t.send(topic, sampleValues(10));
  const received = [];
  const stream = await collect(t.consumer({ groupId }), topic, received, { autocommit: true });
  const [error, offsets] = await once(stream, 'autocommit');
  assert.equal(error, null);
  assert.ok(offsets.length > 0);
  await until('it is committed', async () => (await t.committed(groupId, topic, 1))[0] === 10n);
});

check('consume: autocommit by interval', {}, async (t) => {
  const topic = await t.topic('autocommit-interval');
  const groupId = uniqueName('group');
  await t.send(topic, sampleValues(10));
  await collect(t.consumer({ groupId }), topic, [], { autocommit: 100 });
  await until('it is committed', async () => (await t.committed(groupId, topic, 1))[0] === 10n);
});

check('consume: manual commit of a message', { fast: true }, async (t) => {
  const topic = await t.topic('commit-message');
  const groupId = uniqueName('group');
  await t.send(topic, sampleValues(10));
  const consumer = t.consumer({ groupId });
  const received = [];
  await collect(consumer, topic, received, { autocommit: false });
  await until('all arrived', () => received.length === 10);
  assert.deepEqual(await t.committed(groupId, topic, 1), [-1n]);
  await received[3].commit();
  assert.deepEqual(await t.committed(groupId, topic, 1), [4n]);
  await consumer.close(true);
  const rest = [];
  await collect(t.consumer({ groupId }), topic, rest);
  await until('the rest arrived', () => rest.length >= 6);
  assert.deepEqual(valuesOf(rest), sampleValues(10).slice(4));
});

check('consume: commit() of the consumer', { fast: true }, async (t) => {
  const topic = await t.topic('commit', 2);
  const groupId = uniqueName('group');
  const consumer = t.consumer({ groupId });
  await collect(consumer, topic, [], { autocommit: false });
  await consumer.commit({
    offsets: [
      { topic, partition: 0, offset: 5n, leaderEpoch: -1 },
      { topic, partition: 1, offset: 7n, leaderEpoch: 0 },
    ],
  });
  assert.deepEqual(await t.committed(groupId, topic, 2), [5n, 7n]);
});

check('consume: iterating asynchronously', { fast: true }, async (t) => {
  const topic = await t.topic('iterate');
  await t.send(topic, sampleValues(15));
  const stream = await t.consumer().consume({
    topics: [topic],
    mode: MessagesStreamModes.EARLIEST,
  });
  const values = [];
  for await (const { value } of stream) {
    values.push(value);
    if (values.length === 15) break;
  }
  assert.deepEqual(values, sampleValues(15));
});

check('consume: pause and resume', { fast: true }, async (t) => {
  const topic = await t.topic('pause');
  const received = [];
  const stream = await collect(t.consumer(), topic, received);
  await t.send(topic, ['before']);
  await until('the first arrived', () => received.length === 1);
  stream.pause();
  await t.send(topic, ['after']);
  // Another consumer sees it in the meantime, so this one would have, too.
  await t.readAll(topic, 2);
  assert.equal(received.length, 1);
  stream.resume();
  await until('the second arrived', () => received.length === 2);
  assert.deepEqual(valuesOf(received), ['before', 'after']);
});

check('consume: two streams of one consumer', {}, async (t) => {
  const topics = [await t.topic('stream'), await t.topic('stream')];
  for (const topic of topics) await t.send(topic, [topic]);
  const consumer = t.consumer();
  const received = [[], []];
  for (const [index, topic] of topics.entries()) {
    await collect(consumer, topic, received[index], { mode: MessagesStreamModes.EARLIEST });
  }
  await until('both arrived', () => received.every(({ length }) => length > 0));
  assert.deepEqual(received.map(valuesOf), [[topics[0]], [topics[1]]]);
});

for (const fallbackMode of ['earliest', 'latest']) {
  check(`consume: a position out of range, fallback ${fallbackMode}`, {}, async (t) => {
    const topic = await t.topic('out-of-range');
    await t.send(topic, ['a', 'b']);
    const received = [];
    const stream = await collect(t.consumer(), topic, received, {
      mode: MessagesStreamModes.MANUAL,
      offsets: [{ topic, partition: 0, offset: 1_000n }],
      fallbackMode,
    });
    await once(stream, 'offsets');
    if (fallbackMode === 'earliest') {
      await t.send(topic, ['c']);
      await until('all arrived', () => received.length >= 3);
      assert.deepEqual(valuesOf(received), ['a', 'b', 'c']);
      return;
    }
    // What is sent before the client has looked for the end is not for it.
    await until('one arrived', async () => {
      await t.send(topic, ['c']);
      return received.length > 0;
    });
    assert.deepEqual(new Set(valuesOf(received)), new Set(['c']));
  });
}

check('consume: 5,000 records in compressed batches', { fast: true }, async (t) => {
  const topic = await t.topic('volume', 3);
  const producer = t.producer();
  const codecs = allowedCompressionsAlgorithms;
  for (let round = 0; round < 25; round++) {
    const messages = Array.from({ length: 200 }, (_, index) => ({
      topic,
      value: `${round}-${index}`,
      partition: index % 3,
    }));
    await producer.send({ messages, compression: codecs[round % codecs.length] });
  }
  const received = await t.readAll(topic, 5_000, { maxBytesPerPartition: 4_000 });
  assert.equal(new Set(valuesOf(received)).size, 5_000);
});
