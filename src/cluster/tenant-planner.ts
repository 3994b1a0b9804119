import type { Random } from '../core/random.ts';
import type { Replica } from '../replica/replica.ts';
import { encodeFeatureLevel } from '../state/commands.ts';
import { EntryType, tenantsLevel } from '../state/entry-types.ts';
import {
  encodeTenantCreated,
  encodeTenantDeleted,
  type Tenant,
  tenantNamePattern,
} from '../state/tenants.ts';
import { done, notLeader, type OperatorAnswer, refused } from './operator.ts';

export const defaultTenantName = 'default';

export interface TenantPlannerOptions {
  /** Of the system group. */
  readonly replica: Replica;
  readonly random: Random;
  /** This node has no others beside it, and says itself what may be written. */
  readonly isAlone: boolean;
  readonly tenantsMax: number;
  /** So many ports there are for them. */
  readonly portsMax: number;
}

/** Creates and deletes tenants, on the node that leads the system group. */
export class TenantPlanner {
  readonly #options: TenantPlannerOptions;
  /** Under way: they are in no state yet. */
  readonly #creating = new Map<string, Tenant>();

  constructor(options: TenantPlannerOptions) {
    this.#options = options;
    options.replica.listen({ onPlansDropped: () => this.#creating.clear() });
  }

  async create(name: string): Promise<OperatorAnswer> {
    const { replica, random, tenantsMax, portsMax } = this.#options;
    if (!replica.isLeader) return notLeader;
    const { tenants } = replica.state;
    if (!tenantNamePattern.test(name)) {
      return refused(`"${name}" is no name of a tenant: lower case letters, digits and - within`);
    }
    const isTaken = this.#creating.has(name) || tenants.byName(name) !== undefined;
    if (name === defaultTenantName || isTaken) return refused(`there is a tenant ${name}`);
    const countMax = Math.min(tenantsMax, portsMax);
    if (tenants.size + this.#creating.size >= countMax) {
      return refused(`there are ${countMax} tenants already (tenants.max, tenant.port.base)`);
    }
    if (!this.#mayWrite())
      return refused('some node of the cluster is of an older version, or away');
    const number = Math.max(tenants.next, ...this.#numbersBehind());
    const tenant: Tenant = {
      ...{ number, name, portOffset: this.#freePort(number) },
      clusterId: random.bytes(16).toString('base64url'),
      voters: replica.raft.configuration.voters,
    };
    this.#creating.set(name, tenant);
    const outcome = await replica.proposeAndWait({
      type: EntryType.tenantCreated,
      meta: encodeTenantCreated(tenant),
    });
    this.#creating.delete(name);
    return outcome === 'applied' ? done : lost;
  }

  async delete(name: string): Promise<OperatorAnswer> {
    const { replica } = this.#options;
    if (!replica.isLeader) return notLeader;
    const tenant = replica.state.tenants.byName(name);
    if (tenant === undefined) return refused(`there is no tenant ${name} that can be deleted`);
    const meta = encodeTenantDeleted(tenant.number);
    const outcome = await replica.proposeAndWait({ type: EntryType.tenantDeleted, meta });
    return outcome === 'applied' ? done : lost;
  }

  /** Numbers are not used twice, not even by plans that fail. */
  #numbersBehind(): number[] {
    return [...this.#creating.values()].map(({ number }) => number + 1);
  }

  /**
   * Former clients of a tenant that is gone still try its port: it is used again as late as can be.
   */
  #freePort(number: number): number {
    const { replica, portsMax } = this.#options;
    const all = [...replica.state.tenants.all(), ...this.#creating.values()];
    const taken = new Set(all.map(({ portOffset }) => portOffset));
    let offset = number;
    while (taken.has(1 + ((offset - 1) % portsMax))) offset++;
    return 1 + ((offset - 1) % portsMax);
  }

  /** Older versions stop at such an entry; in a cluster the leader raises the level by itself. */
  #mayWrite(): boolean {
    const { replica, isAlone } = this.#options;
    if (replica.state.featureLevel >= tenantsLevel) return true;
    if (!isAlone) return false;
    const meta = encodeFeatureLevel(tenantsLevel);
    replica.propose({ type: EntryType.featureLevelRaised, meta });
    return true;
  }
}

const lost = refused('it is not known whether it was done: look at the tenants');
