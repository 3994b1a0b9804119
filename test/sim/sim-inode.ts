import type { Random } from '../../src/core/random.ts';

/** What a disk writes whole or not at all, most of the time. */
export const sectorBytes = 512;

interface Version<T> {
  readonly order: number;
  readonly value: T;
}

/** How much of what was not synced a crash keeps. */
export interface CrashMode {
  /** Chance that an unsynced sector, length or directory entry is one of its newer versions. */
  readonly keep: number;
  /** Chance that a kept sector is torn: new bytes first, old ones behind. */
  readonly tear: number;
}

/**
 * The content of one simulated file: as the running system sees it (cached), as it is on disk for
 * sure (durable), and every version in between. Sectors that were never written read as zeros.
 */
export class SimInode {
  #cached = new Map<number, Buffer>();
  #durable = new Map<number, Buffer>();
  /** Versions of a sector since it was last durable, oldest first; undefined: zeros. */
  #dirty = new Map<number, Version<Buffer | undefined>[]>();
  #length = 0;
  #durableLength = 0;
  #lengths: Version<number>[] = [];
  #order = 0;
  /** Syncs that failed, and how many of them somebody was told of. */
  failures = 0;
  failuresTold = 0;

  get length(): number {
    return this.#length;
  }

  /** Sectors that take space. */
  get sectors(): number {
    return this.#cached.size;
  }

  /** The newest version there is; what a sync that begins now makes durable. */
  get order(): number {
    return this.#order;
  }

  read(target: Buffer, at: number, bytes: number, position: number): number {
    const end = Math.min(position + bytes, this.#length);
    for (let from = position; from < end; ) {
      const sector = Math.floor(from / sectorBytes);
      const until = Math.min(end, (sector + 1) * sectorBytes);
      const content = this.#cached.get(sector);
      const to = at + from - position;
      if (content === undefined) target.fill(0, to, to + until - from);
      else content.copy(target, to, from - sector * sectorBytes, until - sector * sectorBytes);
      from = until;
    }
    return Math.max(0, end - position);
  }

  /** Sectors that writing these bytes would newly take. */
  newSectors(position: number, bytes: number): number {
    let count = 0;
    const last = Math.ceil((position + bytes) / sectorBytes);
    for (let sector = Math.floor(position / sectorBytes); sector < last; sector++) {
      if (!this.#cached.has(sector)) count++;
    }
    return count;
  }

  write(bytes: Buffer, position: number): void {
    for (let from = 0; from < bytes.length; ) {
      const sector = Math.floor((position + from) / sectorBytes);
      const inSector = position + from - sector * sectorBytes;
      const part = bytes.subarray(from, from + sectorBytes - inSector);
      const content = Buffer.alloc(sectorBytes);
      this.#cached.get(sector)?.copy(content);
      part.copy(content, inSector);
      this.#setSector(sector, content);
      from += part.length;
    }
    if (position + bytes.length > this.#length) this.#setLength(position + bytes.length);
  }

  truncate(bytes: number): void {
    for (const [sector, content] of [...this.#cached]) {
      const start = sector * sectorBytes;
      if (start >= bytes) this.#setSector(sector, undefined);
      else if (start + sectorBytes > bytes) {
        const cut = Buffer.from(content);
        cut.fill(0, bytes - start);
        this.#setSector(sector, cut);
      }
    }
    this.#setLength(bytes);
  }

  #setSector(sector: number, content: Buffer | undefined): void {
    if (content === undefined) this.#cached.delete(sector);
    else this.#cached.set(sector, content);
    const versions = this.#dirty.get(sector) ?? [];
    this.#dirty.set(sector, versions);
    versions.push({ order: ++this.#order, value: content });
  }

  #setLength(length: number): void {
    this.#length = length;
    this.#lengths.push({ order: ++this.#order, value: length });
  }

  /** A sync that began when `order` was the newest version is done. */
  synced(order: number): void {
    for (const sector of [...this.#dirty.keys()]) this.#makeDurable(sector, order);
    const length = this.#lengths.findLast((version) => version.order <= order);
    if (length !== undefined) this.#durableLength = length.value;
    this.#lengths = this.#lengths.filter((version) => version.order > order);
  }

  /**
   * A sync failed: some pages reached the disk, the others did not, and all of them count as clean
   * from now on. No later sync writes them, and reads show them until the machine goes down.
   */
  syncFailed(order: number, random: Random): void {
    this.failures++;
    for (const sector of [...this.#dirty.keys()]) {
      if (random.next() < 0.5) this.#makeDurable(sector, order);
      else this.#keepNewer(sector, order);
    }
    this.#lengths = this.#lengths.filter((version) => version.order > order);
  }

  #makeDurable(sector: number, order: number): void {
    const version = this.#dirty.get(sector)!.findLast((dirty) => dirty.order <= order);
    if (version !== undefined) setOrDelete(this.#durable, sector, version.value);
    this.#keepNewer(sector, order);
  }

  #keepNewer(sector: number, order: number): void {
    const newer = this.#dirty.get(sector)!.filter((version) => version.order > order);
    if (newer.length === 0) this.#dirty.delete(sector);
    else this.#dirty.set(sector, newer);
  }

  /** The power fails: of everything that was not synced, any part is on disk. */
  crash(random: Random, mode: CrashMode): void {
    for (const [sector, versions] of this.#dirty) {
      if (random.next() >= mode.keep) continue;
      const { value } = versions[Math.floor(random.next() * versions.length)]!;
      const torn = random.next() < mode.tear;
      const kept = torn ? tear(this.#durable.get(sector), value, random) : value;
      setOrDelete(this.#durable, sector, kept);
    }
    if (this.#lengths.length > 0 && random.next() < mode.keep) {
      const chosen = Math.floor(random.next() * this.#lengths.length);
      this.#durableLength = this.#lengths[chosen]!.value;
    }
    this.#cutDurable();
    this.#cached = new Map(this.#durable);
    this.#length = this.#durableLength;
    this.#dirty = new Map();
    this.#lengths = [];
  }

  #cutDurable(): void {
    for (const [sector, content] of [...this.#durable]) {
      const start = sector * sectorBytes;
      if (start >= this.#durableLength) this.#durable.delete(sector);
      else if (start + sectorBytes > this.#durableLength) {
        const cut = Buffer.from(content);
        cut.fill(0, this.#durableLength - start);
        this.#durable.set(sector, cut);
      }
    }
  }

  clone(): SimInode {
    const copy = new SimInode();
    copy.#cached = new Map(this.#cached);
    copy.#durable = new Map(this.#durable);
    copy.#dirty = new Map([...this.#dirty].map(([sector, versions]) => [sector, [...versions]]));
    copy.#length = this.#length;
    copy.#durableLength = this.#durableLength;
    copy.#lengths = [...this.#lengths];
    copy.#order = this.#order;
    copy.failures = this.failures;
    copy.failuresTold = this.failuresTold;
    return copy;
  }
}

function setOrDelete(map: Map<number, Buffer>, sector: number, content: Buffer | undefined): void {
  if (content === undefined) map.delete(sector);
  else map.set(sector, content);
}

function tear(old: Buffer | undefined, fresh: Buffer | undefined, random: Random): Buffer {
  const torn = Buffer.alloc(sectorBytes);
  old?.copy(torn);
  const until = Math.floor(random.next() * sectorBytes);
  torn.fill(0, 0, until);
  fresh?.copy(torn, 0, 0, until);
  return torn;
}
