import type { TenantsPort, TenantView } from './broker/admin/tenants-port.ts';
import type { Broker } from './broker/broker.ts';
import {
  encodeWish,
  type OperatorAnswer,
  parseAnswer,
  type TenantWish,
} from './cluster/operator.ts';
import { TenantDuties } from './cluster/tenant-duties.ts';
import { defaultTenantName, TenantPlanner } from './cluster/tenant-planner.ts';
import { splitList } from './config/kafka-values.ts';
import { BrokerError } from './core/errors.ts';
import type { Logger } from './core/logger.ts';
import { formatHostPort, type HostPort } from './net/listeners.ts';
import { EntryType } from './state/entry-types.ts';
import type { Tenant } from './state/tenants.ts';
import { folderOf, type NodeParts, TenantHost, tenantsIn } from './tenant-host.ts';

/** How often it is looked after tenants that could not be opened, and those that are led here. */
const lookMs = 1000;

const openedAtOnceMax = 8;
const portMax = 65_535;

export interface TenantsOptions {
  readonly parts: NodeParts;
  /** The default tenant: the table of the others is in its state. */
  readonly system: TenantHost;
  readonly listen: HostPort;
  readonly advertise: HostPort | undefined;
  readonly log: Logger;
}

/**
 * The tenants of this node beside the default one. They follow the table in the state of the system
 * group: who is new there is opened here, and who is gone is closed and its folder removed.
 */
export class Tenants implements TenantsPort {
  readonly #options: TenantsOptions;
  readonly #planner: TenantPlanner;
  readonly #hosts = new Map<number, TenantHost>();
  readonly #duties = new Map<number, TenantDuties>();
  /** Why a tenant could not be opened. */
  readonly #failures = new Map<number, string>();
  #following: Promise<void> | undefined;
  #isBehind = false;
  #cancelLook: (() => void) | undefined;
  #isStopped = false;

