/** Producing: codecs, acks, idempotence, the parts of a record, streams, and the errors. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  allowedCompressionsAlgorithms,
  ProduceAcks,
  ProducerStreamReportModes,
} from '@platformatic/kafka';
import { check, until } from '../../kafkajs/support/harness.mjs';
import { rejectsWith, sampleValues, valuesOf } from '../support/context.mjs';

for (const compression of allowedCompressionsAlgorithms) {
  for (const acks of Object.values(ProduceAcks)) {
    const fast = acks === ProduceAcks.ALL || compression === 'none';
    check(`produce: ${compression}, acks ${acks}`, { fast }, async (t) => {
      const topic = await t.topic('codec');
      const values = sampleValues(40);
      await t.send(topic, values, { acks, compression });
      // With acks 0 nothing says when the records are there, so it has to be looked for.
      await until('they are stored', async () => (await t.endOffsets(topic, 1))[0] === 40n);
      assert.deepEqual(valuesOf(await t.readAll(topic, 40)), values);
    });
  }
}

check('produce: the result names topic, partition and offset', { fast: true }, async (t) => {
  const topic = await t.topic('result', 2);
  await t.send(topic, ['a', 'b', 'c'], { partition: 1 });
  const { offsets } = await t.send(topic, ['d'], { partition: 1 });
  assert.deepEqual(offsets, [{ topic, partition: 1, offset: 3n }]);
});

check('produce: many topics and partitions in one send', { fast: true }, async (t) => {
  const topics = await Promise.all(Array.from({ length: 10 }, () => t.topic('many', 2)));
  const producer = t.producer();
  const messages = topics.flatMap((topic) =>
    [0, 1].map((partition) => ({ topic, partition, value: `${topic}/${partition}` })),
  );
  const { offsets } = await producer.send({ messages, compression: 'gzip' });
  assert.equal(offsets.length, 20);
  const received = await t.readAll(topics, 20);
  assert.deepEqual(valuesOf(received).sort(), valuesOf(messages).sort());
});

check('produce: sends one after the other keep their order', { fast: true }, async (t) => {
  const topic = await t.topic('order');
  const producer = t.producer();
  const values = sampleValues(50);
  for (const value of values) await producer.send({ messages: [{ topic, partition: 0, value }] });
  assert.deepEqual(valuesOf(await t.readAll(topic, 50)), values);
});

check('produce: idempotent producer', { fast: true }, async (t) => {
  const topic = await t.topic('idempotent', 3);
  const producer = t.producer({ idempotent: true, acks: ProduceAcks.ALL });
  for (let round = 0; round < 20; round++) {
    await producer.send({
      messages: [0, 1, 2].map((partition) => ({ topic, partition, value: `${round}` })),
    });
  }
  assert.equal(typeof producer.producerId, 'bigint');
  assert.deepEqual(await t.endOffsets(topic, 3), [20n, 20n, 20n]);
  const received = await t.readAll(topic, 60);
  for (const partition of [0, 1, 2]) {
    const values = valuesOf(received.filter((message) => message.partition === partition));
    assert.deepEqual(
      values,
      Array.from({ length: 20 }, (_, round) => `${round}`),
    );
  }
});

check('produce: idempotent producers get ids of their own', {}, async (t) => {
  const [first, second] = [t.producer({ idempotent: true }), t.producer({ idempotent: true })];
  const infos = [await first.initIdempotentProducer({}), await second.initIdempotentProducer({})];
  assert.notEqual(infos[0].producerId, infos[1].producerId);
  assert.deepEqual(
    infos.map(({ producerEpoch }) => producerEpoch),
    [0, 0],
  );
});

check('produce: headers', { fast: true }, async (t) => {
  const topic = await t.topic('headers');
  const producer = t.producer();
  await producer.send({
    messages: [
      { topic, value: 'with', headers: { text: 'a ü 漢', empty: '' } },
      { topic, value: 'map', headers: new Map([['key', 'value']]) },
      { topic, value: 'without' },
    ],
  });
  const received = await t.readAll(topic, 3);
  assert.deepEqual(
    received.map(({ headerEntries }) => headerEntries),
    [
      [
        ['text', 'a ü 漢'],
        ['empty', ''],
      ],
      [['key', 'value']],
      [],
    ],
  );
});

check('produce: null and empty keys and values', { fast: true }, async (t) => {
  const topic = await t.topic('nulls');
  // The client's own strict validation asks for a value, its types and its encoder do not.
  const producer = t.producer({ serializers: undefined, strict: false });
  const messages = [
    {},
    { key: Buffer.from('key') },
    { value: Buffer.from('value') },
    { key: Buffer.alloc(0), value: Buffer.alloc(0) },
    { key: Buffer.from([0, 255]), value: Buffer.from([255, 0, 1]) },
  ];
  await producer.send({ messages: messages.map((m) => ({ topic, partition: 0, ...m })) });
  const received = await t.readAll(topic, 5, { consumer: { deserializers: undefined } });
  assert.deepEqual(
    received.map(({ key, value }) => [
      key?.toString('hex') ?? null,
      value?.toString('hex') ?? null,
    ]),
    [
      [null, null],
      ['6b6579', null],
      [null, '76616c7565'],
      ['', ''],
      ['00ff', 'ff0001'],
    ],
  );
});

check('produce: timestamps of the producer are kept', { fast: true }, async (t) => {
  const topic = await t.topic('create-time');
  const nowMs = BigInt(Date.now());
  const timestamps = [nowMs - 5_000n, nowMs - 86_400_000n, nowMs];
  const producer = t.producer();
  await producer.send({
    messages: timestamps.map((timestamp) => ({ topic, value: 'x', timestamp })),
  });
  const received = await t.readAll(topic, 3);
  assert.deepEqual(
    received.map(({ timestamp }) => timestamp),
    timestamps,
  );
});

check('produce: a key goes always to one partition', { fast: true }, async (t) => {
  const topic = await t.topic('keys', 5);
  const producer = t.producer();
  const keys = Array.from({ length: 40 }, (_, index) => `key-${index}`);
  for (let round = 0; round < 3; round++) {
    await producer.send({ messages: keys.map((key) => ({ topic, key, value: `${round}` })) });
  }
  const received = await t.readAll(topic, 120);
  for (const key of keys) {
    const own = received.filter((message) => message.key === key);
    assert.equal(new Set(own.map(({ partition }) => partition)).size, 1);
    assert.deepEqual(valuesOf(own), ['0', '1', '2']);
  }
});

check('produce: a partitioner of our own', {}, async (t) => {
  const topic = await t.topic('partitioner', 4);
  const producer = t.producer({ partitioner: ({ value }) => Number(value) });
  await producer.send({ messages: [3, 1, 3].map((value) => ({ topic, value: `${value}` })) });
  assert.deepEqual(await t.endOffsets(topic, 4), [0n, 1n, 0n, 2n]);
});

check('produce: records of nearly a megabyte', { fast: true }, async (t) => {
  const topic = await t.topic('large');
  const values = [1, 2, 3].map(() => randomBytes(500_000).toString('hex'));
  const producer = t.producer();
  for (const value of values) await producer.send({ messages: [{ topic, value }] });
  assert.deepEqual(valuesOf(await t.readAll(topic, 3)), values);
});

check('produce: a record that is too large', { fast: true }, async (t) => {
  const topic = await t.topic('too-large', 1, { 'max.message.bytes': '10000' });
  const value = 'x'.repeat(10_001);
  await rejectsWith(t.producer().send({ messages: [{ topic, value }] }), 'MESSAGE_TOO_LARGE');
  assert.deepEqual(await t.endOffsets(topic, 1), [0n]);
});

check('produce: auto creation, when it is asked for', { fast: true }, async (t) => {
  const topic = t.topicName('auto');
  const producer = t.producer({ autocreateTopics: true });
  await producer.send({ messages: [{ topic, value: 'x' }] });
  assert.deepEqual(valuesOf(await t.readAll(topic, 1)), ['x']);
});

check('produce: no auto creation, when it is not', { fast: true }, async (t) => {
  const topic = t.topicName('unknown');
  const producer = t.producer({ autocreateTopics: false, retries: 1 });
  // The client has words of its own for UNKNOWN_TOPIC_OR_PARTITION in a Metadata answer.
  await assert.rejects(producer.send({ messages: [{ topic, value: 'x' }] }), /Unknown topic/);
  assert.ok(!(await t.admin.listTopics()).includes(topic));
});

check('produce: a stream with a report for each batch', { fast: true }, async (t) => {
  const topic = await t.topic('stream');
  const producer = t.producer();
  const stream = producer.asStream({
    batchSize: 10,
    reportMode: ProducerStreamReportModes.BATCH,
  });
  const reports = [];
  stream.on('delivery-report', (report) => reports.push(report));
  const values = sampleValues(35);
  for (const value of values) {
    if (!stream.write({ topic, partition: 0, value })) await once(stream, 'drain');
  }
  await stream.close();
  const count = reports.reduce((sum, report) => sum + report.count, 0);
  assert.equal(count, 35);
  assert.deepEqual(valuesOf(await t.readAll(topic, 35)), values);
});
