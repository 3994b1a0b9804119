import type { ClusterView } from '../broker/admin/cluster-view.ts';
import { ask, originOf, textOf } from './admin-client.ts';
import { table } from './text-table.ts';

export interface ClusterStatusOptions {
  /** HOST:PORT of the broker's admin endpoint; else from the environment, else the usual one. */
  readonly admin: string | undefined;
  readonly json: boolean;
}

/** `keylane cluster status`: what a running broker knows of its cluster. */
export async function clusterStatus(
  { admin, json }: ClusterStatusOptions,
  print: (text: string) => void,
): Promise<void> {
  const text = await textOf(await ask(originOf(admin), '/cluster'));
  const view = JSON.parse(text) as ClusterView;
  print(json ? `${JSON.stringify(view, null, 2)}\n` : `${clusterLines(view).join('\n')}\n`);
}

export function clusterLines(view: ClusterView): string[] {
  const { clusterId, nodeId, leaderId, term, commitIndex, lastIndex } = view;
  const leader = leaderId < 0 ? 'nobody leads' : `node ${leaderId} leads in term ${term}`;
  const rows = view.members.map((member) => [
    String(member.nodeId),
    member.role,
    member.inSync === null ? '?' : member.inSync ? 'yes' : 'no',
    member.matchIndex === null ? '?' : String(member.matchIndex),
    member.address ?? '?',
    member.peerAddress ?? '?',
    member.directoryId,
  ]);
  return [
    `cluster ${clusterId}: ${leader}; committed ${commitIndex} of ${lastIndex} entries`,
    `as node ${nodeId} sees it; only the leader knows how far the others are`,
    '',
    ...table(['NODE', 'ROLE', 'IN SYNC', 'ENTRIES', 'CLIENTS', 'NODES', 'DIRECTORY'], rows),
  ];
}
