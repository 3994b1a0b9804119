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
  | 'link'
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
    }
  | { readonly kind: 'renameFolder'; readonly path: string; readonly to: string };

/** What there is, by name. */
interface Tree {
  names: Map<string, SimInode>;
  folders: Set<string>;
}

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
  #cached: Tree = { names: new Map(), folders: new Set() };
  #durable: Tree = { names: new Map(), folders: new Set() };
  #pending: DirectoryOperation[] = [];
  /** Writes that were issued and are not complete: a stop may leave them half done. */
  #writing = new Set<(share: number) => void>();
  /** Folders whose removal was begun. */
  #removing = new Set<string>();

  constructor(options: SimDiskOptions) {
    this.#random = options.random;
    this.#defer = options.defer ?? ((complete) => complete());
    this.quotaBytes = options.quotaBytes ?? Number.POSITIVE_INFINITY;
  }

  /** Bytes that files take: a sector counts once it was written to. */
  get usedBytes(): number {
    let sectors = 0;
    for (const inode of new Set(this.#cached.names.values())) sectors += inode.sectors;
    return sectors * sectorBytes;
  }

  /** Whether a write is under way. */
  get isWriting(): boolean {
    return this.#writing.size > 0;
  }

  paths(): string[] {
    return [...this.#cached.names.keys()].sort();
  }

  content(path: string): Buffer {
    const inode = this.#cached.names.get(path)!;
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
    this.#cached.names.set(path, inode);
    this.#durable.names.set(path, inode);
  }

  /** Changes bytes of a file on disk, as rot or a careless hand does. */
  overwrite(path: string, position: number, bytes: Buffer): void {
    const inode = this.#cached.names.get(path)!;
    inode.write(bytes, position);
    inode.synced(inode.order);
  }

  /** Sets a file's length, durably. */
  cut(path: string, bytes: number): void {
    const inode = this.#cached.names.get(path)!;
    inode.truncate(bytes);
    inode.synced(inode.order);
  }

  drop(path: string): void {
    this.#cached.names.delete(path);
    this.#durable.names.delete(path);
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
    const clonedTree = ({ names, folders }: Tree): Tree => ({
      names: new Map([...names].map(([path, inode]) => [path, cloned(inode)])),
      folders: new Set(folders),
    });
    copy.#cached = clonedTree(this.#cached);
    copy.#durable = clonedTree(this.#durable);
    copy.#pending = this.#pending.map((operation) =>
      'inode' in operation ? { ...operation, inode: cloned(operation.inode!) } : operation,
    );
    return copy;
  }

  /** The process ends at once; the system goes on, with all that it has in its cache. */
  kill(): void {
    this.#process++;
    for (const write of this.#writing) write(this.#random.next());
    this.#writing.clear();
    for (const folder of this.#removing) this.#removeFolder(folder, this.#random.next() * 0.9);
  }

  /** The power fails. */
  crash(mode: CrashMode): void {
    this.#process++;
    for (const write of this.#writing) write(1);
    this.#writing.clear();
    for (const folder of this.#removing) this.#removeFolder(folder, this.#random.next() * 0.9);
    for (const operation of this.#pending) {
      if (this.#random.next() < mode.keep) apply(operation, this.#durable);
    }
    this.#pending = [];
    this.#cached = {
      names: new Map(this.#durable.names),
      folders: new Set(this.#durable.folders),
    };
    for (const inode of new Set(this.#cached.names.values())) inode.crash(this.#random, mode);
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
        for (let i = 1; i <= parts.length; i++) {
          const path = parts.slice(0, i).join('/');
          this.#cached.folders.add(path);
          this.#durable.folders.add(path);
        }
      },
      rename: (from, to) =>
        call('rename', from, () => {
          const inode = this.#cached.names.get(from);
          if (this.#cached.folders.has(from)) this.#renameFolder(from, to);
          else this.#change({ kind: 'rename', path: from, to, inode });
        }),
      remove: (path) => call('remove', path, () => this.#change({ kind: 'unlink', path })),
      removeFolder: (folder) => {
        this.#removing.add(folder);
        return call('remove', folder, () => this.#removeFolder(folder, 1));
      },
      link: (from, to) =>
        call('link', from, () => {
          const inode = this.#cached.names.get(from);
          if (inode === undefined) throw failure('ENOENT', from);
          this.#change({ kind: 'link', path: to, inode });
        }),
      syncFolder: (folder) => call('syncFolder', folder, () => this.#syncFolder(folder)),
      freeBytes: async () => Math.max(0, this.quotaBytes - this.usedBytes),
    };
  }

  #list(folder: string): string[] {
    const names = new Set<string>();
    for (const path of [...this.#cached.names.keys(), ...this.#cached.folders]) {
      if (!path.startsWith(`${folder}/`)) continue;
      names.add(path.slice(folder.length + 1).split('/')[0]!);
    }
    return [...names].sort();
  }

  #change(operation: DirectoryOperation): void {
    if (!this.#cached.names.has(operation.path) && operation.kind !== 'link') {
      throw failure('ENOENT', operation.path);
    }
    apply(operation, this.#cached);
    this.#pending.push(operation);
  }

  /** Durably; of one that is interrupted any share of what was in it may be gone. */
  #removeFolder(folder: string, share: number): void {
    this.#removing.delete(folder);
    const isBelowIt = isBelow(folder);
    const isGone = (path: string) => isBelowIt(path) && this.#random.next() < share;
    const gone = new Set(
      [...this.#cached.names.keys(), ...this.#durable.names.keys()].filter(isGone),
    );
    this.#pending = this.#pending.filter(({ path }) => !isBelowIt(path));
    for (const { names, folders } of [this.#cached, this.#durable]) {
      for (const path of gone) names.delete(path);
      if (share < 1) continue;
      for (const path of [...folders].filter(isBelowIt)) folders.delete(path);
      folders.delete(folder);
    }
  }

  #renameFolder(path: string, to: string): void {
    if ([...this.#cached.names.keys()].some(isBelow(to))) throw failure('ENOTEMPTY', to);
    const operation = { kind: 'renameFolder', path, to } as const;
    apply(operation, this.#cached);
    this.#pending.push(operation);
  }

  #syncFolder(folder: string): void {
    if (this.lies === 'sync-does-nothing' || this.lies === 'folder-sync-does-nothing') return;
    const isIn = ({ path }: DirectoryOperation) => path.slice(0, path.lastIndexOf('/')) === folder;
    const done = this.#pending.filter(isIn);
    for (const operation of done) apply(operation, this.#durable);
    this.#pending = this.#pending.filter((operation) => !isIn(operation));
  }

  #open(path: string, mode: 'create' | 'write' | 'read', call: Call): JournalFile {
    let inode = this.#cached.names.get(path);
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

function apply(operation: DirectoryOperation, { names, folders }: Tree): void {
  const { kind, path } = operation;
  switch (kind) {
    case 'link':
      names.set(path, operation.inode);
      break;
    case 'unlink':
      names.delete(path);
      break;
    case 'rename':
      names.set(operation.to, operation.inode!);
      names.delete(path);
      break;
    case 'renameFolder':
      for (const [name, inode] of [...names]) {
        if (!isBelow(path)(name)) continue;
        names.set(operation.to + name.slice(path.length), inode);
        names.delete(name);
      }
      for (const folder of [...folders]) {
        if (folder !== path && !isBelow(path)(folder)) continue;
        folders.add(operation.to + folder.slice(path.length));
        folders.delete(folder);
      }
      break;
  }
}

function isBelow(folder: string): (path: string) => boolean {
  return (path) => path.startsWith(`${folder}/`);
}

function failure(code: string, what: string): Error {
  return Object.assign(new Error(`${code}: ${what}`), { code });
}
