import type { Settings } from '../config/settings.ts';
import { BrokerError } from '../core/errors.ts';
import { isWildcard, parseHostPort } from '../net/listeners.ts';
import type { ClusterOptions } from './cluster.ts';
import { parseClusterNodes } from './cluster-nodes.ts';

/** What the settings say of the cluster; undefined for a node on its own. */
export function clusterOf(
  settings: Settings,
  directoryId: string,
): Pick<ClusterOptions, 'self' | 'nodes' | 'listen' | 'secret' | 'tenantPortBase'> | undefined {
  const nodes = parseClusterNodes(settings['cluster.nodes']);
  if (nodes.size === 0) return undefined;
  const nodeId = settings['node.id'];
  const secret = settings['cluster.secret'];
  const peer = nodes.get(nodeId);
  if (peer === undefined) throw wrong(`cluster.nodes lacks this node, whose node.id is ${nodeId}`);
  if (secret === '') throw wrong('cluster.nodes needs a cluster.secret');
  if (settings['journal.sync'] !== 'always') {
    throw wrong(
      'in a cluster journal.sync has to be "always": what a voter forgets, others rely on',
    );
  }
  const listen = settings['cluster.listen'];
  const own = parseHostPort(settings.advertise === '' ? settings.listen : settings.advertise);
  if (isWildcard(own.host) || own.port === 0) {
    throw wrong('in a cluster `advertise` has to say where clients reach this node');
  }
  return {
    self: { nodeId, directoryId, ...own, peerHost: peer.host, peerPort: peer.port },
    nodes,
    listen: listen === '' ? peer : parseHostPort(listen),
    secret,
    tenantPortBase: settings['tenant.port.base'],
  };
}

function wrong(message: string): BrokerError {
  return new BrokerError('CONFIG_INVALID', message);
}
