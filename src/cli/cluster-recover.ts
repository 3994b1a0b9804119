import { resolve } from 'node:path';
import { loadSettings } from '../config/load.ts';
import { systemClock } from '../core/clock.ts';
import { BrokerError } from '../core/errors.ts';
import { systemRandom } from '../core/random.ts';
import { nodeFiles } from '../log/node-files.ts';
import { recoverAlone } from '../replica/recover-alone.ts';
import { defaultTenant } from '../state/tenants.ts';
import { diskOptions, storageOptions, tenantsIn } from '../tenant-host.ts';
import { usage } from './admin-client.ts';
import { lockDataFolder } from './data-lock.ts';
import { readDataMeta } from './data-meta.ts';

export interface ClusterRecoverOptions {
  readonly data: string;
  readonly acceptsDataLoss: boolean;
}

/**
 * `keylane cluster recover`: the majority of a cluster is lost for good, and the node of this
 * folder goes on alone, with what it has. The broker must not run.
 */
export async function clusterRecover(
  { data, acceptsDataLoss }: ClusterRecoverOptions,
  print: (text: string) => void,
): Promise<void> {
  const folder = resolve(data);
  if (!acceptsDataLoss) {
    throw usage(
      'what only the lost nodes had is lost with them: say --accept-data-loss if that is to be',
    );
  }
  const meta = await readDataMeta(nodeFiles, folder);
  if (meta === undefined) throw unusable(folder, 'is no data folder: it has no meta.json');
  const lock = await lockDataFolder(folder);
  try {
    const { nodeId, directoryId } = meta;
    const loaded = loadSettings({ file: undefined, environment: process.env, flags: [] });
    const settings = { ...loaded, data: folder, 'node.id': nodeId };
    const recover = (tenant: number, clusterId?: string) =>
      recoverAlone(
        {
          ...storageOptions(settings, directoryId, tenant),
          ...{ files: nodeFiles, clock: systemClock, random: systemRandom },
          disk: diskOptions(settings),
          onFatal: (error) => {
            throw error;
          },
        },
        clusterId,
      );
    // The default tenant comes last: before that a second try does all that a first one left.
    const tenants = await tenantsIn(nodeFiles, folder);
    for (const tenant of tenants) await recover(tenant);
    const clusterId = systemRandom.bytes(16).toString('base64url');
    const recovered = await recover(defaultTenant, clusterId);
    if (recovered === undefined) {
      print(`node ${nodeId} is on its own already: start it\n`);
      return;
    }
    const { lastIndex, term, uncertain, former } = recovered;
    print(
      [
        `node ${nodeId} is the only member of the new cluster ${clusterId}`,
        `it has all entries up to ${lastIndex}, of term ${term}; whether the last ${uncertain} of`,
        'them were committed it did not know, and what came after them is lost',
        ...(tenants.length > 0 ? [`the same goes for ${tenants.length} tenant(s) beside`] : []),
        `these are members no more: ${former.join(', ')}; start them with new data folders only`,
        '',
      ].join('\n'),
    );
  } finally {
    await lock.release();
  }
}

function unusable(folder: string, what: string): BrokerError {
  return new BrokerError('DATA_DIR_UNUSABLE', `${folder} ${what}`, { folder });
}
