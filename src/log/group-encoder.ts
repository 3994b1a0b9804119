import {
  align,
  batchTableRowBytes,
  type Entry,
  entryBytes,
  entryHeadBytes,
  groupHeaderBytes,
  type StoredEntry,
  writeEntryHead,
  writeGroupHeader,
} from './format.ts';

/** Batches below this are copied beside their entry's head: cheaper than a piece of writev each. */
const copyBytesMax = 4096;

export interface EncodedGroup {
  /** The group's bytes in order. Each batch lies within one piece. */
  readonly pieces: readonly Buffer[];
  readonly bytes: number;
  /** The entries with the positions of their batches, which are views into the pieces. */
  readonly entries: readonly StoredEntry[];
}

/** Batches in all entries of a group. */
export function batchCount(group: EncodedGroup): number {
  let count = 0;
  for (const { batches } of group.entries) count += batches.length;
  return count;
}

export interface GroupPlace {
  readonly position: number;
  readonly syncedPosition: number;
  readonly writtenMs: number;
  readonly salt: number;
}

/** Lays out one group-commit write. Large batches are referenced, not copied. */
export function encodeGroup(entries: readonly Entry[], place: GroupPlace): EncodedGroup {
  let bodyBytes = 0;
  let scratchBytes = groupHeaderBytes;
  for (const entry of entries) {
    bodyBytes += entryBytes(entry);
    scratchBytes += entryHeadBytes(entry);
    for (const batch of entry.batches)
      if (batch.length < copyBytesMax) scratchBytes += batch.length;
  }
  const padding = align(bodyBytes) - bodyBytes;
  const scratch = Buffer.allocUnsafe(scratchBytes + padding);
  writeGroupHeader(scratch, 0, { ...place, entryCount: entries.length, bodyBytes });
  const layout = new Layout(scratch, place.position);
  const stored = entries.map((entry) => layout.add(entry));
  layout.pad(padding);
  return {
    pieces: layout.finish(),
    bytes: groupHeaderBytes + bodyBytes + padding,
    entries: stored,
  };
}

/** Fills the scratch buffer and cuts it into pieces around the batches that are referenced. */
class Layout {
  readonly #scratch: Buffer;
  readonly #pieces: Buffer[] = [];
  #position: number;
  #at = groupHeaderBytes;
  #cutAt = 0;

  constructor(scratch: Buffer, position: number) {
    this.#scratch = scratch;
    this.#position = position + groupHeaderBytes;
  }

  add(entry: Entry): StoredEntry {
    const headAt = this.#at;
    this.#at = writeEntryHead(this.#scratch, headAt, entry);
    this.#position += this.#at - headAt;
    const metaAt = this.#at - entry.meta.length;
    const positions: number[] = [];
    const batches: Buffer[] = [];
    for (const batch of entry.batches) {
      positions.push(this.#position);
      batches.push(batch.length < copyBytesMax ? this.#copy(batch) : this.#reference(batch));
      this.#position += batch.length;
    }
    return {
      type: entry.type,
      version: entry.version,
      tenant: entry.tenant,
      term: entry.term,
      index: entry.index,
      meta: this.#scratch.subarray(metaAt, metaAt + entry.meta.length),
      batches,
      partitions: entry.partitions,
      positions,
    };
  }

  #copy(batch: Buffer): Buffer {
    const at = this.#at;
    this.#scratch.set(batch, at);
    this.#at = at + batch.length;
    return this.#scratch.subarray(at, this.#at);
  }

  #reference(batch: Buffer): Buffer {
    this.#cut();
    this.#pieces.push(batch);
    return batch;
  }

  #cut(): void {
    if (this.#at > this.#cutAt) this.#pieces.push(this.#scratch.subarray(this.#cutAt, this.#at));
    this.#cutAt = this.#at;
  }

  pad(bytes: number): void {
    this.#scratch.fill(0, this.#at, this.#at + bytes);
    this.#at += bytes;
  }

  finish(): Buffer[] {
    this.#cut();
    return this.#pieces;
  }
}

/** Upper bound of what an entry adds to a group, for grouping decisions before encoding. */
export function entryBytesBound(metaBytes: number, batches: readonly Buffer[]): number {
  let bytes = 64 + metaBytes + batches.length * batchTableRowBytes;
  for (const batch of batches) bytes += batch.length;
  return bytes;
}
