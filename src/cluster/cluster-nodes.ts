import { BrokerError } from '../core/errors.ts';
import { type HostPort, parseHostPort } from '../net/listeners.ts';

/** Node id => where the other nodes reach it. */
export type ClusterNodes = ReadonlyMap<number, HostPort>;

/** `cluster.nodes`: ID@HOST:PORT, with commas between. */
export function parseClusterNodes(text: string): ClusterNodes {
  const nodes = new Map<number, HostPort>();
  for (const part of text.split(',').map((one) => one.trim())) {
    if (part === '') continue;
    const at = part.indexOf('@');
    const nodeId = Number(part.slice(0, at));
    if (nodes.has(nodeId))
      throw new BrokerError('CONFIG_INVALID', `cluster.nodes has ${nodeId} twice`);
    nodes.set(nodeId, parseHostPort(part.slice(at + 1)));
  }
  return nodes;
}
