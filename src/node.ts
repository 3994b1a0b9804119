import { AdminApi } from './broker/admin/admin-api.ts';
import { Broker } from './broker/broker.ts';
import { serveForwarded } from './broker/forwarding.ts';
import { handlers } from './broker/handlers.ts';
import { BrokerSession } from './broker/session.ts';
import { Cluster } from './cluster/cluster.ts';
import { clusterOf } from './cluster/cluster-settings.ts';
import { memberId } from './cluster/formation.ts';
import { decodeWish, RequestKind } from './cluster/operator.ts';
import { type Settings, settingsTable } from './config/settings.ts';
import type { Clock } from './core/clock.ts';
import { codecs } from './core/codecs.ts';
import { BrokerError } from './core/errors.ts';
import type { Logger } from './core/logger.ts';
import type { Random } from './core/random.ts';
import type { FilePort } from './log/file-port.ts';
import { withSlowSyncs } from './log/slow-files.ts';
import { HttpServer } from './net/http-server.ts';
import { type HostPort, parseHostPort } from './net/listeners.ts';
import { NetServer } from './net/server.ts';
import { DecodeError } from './protocol/codec-error.ts';
import { JobThread } from './replica/job-thread.ts';
import type { BatchOpener } from './replica/open-batch.ts';
import { OpenThread } from './replica/open-thread.ts';
import { Replica, type ReplicaOptions } from './replica/replica.ts';
import { encodeClusterFounded } from './state/commands.ts';
import { EntryType } from './state/entry-types.ts';

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
  readonly broker: Broker;
  /** Stops accepting, finishes what is in flight, flushes. */
  stop(): Promise<void>;
}

/** What a stop may take for the requests in flight. */
const shutdownMs = 5000;
/** And to give leadership to another node. */
const handOverMs = 1000;
const heartbeatsPerTimeout = 8;
/** For so long a node that is away finds all that it needs in the journals of the others. */
const missedMs = 60_000;
/** What a message of the cluster has beside one request of a client. */
const frameSlackBytes = 2 * 1024 * 1024;

