/** Tenants of a node on its own: separate worlds that come and go while it runs. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import test, { type TestContext } from 'node:test';
import type { TenantView } from '../../src/broker/admin/tenants-port.ts';
import type { Settings } from '../../src/config/settings.ts';
import { nodeFiles } from '../../src/log/node-files.ts';
import { parseHostPort } from '../../src/net/listeners.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { metadataRequest, metadataResponse } from '../../src/protocol/schema/03-metadata.ts';
import {
  offsetCommitRequest,
  offsetCommitResponse,
} from '../../src/protocol/schema/08-offset-commit.ts';
import {
  initProducerIdRequest,
  initProducerIdResponse,
} from '../../src/protocol/schema/22-init-producer-id.ts';
import { offsetsOf } from './keyed-member.ts';
import { batchOf, fetchFrom, produceTo, recordsOf } from './records.ts';
import { startTestNode, type TestClient, type TestNode } from './support.ts';

const secret = 'the secret of operators';

function start(t: TestContext, settings: Partial<Settings> = {}): Promise<TestNode> {
  return startTestNode(t, {
    settings: {
      ...{ 'admin.listen': '127.0.0.1:0', 'admin.secret': secret, 'tenant.port.base': 0 },
      ...settings,
    },
  });
}

async function ask(node: TestNode, method: string, path: string, bearer = secret) {
  const { host, port } = node.adminAddress;
  const headers = { authorization: `Bearer ${bearer}` };
  const answer = await fetch(`http://${host}:${port}${path}`, { method, headers });
  return { status: answer.status, body: (await answer.json()) as { error?: string } };
}

async function create(node: TestNode, name: string): Promise<void> {
  assert.deepEqual(await ask(node, 'PUT', `/tenants/${name}`), { status: 200, body: {} });
}

async function views(node: TestNode): Promise<TenantView[]> {
  const { body } = await ask(node, 'GET', '/tenants');
  return (body as unknown as { tenants: TenantView[] }).tenants;
}

async function connect(node: TestNode, name: string): Promise<TestClient> {
  const view = (await views(node)).find((one) => one.name === name);
  return node.connect('test', parseHostPort(view!.address!));
}

/** Creates the topic, as far as that is still to be done. */
async function produce(node: TestNode, name: string, topic: string, values: readonly string[]) {
  const broker = node.tenants.brokerOf(name)!;
  if (broker.topics.byName(topic) === undefined) {
    await broker.topics.create({ name: topic, partitionCount: 1, configs: new Map() });
  }
  const client = await connect(node, name);
  return produceTo(client, { topic, records: batchOf(values) });
}

async function valuesOf(client: TestClient, topic: string): Promise<string[]> {
  const { responses } = await fetchFrom(client, [{ topic, offset: 0 }], { maxWaitMs: 0 });
  const { errorCode, records } = responses[0]!.partitions[0]!;
  assert.equal(errorCode, ErrorCode.NONE);
  return recordsOf(records).map(([, value]) => value);
}

test('a tenant has topics, groups, offsets and ids of its own, also after a restart', async (t) => {
  const node = await start(t);
  await create(node, 'acme');
  await create(node, 'blue');
  for (const name of ['default', 'acme', 'blue']) {
    const { baseOffset, errorCode } = await produce(node, name, 'orders', [`of ${name}`]);
    assert.deepEqual([baseOffset, errorCode], [0, ErrorCode.NONE]);
  }
  await produce(node, 'acme', 'more', ['1', '2']);
  const acme = await connect(node, 'acme');
  const committed = await acme.ask(offsetCommitRequest, offsetCommitResponse, 8, {
    ...{ groupId: 'g', generationIdOrMemberEpoch: -1, memberId: '' },
    topics: [
      {
        name: 'more',
        partitions: [{ partitionIndex: 0, committedOffset: 2, committedMetadata: null }],
      },
    ],
  });
  assert.equal(committed.topics[0]!.partitions[0]!.errorCode, ErrorCode.NONE);
  const before = await views(node);
  assert.deepEqual(
    before.map(({ number, name, leaderId, failure }) => [number, name, leaderId, failure]),
    [
      [0, 'default', 0, null],
      [1, 'acme', 0, null],
      [2, 'blue', 0, null],
    ],
  );
  await node.restart();
  const after = await views(node);
  const ids = (all: TenantView[]) => all.map(({ clusterId }) => clusterId);
  assert.deepEqual(ids(after), ids(before));
  assert.equal(new Set(ids(after)).size, 3);
  for (const [name, topics] of [
    ['default', ['orders']],
    ['acme', ['more', 'orders']],
    ['blue', ['orders']],
  ] as const) {
    const client = await connect(node, name);
    const metadata = await client.ask(metadataRequest, metadataResponse, 9, { topics: null });
    assert.deepEqual(metadata.topics.map((one) => one.name).sort(), topics);
    assert.equal(metadata.clusterId, after.find((one) => one.name === name)!.clusterId);
    const { address } = after.find((one) => one.name === name)!;
    const [broker] = metadata.brokers;
    assert.equal(`${broker!.host}:${broker!.port}`, address);
    assert.deepEqual(await valuesOf(client, 'orders'), [`of ${name}`]);
    assert.deepEqual(await offsetsOf(client, 'g', 'more', [0]), [name === 'acme' ? 2 : -1]);
    const producer = await client.ask(initProducerIdRequest, initProducerIdResponse, 4, {
      ...{ transactionalId: null, transactionTimeoutMs: 1000, producerId: -1, producerEpoch: -1 },
    });
    assert.equal(producer.producerId, 0);
  }
});

