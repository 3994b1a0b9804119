import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { BrokerError } from '../core/errors.ts';
import type { FilePort } from '../log/file-port.ts';

/**
 * `meta.json` says whose data a folder holds. It is made at the first start and never changed: a
 * voter is a node id and a directory id, so that a wiped folder is never taken for the old one.
 */
export interface DataMeta {
  /** Version of the layout of the data folder. */
  readonly version: number;
  readonly nodeId: number;
  readonly directoryId: string;
  /** Whether this node founded its cluster; undefined while that is not decided. */
  readonly isFounder: boolean | undefined;
}

const dataVersion = 1;
const metaName = 'meta.json';
const metaBytesMax = 4096;
const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Reads the folder's meta.json, or makes it durably where the folder is new. */
export async function openDataMeta(
  files: FilePort,
  folder: string,
  nodeId: number,
): Promise<DataMeta> {
  const meta = await readDataMeta(files, folder);
  if (meta === undefined) return createMeta(files, folder, nodeId);
  if (meta.nodeId !== nodeId) {
    const owner = `the data folder ${folder} belongs to node ${meta.nodeId}`;
    const message = `node.id is ${nodeId}, but ${owner}`;
    throw new BrokerError('CONFIG_INVALID', message, { folder, nodeId, storedNodeId: meta.nodeId });
  }
  return meta;
}

/** Undefined where the folder is new. */
export async function readDataMeta(files: FilePort, folder: string): Promise<DataMeta | undefined> {
  const names = await files.list(folder);
  if (names.includes(metaName)) {
    const meta = parseMeta(folder, await readMetaText(files, folder));
    // Before there were clusters nobody had to say so.
    const hasData = names.includes('default');
    return { ...meta, isFounder: meta.isFounder ?? (hasData ? true : undefined) };
  }
  // It is durable before the first byte of data, so data without it is not ours to judge.
  if (names.includes('default')) throw unusable(folder, `has data, but no ${metaName}`);
  return undefined;
}

async function createMeta(files: FilePort, folder: string, nodeId: number): Promise<DataMeta> {
  const meta = { version: dataVersion, nodeId, directoryId: randomUUID(), isFounder: undefined };
  await writeMeta(files, folder, meta);
  return meta;
}

/** Notes for ever whether this node founded its cluster. */
export function decideFounder(
  files: FilePort,
  folder: string,
  meta: DataMeta,
  isFounder: boolean,
): Promise<void> {
  return writeMeta(files, folder, { ...meta, isFounder });
}

async function writeMeta(files: FilePort, folder: string, meta: DataMeta): Promise<void> {
  const draft = join(folder, `${metaName}.draft`);
  const file = await files.open(draft, 'create');
  try {
    await file.write([Buffer.from(`${JSON.stringify(meta)}\n`)], 0);
    await file.sync();
  } finally {
    await file.close();
  }
  await files.rename(draft, join(folder, metaName));
  await files.syncFolder(folder);
}

async function readMetaText(files: FilePort, folder: string): Promise<string> {
  const file = await files.open(join(folder, metaName), 'read');
  try {
    const target = Buffer.alloc(metaBytesMax);
    return target.toString('utf8', 0, await file.read(target, 0, metaBytesMax, 0));
  } finally {
    await file.close();
  }
}

function parseMeta(folder: string, text: string): DataMeta {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw unusable(folder, `has a ${metaName} that is not JSON`, error);
  }
  if (typeof parsed !== 'object' || parsed === null) {
    throw unusable(folder, `has a ${metaName} that is no object`);
  }
  const { version, nodeId, directoryId, isFounder } = parsed as Record<string, unknown>;
  if (typeof version === 'number' && version > dataVersion) {
    const known = `this Keylane knows ${dataVersion}`;
    const message = `the data folder ${folder} has version ${version}; ${known}`;
    throw new BrokerError('JOURNAL_VERSION_UNKNOWN', message, { folder, version });
  }
  const isWhole =
    version === dataVersion &&
    typeof nodeId === 'number' &&
    Number.isSafeInteger(nodeId) &&
    typeof directoryId === 'string' &&
    (isFounder === undefined || typeof isFounder === 'boolean') &&
    uuidPattern.test(directoryId);
  if (!isWhole) throw unusable(folder, `has a ${metaName} with wrong fields: ${text.trim()}`);
  return { version, nodeId, directoryId, isFounder };
}

function unusable(folder: string, what: string, cause?: unknown): BrokerError {
  return new BrokerError(
    'DATA_DIR_UNUSABLE',
    `the data folder ${folder} ${what}`,
    { folder },
    cause,
  );
}
