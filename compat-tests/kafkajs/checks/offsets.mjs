/** Offsets through the admin client: of topics, by timestamp, of groups, and deleted records. */
import assert from 'node:assert/strict';
import { rejectsWith, sampleValues, texts, uniqueName, untilServed } from '../support/context.mjs';
import { check, until } from '../support/harness.mjs';

const byPartition = (a, b) => a.partition - b.partition;

/** A topic of one partition with ten records, and a group that has read them all. */
async function readTopic(t) {
  const topic = await t.topic('read');
  const groupId = uniqueName('group');
  await t.send(topic, sampleValues(10));
  await t.readAll(topic, 10, { groupId });
  return { topic, groupId };
}

check('offsets: fetchTopicOffsets', { fast: true }, async (t) => {
  const topic = await t.topic('offsets', 3);
  await t.send(topic, sampleValues(4), { partition: 1 });
  await t.send(topic, sampleValues(7), { partition: 2 });
  const offsets = await t.admin.fetchTopicOffsets(topic);
  assert.deepEqual(offsets.sort(byPartition), [
    { partition: 0, offset: '0', high: '0', low: '0' },
    { partition: 1, offset: '4', high: '4', low: '0' },
    { partition: 2, offset: '7', high: '7', low: '0' },
  ]);
});

check('offsets: fetchTopicOffsets of an unknown topic', {}, async (t) => {
  const admin = t.kafka.admin({ retry: { retries: 1, initialRetryTime: 20 } });
  t.onClose('admin', () => admin.disconnect());
  await admin.connect();
  const fetching = admin.fetchTopicOffsets(t.topicName('unknown'));
  await rejectsWith(fetching, 'UNKNOWN_TOPIC_OR_PARTITION');
});

check('offsets: fetchTopicOffsetsByTimestamp', { fast: true }, async (t) => {
  const topic = await t.topic('by-timestamp', 2);
  const startMs = Date.now() - 100_000;
  const producer = await t.producer();
  for (const step of [0, 1, 2, 3]) {
    const timestamp = String(startMs + step * 1_000);
    await producer.send({ topic, messages: [{ value: `${step}`, partition: 0, timestamp }] });
  }
  const at = async (timestampMs) => {
    const offsets = await t.admin.fetchTopicOffsetsByTimestamp(topic, timestampMs);
    return offsets.sort(byPartition).map(({ offset }) => Number(offset));
  };
  assert.deepEqual(await at(startMs - 50_000), [0, 0]);
  assert.deepEqual(await at(startMs), [0, 0]);
  assert.deepEqual(await at(startMs + 1), [1, 0]);
  assert.deepEqual(await at(startMs + 2_000), [2, 0]);
  assert.deepEqual(await at(startMs + 3_000), [3, 0]);
  // Later than all records: kafkajs puts the end offset in place of the -1 of the broker.
  assert.deepEqual(await at(startMs + 3_001), [4, 0]);
});

check('offsets: a timestamp inside a batch', {}, async (t) => {
  const topic = await t.topic('by-timestamp-batch');
  const startMs = Date.now() - 100_000;
  const producer = await t.producer();
  const messages = [0, 30, 10, 20, 40].map((step) => ({
    value: `${step}`,
    timestamp: String(startMs + step),
  }));
  await producer.send({ topic, messages });
  for (const [step, offset] of [
    [0, '0'],
    [5, '1'],
    [30, '1'],
    [31, '4'],
    [40, '4'],
  ]) {
    const found = await t.admin.fetchTopicOffsetsByTimestamp(topic, startMs + step);
    assert.deepEqual(found, [{ partition: 0, offset }], `${step} ms`);
  }
});

check('offsets: fetchOffsets of a group', { fast: true }, async (t) => {
  const { topic, groupId } = await readTopic(t);
  const expected = [{ topic, partitions: [{ partition: 0, offset: '10', metadata: null }] }];
  assert.deepEqual(await t.admin.fetchOffsets({ groupId, topics: [topic] }), expected);
  // No topics means all topics of the group.
  assert.deepEqual(await t.admin.fetchOffsets({ groupId }), expected);
});

check('offsets: fetchOffsets of an unknown group', { fast: true }, async (t) => {
  const topic = await t.topic('no-group', 2);
  const groupId = uniqueName('group');
  const [{ partitions }] = await t.admin.fetchOffsets({ groupId, topics: [topic] });
  assert.deepEqual(partitions.sort(byPartition), [
    { partition: 0, offset: '-1', metadata: null },
    { partition: 1, offset: '-1', metadata: null },
  ]);
  assert.deepEqual(await t.admin.fetchOffsets({ groupId }), []);
});

check('offsets: setOffsets', { fast: true }, async (t) => {
  const { topic, groupId } = await readTopic(t);
  await t.admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '7' }] });
  assert.deepEqual(await t.committed(groupId, topic), [7]);
  const received = await t.readAll(topic, 3, { groupId });
  assert.deepEqual(texts(received), sampleValues(10).slice(7));
});

