import type { TenantView } from '../broker/admin/tenants-port.ts';
import { ask, originOf, textOf, usage } from './admin-client.ts';
import { table } from './text-table.ts';

export interface TenantsOptions {
  /** HOST:PORT of the broker's admin endpoint; else from the environment, else the usual one. */
  readonly admin: string | undefined;
}

/** `keylane tenants`: all of them, and where the node that is asked serves them. */
export async function tenants(
  { admin, json }: TenantsOptions & { readonly json: boolean },
  print: (text: string) => void,
): Promise<void> {
  const answer = await ask(originOf(admin), '/tenants');
  const all = (JSON.parse(await textOf(answer)) as { tenants: TenantView[] }).tenants;
  print(json ? `${JSON.stringify(all, null, 2)}\n` : `${tenantsLines(all).join('\n')}\n`);
}

export function tenantsLines(all: readonly TenantView[]): string[] {
  const rows = all.map(({ name, number, address, leaderId, clusterId, failure }) => [
    name,
    String(number),
    address ?? failure ?? 'not yet',
    leaderId < 0 ? '?' : String(leaderId),
    clusterId,
  ]);
  return table(['TENANT', 'NUMBER', 'CLIENTS', 'LEADER', 'CLUSTER'], rows);
}

/** `keylane tenants create`: while the cluster runs. */
export async function createTenant(
  name: string,
  options: TenantsOptions,
  print: (text: string) => void,
): Promise<void> {
  await change('PUT', name, options);
  print(`tenant ${name} is there: \`keylane tenants\` says where its clients are served\n`);
}

/** `keylane tenants delete`: its topics, groups and all that they hold go with it. */
export async function deleteTenant(
  name: string,
  { acceptsDataLoss, ...options }: TenantsOptions & { readonly acceptsDataLoss: boolean },
  print: (text: string) => void,
): Promise<void> {
  if (!acceptsDataLoss) {
    throw usage(`all that ${name} has is lost: say --accept-data-loss if that is to be`);
  }
  await change('DELETE', name, options);
  print(`tenant ${name} is deleted\n`);
}

/** The secret comes from the environment, where other users of the machine do not see it. */
async function change(method: 'PUT' | 'DELETE', name: string, { admin }: TenantsOptions) {
  const secret = process.env['KEYLANE_ADMIN_SECRET'] ?? '';
  if (secret === '') throw usage("KEYLANE_ADMIN_SECRET has to hold the broker's admin.secret");
  await textOf(await ask(originOf(admin), `/tenants/${encodeURIComponent(name)}`, method, secret));
}
