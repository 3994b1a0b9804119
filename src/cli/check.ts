import { resolve } from 'node:path';
import { BrokerError } from '../core/errors.ts';
import { checkJournal } from '../log/check.ts';
import { nodeFiles } from '../log/node-files.ts';
import { EntryType } from '../state/entry-types.ts';
import { defaultTenant } from '../state/tenants.ts';
import { folderOf, tenantsIn } from '../tenant-host.ts';
import { findDataFolderHolder } from './data-lock.ts';
import { readDataMeta } from './data-meta.ts';

const typeNames = new Map<number, string>(
  Object.entries(EntryType).map(([name, type]) => [type, name]),
);

/** `keylane check`: reads a data folder that no broker has open. Answers whether it is sound. */
export async function check(data: string, onLine: (line: string) => void): Promise<boolean> {
  const folder = resolve(data);
  const meta = await readDataMeta(nodeFiles, folder);
  if (meta === undefined) {
    const message = `${folder} is no data folder: it has no meta.json`;
    throw new BrokerError('DATA_DIR_UNUSABLE', message, { folder });
  }
  const holder = await findDataFolderHolder(folder);
  if (holder !== undefined) {
    const message = `a broker uses the data folder ${folder}: stop process ${holder.pid} first`;
    throw new BrokerError('DATA_DIR_LOCKED', message, { folder, pid: holder.pid });
  }
  onLine(`${folder}: node ${meta.nodeId}, directory ${meta.directoryId}`);
  let isSound = true;
  for (const tenant of [defaultTenant, ...(await tenantsIn(nodeFiles, folder))]) {
    if (tenant !== defaultTenant) onLine(`tenant ${tenant}`);
    const isOneSound = await checkJournal({
      files: nodeFiles,
      folder: folderOf(folder, tenant),
      entryTypeName: (type) => typeNames.get(type) ?? `type ${type}`,
      onLine,
    });
    isSound &&= isOneSound;
  }
  return isSound;
}
