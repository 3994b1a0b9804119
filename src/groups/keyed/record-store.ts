import { assert } from '../../core/assert.ts';

/** One stored batch with the keys of its records, as the feed found them. */
export interface FiledBatch {
  /** Stored partition. */
  readonly partition: number;
  readonly baseOffset: number;
  /** Last offset - base offset + 1. */
  readonly offsetCount: number;
  /** Where the batch begins in the journal: batches are filed in the order of these. */
  readonly position: number;
  readonly bytes: number;
  /** By offset - base offset: the ordering key, null without one, undefined without a record. */
  readonly keys: readonly (string | null | undefined)[];
  /** By offset - base offset: where the record ends in the opened batch. */
  readonly ends: readonly number[];
}

export const RecordState = {
  /** Finished, or there never was one. */
  gone: 0,
  pending: 1,
  granted: 2,
  /** Waits no longer, but is still a link between records of its key. */
  deleted: 3,
  /** Has no key, and waits for something else than a consumer. */
  parked: 4,
} as const;

/** No record, key or range. */
export const none = -1;
/** The key of a record that has none: it is bound to no other. */
export const unkeyed = -2;

const initialRecords = 1024;
const initialBatches = 64;

/**
 * The loaded records in columns, a block of neighbouring ones for each batch. A record is named by
 * its place (`ref`), a batch by its own (`batch`); both are given anew when the batch is let go.
 */
export class RecordStore {
  state = new Uint8Array(initialRecords);
  key = new Int32Array(initialRecords);
  /** The next record of the same key, `none` for the last one, and its batch, by turns. */
  #links = new Int32Array(2 * initialRecords);
  /** Where it ends in its opened batch; a record begins where the one before it ends. */
  end = new Uint32Array(initialRecords);
  batchOf = new Int32Array(initialRecords);
  /** 1 where it came back from a member that had been sent it. */
  wasSent = new Uint8Array(initialRecords);

  partition = new Int32Array(initialBatches);
  baseOffset = new Float64Array(initialBatches);
  position = new Float64Array(initialBatches);
  bytes = new Int32Array(initialBatches);
  count = new Int32Array(initialBatches);
  /** Records that are not gone. */
  live = new Int32Array(initialBatches);
  /** The first record's place. */
  first = new Int32Array(initialBatches);

  #recordsUsed = 0;
  readonly #freeBlocks = new Map<number, number[]>();
  #batchesUsed = 0;
  readonly #freeBatches: number[] = [];
  #batches = 0;
  #records = 0;

  get batches(): number {
    return this.#batches;
  }

  /** Places of records in use, unused ends of blocks not counted. */
  get records(): number {
    return this.#records;
  }

  /** All records are `gone` at first. */
  add(batch: FiledBatch): number {
    const id = this.#freeBatches.pop() ?? this.#batchesUsed++;
    if (id === this.partition.length) this.#growBatches();
    const count = batch.offsetCount;
    const first = this.#takeBlock(blockSize(count));
    this.partition[id] = batch.partition;
    this.baseOffset[id] = batch.baseOffset;
    this.position[id] = batch.position;
    this.bytes[id] = batch.bytes;
    this.count[id] = count;
    this.live[id] = 0;
    this.first[id] = first;
    for (let i = 0; i < count; i++) {
      this.state[first + i] = RecordState.gone;
      this.#links[2 * (first + i)] = none;
      this.wasSent[first + i] = 0;
      this.batchOf[first + i] = id;
      this.end[first + i] = batch.ends[i] ?? 0;
    }
    this.#batches++;
    this.#records += count;
    return id;
  }

  /** `to`, of the batch `batch`, is the next record of its key. */
  link(ref: number, to: number, batch: number): void {
    this.#links[2 * ref] = to;
    this.#links[2 * ref + 1] = batch;
  }

  next(ref: number): number {
    return this.#links[2 * ref]!;
  }

  /** The batch of `next`, which may be far away from here and in no cache. */
  nextBatch(ref: number): number {
    return this.#links[2 * ref + 1]!;
  }

  /** Lets a batch go, in which no record is alive. */
  free(id: number): void {
    assert(this.live[id] === 0, 'a batch with records stays');
    const count = this.count[id]!;
    const size = blockSize(count);
    const free = this.#freeBlocks.get(size);
    if (free === undefined) this.#freeBlocks.set(size, [this.first[id]!]);
    else free.push(this.first[id]!);
    // So that an entry of a queue that names a record of it can tell.
    this.position[id] = Number.NaN;
    this.#freeBatches.push(id);
    this.#batches--;
    this.#records -= count;
  }

  /** All loaded batches of a stored partition. */
  batchesOf(partition: number): number[] {
    const found: number[] = [];
    for (let id = 0; id < this.#batchesUsed; id++) {
      if (this.live[id]! > 0 && this.partition[id] === partition) found.push(id);
    }
    return found;
  }

  offset(ref: number): number {
    const batch = this.batchOf[ref]!;
    return this.baseOffset[batch]! + (ref - this.first[batch]!);
  }

  /** How many bytes the record takes in its opened batch, its framing included. */
  recordBytes(ref: number): number {
    const batch = this.batchOf[ref]!;
    return this.end[ref]! - (ref === this.first[batch] ? 0 : this.end[ref - 1]!);
  }

  /** Whether `a` was appended before `b`. */
  isBefore(a: number, b: number): boolean {
    const batchA = this.batchOf[a]!;
    const batchB = this.batchOf[b]!;
    if (batchA === batchB) return a < b;
    const [positionA, positionB] = [this.position[batchA]!, this.position[batchB]!];
    // A batch may be loaded twice, each time for other records of it.
    return positionA === positionB ? this.offset(a) < this.offset(b) : positionA < positionB;
  }

  #takeBlock(size: number): number {
    const free = this.#freeBlocks.get(size)?.pop();
    if (free !== undefined) return free;
    const first = this.#recordsUsed;
    this.#recordsUsed += size;
    if (this.#recordsUsed > this.state.length) this.#growRecords(this.#recordsUsed);
    return first;
  }

  #growRecords(atLeast: number): void {
    let length = this.state.length;
    while (length < atLeast) length += length >> 1;
    this.state = grown(this.state, new Uint8Array(length));
    this.key = grown(this.key, new Int32Array(length));
    this.#links = grown(this.#links, new Int32Array(2 * length));
    this.end = grown(this.end, new Uint32Array(length));
    this.batchOf = grown(this.batchOf, new Int32Array(length));
    this.wasSent = grown(this.wasSent, new Uint8Array(length));
  }

  #growBatches(): void {
    const length = this.partition.length * 2;
    this.partition = grown(this.partition, new Int32Array(length));
    this.baseOffset = grown(this.baseOffset, new Float64Array(length));
    this.position = grown(this.position, new Float64Array(length));
    this.bytes = grown(this.bytes, new Int32Array(length));
    this.count = grown(this.count, new Int32Array(length));
    this.live = grown(this.live, new Int32Array(length));
    this.first = grown(this.first, new Int32Array(length));
  }
}

/** A size that holds so many records; there are few sizes, so that blocks fit again. */
function blockSize(count: number): number {
  const step = count <= 8 ? 1 : 2 ** (28 - Math.clz32(count - 1));
  return Math.ceil(count / step) * step;
}

export function grown<A extends { set(from: A): void }>(from: A, to: A): A {
  to.set(from);
  return to;
}