test('a tenant that is deleted takes all with it; the next one of its name is another', async (t) => {
  const node = await start(t);
  await create(node, 'acme');
  await produce(node, 'acme', 'orders', ['old']);
  const client = await connect(node, 'acme');
  const folder = node.broker.settings.data;
  assert.deepEqual(readdirSync(`${folder}/tenants`), ['1']);
  assert.equal((await ask(node, 'DELETE', '/tenants/acme')).status, 200);
  await client.closed;
  assert.deepEqual(readdirSync(`${folder}/tenants`), []);
  assert.deepEqual(
    (await views(node)).map(({ name }) => name),
    ['default'],
  );
  assert.equal((await ask(node, 'GET', '/tenants/acme/groups')).status, 404);
  await create(node, 'acme');
  const [, again] = await views(node);
  assert.equal(again!.number, 2);
  const metadata = await (await connect(node, 'acme')).ask(metadataRequest, metadataResponse, 9, {
    topics: null,
  });
  assert.deepEqual(metadata.topics, []);
});

test('what is left of a tenant that was deleted while the node was down goes at the start', async (t) => {
  const node = await start(t);
  await create(node, 'acme');
  await ask(node, 'DELETE', '/tenants/acme');
  const folder = `${node.broker.settings.data}/tenants`;
  await nodeFiles.makeFolder(`${folder}/1/journal`);
  await nodeFiles.makeFolder(`${folder}/7/journal`);
  await node.restart();
  assert.ok(!existsSync(`${folder}/1`));
  assert.ok(existsSync(`${folder}/7`), 'a number that this node has not heard of yet');
});

test('only who knows the secret may create and delete, and only what can be', async (t) => {
  const node = await start(t, { 'tenants.max': 2 });
  const refusal = async (method: string, path: string, bearer = secret) => {
    const { status, body } = await ask(node, method, path, bearer);
    return `${status} ${body.error}`;
  };
  assert.match(await refusal('PUT', '/tenants/acme', 'wrong'), /^401/);
  assert.match(await refusal('PUT', '/tenants/default'), /^409 there is a tenant default/);
  assert.match(await refusal('PUT', '/tenants/A%2Fb'), /^409 "A\/b" is no name of a tenant/);
  assert.match(await refusal('PUT', '/groups/acme'), /^404/);
  assert.match(await refusal('DELETE', '/tenants/default'), /^409/);
  assert.match(await refusal('DELETE', '/tenants/nobody'), /^409 there is no tenant nobody/);
  const answers = await Promise.all(
    ['acme', 'acme', 'blue', 'cyan'].map((name) => refusal('PUT', `/tenants/${name}`)),
  );
  assert.deepEqual(answers.map((answer) => answer.slice(0, 3)).sort(), [
    '200',
    '200',
    '409',
    '409',
  ]);
  assert.equal((await views(node)).length, 3);
  const open = await startTestNode(t, { settings: { 'admin.listen': '127.0.0.1:0' } });
  assert.equal((await ask(open, 'PUT', '/tenants/acme')).status, 403);
});

test('the tenants of the settings are made by the first start, and by no later one', async (t) => {
  const node = await start(t, { tenants: 'acme,blue' });
  assert.deepEqual(
    (await views(node)).map(({ name }) => name),
    ['default', 'acme', 'blue'],
  );
  await ask(node, 'DELETE', '/tenants/acme');
  await node.restart();
  assert.deepEqual(
    (await views(node)).map(({ name }) => name),
    ['default', 'blue'],
  );
});

test('a tenant whose port is taken is served as soon as that is free; others are meanwhile', async (t) => {
  const other = await startTestNode(t);
  const base = other.address.port - 1;
  const node = await start(t, { 'tenant.port.base': base });
  await create(node, 'acme');
  const [, before] = await views(node);
  assert.equal(before!.address, null);
  assert.match(before!.failure!, /EADDRINUSE/);
  const failing = await ask(node, 'GET', '/health');
  assert.equal(failing.status, 503);
  assert.match(JSON.stringify(failing.body), /tenant acme is not served: .*"failed":\["acme"\]/);
  await produce(node, 'default', 'orders', ['1']);
  await other.stop();
  while ((await views(node))[1]!.address === null) node.clock.advance(1000);
  const [, after] = await views(node);
  assert.equal(after!.failure, null);
  assert.equal((await ask(node, 'GET', '/health')).status, 200);
  const { errorCode } = await produce(node, 'acme', 'orders', ['2']);
  assert.equal(errorCode, ErrorCode.NONE);
});
