import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { check, Load, partitions } from './cluster-load.ts';
import { ClusterProcesses } from './cluster-processes.ts';

async function newCluster(
  t: TestContext,
  settings: readonly string[] = [],
): Promise<ClusterProcesses> {
  const folder = await mkdtemp(join(tmpdir(), 'keylane-cluster-'));
  const cluster = await ClusterProcesses.create(folder, { settings });
  t.after(async () => {
    cluster.stop();
    await rm(folder, { recursive: true, force: true });
  });
  return cluster;
}

async function startCluster(t: TestContext): Promise<ClusterProcesses> {
  const cluster = await newCluster(t);
  await cluster.startAll();
  return cluster;
}

async function begin(
  cluster: ClusterProcesses,
  topic: string,
  ids: readonly number[] = cluster.ids,
) {
  const kafka = cluster.client('load', ids);
  const admin = kafka.admin();
  await admin.connect();
  const spec = { topic, numPartitions: partitions, replicationFactor: ids.length };
  await admin.createTopics({ topics: [spec] });
  await admin.disconnect();
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  const load = new Load(producer, topic);
  await load.more(50);
  return { load, producer };
}

test('three processes lose nothing when the leader, a follower, or each in turn goes', async (t) => {
  const cluster = await startCluster(t);
  const { load, producer } = await begin(cluster, 'orders');
  const leader = await cluster.whole();
  await cluster.end(leader, 'SIGKILL');
  await load.more(50);
  await cluster.start(leader);
  const second = await cluster.whole();
  assert.notEqual(second, leader);
  const follower = cluster.ids.find((id) => id !== second)!;
  await cluster.end(follower, 'SIGKILL');
  await load.more(50);
  await cluster.start(follower);
  await cluster.whole();
  // A rolling restart.
  for (const id of cluster.ids) {
    await cluster.end(id, 'SIGTERM');
    await load.more(20);
    await cluster.start(id);
    await cluster.whole();
  }
  await load.stop();
  await producer.disconnect();
  await check(cluster, 'orders', load);
});

test('a leader that was stopped for a while answers nothing stale and acknowledges nothing', async (t) => {
  const cluster = await startCluster(t);
  const { load, producer } = await begin(cluster, 'orders');
  const leader = await cluster.whole();
  // kafkajs waits for the stopped node for half a minute; others find the new leader at once.
  cluster.signal(leader, 'SIGSTOP');
  const other = cluster.client('other', cluster.others(leader)).producer();
  await other.connect();
  const value = '0-999999';
  await other.send({ topic: 'orders', messages: [{ partition: 0, key: 'k0', value }] });
  load.acknowledged.add(value);
  await other.disconnect();
  const before = load.acknowledged.size;
  cluster.signal(leader, 'SIGCONT');
  await load.more(50);
  assert.ok(load.acknowledged.size > before);
  const next = await cluster.whole();
  assert.notEqual(next, leader);
  await load.stop();
  await producer.disconnect();
  await check(cluster, 'orders', load);
});

