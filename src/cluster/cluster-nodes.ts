import { BrokerError } from '../core/errors.ts';
import { type HostPort, parseHostPort } from '../net/listeners.ts';

/** Node id => where the other nodes reach it. */
export type ClusterNodes = ReadonlyMap<number, HostPort>;

/** `cluster.nodes`: ID@HOST:PORT, with commas between. */
export function parseClusterNodes(text: string): ClusterNodes {
  const nodes = new Map<number, HostPort>();
  for (const part of text.split(',').map((one) => one.trim())) {
    if (part === '') continue;
    const [, id, address] = /^(\d+)@(.+)$/.exec(part) ?? [];
    if (id === undefined) throw wrong(`"${part}" is not ID@HOST:PORT`);
    const nodeId = Number(id);
    if (nodes.has(nodeId)) throw wrong(`${nodeId} is there twice`);
    nodes.set(nodeId, parseAddress(address!));
  }
  return nodes;
}

function parseAddress(address: string): HostPort {
  try {
    return parseHostPort(address);
  } catch (error) {
    throw wrong((error as RangeError).message);
  }
}

function wrong(what: string): BrokerError {
  return new BrokerError('CONFIG_INVALID', `the nodes of the cluster: ${what}`);
}
