import type { Random } from '../../src/core/random.ts';
import type { FilePort, JournalFile } from '../../src/log/file-port.ts';
import { type CrashMode, SimInode, sectorBytes } from './sim-inode.ts';

export type SimCallKind =
  | 'open'
  | 'write'
  | 'sync'
  | 'read'
  | 'truncate'
  | 'rename'
  | 'remove'
  | 'syncFolder';

export interface SimCall {
  readonly kind: SimCallKind;
  readonly path: string;
}

export interface SimDiskOptions {
  readonly random: Random;
  /** Completes a call later; without it calls complete at once. */
  readonly defer?: (complete: () => void) => void;
  /** Space for the content of all files. */
  readonly quotaBytes?: number;
}

type DirectoryOperation =
  | { readonly kind: 'link'; readonly path: string; readonly inode: SimInode }
  | { readonly kind: 'unlink'; readonly path: string }
  | {
      readonly kind: 'rename';
      readonly path: string;
      readonly to: string;
      readonly inode: SimInode | undefined;
    };

/**
 * A simulated disk with a cache in front of it. `files()` is the file port of one run of a
 * process. `kill` ends that process and keeps the cache, `crash` is a power failure: of what was
 * not synced, an arbitrary subset of sectors, lengths and directory entries survives. Calls of an
 * ended process never complete.
 */
export class SimDisk {
  quotaBytes: number;
  /** Asked before every call: a code such as `EIO` makes it fail. */
  fault: ((call: SimCall) => string | undefined) | undefined;
  /** Sabotage, to show that tests notice: syncs that do nothing, or that are done too early. */
  lies: 'none' | 'sync-does-nothing' | 'sync-is-early' | 'folder-sync-does-nothing' = 'none';
  readonly #random: Random;
  readonly #defer: (complete: () => void) => void;
  #process = 0;
  #names = new Map<string, SimInode>();
  #durableNames = new Map<string, SimInode>();
  #folders = new Set<string>();
  #pending: DirectoryOperation[] = [];
  /** Writes that were issued and are not complete: a stop may leave them half done. */
  #writing = new Set<(share: number) => void>();

  constructor(options: SimDiskOptions) {
    this.#random = options.random;
    this.#defer = options.defer ?? ((complete) => complete());
    this.quotaBytes = options.quotaBytes ?? Number.POSITIVE_INFINITY;
  }

