import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Kafka, logLevel } from 'kafkajs';
import type { ClusterView } from '../../src/broker/admin/cluster-view.ts';
import type { TenantView } from '../../src/broker/admin/tenants-port.ts';
import { freePorts } from '../free-ports.ts';
import { check, Load, partitions } from './cluster-load.ts';
import { ClusterProcesses } from './cluster-processes.ts';

const adminSecret = 'the secret of operators';
const pollMs = 20;
/** Ports of tenants of one node; below those that the system gives out by itself. */
const portsPerNode = 8;
const firstPort = 12_000 + (process.pid % 500) * portsPerNode * 4;

/** Three nodes with tenants. */
class TenantCluster {
  readonly nodes: ClusterProcesses;
  readonly #adminPorts: readonly number[];

  private constructor(nodes: ClusterProcesses, adminPorts: readonly number[]) {
    this.nodes = nodes;
    this.#adminPorts = adminPorts;
  }

  static async create(t: TestContext, isProxied = false): Promise<TenantCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'keylane-tenants-'));
    const ports = await freePorts(3);
    const nodes = await ClusterProcesses.create(folder, {
      ...{ settings: [`admin.secret=${adminSecret}`], isProxied },
      admin: (id) => `127.0.0.1:${ports[id - 1]}`,
      env: (id) => ({ KEYLANE_TENANT_PORT_BASE: String(firstPort + id * portsPerNode) }),
    });
    t.after(async () => {
      nodes.stop();
      await rm(folder, { recursive: true, force: true });
    });
    return new TenantCluster(nodes, ports);
  }

  /** All nodes run, and serve a tenant. */
  static async withAcme(t: TestContext, isProxied = false): Promise<TenantCluster> {
    const cluster = await TenantCluster.create(t, isProxied);
    await cluster.nodes.startAll();
    await cluster.change(1, 'PUT', 'acme');
    await cluster.leader('acme');
    return cluster;
  }

  async ask(id: number, method: string, path: string): Promise<Response> {
    const headers = { authorization: `Bearer ${adminSecret}` };
    return fetch(`http://127.0.0.1:${this.#adminPorts[id - 1]}${path}`, { method, headers });
  }

  async change(id: number, method: 'PUT' | 'DELETE', tenant: string): Promise<void> {
    const answer = await this.ask(id, method, `/tenants/${tenant}`);
    assert.equal(answer.status, 200, await answer.text());
  }

  async view(id: number, name: string): Promise<TenantView | undefined> {
    const answer = await this.ask(id, 'GET', '/tenants');
    const { tenants } = (await answer.json()) as { tenants: TenantView[] };
    return tenants.find((tenant) => tenant.name === name);
  }

  /** Until all of the nodes serve it, and agree on who leads it; answers that. */
  async leader(name: string, ids: readonly number[] = this.nodes.ids): Promise<number> {
    for (;;) {
      const views = await Promise.all(ids.map((id) => this.view(id, name)));
      const [first] = views;
      const leads = (view: TenantView | undefined) =>
        view?.address != null && view.leaderId > 0 && view.leaderId === first?.leaderId;
      if (first !== undefined && views.every(leads)) return first.leaderId;
      // A process of its own can only be asked again.
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  /** Until this node leads it, as all say. */
  async ledBy(name: string, id: number): Promise<void> {
    while ((await this.leader(name)) !== id);
  }

  /** Until all that it has is on three nodes, and known there to be committed. */
  async everywhere(name: string): Promise<void> {
    for (;;) {
      const answers = this.nodes.ids.map((id) => this.ask(id, 'GET', `/tenants/${name}/cluster`));
      const views = (await Promise.all(
        (await Promise.all(answers)).map((one) => one.json()),
      )) as ClusterView[];
      const { lastIndex } = views[0]!;
      const has = ({ commitIndex, appliedIndex, members }: ClusterView) =>
        commitIndex === lastIndex &&
        appliedIndex === lastIndex &&
        members.filter(({ role }) => role !== 'learner').length === 3;
      if (views.every(has)) return;
      // A process of its own can only be asked again.
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  /** Its clients. */
  async of(name: string) {
    const views = await Promise.all(this.nodes.ids.map((id) => this.view(id, name)));
    const brokers = views.flatMap((view) => (view?.address == null ? [] : [view.address]));
    const retry = { retries: 50, initialRetryTime: 20, maxRetryTime: 200 };
    const options = { brokers, logLevel: logLevel.NOTHING, retry };
    return { client: (clientId: string) => new Kafka({ clientId, ...options }) };
  }

  async begin(name: string) {
    const kafka = (await this.of(name)).client('load');
    const admin = kafka.admin();
    await admin.connect();
    const spec = { topic: 'orders', numPartitions: partitions, replicationFactor: 3 };
    await admin.createTopics({ topics: [spec] });
    await admin.disconnect();
    const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
    await producer.connect();
    const load = new Load(producer, 'orders', 2);
    await load.more(30);
    const stop = async () => {
      await load.stop();
      await producer.disconnect();
    };
    return { load, stop };
  }
}

test('tenants of three nodes are led by all of them, and lose nothing when one goes', async (t) => {
  const cluster = await TenantCluster.create(t);
  const { nodes } = cluster;
  await nodes.startAll();
  const system = await nodes.whole();
  // Any node has it done.
  for (const name of ['acme', 'blue', 'cyan']) {
    await cluster.change(nodes.others(system)[0]!, 'PUT', name);
  }
  const tenants = await Promise.all(
    ['acme', 'blue', 'cyan'].map(async (name) => {
      await cluster.leader(name);
      return { name, ...(await cluster.begin(name)) };
    }),
  );
  // Each has a node of its own that is to lead it.
  const leaders = await Promise.all(
    [
      ['acme', 2],
      ['blue', 3],
      ['cyan', 1],
    ].map(([name, id]) => cluster.ledBy(String(name), Number(id))),
  );
  assert.equal(leaders.length, 3);
  for (const id of [2, 1]) {
    await nodes.end(id, 'SIGKILL');
    await Promise.all(tenants.map(({ load }) => load.more(30)));
    await nodes.start(id);
    await nodes.whole();
    for (const { name } of tenants) await cluster.leader(name);
  }
  // One goes while a node is down: that one forgets it when it is back.
  await tenants[2]!.stop();
  await nodes.end(3, 'SIGTERM');
  await cluster.change(1, 'DELETE', 'cyan');
  const folder = `${nodes.folder(3)}/tenants/3`;
  assert.ok(existsSync(folder));
  await nodes.start(3);
  await nodes.whole();
  while (existsSync(folder)) {
    // The same.
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  for (const { name, load, stop } of tenants.slice(0, 2)) {
    await load.more(10);
    await stop();
    await check(await cluster.of(name), 'orders', load);
  }
});

test('tenants go on with one node when the majority is lost for good, and on new ones', async (t) => {
  const cluster = await TenantCluster.withAcme(t);
  const { nodes } = cluster;
  const { load, stop } = await cluster.begin('acme');
  await stop();
  await cluster.everywhere('acme');
  for (const id of nodes.ids) await nodes.end(id, 'SIGKILL');
  for (const id of [1, 2]) await rm(nodes.folder(id), { recursive: true });
  const recover = ['cluster', 'recover', '--data', nodes.folder(3), '--accept-data-loss'];
  const { code, output } = await nodes.run(recover);
  assert.equal(code, 0, output);
  assert.match(output, /the same goes for 1 tenant/);
  await Promise.all(nodes.ids.map((id) => nodes.start(id)));
  await nodes.whole();
  await cluster.everywhere('acme');
  await nodes.end(3, 'SIGKILL');
  const others = nodes.others(3);
  await nodes.whole(2);
  while ((await cluster.leader('acme', others)) === 3);
  await nodes.start(3);
  await cluster.leader('acme');
  await check(await cluster.of('acme'), 'orders', load);
});

test('a node that lost its disk leaves the groups of tenants, too, and comes in again', async (t) => {
  const cluster = await TenantCluster.withAcme(t);
  const { nodes } = cluster;
  const { load, stop } = await cluster.begin('acme');
  await nodes.end(3, 'SIGKILL');
  await rm(nodes.folder(3), { recursive: true });
  await nodes.whole(2);
  const { code, output } = await nodes.run([
    ...['cluster', 'remove', '3', '--cluster', nodes.nodes([1, 2])],
  ]);
  assert.equal(code, 0, output);
  await load.more(20);
  await nodes.start(3);
  await nodes.whole();
  await stop();
  await cluster.everywhere('acme');
  // The others are not needed for what it has.
  await nodes.end(1, 'SIGKILL');
  while ((await cluster.leader('acme', [2, 3])) === 1);
  await nodes.start(1);
  await check(await cluster.of('acme'), 'orders', load);
});

test('a tenant in which nothing happens gets another leader when its node is cut off', async (t) => {
  const cluster = await TenantCluster.withAcme(t, true);
  const { nodes } = cluster;
  await cluster.ledBy('acme', 2);
  // Nobody asks it for anything but who leads.
  await cluster.everywhere('acme');
  for (const other of [1, 3]) {
    nodes.network.cut(2, other);
    nodes.network.cut(other, 2);
  }
  while ((await cluster.leader('acme', [1, 3])) === 2);
  nodes.network.heal();
  await cluster.leader('acme');
  const { load, stop } = await cluster.begin('acme');
  await stop();
  await check(await cluster.of('acme'), 'orders', load);
});