test('nodes that come when the beginning of the log is deleted have all that is left', async (t) => {
  const settings = ['journal.file.bytes=1048576', 'journal.snapshot.bytes=65536'];
  const cluster = await newCluster(t, settings);
  await cluster.start(1, []);
  const kafka = cluster.client('first', [1]);
  const [admin, producer] = [kafka.admin(), kafka.producer()];
  await admin.connect();
  await producer.connect();
  await admin.createTopics({ topics: [{ topic: 'orders', numPartitions: 1 }] });
  const value = (i: number) => `${i}-${'x'.repeat(20_000)}`;
  const count = 400;
  for (let i = 0; i < count; i++) {
    await producer.send({ topic: 'orders', messages: [{ value: value(i) }] });
  }
  const kept = 50;
  // kafkajs looks for the leader in what it has heard so far.
  await admin.fetchTopicOffsets('orders');
  const from = [{ partition: 0, offset: String(count - kept) }];
  await admin.deleteTopicRecords({ topic: 'orders', partitions: from });
  const journal = `${cluster.folder(1)}/default/journal`;
  while ((await readdir(journal)).includes('00000000000000000000.journal')) {
    await producer.send({ topic: 'other', messages: [{ value: 'goes on' }] });
  }
  await admin.disconnect();
  await producer.disconnect();
  await cluster.end(1, 'SIGTERM');

  await cluster.startAll();
  await cluster.end(1, 'SIGKILL');
  const leader = await cluster.whole(2);
  assert.notEqual(leader, 1);
  const found: string[] = [];
  const consumer = cluster
    .client('reader', [2, 3])
    .consumer({ groupId: 'reader', maxWaitTimeInMs: 100 });
  await consumer.connect();
  await consumer.subscribe({ topic: 'orders', fromBeginning: true });
  await new Promise<void>((resolve, reject) => {
    const eachMessage = async ({
      message,
    }: {
      readonly message: { readonly value: Buffer | null };
    }) => {
      if (found.push(message.value!.toString()) === kept) resolve();
    };
    consumer.run({ eachMessage }).catch(reject);
  });
  await consumer.disconnect();
  assert.deepEqual(
    found,
    Array.from({ length: kept }, (_, i) => value(count - kept + i)),
  );
});

test('one node goes on when the majority is lost for good, and new ones join it', async (t) => {
  const cluster = await startCluster(t);
  const { load, producer } = await begin(cluster, 'orders');
  await load.stop();
  await producer.disconnect();
  // What follows from the last answer is on all nodes before they go.
  await cluster.whole();
  for (const id of cluster.ids) await cluster.end(id, 'SIGKILL');
  for (const id of [1, 2]) await rm(cluster.folder(id), { recursive: true });
  const recover = ['cluster', 'recover', '--data', cluster.folder(3)];
  const refused = await cluster.run(recover);
  assert.equal(refused.code, 2);
  assert.match(refused.output, /--accept-data-loss/);
  const recovered = await cluster.run([...recover, '--accept-data-loss']);
  assert.equal(recovered.code, 0, recovered.output);
  assert.match(recovered.output, /^node 3 is the only member of the new cluster /);
  const again = await cluster.run([...recover, '--accept-data-loss']);
  assert.match(again.output, /on its own already/);

  await Promise.all(cluster.ids.map((id) => cluster.start(id)));
  assert.equal(await cluster.whole(), 3);
  await check(cluster, 'orders', load);
});

test('one node becomes three under load, by nodes that its settings do not name', async (t) => {
  const cluster = await newCluster(t);
  await cluster.start(1, [1]);
  const first = await begin(cluster, 'orders', [1]);
  const change = async (...args: readonly string[]) => {
    const { code, output } = await cluster.run([
      'cluster',
      ...args,
      '--cluster',
      cluster.nodes([1]),
    ]);
    assert.equal(code, 0, output);
    return output;
  };
  for (const [id, known] of [
    [2, [1, 2]],
    [3, [1, 2, 3]],
  ] as const) {
    assert.match(await change('add', cluster.nodes([id])), /^node \d may join/);
    await cluster.start(id, known);
    await cluster.whole(id);
    await first.load.more(20);
  }
  await first.load.stop();
  await first.producer.disconnect();
  // kafkajs looks for another node only among those that it was to begin with.
  const { load, producer } = await begin(cluster, 'payments');
  // Its settings name itself alone, still; what it needs to know is in its data.
  await cluster.end(1, 'SIGKILL');
  const leader = await cluster.whole(2);
  assert.notEqual(leader, 1);
  await load.more(20);
  await cluster.start(1, [1]);
  await cluster.whole();
  await load.stop();
  await producer.disconnect();
  await check(cluster, 'orders', first.load);
  await check(cluster, 'payments', load);
});