/** Wires one broker: journal and state from the data folder, handlers, sockets. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { settings, log, clock, random, onFatal } = options;
  const syncDelayMs = settings['journal.sync.delay.ms'];
  const files =
    syncDelayMs === 0 ? options.files : withSlowSyncs(options.files, clock, syncDelayMs);
  const cluster = await openCluster(options);
  const isFounder = await founds(options, cluster);
  const replica = await openReplica({ ...options, files }, isFounder, cluster);
  const listen = parseHostPort(settings.listen);
  const advertise = settings.advertise === '' ? undefined : parseHostPort(settings.advertise);
  const jobs = new JobThread(onFatal);
  const broker = new Broker({
    settings,
    listener: { listen, advertise },
    clock,
    random,
    codecs,
    log,
    replica,
    cluster,
    jobs,
    opener: options.opener ?? new OpenThread(jobs),
    apis: handlers,
    onFatal,
  });
  const server = new NetServer({
    clock,
    limits: netLimits(settings),
    openSession: (connection) => new BrokerSession(broker, connection),
    isMalformed: (error) => error instanceof DecodeError,
    onFatal,
  });
  const address = await server.listen(listen);
  cluster?.serve((request) => answerNode(broker, cluster, request));
  cluster?.attach(replica);
  const api = new AdminApi(broker, server.counters);
  const admin = await openAdmin(settings['admin.listen'], api, log);
  return {
    address,
    adminAddress: admin?.address,
    broker,
    async stop() {
      api.isStopping = true;
      if (cluster !== undefined) await handOver(replica, clock);
      const closed = server.shutdown(shutdownMs);
      broker.finishParked();
      await closed;
      await broker.stopJobs();
      await replica.stop();
      await cluster?.stop();
      await admin?.server.close();
    },
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
  broker: Broker,
  cluster: Cluster,
  request: Buffer,
): Promise<readonly Uint8Array[]> {
  if (request[0] === RequestKind.client) return serveForwarded(broker, request.subarray(1));
  if (request[0] === RequestKind.snapshot) return broker.replica.answerFetch(request.subarray(1));
  if (request[0] === RequestKind.room) return [Buffer.of(broker.replica.disk.isRoomy ? 1 : 0)];
  const answer = await cluster.fulfil(decodeWish(request));
  return [Buffer.from(JSON.stringify(answer))];
}

async function openCluster(options: NodeOptions): Promise<Cluster | undefined> {
  const { settings, directoryId, clock, log } = options;
  const found = clusterOf(settings, directoryId);
  if (found === undefined) return undefined;
  const frameBytesMax = settings['socket.request.max.bytes'] + frameSlackBytes;
  const cluster = new Cluster({ ...found, frameBytesMax, clock, log });
  await cluster.start();
  return cluster;
}

async function openReplica(
  options: NodeOptions,
  isFounder: boolean,
  cluster: Cluster | undefined,
): Promise<Replica> {
  const { settings, files, directoryId, clock, random, log } = options;
  const { onFatal, onSnapshotFetched } = options;
  const { replica, cutBytes } = await Replica.open({
    ...{ files, clock, random, isFounder },
    ...storageOptions(settings, directoryId),
    ...(cluster !== undefined && {
      group: {
        ...{ peers: cluster, log, onSnapshotFetched },
        fetchBytesPerSecondMax: settings['cluster.snapshot.bytes.per.second'],
      },
    }),
    times: {
      electionTimeoutMs: settings['cluster.election.timeout.ms'],
      heartbeatMs: settings['cluster.election.timeout.ms'] / heartbeatsPerTimeout,
      missedMs,
    },
    onFatal,
  });
  if (cutBytes > 0) log.warn({ cutBytes }, 'a torn write at the end of the journal was cut off');
  if (replica.state.clusterId === '' && isFounder) await foundCluster(replica, random);
  return replica;
}

/** A node on its own has founded its cluster; of several with new folders one does. */
async function founds(
  { isFounder, onDecided, log }: NodeOptions,
  cluster: Cluster | undefined,
): Promise<boolean> {
  if (isFounder !== undefined) return isFounder;
  if (cluster !== undefined) log.info({}, 'the folder is new: looking for the cluster');
  const decided = cluster === undefined || (await cluster.mayFound());
  await onDecided?.(decided);
  return decided;
}

/** The others need not miss the leader first, if it says that it goes. */
async function handOver(replica: Replica, clock: Clock): Promise<void> {
  const isOver = new Promise<void>((resolve) => {
    replica.listen({ onFollowing: resolve });
    clock.after(handOverMs, resolve);
  });
  if (replica.consensus.handOver()) await isOver;
}

/** A new data folder founds a cluster with a random id, as Kafka's StorageTool makes them. */
async function foundCluster(replica: Replica, random: Random): Promise<void> {
  const clusterId = random.bytes(16).toString('base64url');
  const meta = encodeClusterFounded(clusterId);
  await replica.proposeAndWait({ type: EntryType.clusterFounded, meta });
}

/** Where a node has its data, as which member, and how. */
export function storageOptions(
  settings: Settings,
  directoryId: string,
): Pick<ReplicaOptions, 'folder' | 'voter' | 'journal' | 'disk'> {
  return {
    folder: `${settings.data}/default`,
    voter: memberId({ nodeId: settings['node.id'], directoryId }),
    journal: journalSettings(settings),
    disk: {
      lowWaterBytes: settings['disk.low.water.bytes'],
      reserveBytes: settings['disk.reserve.bytes'],
    },
  };
}

function journalSettings(settings: Settings) {
  return {
    sync: settings['journal.sync'] === 'always' ? ('always' as const) : ('interval' as const),
    syncIntervalMs: settings['journal.sync.interval.ms'],
    fileBytesMax: settings['journal.file.bytes'],
    fileExtentsMax: settings['journal.file.extents.max'],
    recentBytesMax: settings['journal.recent.bytes'],
    indexCacheBytesMax: settings['journal.index.cache.bytes'],
    snapshotBytes: settings['journal.snapshot.bytes'],
  };
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
