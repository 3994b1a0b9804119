import { AdminApi } from './broker/admin/admin-api.ts';
import type { Broker } from './broker/broker.ts';
import { serveForwarded } from './broker/forwarding.ts';
import { Cluster } from './cluster/cluster.ts';
import { clusterOf } from './cluster/cluster-settings.ts';
import { memberId } from './cluster/formation.ts';
import { forTenant } from './cluster/group-link.ts';
import { decodeWish, RequestKind } from './cluster/operator.ts';
import { defaultTenantName } from './cluster/tenant-planner.ts';
import { type Settings, settingsTable } from './config/settings.ts';
import type { Clock } from './core/clock.ts';
import { BrokerError } from './core/errors.ts';
import type { Logger } from './core/logger.ts';
import type { Random } from './core/random.ts';
import type { FilePort } from './log/file-port.ts';
import { withSlowSyncs } from './log/slow-files.ts';
import { HttpServer } from './net/http-server.ts';
import { type HostPort, parseHostPort } from './net/listeners.ts';
import { NetServer } from './net/server.ts';
import { DecodeError } from './protocol/codec-error.ts';
import { DiskGuard } from './replica/disk-guard.ts';
import { JobThread } from './replica/job-thread.ts';
import type { BatchOpener } from './replica/open-batch.ts';
import { OpenThread } from './replica/open-thread.ts';
import { defaultTenant } from './state/tenants.ts';
import { diskOptions, folderOf, type NodeParts, TenantHost } from './tenant-host.ts';
import { Tenants } from './tenants.ts';

export interface NodeOptions {
  readonly settings: Settings;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  readonly files: FilePort;
  /** Identity of the data folder, made at its first start. */
  readonly directoryId: string;
  /** Whether this node founded its cluster; undefined while that is to be decided. */
  readonly isFounder?: boolean | undefined;
  /** It is decided: from now on, and durably. */
  readonly onDecided?: (isFounder: boolean) => Promise<void>;
  /** Default: a thread of its own. */
  readonly opener?: BatchOpener;
  /** A snapshot of another node is fetched: this one is to be stopped, and started anew with it. */
  readonly onSnapshotFetched: () => void;
  /** The process must end now and recover at its next start. */
  readonly onFatal: (error: unknown) => void;
}

export interface RunningNode {
  readonly address: HostPort;
  /** Of the admin endpoint, if there is one. */
  readonly adminAddress: HostPort | undefined;
  /** Of the default tenant. */
  readonly broker: Broker;
  /** All others. */
  readonly tenants: Tenants;
  /** Stops accepting, finishes what is in flight, flushes. */
  stop(): Promise<void>;
}

/** What a stop may take for the requests in flight. */
const shutdownMs = 5000;
/** What a message of the cluster has beside one request of a client. */
const frameSlackBytes = 2 * 1024 * 1024;

/** Wires one node: the default tenant, whose group is the system group, and all others. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { settings, log, random } = options;
  const cluster = openCluster(options);
  const isFounder = await founds(options, cluster);
  const parts = openParts(options, cluster);
  const { jobs, server, disk } = parts;
  const listen = parseHostPort(settings.listen);
  const advertise = settings.advertise === '' ? undefined : parseHostPort(settings.advertise);
  const self = memberId({ nodeId: settings['node.id'], directoryId: options.directoryId });
  const system = await TenantHost.open(parts, {
    ...{ number: defaultTenant, name: defaultTenantName, founders: isFounder ? [self] : [], log },
    // As Kafka's StorageTool makes them.
    clusterId: random.bytes(16).toString('base64url'),
    listener: { listen, advertise },
    onSnapshotFetched: options.onSnapshotFetched,
  });
  const { broker, replica } = system;
  const address = await system.listen(listen);
  const tenants = new Tenants({ parts, system, listen, advertise, log });
  cluster?.serve((request) => answerNode(cluster, system, tenants, request));
  cluster?.attach(replica);
  await cluster?.start();
  await tenants.start();
  const net = server.counters;
  const api = new AdminApi({ broker, net, tenants, secret: settings['admin.secret'] });
  const admin = await openAdmin(settings['admin.listen'], api, log);
  return {
    address,
    adminAddress: admin?.address,
    broker,
    tenants,
    async stop() {
      api.isStopping = true;
      const settled = tenants.settle();
      if (cluster !== undefined) {
        await settled;
        await Promise.all([system, ...tenants.hosts].map((host) => host.handOver()));
      }
      const closed = server.shutdown(shutdownMs);
      for (const host of [system, ...tenants.hosts]) host.broker.finishParked();
      await Promise.all([closed, settled]);
      await Promise.all([system, ...tenants.hosts].map((host) => host.stop()));
      await Promise.all([jobs.stop(), parts.opener.stop()]);
      disk.stop();
      await cluster?.stop();
      await admin?.server.close();
    },
  };
}

/** What all tenants share. */
function openParts(options: NodeOptions, cluster: Cluster | undefined): NodeParts {
  const { settings, clock, random, directoryId, onFatal } = options;
  const syncDelayMs = settings['journal.sync.delay.ms'];
  const files =
    syncDelayMs === 0 ? options.files : withSlowSyncs(options.files, clock, syncDelayMs);
  const folder = folderOf(settings.data, defaultTenant);
  const disk = new DiskGuard(files, folder, clock, diskOptions(settings));
  const jobs = new JobThread(onFatal);
  const opener = options.opener ?? new OpenThread(jobs);
  const server = new NetServer({
    clock,
    limits: netLimits(settings),
    isMalformed: (error) => error instanceof DecodeError,
    onFatal,
  });
  return {
    ...{ settings, clock, random, files, directoryId, disk, server, jobs, opener, cluster },
    onFatal,
  };
}

