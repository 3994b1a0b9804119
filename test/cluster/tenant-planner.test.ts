import assert from 'node:assert/strict';
import test from 'node:test';
import { TenantPlanner } from '../../src/cluster/tenant-planner.ts';
import { ByteReader, ByteWriter } from '../../src/core/bytes.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { Command } from '../../src/replica/consensus.ts';
import type { Replica } from '../../src/replica/replica.ts';
import { decodeFeatureLevel } from '../../src/state/commands.ts';
import { EntryType, tenantsLevel } from '../../src/state/entry-types.ts';
import { decodeTenantCreated, decodeTenantDeleted, TenantTable } from '../../src/state/tenants.ts';

/** A system group that applies what it is proposed in the next turn. */
function systemGroup(featureLevel: number) {
  const state = { featureLevel, tenants: new TenantTable() };
  const apply = ({ type, meta }: Command): void => {
    if (type === EntryType.featureLevelRaised) state.featureLevel = decodeFeatureLevel(meta);
    if (type === EntryType.tenantCreated) state.tenants.create(decodeTenantCreated(meta));
    if (type === EntryType.tenantDeleted) state.tenants.delete(decodeTenantDeleted(meta));
  };
  const replica = {
    ...{ isLeader: true, state, listen: () => undefined },
    raft: { configuration: { voters: ['1:a', '2:b'], learners: [] } },
    propose: apply,
    proposeAndWait: async (command: Command) => {
      await Promise.resolve();
      apply(command);
      return 'applied' as const;
    },
  };
  return { state, replica: replica as unknown as Replica };
}

function planner(featureLevel: number, more: { isAlone?: boolean; portsMax?: number } = {}) {
  const { state, replica } = systemGroup(featureLevel);
  const options = { random: seededRandom(1), tenantsMax: 5, isAlone: false, portsMax: 40_000 };
  const { tenants } = state;
  return { state, tenants, planner: new TenantPlanner({ replica, ...options, ...more }) };
}

test('tenants begin with the voters of the system group, and ids and ports of their own', async () => {
  const { tenants, planner: one } = planner(tenantsLevel);
  const answers = await Promise.all(['a', 'b', 'a'].map((name) => one.create(name)));
  assert.deepEqual(
    answers.map(({ outcome }) => outcome),
    ['done', 'done', 'refused'],
  );
  const all = [...tenants.all()];
  assert.deepEqual(
    all.map(({ number, name, portOffset, voters }) => [number, name, portOffset, voters]),
    [
      [1, 'a', 1, ['1:a', '2:b']],
      [2, 'b', 2, ['1:a', '2:b']],
    ],
  );
  assert.notEqual(all[0]!.clusterId, all[1]!.clusterId);
});

test('a port is used again when all others were, and a number never', async () => {
  const { tenants, planner: one } = planner(tenantsLevel, { portsMax: 3 });
  const made: [number, number][] = [];
  await one.create('stays');
  for (let i = 0; i < 6; i++) {
    assert.equal((await one.create('comes')).outcome, 'done');
    const { number, portOffset } = tenants.byName('comes')!;
    made.push([number, portOffset]);
    await one.delete('comes');
  }
  assert.deepEqual(made, [
    [2, 2],
    [3, 3],
    [4, 2],
    [5, 2],
    [6, 3],
    [7, 2],
  ]);
  for (const name of ['x', 'y']) assert.equal((await one.create(name)).outcome, 'done');
  assert.match((await one.create('z')).reason, /there are 3 tenants already/);
});

test('a node on its own raises the feature level; in a cluster the leader does when all can', async () => {
  const alone = planner(1, { isAlone: true });
  assert.equal((await alone.planner.create('a')).outcome, 'done');
  assert.equal(alone.state.featureLevel, tenantsLevel);
  const behind = planner(tenantsLevel - 1);
  assert.match((await behind.planner.create('a')).reason, /older version/);
  assert.equal(behind.tenants.size, 0);
});

test('the table of tenants comes out of an image as it went in', async () => {
  const { tenants, planner: one } = planner(tenantsLevel);
  for (const name of ['a', 'b', 'c']) await one.create(name);
  await one.delete('b');
  await one.delete('c');
  const writer = new ByteWriter(64);
  tenants.write(writer);
  const read = new TenantTable();
  read.read(new ByteReader(writer.finish()));
  assert.deepEqual([...read.all()], [...tenants.all()]);
  assert.equal(read.next, 4);
});
