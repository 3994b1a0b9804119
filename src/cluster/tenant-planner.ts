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
    const { replica, random, tenantsMax } = this.#options;
    if (!replica.isLeader) return notLeader;
    const { tenants } = replica.state;
    if (!tenantNamePattern.test(name)) {
      return refused(`"${name}" is no name of a tenant: lower case letters, digits and - within`);
    }
    const isTaken = this.#creating.has(name) || tenants.byName(name) !== undefined;
    if (name === defaultTenantName || isTaken) return refused(`there is a tenant ${name}`);
    if (tenants.size + this.#creating.size >= tenantsMax) {
      return refused(`there are ${tenantsMax} tenants already (tenants.max)`);
    }
    if (!this.#mayWrite())
      return refused('some node of the cluster is of an older version, or away');
    const tenant: Tenant = {
      number: Math.max(tenants.next, ...this.#numbersBehind()),
      name,
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
