import { Broker } from './broker/broker.ts';
import { handlers } from './broker/handlers.ts';
import { BrokerSession } from './broker/session.ts';
import type { Cluster } from './cluster/cluster.ts';
import { memberId } from './cluster/formation.ts';
import type { Settings } from './config/settings.ts';
import type { Clock } from './core/clock.ts';
import { codecs } from './core/codecs.ts';
import type { Logger } from './core/logger.ts';
import type { Random } from './core/random.ts';
import type { FilePort } from './log/file-port.ts';
import type { HostPort, ListenerSettings } from './net/listeners.ts';
import type { NetServer } from './net/server.ts';
import type { DiskGuard, DiskGuardOptions } from './replica/disk-guard.ts';
import type { JobThread } from './replica/job-thread.ts';
import type { BatchOpener } from './replica/open-batch.ts';
import { Replica, type ReplicaOptions } from './replica/replica.ts';
import { encodeClusterFounded } from './state/commands.ts';
import { EntryType } from './state/entry-types.ts';
import { defaultTenant } from './state/tenants.ts';

/** What all tenants of a node share. */
export interface NodeParts {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly random: Random;
  readonly files: FilePort;
  readonly directoryId: string;
  readonly disk: DiskGuard;
  readonly server: NetServer;
  readonly jobs: JobThread;
  readonly opener: BatchOpener;
  /** Undefined for a node on its own. */
  readonly cluster: Cluster | undefined;
  /** The process must end now and recover at its next start. */
  readonly onFatal: (error: unknown) => void;
}

/** A tenant as this node serves it. */
export interface Hosted {
  /** See `Tenant`; 0 for the default one. */
  readonly number: number;
  readonly name: string;
  readonly founders: readonly string[];
  /** With which a group of one is founded that has none yet. */
  readonly clusterId: string;
  readonly listener: ListenerSettings;
  readonly log: Logger;
  /** A snapshot of another node is fetched: this one is to be stopped, and opened anew with it. */
  readonly onSnapshotFetched: () => void;
}

const heartbeatsPerTimeout = 8;
/** For so long a node that is away finds all that it needs in the journals of the others. */
const missedMs = 60_000;
const doze = { afterMs: 2000, heartbeatMs: 1500, timeoutMs: 4000 };
/** There may be many tenants that are at work: what their followers lack longer is on the disk. */
const tenantTailBytesMax = 1024 * 1024;
/** What a stop may take to give leadership to another node. */
const handOverMs = 1000;

/** One tenant on this node: its journal and group, its broker, and its port. */
export class TenantHost {
  readonly number: number;
  readonly name: string;
  readonly broker: Broker;
  readonly #parts: NodeParts;
  #address: HostPort | undefined;

  private constructor(parts: NodeParts, { number, name }: Hosted, broker: Broker) {
    this.#parts = parts;
    this.number = number;
    this.name = name;
    this.broker = broker;
  }

  /** Recovers it from its folder, or makes that. Nobody is served before `listen`. */
  static async open(parts: NodeParts, hosted: Hosted): Promise<TenantHost> {
    const { settings, clock, random, jobs, opener, cluster, onFatal } = parts;
    const { number, listener, log } = hosted;
    const replica = await openReplica(parts, hosted);
    const broker = new Broker({
      ...{ settings, listener, clock, random, codecs, log, replica, jobs, opener },
      cluster: cluster?.linkOf(number),
      ...{ apis: handlers, onFatal },
    });
    return new TenantHost(parts, hosted, broker);
  }

  get replica(): Replica {
    return this.broker.replica;
  }

  /** Where clients are served, port filled in; undefined while they are not. */
  get address(): HostPort | undefined {
    return this.#address;
  }

