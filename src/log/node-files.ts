import fs, { constants, promises as fsp } from 'node:fs';
import { dirname, resolve as resolvePath } from 'node:path';
import { type FilePort, isCode, type JournalFile } from './file-port.ts';
import { ReadThread } from './read-thread.ts';

/** writev takes at most IOV_MAX pieces a call (1024 on Linux). */
const piecesPerWriteMax = 1024;

const readThread = new ReadThread();

type Callback = (error: Error | null, bytes: number) => void;

/** The operating system's files, through Node's thread pool. */
export const nodeFiles: FilePort = {
  async open(path, mode) {
    const flags =
      mode === 'read'
        ? constants.O_RDONLY
        : mode === 'write'
          ? constants.O_RDWR
          : constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC;
    return nodeFile(await openDescriptor(path, flags));
  },
  async openDirect(path) {
    // Linux alone has it, and there most file systems on disks.
    if (constants.O_DIRECT === undefined) return undefined;
    try {
      return nodeFile(await openDescriptor(path, constants.O_WRONLY | constants.O_DIRECT));
    } catch (error) {
      if (isCode(error, 'EINVAL')) return undefined;
      throw error;
    }
  },
  async list(folder) {
    try {
      return (await fsp.readdir(folder)).sort();
    } catch (error) {
      if (isCode(error, 'ENOENT')) return [];
      throw error;
    }
  },
  async makeFolder(folder) {
    const whole = resolvePath(folder);
    const made = await fsp.mkdir(whole, { recursive: true });
    if (made === undefined) return;
    for (let path = whole; path.length >= made.length; path = dirname(path)) {
      await syncFolder(dirname(path));
    }
  },
  rename: (from, to) => fsp.rename(from, to),
  remove: (path) => fsp.rm(path),
  async removeFolder(folder) {
    if (!fs.existsSync(folder)) return;
    await fsp.rm(folder, { recursive: true });
    await syncFolder(dirname(resolvePath(folder)));
  },
  link: (from, to) => fsp.link(from, to),
  syncFolder,
  readMany: (reads) => readThread.read(reads),
  async freeBytes(folder) {
    const { bavail, bsize } = await fsp.statfs(folder);
    return bavail * bsize;
  },
};

function openDescriptor(path: string, flags: number): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.open(path, flags, 0o644, (error, fd) => (error ? reject(error) : resolve(fd)));
  });
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await fsp.open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function nodeFile(fd: number): JournalFile {
  return {
    async write(pieces, position) {
      for (let first = 0; first < pieces.length; first += piecesPerWriteMax) {
        position = await writeAll(fd, pieces.slice(first, first + piecesPerWriteMax), position);
      }
    },
    sync: () => new Promise((resolve, reject) => fs.fdatasync(fd, settle(resolve, reject))),
    read(target, targetOffset, bytes, position) {
      return new Promise((resolve, reject) => {
        fs.read(fd, target, targetOffset, bytes, position, (error, read) => {
          if (error) reject(error);
          else resolve(read);
        });
      });
    },
    descriptor: fd,
    truncate: (bytes) =>
      new Promise((resolve, reject) => fs.ftruncate(fd, bytes, settle(resolve, reject))),
    size: () =>
      new Promise((resolve, reject) => {
        fs.fstat(fd, (error, stats) => (error ? reject(error) : resolve(stats.size)));
      }),
    close: () => new Promise((resolve, reject) => fs.close(fd, settle(resolve, reject))),
  };
}

function settle(resolve: () => void, reject: (error: Error) => void) {
  return (error: Error | null): void => (error ? reject(error) : resolve());
}

/** Writes the pieces whole, however short the single writes turn out; answers the end position. */
function writeAll(fd: number, pieces: Uint8Array[], start: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let position = start;
    const written: Callback = (error, bytes) => {
      if (error) return reject(error);
      position += bytes;
      while (pieces.length > 0 && bytes >= pieces[0]!.length) bytes -= pieces.shift()!.length;
      if (pieces.length === 0) return resolve(position);
      pieces[0] = pieces[0]!.subarray(bytes);
      fs.writev(fd, pieces, position, written);
    };
    fs.writev(fd, pieces, position, written);
  });
}
