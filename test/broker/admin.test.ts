/** What operators see over HTTP of groups, of the broker's health, and as metrics. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { AdminApi } from '../../src/broker/admin/admin-api.ts';
import type { GroupDetails, GroupSummary } from '../../src/broker/admin/group-view.ts';
import { createNetCounters } from '../../src/net/limits.ts';
import { commit } from './group-client.ts';
import { KeyedMember, send } from './keyed-member.ts';
import { startTestNode, type TestNode, type TestNodeOptions } from './support.ts';

const keyed = { 'delivery.mode': 'keyed', 'delivery.window': '1' };

async function startAdmin(t: TestContext, options: TestNodeOptions = {}): Promise<TestNode> {
  const settings = { 'admin.listen': '127.0.0.1:0', ...options.settings };
  return startTestNode(t, { ...options, settings });
}

function get(node: TestNode, path: string): Promise<Response> {
  const { host, port } = node.adminAddress;
  return fetch(`http://${host}:${port}${path}`);
}

async function groupOf(node: TestNode, groupId = 'g'): Promise<GroupDetails> {
  return (await (await get(node, `/groups/${encodeURIComponent(groupId)}`)).json()) as GroupDetails;
}

/** The values of a metric, by their labels as they are written. */
async function metrics(node: TestNode, name: string): Promise<Map<string, number>> {
  const text = await (await get(node, '/metrics')).text();
  const found = new Map<string, number>();
  for (const line of text.split('\n')) {
    const match = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (match?.[1] === name) found.set(match[2] ?? '', Number(match[3]));
  }
  return found;
}

async function orders(node: TestNode): Promise<KeyedMember> {
  await node.createTopic('orders', 2, keyed);
  const producer = await node.connect();
  await send(producer, 'orders', ['a=1', 'a=2', 'b=1', 'c=1']);
  const member = await KeyedMember.connect(node, {
    ...{ groupId: 'g', topics: ['orders'], software: 'apache-kafka-java' },
    ...{ sessionTimeoutMs: 600_000 },
  });
  await member.own(0, 1);
  return member;
}

test('a group in keyed delivery: figures, members, partitions', async (t) => {
  const node = await startAdmin(t);
  const member = await orders(node);
  const { records } = await member.await();
  assert.equal(String(records[0]!.value), '1');
  node.clock.advance(4000);
  const { topics, state, members } = await groupOf(node);
  const [topic] = topics;
  assert.deepEqual([state, members.length, topics.length], ['Stable', 1, 1]);
  const { unfinished, ready, held, granted, inHand, leasedKeys, pinnedKeys } = topic!;
  assert.deepEqual(
    { unfinished, ready, held, granted, inHand, leasedKeys, pinnedKeys },
    { unfinished: 4, ready: 2, held: 1, granted: 1, inHand: 1, leasedKeys: 1, pinnedKeys: 0 },
  );
  assert.deepEqual([topic!.mode, topic!.slot, topic!.lanes], ['keyed', 1, 2]);
  const { key, member: holder, ageMs, partition, offset } = topic!.oldestLease!;
  assert.deepEqual([key, holder, partition, offset], ['a', member.memberId, 0, 0]);
  assert.ok(ageMs >= 4000 && ageMs < 60_000, `${ageMs} ms`);
  const [shown] = topic!.members;
  assert.deepEqual(
    [shown!.client, shown!.lanes, shown!.inHand, shown!.window],
    ['java', [0, 1], 1, 1],
  );
  const places = topic!.partitions.map(({ end, low, unfinished }) => [end, low, unfinished]);
  assert.deepEqual(places, [
    [4, 0, 4],
    [0, 0, 0],
  ]);
  const { groups } = (await (await get(node, '/groups')).json()) as { groups: GroupSummary[] };
  assert.deepEqual(
    groups.map(({ group, topics }) => [group, topics[0]!.held]),
    [['g', 1]],
  );
});

test('what is finished, delivered again and given up is counted', async (t) => {
  const node = await startAdmin(t);
  const member = await orders(node);
  await member.await();
  await member.commitAll();
  await member.await();
  await member.leave();
  const next = await KeyedMember.connect(node, { groupId: 'g', topics: ['orders'] });
  await next.own(0, 1);
  await next.await();
  const [topic] = (await groupOf(node)).topics;
  const { unfinished, finished, delivered, redelivered } = topic!;
  assert.deepEqual([unfinished, finished, delivered, redelivered], [3, 1, 3, 1]);
  const labels = 'group="g",topic="orders"';
  const totals = ['finished_records', 'delivered_records', 'redelivered_records'];
  const found = await Promise.all(
    totals.map((name) => metrics(node, `keylane_keyed_${name}_total`)),
  );
  assert.deepEqual(
    found.map((values) => values.get(labels)),
    [1, 3, 1],
  );
  assert.equal((await metrics(node, 'keylane_keyed_leased_keys')).get(labels), 1);
  node.clock.advance(11_000);
  const checks = await metrics(node, 'keylane_invariant_checks_total');
  assert.ok(checks.get('invariant="holder"')! >= 3 && checks.get('invariant="books"')! >= 1);
  const violations = [...(await metrics(node, 'keylane_invariant_violations_total')).values()];
  assert.deepEqual(violations, [0, 0]);
});

