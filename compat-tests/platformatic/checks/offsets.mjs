/** Offsets: listed by position and time, lag, committed ones, and deleted records. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { ListOffsetTimestamps } from '@platformatic/kafka';
import { check, until } from '../../kafkajs/support/harness.mjs';
import { collect, rejectsWith, sampleValues, uniqueName, valuesOf } from '../support/context.mjs';

/** A topic with four records one second apart, and the time of the first. */
async function timedTopic(t) {
  const topic = await t.topic('timed', 2);
  const startMs = BigInt(Date.now() - 100_000);
  const producer = t.producer();
  for (const step of [0n, 1n, 2n, 3n]) {
    const timestamp = startMs + step * 1_000n;
    await producer.send({ messages: [{ topic, partition: 0, value: `${step}`, timestamp }] });
  }
  return { topic, startMs };
}

check('offsets: listOffsets, latest and earliest', { fast: true }, async (t) => {
  const topic = await t.topic('list', 3);
  await t.send(topic, sampleValues(4), { partition: 1 });
  await t.send(topic, sampleValues(7), { partition: 2 });
  const consumer = t.consumer();
  const latest = await consumer.listOffsets({ topics: [topic] });
  assert.deepEqual(latest, new Map([[topic, [0n, 4n, 7n]]]));
  const timestamp = ListOffsetTimestamps.EARLIEST;
  const earliest = await consumer.listOffsets({ topics: [topic], timestamp });
  assert.deepEqual(earliest, new Map([[topic, [0n, 0n, 0n]]]));
});

check('offsets: listOffsets of some partitions', {}, async (t) => {
  const topic = await t.topic('list-some', 3);
  await t.send(topic, sampleValues(4), { partition: 1 });
  const consumer = t.consumer();
  const offsets = await consumer.listOffsets({ topics: [topic], partitions: { [topic]: [1] } });
  assert.equal(offsets.get(topic)[1], 4n);
  assert.equal(offsets.get(topic)[0], undefined);
});

check('offsets: listOffsets by timestamp', { fast: true }, async (t) => {
  const { topic, startMs } = await timedTopic(t);
  const consumer = t.consumer();
  const at = async (timestamp) =>
    (await consumer.listOffsets({ topics: [topic], timestamp })).get(topic);
  assert.deepEqual(await at(startMs - 50_000n), [0n, -1n]);
  assert.deepEqual(await at(startMs), [0n, -1n]);
  assert.deepEqual(await at(startMs + 1n), [1n, -1n]);
  assert.deepEqual(await at(startMs + 3_000n), [3n, -1n]);
  assert.deepEqual(await at(startMs + 3_001n), [-1n, -1n]);
});

check('offsets: listOffsetsWithTimestamps', { fast: true }, async (t) => {
  const { topic, startMs } = await timedTopic(t);
  const consumer = t.consumer();
  const timestamp = startMs + 1_500n;
  const offsets = await consumer.listOffsetsWithTimestamps({ topics: [topic], timestamp });
  assert.deepEqual(offsets.get(topic).get(0), { offset: 2n, timestamp: startMs + 2_000n });
  assert.deepEqual(offsets.get(topic).get(1), { offset: -1n, timestamp: -1n });
});

check('offsets: the record with the greatest timestamp', {}, async (t) => {
  const { topic, startMs } = await timedTopic(t);
  const timestamp = startMs + 500n;
  await t.producer().send({ messages: [{ topic, partition: 0, value: 'older', timestamp }] });
  const consumer = t.consumer();
  const offsets = await consumer.listOffsetsWithTimestamps({
    topics: [topic],
    timestamp: ListOffsetTimestamps.MAX,
  });
  assert.deepEqual(offsets.get(topic).get(0), { offset: 3n, timestamp: startMs + 3_000n });
});

check('offsets: listOffsets of the admin client', { fast: true }, async (t) => {
  const { topic, startMs } = await timedTopic(t);
  const [{ name, partitions }] = await t.admin.listOffsets({
    topics: [
      {
        name: topic,
        partitions: [
          { partitionIndex: 0, timestamp: startMs + 1_000n },
          { partitionIndex: 1, timestamp: ListOffsetTimestamps.LATEST },
        ],
      },
    ],
  });
  assert.equal(name, topic);
  const found = partitions.map(({ partitionIndex, offset, timestamp }) => [
    partitionIndex,
    offset,
    timestamp,
  ]);
  assert.deepEqual(found.sort(), [
    [0, 1n, startMs + 1_000n],
    [1, 0n, -1n],
  ]);
});

