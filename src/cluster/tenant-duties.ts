import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import { majorityOf, membersOf } from '../raft/membership.ts';
import type { Replica } from '../replica/replica.ts';
import { type ClusterNode, encodeClusterFounded, encodeFeatureLevel } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import type { Tenant } from '../state/tenants.ts';
import type { Cluster } from './cluster.ts';
import { memberId, nextConfiguration, nodeIdOf } from './formation.ts';
import { candidateOf, DiskRelief, noteNodes } from './group-duties.ts';
import type { Hello } from './hello.ts';

export interface TenantDutiesOptions {
  readonly tenant: Tenant;
  readonly replica: Replica;
  /** The system group says who is in the cluster. */
  readonly system: Replica;
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A learner may have the log by then. */
const stepMs = 50;
/** So long the node that is to lead has to be in sync before it is given the leadership. */
const settledMs = 5000;

/**
 * What the node that leads a tenant's group does for it: the group gets the members of the system
 * group, and is led by a node of its own choice, so that tenants are led by all nodes alike.
 */
export class TenantDuties {
  readonly #options: TenantDutiesOptions;
  readonly #relief: DiskRelief;
  /** Since when the node that is to lead could. */
  #inSyncMs: number | undefined;
  /** The entry of the members that it has gone on from. */
  #membersIndex = 0;

  constructor(options: TenantDutiesOptions) {
    this.#options = options;
    const { replica, cluster, clock, log } = options;
    this.#relief = new DiskRelief({
      ...{ replica, clock, log },
      hasRoom: (nodeId) => cluster.hasRoom(nodeId),
    });
  }

  /** After a change that it made itself, it goes on. */
  formSoon(): void {
    const { replica, clock } = this.#options;
    const { index } = replica.state.members ?? { index: 0 };
    if (index === this.#membersIndex || !replica.isLeader) return;
    this.#membersIndex = index;
    clock.after(stepMs, () => this.form());
  }

  form(): void {
    const { replica, cluster, tenant, system } = this.#options;
    if (!replica.isLeader) {
      this.#inSyncMs = undefined;
      return;
    }
    const { state } = replica;
    if (state.clusterId === '') {
      const meta = encodeClusterFounded(tenant.clusterId);
      replica.propose({ type: EntryType.clusterFounded, meta });
    }
    const { featureLevel } = system.state;
    if (state.featureLevel < featureLevel) {
      const meta = encodeFeatureLevel(featureLevel);
      replica.propose({ type: EntryType.featureLevelRaised, meta });
    }
    const present = cluster.present();
    const nodes = [cluster.hello, ...present].map((hello) => this.#nodeOf(hello));
    noteNodes(
      replica,
      nodes.filter((node) => node !== undefined),
    );
    this.#changeMembers(present);
    this.#relief.seek(present);
    if (!replica.disk.isLow) this.#giveWay();
  }

  /** Where it serves this tenant; undefined where it does not say so. */
  #nodeOf({ node, tenantPortBase }: Hello): ClusterNode | undefined {
    if (tenantPortBase === 0) return undefined;
    return { ...node, port: tenantPortBase + this.#options.tenant.portOffset };
  }

  /** Towards those of the system group, one at a time. */
  #changeMembers(present: readonly Hello[]): void {
    const { replica, system, log } = this.#options;
    const { raft, consensus } = replica;
    if (!raft.mayReconfigure) return;
    const wanted = membersOf(system.raft.configuration);
    const candidates = present
      .filter(({ node }) => system.raft.configuration.voters.includes(memberId(node)))
      .map(({ node }) => candidateOf(replica, node));
    const next = this.#withoutOne(wanted) ?? nextConfiguration(raft.configuration, candidates);
    if (next === undefined) return;
    log.info({ ...next }, 'the members of the group of a tenant change');
    consensus.proposeMembers({ ...next, removed: [] });
  }

  /** A member less that is not in the system group any more, if the others can go on. */
  #withoutOne(wanted: readonly string[]) {
    const { replica, cluster, clock } = this.#options;
    const { raft } = replica;
    const { voters, learners } = raft.configuration;
    const own = memberId(cluster.self);
    const gone = membersOf(raft.configuration).find(
      (member) => member !== own && !wanted.includes(member),
    );
    if (gone === undefined) return undefined;
    const nowMs = clock.monotonicMs();
    const left = voters.filter((voter) => voter !== gone);
    const there = left.filter((voter) => voter === own || raft.isInSync(voter, nowMs));
    if (there.length < majorityOf(left.length)) return undefined;
    return { voters: left, learners: learners.filter((learner) => learner !== gone) };
  }

  /** Leaders of different tenants are on different nodes: each has one that is to lead it. */
  #giveWay(): void {
    const { replica, cluster, tenant, clock } = this.#options;
    const { raft, consensus } = replica;
    const voters = [...raft.configuration.voters].sort((a, b) => nodeIdOf(a) - nodeIdOf(b));
    const wanted = voters[tenant.number % voters.length];
    const nowMs = clock.monotonicMs();
    const isOther = wanted !== undefined && wanted !== memberId(cluster.self);
    if (!isOther || !raft.isInSync(wanted, nowMs)) {
      this.#inSyncMs = undefined;
      return;
    }
    this.#inSyncMs ??= nowMs;
    if (nowMs - this.#inSyncMs < settledMs) return;
    this.#inSyncMs = undefined;
    consensus.handOver(wanted);
  }
}
