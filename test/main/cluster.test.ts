import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ClusterView } from '../../src/broker/admin/cluster-view.ts';
import { codecs } from '../../src/core/codecs.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import { metadataRequest, metadataResponse } from '../../src/protocol/schema/03-metadata.ts';
import { produceTo } from '../broker/records.ts';
import { TestClient } from '../broker/support.ts';
import { freePorts } from '../free-ports.ts';
import { run, startBroker, temporaryFolder } from './support.ts';

const environment = { KEYLANE_CLUSTER_SECRET: 'a secret of the nodes' };

/** Asks until the cluster is as expected. */
async function awaitCluster(
  admin: string | undefined,
  isExpected: (view: ClusterView) => boolean,
): Promise<ClusterView> {
  for (;;) {
    const answer = await fetch(`http://${admin}/cluster`);
    const view = (await answer.json()) as ClusterView;
    if (isExpected(view)) return view;
  }
}

function voterIds({ members }: ClusterView): number[] {
  return members.filter(({ role }) => role !== 'learner').map(({ nodeId }) => nodeId);
}

function isOfThree(view: ClusterView): boolean {
  return voterIds(view).length === 3 && view.members.every(({ inSync }) => inSync !== false);
}

/** Writes two records, and returns the offset of the first. */
async function produce(t: TestContext, port: number): Promise<number> {
  const client = await TestClient.connect({ host: '127.0.0.1', port });
  t.after(() => client.close());
  // Which makes the topic.
  await client.ask(metadataRequest, metadataResponse, 12, {
    topics: [{ name: 'orders', topicId: '00'.repeat(16) }],
  });
  const records = ['a', 'b'].map((value) => ({
    ...{ key: null, value: Buffer.from(value), timestamp: Date.now() },
  }));
  const batch = buildBatch({ records }, codecs);
  const outcome = await produceTo(client, { topic: 'orders', partition: 0, records: batch });
  assert.equal(outcome.errorCode, ErrorCode.NONE);
  return outcome.baseOffset;
}

test('one node grows to three, and one that lost its disk is put out and comes in again', async (t) => {
  const data = temporaryFolder(t);
  const ports = await freePorts(6);
  const cluster = ports
    .slice(3)
    .map((port, i) => `${i + 1}@127.0.0.1:${port}`)
    .join(',');
  const start = (nodeId: number, folder: string, args: readonly string[]) =>
    startBroker(
      t,
      join(data, folder),
      ['--node-id', String(nodeId), '--listen', `127.0.0.1:${ports[nodeId - 1]}`, ...args],
      { environment, admin: '127.0.0.1:0' },
    );

  const lone = await start(1, '1', []);
  assert.equal(await produce(t, lone.address.port), 0);
  await lone.stop();

  const inCluster = ['--cluster', cluster];
  const nodes = await Promise.all([1, 2, 3].map((id) => start(id, String(id), inCluster)));
  const grown = await awaitCluster(nodes[0]!.address.admin, isOfThree);
  const second = await awaitCluster(nodes[1]!.address.admin, (view) => view.leaderId > 0);
  assert.equal(second.clusterId, grown.clusterId);
  const status = await run(t, ['cluster', 'status', '--admin', nodes[1]!.address.admin!]);
  assert.match(status.output, /: node 1 leads in term \d+\n/);
  assert.match(status.output, /\n2 +voter +yes /);

  await nodes[2]!.stop('SIGKILL');
  const removed = await run(t, ['cluster', 'remove', '3', '--cluster', cluster], { environment });
  assert.match(removed.output, /^node 3 is no member any more/);
  const left = await awaitCluster(nodes[0]!.address.admin, (view) => voterIds(view).length === 2);
  assert.deepEqual(voterIds(left), [1, 2]);

  const replaced = await start(3, '3 with a new disk', inCluster);
  const whole = await awaitCluster(nodes[0]!.address.admin, isOfThree);
  const directories = (view: ClusterView) => view.members.map(({ directoryId }) => directoryId);
  const kept = directories(whole).filter((id) => directories(grown).includes(id));
  assert.equal(kept.length, 2);

  // All of them have what the first had while it was on its own.
  await nodes[0]!.stop();
  const after = await awaitCluster(replaced.address.admin, ({ leaderId }) => leaderId > 1);
  const leader = after.leaderId === 2 ? nodes[1]! : replaced;
  assert.equal(await produce(t, leader.address.port), 2);
});