test('the export is what the journal knows, also after a restart', async (t) => {
  const node = await startAdmin(t);
  const member = await orders(node);
  // The records of keys b and c are finished before the second one of a.
  await member.await();
  await member.commitAll();
  const second = await member.await();
  assert.equal(String(second.records[0]!.value), '2');
  const exported = async () => (await (await get(node, '/groups/g/export')).json()) as Exported;
  const { keyed, group, journalIndex } = await exported();
  const [topic] = keyed;
  assert.equal(group, 'g');
  const { partitions, lanes, slot, trials } = topic!;
  assert.deepEqual([topic!.topic, slot, trials], ['orders', 1, []]);
  const [first] = partitions;
  assert.deepEqual([first!.low, first!.end, first!.finished], [1, 4, []]);
  const grants = lanes.flatMap(({ ranges }) => ranges.flatMap((range) => range.grants));
  assert.deepEqual(
    grants.map(({ count, partition, offset }) => [count, partition, offset]),
    [[1, 0, 1]],
  );
  await node.restart();
  const again = await exported();
  assert.ok(again.journalIndex > journalIndex);
  assert.deepEqual(again.keyed, keyed);
});

interface Exported {
  readonly group: string;
  readonly journalIndex: number;
  readonly keyed: readonly {
    readonly topic: string;
    readonly slot: number;
    readonly partitions: readonly { low: number; end: number; finished: number[][] }[];
    readonly lanes: readonly {
      readonly ranges: readonly {
        readonly grants: readonly { count: number; partition: number; offset: number }[];
      }[];
    }[];
    readonly trials: readonly object[];
  }[];
}

test('a group of the log is shown with its lag, under any name', async (t) => {
  const node = await startAdmin(t);
  await node.createTopic('plain');
  const client = await node.connect();
  await send(client, 'plain', ['a=1', 'b=1', 'c=1']);
  const groupId = 'a/b ü%';
  await commit(client, groupId, 'plain', 0, 1, { generationIdOrMemberEpoch: -1 });
  const { topics, state } = await groupOf(node, groupId);
  const { mode, configuredMode, unfinished, ready } = topics[0]!;
  assert.deepEqual([state, mode, configuredMode], ['Empty', 'log', 'log']);
  assert.deepEqual([unfinished, ready], [2, 2]);
  const path = `/groups/${encodeURIComponent(groupId)}/export`;
  const { committedOffsets } = (await (await get(node, path)).json()) as {
    committedOffsets: object[];
  };
  assert.deepEqual(committedOffsets, [{ topic: 'plain', partition: 0, offset: 1, metadata: '' }]);
});

test('what is not there has status 404', async (t) => {
  const node = await startAdmin(t);
  for (const path of ['/nope', '/groups/none', '/groups/none/export', '/groups/a/b', '/%ff']) {
    const response = await get(node, path);
    assert.equal(response.status, 404, path);
    assert.match(((await response.json()) as { error: string }).error, /no such path|no group/);
  }
});

test('health: 503 while the disk is too full to take records, and when it stops', async (t) => {
  const node = await startAdmin(t, { settings: { 'disk.low.water.bytes': 1 } });
  const health = await get(node, '/health');
  const tenants = { failed: [], leaderless: [] };
  const facts = { ready: true, leader: 0, quorum: true, tenants };
  assert.deepEqual(
    [health.status, await health.json()],
    [200, { status: 'ok', reasons: [], ...facts }],
  );
  node.broker.replica.disk.wrote(node.broker.replica.disk.freeBytes);
  const full = await get(node, '/health');
  assert.equal(full.status, 503);
  assert.match(JSON.stringify(await full.json()), /nearly full: produce is refused/);
  const { broker } = node;
  const net = createNetCounters();
  const api = new AdminApi({ broker, net, tenants: node.tenants, secret: '' });
  api.isStopping = true;
  const stopping = await api.answer('/health');
  assert.equal(stopping.status, 503);
  assert.match(String(stopping.body), /it is stopping/);
});

test('without an address there is no endpoint', async (t) => {
  const node = await startAdmin(t, { settings: { 'admin.listen': '' } });
  assert.equal(node.adminAddress, undefined);
});
