import { ByteReader, ByteWriter } from '../core/bytes.ts';

/**
 * A separate world of topics, groups and users, with a journal and a Raft group of its own. The
 * state of the default tenant has the table of all others: its group is the system group, too.
 */
export interface Tenant {
  /** 1 and up, never used again; the default tenant is 0. */
  readonly number: number;
  readonly name: string;
  /** It is served on each node's `tenant.port.base` and this. */
  readonly portOffset: number;
  /** What its clients see as the cluster's id. */
  readonly clusterId: string;
  /** Who is in its Raft group until an entry of its own says otherwise. */
  readonly voters: readonly string[];
}

export const defaultTenant = 0;
/** Names are parts of paths, of commands and of log lines. */
export const tenantNamePattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export function encodeTenantCreated(tenant: Tenant): Buffer {
  return writeTenant(new ByteWriter(128), tenant).finish();
}
export function decodeTenantCreated(meta: Buffer): Tenant {
  return readTenant(new ByteReader(meta));
}

export function encodeTenantDeleted(number: number): Buffer {
  return new ByteWriter(8).uvarint(number).finish();
}
export function decodeTenantDeleted(meta: Buffer): number {
  return new ByteReader(meta).uvarint();
}

function writeTenant(writer: ByteWriter, tenant: Tenant): ByteWriter {
  const { number, name, portOffset, clusterId, voters } = tenant;
  writer.uvarint(number).string(name).uvarint(portOffset).string(clusterId).uvarint(voters.length);
  for (const voter of voters) writer.string(voter);
  return writer;
}
function readTenant(reader: ByteReader): Tenant {
  return {
    ...{ number: reader.uvarint(), name: reader.string(), portOffset: reader.uvarint() },
    clusterId: reader.string(),
    voters: Array.from({ length: reader.count() }, () => reader.string()),
  };
}

/** All tenants but the default one, by number. */
export class TenantTable {
  readonly #byNumber = new Map<number, Tenant>();
  /** Below it all numbers are used, or were. */
  #next = defaultTenant + 1;

  get next(): number {
    return this.#next;
  }

  get size(): number {
    return this.#byNumber.size;
  }

  all(): Iterable<Tenant> {
    return this.#byNumber.values();
  }

  get(number: number): Tenant | undefined {
    return this.#byNumber.get(number);
  }

  byName(name: string): Tenant | undefined {
    for (const tenant of this.#byNumber.values()) if (tenant.name === name) return tenant;
    return undefined;
  }

  create(tenant: Tenant): void {
    this.#byNumber.set(tenant.number, tenant);
    this.#next = Math.max(this.#next, tenant.number + 1);
  }

  delete(number: number): void {
    this.#byNumber.delete(number);
  }

  write(writer: ByteWriter): void {
    writer.uvarint(this.#next).uvarint(this.#byNumber.size);
    for (const tenant of this.#byNumber.values()) writeTenant(writer, tenant);
  }

  read(reader: ByteReader): void {
    this.#next = reader.uvarint();
    for (let left = reader.count(5); left > 0; left--) this.create(readTenant(reader));
  }
}
