import type { ClusterView } from '../broker/admin/cluster-view.ts';
import { parseClusterNodes } from '../cluster/cluster-nodes.ts';
import { askLeader, type OperatorWish } from '../cluster/operator.ts';
import { systemClock } from '../core/clock.ts';
import { isWildcard } from '../net/listeners.ts';
import { ask, originOf, textOf, usage } from './admin-client.ts';
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

export interface ClusterChangeOptions {
  /** As `cluster.nodes`; else from the environment. */
  readonly cluster: string | undefined;
}

/** `keylane cluster add`: lets a node join that the others do not know of. */
export async function clusterAdd(
  node: string,
  options: ClusterChangeOptions,
  print: (text: string) => void,
): Promise<void> {
  const added = [...parseClusterNodes(node)];
  const [[nodeId, address] = []] = added;
  if (nodeId === undefined || address === undefined || added.length > 1) {
    throw usage(`"${node}" is not ID@HOST:PORT`);
  }
  if (isWildcard(address.host) || address.port === 0) {
    throw usage(`"${node}" does not say where the other nodes reach it`);
  }
  const { host: peerHost, port: peerPort } = address;
  await askCluster({ kind: 'add', node: { nodeId, peerHost, peerPort } }, options);
  print(`node ${nodeId} may join: start it with --cluster naming itself and all members\n`);
}

/** `keylane cluster remove`: puts a node out for good. */
export async function clusterRemove(
  nodeId: string,
  options: ClusterChangeOptions,
  print: (text: string) => void,
): Promise<void> {
  if (!/^\d+$/.test(nodeId)) throw usage(`"${nodeId}" is no id of a node`);
  await askCluster({ kind: 'remove', nodeId: Number(nodeId) }, options);
  print(
    `node ${nodeId} is no member any more; with a new data folder it may come back, ` +
      "if it is in the others' cluster.nodes or is added again\n",
  );
}

/** The secret comes from the environment, where other users of the machine do not see it. */
async function askCluster(wish: OperatorWish, { cluster }: ClusterChangeOptions): Promise<void> {
  const nodes = parseClusterNodes(cluster ?? process.env['KEYLANE_CLUSTER_NODES'] ?? '');
  const secret = process.env['KEYLANE_CLUSTER_SECRET'] ?? '';
  if (nodes.size === 0) throw usage('--cluster has to say where the nodes are');
  if (secret === '') throw usage('KEYLANE_CLUSTER_SECRET has to hold the secret of the cluster');
  await askLeader(wish, nodes, secret, systemClock);
}

export function clusterLines(view: ClusterView): string[] {
  const { clusterId, nodeId, leaderId, term, commitIndex, lastIndex, lastTerm } = view;
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
    `cluster ${clusterId} of feature level ${view.featureLevel}: ${leader}`,
    `committed ${commitIndex} of ${lastIndex} entries, the last of term ${lastTerm},`,
    `as node ${nodeId} sees it; only the leader knows how far the others are`,
    '',
    ...table(['NODE', 'ROLE', 'IN SYNC', 'ENTRIES', 'CLIENTS', 'NODES', 'DIRECTORY'], rows),
  ];
}