  async listen(at: HostPort): Promise<HostPort> {
    const { server } = this.#parts;
    this.#address = await server.listen(at, (connection) => {
      return new BrokerSession(this.broker, connection);
    });
    return this.#address;
  }

  /** The others need not miss the leader first, if it says that it goes. */
  async handOver(): Promise<void> {
    const { replica } = this;
    if (!replica.consensus.handOver()) return;
    await new Promise<void>((resolve) => {
      replica.listen({ onFollowing: resolve });
      this.#parts.clock.after(handOverMs, resolve);
    });
  }

  /** Serves nobody any more, while the other tenants go on. */
  async close(): Promise<void> {
    this.broker.finishParked();
    await this.stop();
  }

  /** Closes its port, ends what goes on in the background, and closes the files. */
  async stop(): Promise<void> {
    if (this.#address !== undefined) this.#parts.server.closePort(this.#address.port);
    this.#address = undefined;
    this.#parts.cluster?.leave(this.number);
    await this.broker.stopJobs();
    await this.replica.stop();
  }
}

async function openReplica(parts: NodeParts, hosted: Hosted): Promise<Replica> {
  const { settings, files, directoryId, clock, random, cluster, disk, onFatal } = parts;
  const { number, founders, clusterId, log, onSnapshotFetched } = hosted;
  const electionTimeoutMs = settings['cluster.election.timeout.ms'];
  const { replica, cutBytes } = await Replica.open({
    ...storageOptions(settings, directoryId, number),
    ...{ files, clock, random, founders, disk },
    ...(cluster !== undefined && {
      group: {
        ...{ peers: cluster.linkOf(number), log, onSnapshotFetched },
        fetchBytesPerSecondMax: settings['cluster.snapshot.bytes.per.second'],
        ...(number !== defaultTenant && { tailBytesMax: tenantTailBytesMax }),
      },
    }),
    times: {
      electionTimeoutMs,
      heartbeatMs: electionTimeoutMs / heartbeatsPerTimeout,
      missedMs,
      // There are many tenants in which nothing happens.
      ...(number !== defaultTenant && { doze }),
    },
    onFatal,
  });
  if (cutBytes > 0) log.warn({ cutBytes }, 'a torn write at the end of the journal was cut off');
  // It leads by now if it is alone; the leader of several founds when it is elected.
  if (replica.isLeader && replica.state.clusterId === '') {
    const meta = encodeClusterFounded(clusterId);
    await replica.proposeAndWait({ type: EntryType.clusterFounded, meta });
  }
  return replica;
}

export function folderOf(data: string, tenant: number): string {
  return tenant === defaultTenant ? `${data}/default` : `${tenantsFolder(data)}/${tenant}`;
}

export function tenantsFolder(data: string): string {
  return `${data}/tenants`;
}

/** Numbers of the tenants that have a folder, ascending; the default one is not among them. */
export async function tenantsIn(files: FilePort, data: string): Promise<number[]> {
  // A node that never had any has no such folder.
  if (!(await files.list(data)).includes('tenants')) return [];
  const names = await files.list(tenantsFolder(data));
  return names.map(Number).sort((a, b) => a - b);
}

/** Where a node has a tenant's data, as which member, and how. */
export function storageOptions(
  settings: Settings,
  directoryId: string,
  tenant: number,
): Pick<ReplicaOptions, 'folder' | 'voter' | 'journal'> {
  return {
    folder: folderOf(settings.data, tenant),
    voter: memberId({ nodeId: settings['node.id'], directoryId }),
    journal: journalSettings(settings, tenant === defaultTenant ? 1 : tenantShare),
  };
}

export function diskOptions(settings: Settings): DiskGuardOptions {
  return {
    lowWaterBytes: settings['disk.low.water.bytes'],
    reserveBytes: settings['disk.reserve.bytes'],
  };
}

/** Memory for recent bytes and the index that a tenant may take, in terms of the default one. */
const tenantShare = 1 / 64;
const indexCacheBytesMin = 64 * 1024;

function journalSettings(settings: Settings, share: number) {
  const indexCacheBytes = Math.floor(settings['journal.index.cache.bytes'] * share);
  return {
    sync: settings['journal.sync'] === 'always' ? ('always' as const) : ('interval' as const),
    syncIntervalMs: settings['journal.sync.interval.ms'],
    fileBytesMax: settings['journal.file.bytes'],
    fileExtentsMax: settings['journal.file.extents.max'],
    recentBytesMax: Math.floor(settings['journal.recent.bytes'] * share),
    indexCacheBytesMax: Math.max(indexCacheBytes, indexCacheBytesMin),
    snapshotBytes: settings['journal.snapshot.bytes'],
  };
}
