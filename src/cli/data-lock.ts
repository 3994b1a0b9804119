import { randomBytes } from 'node:crypto';
import { promises as fsp } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { BrokerError } from '../core/errors.ts';
import {
  formatHolder,
  isRunning,
  type LockHolder,
  parseHolder,
  socketName,
  socketPath,
  thisProcess,
} from './lock-holder.ts';

/**
 * One broker per data folder. Node has no kernel locks on files, so the lock is a chain of
 * generations, `lock.1`, `lock.2`, and so on, each naming one process. The process named by the
 * highest generation holds the folder for as long as it runs; nothing has to be undone at its end.
 *
 * A generation is a symbolic link whose target is text: it comes into being whole, only if there is
 * none of its name, and on a full disk too.
 *
 * Invariant: generation n + 1 is made only after the process of generation n was seen to have
 * ended, and only one starter can make it. The highest generation is never removed, so a starter
 * that was slow, and made a name that had been used and removed before, finds a higher one when it
 * looks again, and withdraws.
 */

export interface DataLock {
  /** Closes the socket. The lock itself ends with the process. */
  release(): Promise<void>;
}

const generationName = /^lock\.([1-9]\d{0,14})$/;

interface Generation {
  readonly number: number;
  readonly holder: LockHolder | undefined;
}

/** Locks an existing folder, or throws DATA_DIR_LOCKED with the pid of the broker that has it. */
export async function lockDataFolder(folder: string): Promise<DataLock> {
  const socketId = randomBytes(4).toString('hex');
  const server = await listen(socketPath(folder, socketId));
  const release = (): Promise<void> => closeServer(server);
  try {
    const number = await claim(folder, thisProcess(server === undefined ? '' : socketId));
    await removeOlder(folder, number);
    return { release };
  } catch (error) {
    await release();
    if (error instanceof BrokerError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    const message = `the data folder ${folder} cannot be locked: ${reason}`;
    throw new BrokerError('DATA_DIR_UNUSABLE', message, { folder }, error);
  }
}

/** The process that holds a folder, if one does. Changes nothing. */
export async function findDataFolderHolder(folder: string): Promise<LockHolder | undefined> {
  const highest = await highestGeneration(folder);
  const holder = highest?.holder;
  if (holder === undefined || !(await isRunning(holder, folder))) return undefined;
  return holder;
}

/** Makes the next generation; answers its number once no other can have a higher one. */
async function claim(folder: string, self: LockHolder): Promise<number> {
  for (;;) {
    const highest = await highestGeneration(folder);
    const holder = highest?.holder;
    if (holder !== undefined && (await isRunning(holder, folder))) throw locked(folder, holder.pid);
    const number = (highest?.number ?? 0) + 1;
    const name = join(folder, `lock.${number}`);
    try {
      await fsp.symlink(formatHolder(self), name);
    } catch (error) {
      if (isCode(error, 'EEXIST')) continue;
      throw error;
    }
    if ((await highestNumber(folder)) === number) return number;
    await fsp.rm(name, { force: true });
  }
}

async function highestGeneration(folder: string): Promise<Generation | undefined> {
  for (;;) {
    const number = await highestNumber(folder);
    if (number === 0) return undefined;
    const found = await readHolder(folder, `lock.${number}`);
    // Somebody withdrew, or a higher one was made: look again.
    if (found !== 'gone') return { number, holder: found };
  }
}

/** Undefined where the name is not a link that we have made: nobody holds the folder by it. */
async function readHolder(folder: string, name: string): Promise<LockHolder | undefined | 'gone'> {
  try {
    return parseHolder(await fsp.readlink(join(folder, name)));
  } catch (error) {
    if (isCode(error, 'ENOENT')) return 'gone';
    if (isCode(error, 'EINVAL')) return undefined;
    throw error;
  }
}

async function highestNumber(folder: string): Promise<number> {
  const names = await fsp.readdir(folder);
  return Math.max(0, ...names.map((name) => Number(generationName.exec(name)?.[1] ?? 0)));
}

/** Earlier generations and their sockets are of no use to anyone. */
async function removeOlder(folder: string, number: number): Promise<void> {
  for (const name of await fsp.readdir(folder)) {
    const older = Number(generationName.exec(name)?.[1] ?? number);
    if (older >= number) continue;
    const found = await readHolder(folder, name);
    if (typeof found === 'object' && found.socketId !== '') {
      await fsp.rm(join(folder, socketName(found.socketId)), { force: true });
    }
    await fsp.rm(join(folder, name), { force: true });
  }
}

/** Answers undefined where the path is too long or the file system has no sockets. */
function listen(path: string | undefined): Promise<Server | undefined> {
  if (path === undefined) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.on('error', () => resolve(undefined));
    server.listen(path, () => resolve(server));
  });
}

function closeServer(server: Server | undefined): Promise<void> {
  if (server === undefined) return Promise.resolve();
  return new Promise((resolve) => server.close(() => resolve()));
}

function locked(folder: string, pid: number): BrokerError {
  const message = `another broker uses the data folder ${folder}: process ${pid}`;
  return new BrokerError('DATA_DIR_LOCKED', message, { folder, pid });
}

function isCode(error: unknown, code: string): boolean {
  return (error as NodeJS.ErrnoException).code === code;
}
