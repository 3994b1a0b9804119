/** Topics and the cluster through the admin client. */
import assert from 'node:assert/strict';
import { rejectsWith, sampleValues, texts, untilServed } from '../support/context.mjs';
import { check, until } from '../support/harness.mjs';

/** createTopics for one topic; does not wait for leaders unless told to. */
function create(t, topic, { validateOnly = false, waitForLeaders = false, ...options } = {}) {
  return t.admin.createTopics({ validateOnly, waitForLeaders, topics: [{ topic, ...options }] });
}

async function isListed(t, topic) {
  return (await t.admin.listTopics()).includes(topic);
}

check('topics: create, list, delete', { fast: true }, async (t) => {
  const topic = t.topicName('create');
  assert.equal(await create(t, topic, { numPartitions: 2, replicationFactor: 1 }), true);
  await t.waitForPartitions(topic, 2);
  assert.ok(await isListed(t, topic));
  await t.admin.deleteTopics({ topics: [topic] });
  await until('it is gone', async () => !(await isListed(t, topic)));
});

check('topics: create many at once', { fast: true }, async (t) => {
  const topics = Array.from({ length: 20 }, (_, index) => ({
    topic: t.topicName('many'),
    numPartitions: 1 + (index % 3),
    replicationFactor: 1,
  }));
  assert.equal(await t.admin.createTopics({ topics, waitForLeaders: false }), true);
  for (const { topic, numPartitions } of topics) await t.waitForPartitions(topic, numPartitions);
});

check('topics: create one that exists', { fast: true }, async (t) => {
  const topic = await t.topic('exists');
  assert.equal(await create(t, topic, { numPartitions: 1, replicationFactor: 1 }), false);
});

check('topics: one exists, one is new', {}, async (t) => {
  const [old, fresh] = [await t.topic('old'), t.topicName('fresh')];
  const topics = [old, fresh].map((topic) => ({ topic, numPartitions: 1, replicationFactor: 1 }));
  assert.equal(await t.admin.createTopics({ topics, waitForLeaders: false }), false);
  await t.waitForPartitions(fresh, 1);
});

check('topics: defaults of the broker for partitions and replicas', {}, async (t) => {
  const topic = t.topicName('defaults');
  assert.equal(await create(t, topic), true);
  await until('it is listed', () => isListed(t, topic));
  const { topics } = await untilServed(() => t.admin.fetchTopicMetadata({ topics: [topic] }));
  assert.ok(topics[0].partitions.length >= 1);
  assert.ok(topics[0].partitions.every(({ replicas }) => replicas.length >= 1));
});

check('topics: validateOnly creates nothing', { fast: true }, async (t) => {
  const topic = t.topicName('validate');
  const options = { numPartitions: 1, replicationFactor: 1, validateOnly: true };
  assert.equal(await create(t, topic, options), true);
  assert.ok(!(await isListed(t, topic)));
  const invalid = create(t, topic, { ...options, numPartitions: 0 });
  await rejectsWith(invalid, 'INVALID_PARTITIONS');
  assert.equal(await create(t, await t.topic('exists'), options), false);
});

check('topics: waitForLeaders', { fast: true }, async (t) => {
  const topic = t.topicName('leaders');
  // On Kafka this fails now and then, with the topic created all the same; see FINDINGS.md.
  await untilServed(() =>
    create(t, topic, { numPartitions: 3, replicationFactor: 1, waitForLeaders: true }),
  );
  await t.waitForPartitions(topic, 3);
});

for (const [what, type, options] of [
  ['no partitions', 'INVALID_PARTITIONS', { numPartitions: 0, replicationFactor: 1 }],
  ['too many replicas', 'INVALID_REPLICATION_FACTOR', { numPartitions: 1, replicationFactor: 99 }],
  ['no replicas', 'INVALID_REPLICATION_FACTOR', { numPartitions: 1, replicationFactor: 0 }],
  [
    'an unknown config',
    'INVALID_CONFIG',
    { numPartitions: 1, replicationFactor: 1, configEntries: [{ name: 'no.such', value: '1' }] },
  ],
  [
    'an invalid config value',
    'INVALID_CONFIG',
    {
      numPartitions: 1,
      replicationFactor: 1,
      configEntries: [{ name: 'retention.ms', value: 'x' }],
    },
  ],
  [
    'an unknown broker',
    'INVALID_REPLICA_ASSIGNMENT',
    {
      numPartitions: -1,
      replicationFactor: -1,
      replicaAssignment: [{ partition: 0, replicas: [99] }],
    },
  ],
]) {
  check(`topics: create with ${what}`, { fast: true }, async (t) => {
    const topic = t.topicName('invalid');
    await rejectsWith(create(t, topic, options), type);
    assert.ok(!(await isListed(t, topic)));
  });
}

check('topics: names that are not allowed', { fast: true }, async (t) => {
  for (const topic of ['', '.', '..', 'with space', 'slash/', 'ü', 'x'.repeat(250)]) {
    const creating = create(t, topic, { numPartitions: 1, replicationFactor: 1 });
    await rejectsWith(creating, 'INVALID_TOPIC_EXCEPTION');
  }
  const longest = t.topicName('long').padEnd(249, '.-_A9');
  t.suite.topics.add(longest);
  assert.equal(await create(t, longest, { numPartitions: 1, replicationFactor: 1 }), true);
});

