/** Producing: codecs, acks, idempotence, batches, the parts of a record, and the errors. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import kafkajs from 'kafkajs';
import { rejectsWith, sampleValues, texts, untilServed } from '../support/context.mjs';
import { check, until } from '../support/harness.mjs';

const { CompressionTypes, Partitioners } = kafkajs;

for (const [codec, compression] of Object.entries(CompressionTypes)) {
  for (const acks of [-1, 1, 0]) {
    const fast = acks === -1 || codec === 'None';
    check(`produce: ${codec}, acks ${acks}`, { fast }, async (t) => {
      const topic = await t.topic('codec');
      const values = sampleValues(40);
      const results = await t.send(topic, values, { acks, compression });
      if (acks !== 0) assert.equal(results[0].baseOffset, '0');
      // With acks 0 nothing says when the records are there, so it has to be looked for.
      await until('the records are stored', async () => (await t.endOffsets(topic))[0] === 40);
      assert.deepEqual(texts(await t.readAll(topic, 40)), values);
    });
  }
}

check('produce: the result names topic, partition and base offset', { fast: true }, async (t) => {
  const topic = await t.topic('result', 2);
  await t.send(topic, ['a', 'b', 'c'], { partition: 1 });
  const results = await t.send(topic, ['d'], { partition: 1 });
  assert.equal(results.length, 1);
  const [{ topicName, partition, errorCode, baseOffset, logAppendTime }] = results;
  assert.deepEqual(
    { topicName, partition, errorCode, baseOffset, logAppendTime },
    { topicName: topic, partition: 1, errorCode: 0, baseOffset: '3', logAppendTime: '-1' },
  );
});

check('produce: one send to several partitions', { fast: true }, async (t) => {
  const topic = await t.topic('partitions', 6);
  const producer = await t.producer();
  const messages = Array.from({ length: 60 }, (_, i) => ({ value: `${i}`, partition: i % 6 }));
  const results = await producer.send({ topic, messages });
  assert.deepEqual(results.map(({ partition }) => partition).sort(), [0, 1, 2, 3, 4, 5]);
  assert.deepEqual(await t.endOffsets(topic), [10, 10, 10, 10, 10, 10]);
});

check('produce: a hundred sends in flight at once', { fast: true }, async (t) => {
  const topic = await t.topic('in-flight');
  const producer = await t.producer();
  const values = sampleValues(100);
  const results = await Promise.all(
    values.map((value) => producer.send({ topic, messages: [{ value, partition: 0 }] })),
  );
  const stored = texts(await t.readAll(topic, 100));
  // kafkajs itself does not keep the order of concurrent sends, so the answers tell who is where.
  results.forEach(([{ baseOffset }], index) => {
    assert.equal(stored[Number(baseOffset)], values[index]);
  });
});

check('produce: idempotent producer', { fast: true }, async (t) => {
  const topic = await t.topic('idempotent', 3);
  const producer = await t.producer({ idempotent: true });
  for (let round = 0; round < 20; round++) {
    const messages = [0, 1, 2].map((partition) => ({ value: `${round}`, partition }));
    await producer.send({ topic, messages });
  }
  assert.deepEqual(await t.endOffsets(topic), [20, 20, 20]);
  const received = await t.readAll(topic, 60);
  for (const partition of [0, 1, 2]) {
    const values = texts(received.filter((record) => record.partition === partition));
    assert.deepEqual(
      values,
      Array.from({ length: 20 }, (_, round) => `${round}`),
    );
  }
});

check('produce: two idempotent producers on one partition', {}, async (t) => {
  const topic = await t.topic('idempotent-two');
  const producers = [
    await t.producer({ idempotent: true }),
    await t.producer({ idempotent: true }),
  ];
  for (let round = 0; round < 10; round++) {
    await Promise.all(
      producers.map((producer, index) =>
        producer.send({ topic, messages: [{ value: `${index}-${round}`, partition: 0 }] }),
      ),
    );
  }
  const values = texts(await t.readAll(topic, 20));
  assert.equal(new Set(values).size, 20);
});

check('produce: sendBatch to many topics', { fast: true }, async (t) => {
  const topics = await Promise.all(Array.from({ length: 12 }, () => t.topic('many', 2)));
  const producer = await t.producer();
  const results = await producer.sendBatch({
    compression: CompressionTypes.GZIP,
    topicMessages: topics.map((topic) => ({
      topic,
      messages: [0, 1].map((partition) => ({ value: `${topic}/${partition}`, partition })),
    })),
  });
  assert.equal(results.length, 24);
  const received = await t.readAll(topics, 24);
  const expected = topics.flatMap((topic) => [`${topic}/0`, `${topic}/1`]);
  assert.deepEqual(texts(received).sort(), expected.sort());
});

check('produce: headers', { fast: true }, async (t) => {
  const topic = await t.topic('headers');
  const producer = await t.producer();
  const binary = randomBytes(64);
  const headers = { text: 'a ü 漢', binary, empty: '', several: ['one', 'two'] };
  const messages = [
    { value: 'with', headers },
    { value: 'without' },
    { value: 'none', headers: {} },
  ];
  await producer.send({ topic, messages });
  const [first, second, third] = (await t.readAll(topic, 3)).map(({ message }) => message);
  assert.equal(first.headers.text.toString(), 'a ü 漢');
  assert.deepEqual(first.headers.binary, binary);
  assert.equal(first.headers.empty.length, 0);
  assert.deepEqual(first.headers.several.map(String), ['one', 'two']);
  assert.deepEqual(second.headers, {});
  assert.deepEqual(third.headers, {});
});

check('produce: null and empty keys and values', { fast: true }, async (t) => {
  const topic = await t.topic('nulls');
  const producer = await t.producer();
  const messages = [
    { key: null, value: null },
    { key: 'key', value: null },
    { key: null, value: 'value' },
    { key: '', value: '' },
    { key: Buffer.from([0, 255]), value: Buffer.from([255, 0, 1]) },
  ];
  await producer.send({ topic, messages });
  const received = (await t.readAll(topic, 5)).map(({ message: { key, value } }) => [
    key === null ? null : key.toString('hex'),
    value === null ? null : value.toString('hex'),
  ]);
  assert.deepEqual(received, [
    [null, null],
    ['6b6579', null],
    [null, '76616c7565'],
    ['', ''],
    ['00ff', 'ff0001'],
  ]);
});

check('produce: timestamps of the producer are kept', { fast: true }, async (t) => {
  const topic = await t.topic('create-time');
  const nowMs = Date.now();
  const timestamps = [nowMs - 5_000, nowMs - 86_400_000, nowMs].map(String);
  const producer = await t.producer();
  const messages = timestamps.map((timestamp) => ({ value: 'x', timestamp }));
  await producer.send({ topic, messages });
  const received = await t.readAll(topic, 3);
  assert.deepEqual(
    received.map(({ message }) => message.timestamp),
    timestamps,
  );
});

check('produce: LogAppendTime sets the timestamp of the broker', { fast: true }, async (t) => {
  const topic = await t.topic('append-time', 1, { 'message.timestamp.type': 'LogAppendTime' });
  const producer = await t.producer();
  const beforeMs = Date.now();
  const messages = [1, 2].map(() => ({ value: 'x', timestamp: '1000' }));
  const [{ logAppendTime }] = await producer.send({ topic, messages });
  assert.ok(Number(logAppendTime) >= beforeMs && Number(logAppendTime) <= Date.now());
  const received = await t.readAll(topic, 2);
  assert.deepEqual(
    received.map(({ message }) => message.timestamp),
    [logAppendTime, logAppendTime],
  );
});

check('produce: records of nearly a megabyte', { fast: true }, async (t) => {
  const topic = await t.topic('large');
  const values = [1, 2, 3, 4].map(() => randomBytes(1_000_000));
  const producer = await t.producer();
  for (const value of values) await producer.send({ topic, messages: [{ value }] });
  const received = await t.readAll(topic, 4);
  received.forEach(({ message }, index) => {
    assert.ok(message.value.equals(values[index]), `value ${index} differs`);
  });
});

check('produce: a record larger than what a fetch asks for', {}, async (t) => {
  const topic = await t.topic('larger', 1, { 'max.message.bytes': '4000000' });
  const value = randomBytes(3_000_000);
  const producer = await t.producer();
  await producer.send({ topic, messages: [{ value: 'small' }] });
  await producer.send({ topic, messages: [{ value }] });
  await producer.send({ topic, messages: [{ value: 'small' }] });
  const received = await t.readAll(topic, 3, { maxBytesPerPartition: 1_000, maxBytes: 2_000 });
  assert.ok(received[1].message.value.equals(value));
});

check('produce: a record that is too large', { fast: true }, async (t) => {
  const topic = await t.topic('too-large', 1, { 'max.message.bytes': '10000' });
  const producer = await t.producer();
  const send = (bytes) => producer.send({ topic, messages: [{ value: randomBytes(bytes) }] });
  await rejectsWith(send(10_001), 'MESSAGE_TOO_LARGE');
  const [{ baseOffset }] = await send(9_000);
  assert.equal(baseOffset, '0');
});

check('produce: an unknown topic without auto creation', { fast: true }, async (t) => {
  const topic = t.topicName('unknown');
  const producer = await t.producer({ allowAutoTopicCreation: false, retry: { retries: 1 } });
  const sending = producer.send({ topic, messages: [{ value: 'x' }] });
  await rejectsWith(sending, 'UNKNOWN_TOPIC_OR_PARTITION');
  assert.ok(!(await t.admin.listTopics()).includes(topic));
});

check('produce: an invalid topic name', { fast: true }, async (t) => {
  const producer = await t.producer({ retry: { retries: 1 } });
  const sending = producer.send({ topic: 'not a/topic', messages: [{ value: 'x' }] });
  await rejectsWith(sending, 'INVALID_TOPIC_EXCEPTION');
});

for (const name of ['DefaultPartitioner', 'LegacyPartitioner']) {
  check(`produce: auto creation, ${name}`, { fast: true }, async (t) => {
    const topic = t.topicName('auto');
    const producer = await t.producer({ createPartitioner: Partitioners[name] });
    const keys = Array.from({ length: 30 }, (_, index) => `key-${index}`);
    const messages = keys.map((key) => ({ key, value: key }));
    await untilServed(() => producer.send({ topic, messages }));
    const received = await t.readAll(topic, 30);
    assert.deepEqual(texts(received).sort(), [...keys].sort());
  });

  check(`produce: ${name} sends a key always to one partition`, {}, async (t) => {
    const topic = await t.topic('keys', 5);
    const producer = await t.producer({ createPartitioner: Partitioners[name] });
    const keys = Array.from({ length: 40 }, (_, index) => `key-${index}`);
    for (let round = 0; round < 3; round++) {
      await producer.send({ topic, messages: keys.map((key) => ({ key, value: `${round}` })) });
    }
    const received = await t.readAll(topic, 120);
    const seen = new Map(keys.map((key) => [key, { partitions: new Set(), rounds: [] }]));
    for (const { partition, message } of received) {
      const entry = seen.get(message.key.toString());
      entry.partitions.add(partition);
      entry.rounds.push(message.value.toString());
    }
    for (const { partitions, rounds } of seen.values()) {
      assert.equal(partitions.size, 1);
      assert.deepEqual(rounds, ['0', '1', '2']);
    }
    assert.ok(new Set(received.map(({ partition }) => partition)).size > 1);
  });
}

check('produce: an auto-created topic shows in the list', {}, async (t) => {
  const topic = t.topicName('auto-list');
  const producer = await t.producer();
  await untilServed(() => producer.send({ topic, messages: [{ value: 'x' }] }));
  assert.ok((await t.admin.listTopics()).includes(topic));
});