check('offsets: getLag', { fast: true }, async (t) => {
  const topic = await t.topic('lag', 2);
  await t.send(topic, sampleValues(10));
  const received = [];
  const consumer = t.consumer();
  await collect(consumer, topic, received, { autocommit: false });
  await until('all arrived', () => received.length === 10);
  const lagNow = async () => (await consumer.getLag({ topics: [topic] })).get(topic);
  assert.deepEqual(await lagNow(), [10n, 0n]);
  await received[9].commit();
  assert.deepEqual(await lagNow(), [0n, 0n]);
  await t.send(topic, sampleValues(4), { partition: 1 });
  assert.deepEqual(await lagNow(), [0n, 4n]);
});

check('offsets: lag monitoring', {}, async (t) => {
  const topic = await t.topic('lag-events');
  await t.send(topic, sampleValues(3));
  const consumer = t.consumer();
  await collect(consumer, topic, []);
  consumer.startLagMonitoring({ topics: [topic] }, 1_000);
  const [lag] = await once(consumer, 'consumer:lag');
  consumer.stopLagMonitoring();
  assert.ok(lag.get(topic)[0] >= 0n);
});

check('offsets: listCommittedOffsets', { fast: true }, async (t) => {
  const topic = await t.topic('committed', 3);
  const consumer = t.consumer();
  await collect(consumer, topic, [], { autocommit: false });
  const partitions = [0, 1, 2];
  const none = await consumer.listCommittedOffsets({ topics: [{ topic, partitions }] });
  assert.deepEqual(none, new Map([[topic, [-1n, -1n, -1n]]]));
  await consumer.commit({ offsets: [{ topic, partition: 2, offset: 9n, leaderEpoch: 0 }] });
  const some = await consumer.listCommittedOffsets({ topics: [{ topic, partitions }] });
  assert.deepEqual(some, new Map([[topic, [-1n, -1n, 9n]]]));
});

check(
  'offsets: the admin client lists, alters and deletes those of a group',
  { fast: true },
  async (t) => {
    const topic = await t.topic('group-offsets', 2);
    const groupId = uniqueName('group');
    await t.admin.alterConsumerGroupOffsets({
      groupId,
      topics: [
        {
          name: topic,
          partitionOffsets: [
            { partition: 0, offset: 3n },
            { partition: 1, offset: 5n },
          ],
        },
      ],
    });
    assert.deepEqual(await t.committed(groupId, topic, 2), [3n, 5n]);
    const [group] = await t.admin.listConsumerGroupOffsets({ groups: [groupId] });
    assert.equal(group.groupId, groupId);
    const listed = group.topics[0].partitions.map(({ partitionIndex, committedOffset }) => [
      partitionIndex,
      committedOffset,
    ]);
    assert.deepEqual(listed.sort(), [
      [0, 3n],
      [1, 5n],
    ]);
    const topics = [{ name: topic, partitionIndexes: [0] }];
    await t.admin.deleteConsumerGroupOffsets({ groupId, topics });
    assert.deepEqual(await t.committed(groupId, topic, 2), [-1n, 5n]);
  },
);

check('offsets: of an active group they are not altered from outside', {}, async (t) => {
  const topic = await t.topic('group-active');
  const consumer = t.consumer();
  await collect(consumer, topic, []);
  const { groupId } = consumer;
  const partitionOffsets = [{ partition: 0, offset: 0n }];
  await rejectsWith(
    t.newAdmin({ retries: 0 }).alterConsumerGroupOffsets({
      groupId,
      topics: [{ name: topic, partitionOffsets }],
    }),
    'UNKNOWN_MEMBER_ID',
  );
  await rejectsWith(
    t.newAdmin({ retries: 0 }).deleteConsumerGroupOffsets({
      groupId,
      topics: [{ name: topic, partitionIndexes: [0] }],
    }),
    'GROUP_SUBSCRIBED_TO_TOPIC',
  );
});

check('offsets: deleteRecords', { fast: true }, async (t) => {
  const topic = await t.topic('delete-records', 2);
  for (const partition of [0, 1]) await t.send(topic, sampleValues(10), { partition });
  const [{ partitions }] = await t.admin.deleteRecords({
    topics: [{ name: topic, partitions: [{ partition: 0, offset: 6n }] }],
  });
  assert.deepEqual(partitions, [{ partition: 0, lowWatermark: 6n }]);
  assert.deepEqual(await t.offsets(topic, 2, ListOffsetTimestamps.EARLIEST), [6n, 0n]);
  const received = await t.readAll(topic, 14);
  const left = valuesOf(received.filter(({ partition }) => partition === 0));
  assert.deepEqual(left, sampleValues(10).slice(6));
});

check('offsets: deleteRecords up to the end and beyond', {}, async (t) => {
  const topic = await t.topic('delete-all');
  await t.send(topic, sampleValues(10));
  const remove = (admin, offset) =>
    admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset }] }] });
  await rejectsWith(remove(t.newAdmin({ retries: 0 }), 11n), 'OFFSET_OUT_OF_RANGE');
  const [{ partitions }] = await remove(t.admin, -1n);
  assert.deepEqual(partitions, [{ partition: 0, lowWatermark: 10n }]);
});