check('topics: several errors in one request', {}, async (t) => {
  const topics = [
    { topic: t.topicName('fine'), numPartitions: 1, replicationFactor: 1 },
    { topic: t.topicName('partitions'), numPartitions: 0, replicationFactor: 1 },
    { topic: t.topicName('replicas'), numPartitions: 1, replicationFactor: 99 },
  ];
  const error = await t.admin
    .createTopics({ topics, waitForLeaders: false })
    .catch((fault) => fault);
  const faults = Object.fromEntries(error.errors.map(({ topic, type }) => [topic, type]));
  assert.deepEqual(faults, {
    [topics[1].topic]: 'INVALID_PARTITIONS',
    [topics[2].topic]: 'INVALID_REPLICATION_FACTOR',
  });
  await t.waitForPartitions(topics[0].topic, 1);
});

check('topics: an assignment of replicas by hand', {}, async (t) => {
  const topic = t.topicName('assignment');
  const { brokers } = await t.admin.describeCluster();
  const replicas = [brokers[0].nodeId];
  const replicaAssignment = [0, 1].map((partition) => ({ partition, replicas }));
  await create(t, topic, { numPartitions: -1, replicationFactor: -1, replicaAssignment });
  await t.waitForPartitions(topic, 2);
});

check('topics: createPartitions', { fast: true }, async (t) => {
  const topic = await t.topic('grow', 1);
  await t.send(topic, sampleValues(3));
  await t.admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] });
  await t.waitForPartitions(topic, 3);
  await t.send(topic, ['new'], { partition: 2 });
  assert.deepEqual(await t.endOffsets(topic), [3, 0, 1]);
});

check('topics: createPartitions, validateOnly and errors', { fast: true }, async (t) => {
  const topic = await t.topic('grow-invalid', 2);
  const grow = (name, count, validateOnly = false) =>
    t.admin.createPartitions({ topicPartitions: [{ topic: name, count }], validateOnly });
  await grow(topic, 5, true);
  await rejectsWith(grow(topic, 1), 'INVALID_PARTITIONS');
  await rejectsWith(grow(topic, 2), 'INVALID_PARTITIONS');
  await rejectsWith(grow(t.topicName('unknown'), 2), 'UNKNOWN_TOPIC_OR_PARTITION');
  const { topics } = await t.admin.fetchTopicMetadata({ topics: [topic] });
  assert.equal(topics[0].partitions.length, 2);
});

check('topics: fetchTopicMetadata', { fast: true }, async (t) => {
  const topic = await t.topic('metadata', 3);
  const { brokers } = await t.admin.describeCluster();
  const nodeIds = brokers.map(({ nodeId }) => nodeId);
  const { topics } = await t.admin.fetchTopicMetadata({ topics: [topic] });
  assert.equal(topics.length, 1);
  const [{ name, partitions }] = topics;
  assert.equal(name, topic);
  assert.deepEqual(partitions.map(({ partitionId }) => partitionId).sort(), [0, 1, 2]);
  for (const { partitionErrorCode, leader, replicas, isr, offlineReplicas } of partitions) {
    assert.equal(partitionErrorCode, 0);
    assert.ok(nodeIds.includes(leader));
    assert.ok(replicas.includes(leader) && isr.includes(leader));
    assert.deepEqual(offlineReplicas, []);
  }
});

check('topics: fetchTopicMetadata of all topics', {}, async (t) => {
  const topic = await t.topic('metadata-all', 2);
  const { topics } = await t.admin.fetchTopicMetadata();
  const found = topics.find(({ name }) => name === topic);
  assert.equal(found.partitions.length, 2);
  const names = topics.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
});

check('topics: fetchTopicMetadata of an unknown topic does not make it', {}, async (t) => {
  const topic = t.topicName('unknown');
  const fetching = t.admin.fetchTopicMetadata({ topics: [topic] });
  await rejectsWith(fetching, 'UNKNOWN_TOPIC_OR_PARTITION');
  assert.ok(!(await isListed(t, topic)));
});

check('topics: delete several with their records', { fast: true }, async (t) => {
  const topics = [await t.topic('delete'), await t.topic('delete', 3), await t.topic('stays')];
  for (const topic of topics) await t.send(topic, sampleValues(5));
  await t.admin.deleteTopics({ topics: topics.slice(0, 2) });
  await until('they are gone', async () => {
    const listed = await t.admin.listTopics();
    return !topics.slice(0, 2).some((topic) => listed.includes(topic));
  });
  assert.deepEqual(texts(await t.readAll(topics[2], 5)), sampleValues(5));
});

check('topics: delete an unknown one', {}, async (t) => {
  const admin = t.kafka.admin({ retry: { retries: 1, initialRetryTime: 20 } });
  t.onClose('admin', () => admin.disconnect());
  await admin.connect();
  const deleting = admin.deleteTopics({ topics: [t.topicName('unknown')] });
  await rejectsWith(deleting, 'UNKNOWN_TOPIC_OR_PARTITION');
});

check('cluster: describeCluster', { fast: true }, async (t) => {
  const { brokers, controller, clusterId } = await t.admin.describeCluster();
  assert.ok(brokers.length >= 1);
  for (const { nodeId, host, port } of brokers) {
    assert.ok(Number.isInteger(nodeId) && nodeId >= 0);
    assert.ok(host.length > 0 && port > 0);
  }
  assert.ok(brokers.some(({ nodeId }) => nodeId === controller));
  assert.ok(clusterId.length > 0);
  const again = await t.admin.describeCluster();
  assert.equal(again.clusterId, clusterId);
});