/**
 * Undefined where the setting is empty. Another broker on the same machine may have the usual port:
 * no reason not to serve clients.
 */
async function openAdmin(
  listen: string,
  api: AdminApi,
  log: Logger,
): Promise<{ readonly server: HttpServer; readonly address: HostPort } | undefined> {
  if (listen === '') return undefined;
  const server = new HttpServer({
    answer: (path) => api.answer(path),
    change: (change) => api.change(change),
    onError: (error) => log.error({ error }, 'a request to the admin endpoint failed'),
  });
  try {
    return { server, address: await server.listen(parseHostPort(listen)) };
  } catch (error) {
    const isUsual = listen === settingsTable['admin.listen'].default;
    if (!isUsual || !(error instanceof BrokerError)) throw error;
    log.warn({ listen }, `${error.message}; going on without it`);
    return undefined;
  }
}

/** What another node asks, or an operator. */
async function answerNode(
  cluster: Cluster,
  system: TenantHost,
  tenants: Tenants,
  request: Buffer,
): Promise<readonly Uint8Array[]> {
  const { tenant, rest } = forTenant(request, RequestKind.tenant);
  const broker = tenant === defaultTenant ? system.broker : tenants.broker(tenant);
  if (broker === undefined) throw new RangeError(`tenant ${tenant} is not served here`);
  if (rest[0] === RequestKind.client) return serveForwarded(broker, rest.subarray(1));
  if (rest[0] === RequestKind.snapshot) return broker.replica.answerFetch(rest.subarray(1));
  if (rest[0] === RequestKind.room) return [Buffer.of(broker.replica.disk.isRoomy ? 1 : 0)];
  const wish = decodeWish(rest);
  const isOfMembers = wish.kind === 'add' || wish.kind === 'remove';
  const answer = await (isOfMembers ? cluster.fulfil(wish) : tenants.fulfilHere(wish));
  return [Buffer.from(JSON.stringify(answer))];
}

function openCluster(options: NodeOptions): Cluster | undefined {
  const { settings, directoryId, clock, log } = options;
  const found = clusterOf(settings, directoryId);
  if (found === undefined) return undefined;
  const frameBytesMax = settings['socket.request.max.bytes'] + frameSlackBytes;
  const electionTimeoutMs = settings['cluster.election.timeout.ms'];
  return new Cluster({ ...found, frameBytesMax, electionTimeoutMs, clock, log });
}

/**
 * A node on its own has founded its cluster; of several with new folders one does. Only for that
 * the others are met before the data is read: a node that has some must not be taken for new.
 */
async function founds(
  { isFounder, onDecided, log }: NodeOptions,
  cluster: Cluster | undefined,
): Promise<boolean> {
  if (isFounder !== undefined) return isFounder;
  if (cluster !== undefined) {
    log.info({}, 'the folder is new: looking for the cluster');
    await cluster.start();
  }
  const decided = cluster === undefined || (await cluster.mayFound());
  await onDecided?.(decided);
  return decided;
}

function netLimits(settings: Settings) {
  return {
    frameBytesMax: settings['socket.request.max.bytes'],
    connectionBytesInFlightMax: settings['connection.inflight.bytes.max'],
    totalBytesInFlightMax: settings['inflight.bytes.max'],
    connectionsMax: settings['max.connections'],
    connectionsPerIpMax: settings['max.connections.per.ip'],
    idleMsMax: settings['connections.max.idle.ms'],
    writeStallMsMax: settings['connection.write.timeout.ms'],
  };
}
