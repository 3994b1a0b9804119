/** Topics, metadata and log directories. */
import assert from 'node:assert/strict';
import { check, until } from '../../kafkajs/support/harness.mjs';
import { rejectsWith, sampleValues, valuesOf } from '../support/context.mjs';

const topicIdPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

async function isListed(t, topic) {
  return (await t.admin.listTopics()).includes(topic);
}

check('topics: create, list, delete', { fast: true }, async (t) => {
  const topic = t.topicName('create');
  const [created] = await t.admin.createTopics({
    topics: [topic],
    partitions: 3,
    replicas: 1,
    configs: [{ name: 'retention.ms', value: '123456' }],
  });
  assert.equal(created.name, topic);
  assert.match(created.id, topicIdPattern);
  assert.equal(created.partitions, 3);
  assert.equal(created.replicas, Number(process.env.COMPAT_NODES ?? 1));
  assert.equal(created.configuration['retention.ms'], '123456');
  await until('it is listed', () => isListed(t, topic));
  await t.admin.deleteTopics({ topics: [topic] });
  await until('it is gone', async () => !(await isListed(t, topic)));
});

check('topics: create several with settings of their own', { fast: true }, async (t) => {
  const names = [t.topicName('one'), t.topicName('three')];
  const created = await t.admin.createTopics({
    topics: [names[0], { topic: names[1], partitions: 3 }],
    partitions: 1,
    replicas: 1,
  });
  const partitions = Object.fromEntries(created.map((topic) => [topic.name, topic.partitions]));
  assert.deepEqual(partitions, { [names[0]]: 1, [names[1]]: 3 });
  assert.equal(new Set(created.map(({ id }) => id)).size, 2);
});

check('topics: defaults of the broker', {}, async (t) => {
  const topic = t.topicName('defaults');
  const [created] = await t.admin.createTopics({ topics: [topic] });
  assert.ok(created.partitions >= 1);
  assert.ok(created.replicas >= 1);
});

check('topics: an assignment of replicas by hand', {}, async (t) => {
  const topic = t.topicName('assignment');
  const { brokers } = await t.admin.metadata({ topics: [] });
  const [nodeId] = brokers.keys();
  const assignments = [0, 1].map((partition) => ({ partition, brokers: [nodeId] }));
  await t.admin.createTopics({ topics: [topic], assignments });
  await t.waitForPartitions(topic, 2);
});

check('topics: create errors', { fast: true }, async (t) => {
  const admin = t.newAdmin({ retries: 0 });
  const create = (topic, options = {}) =>
    admin.createTopics({ topics: [topic], partitions: 1, replicas: 1, ...options });
  await rejectsWith(create(await t.topic('exists')), 'TOPIC_ALREADY_EXISTS');
  const topic = t.topicName('invalid');
  await rejectsWith(create(topic, { partitions: 0 }), 'INVALID_PARTITIONS');
  await rejectsWith(create(topic, { replicas: 99 }), 'INVALID_REPLICATION_FACTOR');
  await rejectsWith(create('no/slash'), 'INVALID_TOPIC_EXCEPTION');
  const configs = [{ name: 'retention.ms', value: 'x' }];
  await rejectsWith(create(topic, { configs }), 'INVALID_CONFIG');
  assert.ok(!(await isListed(t, topic)));
});

check('topics: delete an unknown one', {}, async (t) => {
  const deleting = t.newAdmin({ retries: 0 }).deleteTopics({ topics: [t.topicName('unknown')] });
  await rejectsWith(deleting, 'UNKNOWN_TOPIC_OR_PARTITION');
});

check('topics: createPartitions', { fast: true }, async (t) => {
  const topic = await t.topic('grow', 1);
  await t.send(topic, sampleValues(3));
  await t.admin.createPartitions({ topics: [{ name: topic, count: 3 }] });
  await t.waitForPartitions(topic, 3);
  await t.send(topic, ['new'], { partition: 2 });
  assert.deepEqual(await t.endOffsets(topic, 3), [3n, 0n, 1n]);
});

check('topics: createPartitions, validateOnly and errors', {}, async (t) => {
  const topic = await t.topic('grow-invalid', 2);
  const admin = t.newAdmin({ retries: 0 });
  const grow = (name, count, validateOnly = false) =>
    admin.createPartitions({ topics: [{ name, count }], validateOnly });
  await grow(topic, 5, true);
  await rejectsWith(grow(topic, 1), 'INVALID_PARTITIONS');
  await rejectsWith(grow(t.topicName('unknown'), 2), 'UNKNOWN_TOPIC_OR_PARTITION');
  const { topics } = await admin.metadata({ topics: [topic], forceUpdate: true });
  assert.equal(topics.get(topic).partitionsCount, 2);
});

check('topics: metadata', { fast: true }, async (t) => {
  const topic = await t.topic('metadata', 3);
  const { id, brokers, controllerId, topics } = await t.admin.metadata({ topics: [topic] });
  assert.ok(id.length > 0);
  assert.ok(brokers.has(controllerId));
  for (const { host, port } of brokers.values()) assert.ok(host.length > 0 && port > 0);
  const { id: topicId, partitions, partitionsCount } = topics.get(topic);
  assert.match(topicId, topicIdPattern);
  assert.equal(partitionsCount, 3);
  for (const { leader, leaderEpoch, replicas, isr, offlineReplicas } of partitions) {
    assert.ok(brokers.has(leader));
    assert.ok(leaderEpoch >= 0);
    assert.ok(replicas.includes(leader) && isr.includes(leader));
    assert.deepEqual(offlineReplicas, []);
  }
});

check('topics: one made again has another id and starts at zero', { fast: true }, async (t) => {
  const topic = t.topicName('again');
  const create = () => t.admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 });
  const [first] = await create();
  await t.waitForPartitions(topic, 1);
  await t.send(topic, sampleValues(5));
  await t.admin.deleteTopics({ topics: [topic] });
  await until('it is gone', async () => !(await isListed(t, topic)));
  const [second] = await create();
  assert.notEqual(second.id, first.id);
  await until('it is empty', async () => (await t.endOffsets(topic, 1))[0] === 0n);
  await t.send(topic, ['fresh']);
  assert.deepEqual(valuesOf(await t.readAll(topic, 1)), ['fresh']);
});

check('topics: describeLogDirs', {}, async (t) => {
  const topic = await t.topic('log-dirs', 2);
  await t.send(topic, sampleValues(20));
  const described = await t.admin.describeLogDirs({
    topics: [{ name: topic, partitions: [0, 1] }],
  });
  const found = described
    .flatMap(({ results }) => results.flatMap(({ topics }) => topics))
    .filter(({ name }) => name === topic)
    .flatMap(({ partitions }) => partitions);
  const sizes = new Map(
    found.map(({ partitionIndex, partitionSize }) => [partitionIndex, partitionSize]),
  );
  assert.ok(sizes.get(0) > 0n);
  assert.equal(sizes.get(1), 0n);
});