check('offsets: setOffsets for a group that has never been', {}, async (t) => {
  const topic = await t.topic('set-new', 2);
  for (const partition of [0, 1]) await t.send(topic, sampleValues(5), { partition });
  const groupId = uniqueName('group');
  const partitions = [
    { partition: 0, offset: '5' },
    { partition: 1, offset: '3' },
  ];
  await t.admin.setOffsets({ groupId, topic, partitions });
  assert.deepEqual(await t.committed(groupId, topic), [5, 3]);
  const received = await t.readAll(topic, 2, { groupId });
  assert.deepEqual(texts(received), sampleValues(5).slice(3));
});

check('offsets: setOffsets is refused while the group has members', { fast: true }, async (t) => {
  const { topic, groupId } = await readTopic(t);
  const consumer = await t.consumer({ groupId });
  await consumer.subscribe({ topics: [topic] });
  await consumer.run({ eachMessage: async () => {} });
  const partitions = [{ partition: 0, offset: '0' }];
  await assert.rejects(t.admin.setOffsets({ groupId, topic, partitions }), /no running instances/);
});

for (const { earliest, raw, resolved, left } of [
  { earliest: true, raw: -2, resolved: 0, left: 10 },
  { earliest: false, raw: -1, resolved: 10, left: 0 },
]) {
  const where = earliest ? 'earliest' : 'latest';
  // Slow because kafkajs waits for an empty fetch of five seconds each time it sets an offset.
  check(`offsets: resetOffsets to ${where}, resolveOffsets`, { slow: true }, async (t) => {
    const { topic, groupId } = await readTopic(t);
    await t.admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '4' }] });
    await t.admin.resetOffsets({ groupId, topic, earliest });
    // kafkajs commits the special offset itself; it is a number like any other to the broker.
    assert.deepEqual(await t.committed(groupId, topic), [raw]);
    const [{ partitions }] = await t.admin.fetchOffsets({
      groupId,
      topics: [topic],
      resolveOffsets: true,
    });
    assert.equal(partitions[0].offset, String(resolved));
    assert.deepEqual(await t.committed(groupId, topic), [resolved]);
    await t.send(topic, ['new']);
    const received = await t.readAll(topic, left + 1, { groupId });
    assert.equal(texts(received).at(-1), 'new');
  });
}

check('offsets: deleteTopicRecords', { fast: true }, async (t) => {
  const topic = await t.topic('delete-records', 2);
  for (const partition of [0, 1]) await t.send(topic, sampleValues(10), { partition });
  // The client has to know the leaders before; it does not look them up here.
  await t.admin.fetchTopicOffsets(topic);
  await t.admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '6' }] });
  const offsets = await t.admin.fetchTopicOffsets(topic);
  assert.deepEqual(offsets.sort(byPartition), [
    { partition: 0, offset: '10', high: '10', low: '6' },
    { partition: 1, offset: '10', high: '10', low: '0' },
  ]);
  const received = await t.readAll(topic, 14);
  const left = texts(received.filter(({ partition }) => partition === 0));
  assert.deepEqual(left, sampleValues(10).slice(6));
});

check('offsets: deleteTopicRecords up to the end', { fast: true }, async (t) => {
  const topic = await t.topic('delete-all');
  await t.send(topic, sampleValues(10));
  await t.admin.fetchTopicOffsets(topic);
  await t.admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '-1' }] });
  const [{ high, low }] = await t.admin.fetchTopicOffsets(topic);
  assert.deepEqual([low, high], ['10', '10']);
  const [{ baseOffset, logStartOffset }] = await t.send(topic, ['next']);
  assert.deepEqual([baseOffset, logStartOffset], ['10', '10']);
  assert.deepEqual(texts(await t.readAll(topic, 1)), ['next']);
});

check('offsets: deleteTopicRecords beyond the end', {}, async (t) => {
  const topic = await t.topic('delete-beyond');
  await t.send(topic, sampleValues(3));
  await t.admin.fetchTopicOffsets(topic);
  const partitions = [{ partition: 0, offset: '4' }];
  await rejectsWith(t.admin.deleteTopicRecords({ topic, partitions }), 'OFFSET_OUT_OF_RANGE');
  assert.deepEqual(await t.endOffsets(topic), [3]);
});

check('offsets: a committed offset below the log start is reset', {}, async (t) => {
  const topic = await t.topic('below-start');
  await t.send(topic, sampleValues(10));
  const groupId = uniqueName('group');
  await t.admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '2' }] });
  await t.admin.fetchTopicOffsets(topic);
  await t.admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '8' }] });
  const received = await t.readAll(topic, 2, { groupId });
  assert.deepEqual(texts(received), sampleValues(10).slice(8));
});

check('offsets: a topic made again starts at zero', {}, async (t) => {
  const topic = await t.topic('again');
  await t.send(topic, sampleValues(5));
  await t.admin.deleteTopics({ topics: [topic] });
  await until('it is gone', async () => !(await t.admin.listTopics()).includes(topic));
  const topics = [{ topic, numPartitions: 1, replicationFactor: 1 }];
  await until('it is there again', () =>
    untilServed(() => t.admin.createTopics({ topics, waitForLeaders: false })),
  );
  await t.waitForPartitions(topic, 1);
  assert.deepEqual(await t.endOffsets(topic), [0]);
  await t.send(topic, ['fresh']);
  assert.deepEqual(texts(await t.readAll(topic, 1)), ['fresh']);
});