  /** Bytes that files take: a sector counts once it was written to. */
  get usedBytes(): number {
    let sectors = 0;
    for (const inode of this.#names.values()) sectors += inode.sectors;
    return sectors * sectorBytes;
  }

  paths(): string[] {
    return [...this.#names.keys()].sort();
  }

  content(path: string): Buffer {
    const inode = this.#names.get(path)!;
    const bytes = Buffer.alloc(inode.length);
    inode.read(bytes, 0, bytes.length, 0);
    return bytes;
  }

  /** Puts a file in place, durably. */
  put(path: string, bytes: Buffer): void {
    const inode = new SimInode();
    inode.truncate(bytes.length);
    inode.write(bytes, 0);
    inode.synced(inode.order);
    this.#names.set(path, inode);
    this.#durableNames.set(path, inode);
  }

  /** Changes bytes of a file on disk, as rot or a careless hand does. */
  overwrite(path: string, position: number, bytes: Buffer): void {
    const inode = this.#names.get(path)!;
    inode.write(bytes, position);
    inode.synced(inode.order);
  }

  /** Sets a file's length, durably. */
  cut(path: string, bytes: number): void {
    const inode = this.#names.get(path)!;
    inode.truncate(bytes);
    inode.synced(inode.order);
  }

  drop(path: string): void {
    this.#names.delete(path);
    this.#durableNames.delete(path);
  }

  /** Another disk with the same content, on which calls complete at once. */
  clone(): SimDisk {
    const copy = new SimDisk({ random: this.#random });
    const inodes = new Map<SimInode, SimInode>();
    const cloned = (inode: SimInode): SimInode => {
      const other = inodes.get(inode) ?? inode.clone();
      inodes.set(inode, other);
      return other;
    };
    for (const [path, inode] of this.#names) copy.#names.set(path, cloned(inode));
    for (const [path, inode] of this.#durableNames) copy.#durableNames.set(path, cloned(inode));
    copy.#folders = new Set(this.#folders);
    copy.#pending = this.#pending.map((operation) =>
      operation.kind === 'unlink' ? operation : { ...operation, inode: cloned(operation.inode!) },
    );
    return copy;
  }

  /** The process ends at once; the system goes on, with all that it has in its cache. */
  kill(): void {
    this.#process++;
    for (const write of this.#writing) write(this.#random.next());
    this.#writing.clear();
  }

  /** The power fails. */
  crash(mode: CrashMode): void {
    this.#process++;
    for (const write of this.#writing) write(1);
    this.#writing.clear();
    for (const operation of this.#pending) {
      if (this.#random.next() < mode.keep) apply(operation, this.#durableNames);
    }
    this.#pending = [];
    this.#names = new Map(this.#durableNames);
    for (const inode of new Set(this.#names.values())) inode.crash(this.#random, mode);
  }

  files(): FilePort {
    const ours = this.#process;
    const ask = <T>(kind: SimCallKind, path: string, effect: () => T): Promise<T> =>
      new Promise((resolve, reject) => {
        if (ours !== this.#process) return;
        this.#defer(() => {
          if (ours !== this.#process) return;
          try {
            const code = this.fault?.({ kind, path });
            if (code !== undefined) throw failure(code, `${kind} ${path}`);
            resolve(effect());
          } catch (error) {
            reject(error);
          }
        });
      });
    const call = Object.assign(ask, { isAlive: () => ours === this.#process });
    return {
      open: (path, mode) => call('open', path, () => this.#open(path, mode, call)),
      list: async (folder) => this.#list(folder),
      makeFolder: async (folder) => {
        const parts = folder.split('/');
        for (let i = 1; i <= parts.length; i++) this.#folders.add(parts.slice(0, i).join('/'));
      },
      rename: (from, to) =>
        call('rename', from, () => {
          this.#change({ kind: 'rename', path: from, to, inode: this.#names.get(from) });
        }),
      remove: (path) => call('remove', path, () => this.#change({ kind: 'unlink', path })),
      syncFolder: (folder) => call('syncFolder', folder, () => this.#syncFolder(folder)),
      freeBytes: async () => Math.max(0, this.quotaBytes - this.usedBytes),
    };
  }

  #list(folder: string): string[] {
    const names = new Set<string>();
    for (const path of [...this.#names.keys(), ...this.#folders]) {
      if (!path.startsWith(`${folder}/`)) continue;
      names.add(path.slice(folder.length + 1).split('/')[0]!);
    }
    return [...names].sort();
  }

  #change(operation: DirectoryOperation): void {
    if (!this.#names.has(operation.path) && operation.kind !== 'link') {
      throw failure('ENOENT', operation.path);
    }
    apply(operation, this.#names);
    this.#pending.push(operation);
  }

  #syncFolder(folder: string): void {
    if (this.lies === 'sync-does-nothing' || this.lies === 'folder-sync-does-nothing') return;
    const isIn = ({ path }: DirectoryOperation) => path.slice(0, path.lastIndexOf('/')) === folder;
    for (const operation of this.#pending.filter(isIn)) apply(operation, this.#durableNames);
    this.#pending = this.#pending.filter((operation) => !isIn(operation));
  }

  #open(path: string, mode: 'create' | 'write' | 'read', call: Call): JournalFile {
    let inode = this.#names.get(path);
    if (mode === 'create') {
      if (inode === undefined) {
        inode = new SimInode();
        this.#change({ kind: 'link', path, inode });
      } else inode.truncate(0);
    }
    if (inode === undefined) throw failure('ENOENT', path);
    return this.#file(path, inode, call);
  }

  #file(path: string, inode: SimInode, call: Call): JournalFile {
    const handle: Handle = { path, inode, failuresTold: inode.failuresTold };
    return {
      write: (pieces, position) => this.#write(path, inode, Buffer.concat(pieces), position, call),
      sync: () => this.#sync(handle, call),
      read: (target, at, bytes, position) =>
        call('read', path, () => inode.read(target, at, bytes, position)),
      truncate: (bytes) => call('truncate', path, () => inode.truncate(bytes)),
      size: async () => inode.length,
      close: async () => undefined,
    };
  }

  async #write(path: string, inode: SimInode, bytes: Buffer, position: number, call: Call) {
    // What a process that is gone still asks for never reaches the system.
    if (!call.isAlive()) return new Promise<void>(() => undefined);
    const partly = (share: number) => {
      inode.write(bytes.subarray(0, Math.ceil(bytes.length * share)), position);
    };
    this.#writing.add(partly);
    try {
      await call('write', path, () => {
        this.#writing.delete(partly);
        const fits = this.#fitting(inode, position, bytes.length);
        inode.write(bytes.subarray(0, fits), position);
        if (fits < bytes.length) throw failure('ENOSPC', path);
      });
    } finally {
      this.#writing.delete(partly);
    }
  }

  /** How many of the bytes can be written before the disk is full: whole sectors only. */
  #fitting(inode: SimInode, position: number, bytes: number): number {
    let room = Math.floor((this.quotaBytes - this.usedBytes) / sectorBytes);
    if (inode.newSectors(position, bytes) <= room) return bytes;
    let fits = 0;
    while (fits < bytes) {
      const inSector = (position + fits) % sectorBytes;
      const part = Math.min(sectorBytes - inSector, bytes - fits);
      room -= inode.newSectors(position + fits, part);
      if (room < 0) break;
      fits += part;
    }
    return fits;
  }

  /** As on Linux, each open file is told once of a failure, whichever sync has met it. */
  async #sync(handle: Handle, call: Call): Promise<void> {
    const { path, inode } = handle;
    const { order } = inode;
    if (this.lies === 'sync-does-nothing') return call('sync', path, () => undefined);
    try {
      const syncing = call('sync', path, () => inode.synced(order));
      if (this.lies !== 'sync-is-early') await syncing;
    } catch (error) {
      inode.syncFailed(order, this.#random);
      this.#tell(handle);
      throw error;
    }
    if (this.#tell(handle)) throw failure('EIO', `sync ${path}`);
  }

  #tell(handle: Handle): boolean {
    const { inode } = handle;
    const isNews = inode.failures > handle.failuresTold;
    handle.failuresTold = inode.failures;
    inode.failuresTold = inode.failures;
    return isNews;
  }
}

/** One open file. */
interface Handle {
  readonly path: string;
  readonly inode: SimInode;
  /** Failures of the inode that it was told of. */
  failuresTold: number;
}

type Call = (<T>(kind: SimCallKind, path: string, effect: () => T) => Promise<T>) & {
  /** The process that asks. */
  readonly isAlive: () => boolean;
};

function apply(operation: DirectoryOperation, names: Map<string, SimInode>): void {
  const { path } = operation;
  if (operation.kind === 'link') names.set(path, operation.inode);
  else if (operation.kind === 'unlink') names.delete(path);
  else {
    names.set(operation.to, operation.inode!);
    names.delete(path);
  }
}

function failure(code: string, what: string): Error {
  return Object.assign(new Error(`${code}: ${what}`), { code });
}