  constructor(options: TenantsOptions) {
    this.#options = options;
    const { parts, system } = options;
    this.#planner = new TenantPlanner({
      ...{ replica: system.replica, random: parts.random },
      isAlone: parts.cluster === undefined,
      tenantsMax: parts.settings['tenants.max'],
      portsMax: portMax - parts.settings['tenant.port.base'],
    });
    system.replica.listen({
      onApplied: ({ type }) => {
        if (type === EntryType.tenantCreated || type === EntryType.tenantDeleted) this.#follow();
      },
      onLeading: () => void this.#seed(),
    });
  }

  /** Opens those that there are; resolves when they are. */
  async start(): Promise<void> {
    await this.#removeLeftovers();
    if (this.#options.system.replica.isLeader) await this.#seed();
    this.#follow();
    await this.#following;
    this.#lookLater();
  }

  /** The node is to stop: none comes or goes any more. What there is is stopped with the rest. */
  async settle(): Promise<void> {
    this.#isStopped = true;
    this.#cancelLook?.();
    await this.#following;
  }

  /** Those that are served here. */
  get hosts(): Iterable<TenantHost> {
    return this.#hosts.values();
  }

  /** The broker of a tenant by its number; undefined where it is not served here. */
  broker(number: number): Broker | undefined {
    return this.#hosts.get(number)?.broker;
  }

  // What operators see and ask for.

  brokerOf(name: string): Broker | undefined {
    const { system } = this.#options;
    if (name === defaultTenantName) return system.broker;
    const tenant = system.replica.state.tenants.byName(name);
    return tenant && this.broker(tenant.number);
  }

  views(): TenantView[] {
    const { system } = this.#options;
    const { number, address, replica } = system;
    const { clusterId } = replica.state;
    const first = { number, name: defaultTenantName, clusterId };
    return [
      { ...first, ...placeOf(system.broker, address), failure: null },
      ...[...replica.state.tenants.all()].map((tenant) => this.#view(tenant)),
    ];
  }

  #view({ number, name, clusterId }: Tenant): TenantView {
    const host = this.#hosts.get(number);
    const failure = this.#failures.get(number) ?? null;
    return { number, name, clusterId, ...placeOf(host?.broker, host?.address), failure };
  }

  /** Where the system group is led; elsewhere it is passed on. */
  async fulfil(wish: TenantWish): Promise<OperatorAnswer> {
    const { system, parts } = this.#options;
    const answer = await this.fulfilHere(wish);
    if (answer.outcome !== 'not-leader' || parts.cluster === undefined) return answer;
    const { leaderId } = system.broker.nodes;
    const told = await parts.cluster.askNode(leaderId, [encodeWish(wish)]);
    return told === undefined ? answer : parseAnswer(told);
  }

  /** When it is done here as well. */
  async fulfilHere({ kind, name }: TenantWish): Promise<OperatorAnswer> {
    const planner = this.#planner;
    const answer = await (kind === 'createTenant' ? planner.create(name) : planner.delete(name));
    await this.#following;
    return answer;
  }

  // Following the table.

  /** Of the settings, if there never was any tenant. */
  async #seed(): Promise<void> {
    const { parts, system, log } = this.#options;
    if (system.replica.state.tenants.next > 1) return;
    const names = splitList(parts.settings.tenants);
    const answers = await Promise.all(names.map((name) => this.#planner.create(name)));
    for (const [i, { outcome, reason }] of answers.entries()) {
      const facts = { tenant: names[i], reason };
      if (outcome === 'refused') log.warn(facts, 'a tenant of the settings is not made');
    }
  }

  #follow(): void {
    this.#isBehind = true;
    if (this.#isStopped) return;
    this.#following ??= this.#catchUp().then(
      () => {
        this.#following = undefined;
      },
      (error: unknown) => this.#options.parts.onFatal(error),
    );
  }

  async #catchUp(): Promise<void> {
    const { tenants } = this.#options.system.replica.state;
    while (this.#isBehind && !this.#isStopped) {
      this.#isBehind = false;
      for (const [number, host] of this.#hosts) {
        if (tenants.get(number) === undefined) await this.#drop(number, host);
      }
      for (const number of this.#failures.keys()) {
        if (tenants.get(number) === undefined) await this.#remove(number);
      }
      const missing = [...tenants.all()].filter(({ number }) => !this.#hosts.has(number));
      const next = missing.values();
      const openAll = async (): Promise<void> => {
        for (const tenant of next) if (!this.#isStopped) await this.#open(tenant);
      };
      await Promise.all(Array.from({ length: openedAtOnceMax }, openAll));
    }
  }

  async #open(tenant: Tenant): Promise<void> {
    const { parts, log } = this.#options;
    const { number, name } = tenant;
    let host: TenantHost | undefined;
    try {
      host = await TenantHost.open(parts, {
        ...{ number, name, clusterId: tenant.clusterId, founders: tenant.voters },
        ...{ listener: this.#listenerOf(tenant), log: logOf(log, name) },
        onSnapshotFetched: () => this.#reopen(number),
      });
      await host.listen(this.#listenerOf(tenant).listen);
    } catch (error) {
      // Of what nobody foresaw it is not known what else it means.
      if (!(error instanceof BrokerError)) throw error;
      await host?.stop();
      this.#note(tenant, error.message);
      return;
    }
    this.#failures.delete(number);
    this.#hosts.set(number, host);
    this.#attend(tenant, host);
    log.info({ tenant: name, address: formatHostPort(host.address!) }, 'a tenant is served');
  }

  /** Each reason is logged once, however often it is tried. */
  #note({ number, name }: Tenant, reason: string): void {
    if (this.#failures.get(number) === reason) return;
    this.#failures.set(number, reason);
    this.#options.log.error({ tenant: name, reason }, 'a tenant cannot be served on this node');
  }

  #attend(tenant: Tenant, { replica }: TenantHost): void {
    const { parts, system, log } = this.#options;
    const { cluster } = parts;
    if (cluster === undefined) return;
    const duties = new TenantDuties({
      ...{ tenant, replica, system: system.replica, cluster },
      ...{ clock: parts.clock, log: logOf(log, tenant.name) },
    });
    this.#duties.set(tenant.number, duties);
    replica.listen({
      onLeading: () => duties.form(),
      // The next step, if there is one.
      onGroupApplied: () => duties.formSoon(),
    });
    cluster.join(tenant.number, replica);
  }

  /** With a snapshot of another node. */
  #reopen(number: number): void {
    const host = this.#hosts.get(number);
    if (host === undefined) return;
    const reopening = (this.#following ?? Promise.resolve()).then(async () => {
      this.#forget(number);
      await host.close();
      this.#isBehind = true;
      await this.#catchUp();
    });
    this.#following = reopening.then(
      () => {
        this.#following = undefined;
      },
      (error: unknown) => this.#options.parts.onFatal(error),
    );
  }

  async #drop(number: number, host: TenantHost): Promise<void> {
    this.#forget(number);
    await host.close();
    await this.#remove(number);
    this.#options.log.info({ tenant: host.name }, 'a tenant was deleted');
  }

  async #remove(number: number): Promise<void> {
    const { files, settings } = this.#options.parts;
    this.#failures.delete(number);
    await files.removeFolder(folderOf(settings.data, number));
  }

  #forget(number: number): void {
    this.#hosts.delete(number);
    this.#duties.delete(number);
  }

  /** Folders of tenants that went while this node was down. */
  async #removeLeftovers(): Promise<void> {
    const { parts, system } = this.#options;
    const { tenants } = system.replica.state;
    for (const number of await tenantsIn(parts.files, parts.settings.data)) {
      const isGone = number < tenants.next && tenants.get(number) === undefined;
      if (isGone) await this.#remove(number);
    }
  }

  #listenerOf({ portOffset }: Tenant) {
    const { listen, advertise, parts } = this.#options;
    const base = parts.settings['tenant.port.base'];
    const port = base === 0 ? 0 : base + portOffset;
    // Where the node that made the tenant has a lower base than this one.
    if (port > portMax)
      throw new BrokerError('LISTEN_FAILED', `there is no port ${port}`, { port });
    return {
      listen: { host: listen.host, port },
      advertise: advertise && { host: advertise.host, port },
    };
  }

  #lookLater(): void {
    this.#cancelLook = this.#options.parts.clock.after(lookMs, () => {
      if (this.#isStopped) return;
      if (this.#failures.size > 0) this.#follow();
      for (const duties of this.#duties.values()) duties.form();
      this.#lookLater();
    });
  }
}

function placeOf(broker: Broker | undefined, address: HostPort | undefined) {
  return {
    address: address === undefined ? null : formatHostPort(address),
    leaderId: broker?.nodes.leaderId ?? -1,
  };
}

/** Says in each line which tenant it is about. */
function logOf(log: Logger, tenant: string): Logger {
  return {
    debug: (fields, message) => log.debug({ tenant, ...fields }, message),
    info: (fields, message) => log.info({ tenant, ...fields }, message),
    warn: (fields, message) => log.warn({ tenant, ...fields }, message),
    error: (fields, message) => log.error({ tenant, ...fields }, message),
  };
}
