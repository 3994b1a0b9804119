import type { GroupDetails, GroupSummary } from '../broker/admin/group-view.ts';
import { ask, originOf, textOf, usage } from './admin-client.ts';
import { groupLines, groupsLines } from './groups-text.ts';

export interface GroupsOptions {
  /** All groups where it is not given. */
  readonly groupId: string | undefined;
  /** HOST:PORT of the broker's admin endpoint; else from the environment, else the usual one. */
  readonly admin: string | undefined;
  /** Whose groups; else those of the default tenant. */
  readonly tenant: string | undefined;
  readonly json: boolean;
  /** All that the journal knows of the group, as JSON. */
  readonly export: boolean;
}

/** `keylane groups`: what a running broker says of its groups. */
export async function groups(options: GroupsOptions, print: (text: string) => void): Promise<void> {
  const { groupId, tenant } = options;
  const origin = originOf(options.admin);
  const ofTenant = tenant === undefined ? '' : `/tenants/${encodeURIComponent(tenant)}`;
  const ofGroup = groupId === undefined ? '' : `/${encodeURIComponent(groupId)}`;
  const path = `${ofTenant}/groups${ofGroup}`;
  if (options.export) {
    if (groupId === undefined) throw usage('--export needs the name of a group');
    const response = await ask(origin, `${path}/export`);
    for await (const piece of response) print(piece as string);
    return;
  }
  const answer = JSON.parse(await textOf(await ask(origin, path))) as unknown;
  if (options.json) {
    print(`${JSON.stringify(answer, null, 2)}\n`);
    return;
  }
  const lines =
    groupId === undefined
      ? groupsLines((answer as { groups: GroupSummary[] }).groups)
      : groupLines(answer as GroupDetails);
  print(`${lines.join('\n')}\n`);
}
