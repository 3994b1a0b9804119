import type { LentBuffer } from './buffer-pool.ts';

/** A stored batch that was read before anyone asked for it. It holds its buffer. */
export interface AheadBatch {
  readonly position: number;
  readonly buffer: LentBuffer;
  /** The batch, a view of the buffer. */
  readonly piece: Buffer;
}

/** What was read ahead together. */
interface Group {
  readonly buffers: number;
  readonly batches: readonly AheadBatch[];
  /** Batches that nobody has taken yet. */
  left: number;
  readonly bornAt: number;
  /** Set while it is being read. */
  reading: Promise<void> | undefined;
}

interface Held {
  readonly batch: AheadBatch;
  readonly group: Group;
}

/** What nobody has taken after so many other reads may make room: its reader has gone elsewhere. */
const readsPatience = 64;
/** Continuations remembered: readers of so many partitions at a time count as sequential. */
const readersMax = 1024;

/**
 * What sequential readers will ask for next. While a client works on an answer, the broker reads
 * on; else each waits for the other in turn. Bounded by buffers: what does not fit is not read
 * ahead, and what is waiting for its reader is not pushed out by what others will want.
 */
export class ReadAhead {
  readonly #buffersMax: number;
  #buffers = 0;
  #reads = 0;
  readonly #byPosition = new Map<number, Held>();
  /** In the order of their reads. */
  readonly #groups = new Set<Group>();
  /** Where answers ended: a read that begins there goes on. */
  readonly #ends = new Set<string>();

  constructor(buffersMax: number) {
    this.#buffersMax = buffersMax;
  }

  /** Notes a read of a partition; answers whether it goes on where an earlier one ended. */
  follow(partition: number, start: number, end: number): boolean {
    const isSequential = this.#ends.delete(`${partition}:${start}`);
    this.#ends.add(`${partition}:${end}`);
    if (this.#ends.size > readersMax) this.#ends.delete(this.#ends.values().next().value!);
    return isSequential;
  }

  has(position: number): boolean {
    return this.#byPosition.has(position);
  }

  /** What has to be waited for before the batches at these positions can be taken. */
  pending(positions: readonly number[]): Promise<void> | undefined {
    if (this.#byPosition.size === 0) return undefined;
    for (const position of positions) {
      const reading = this.#byPosition.get(position)?.group.reading;
      if (reading !== undefined) return reading;
    }
    return undefined;
  }

  /** The batch, if it is here: the caller holds its buffer from now on. */
  take(position: number): AheadBatch | undefined {
    const held = this.#byPosition.get(position);
    if (held === undefined || held.group.reading !== undefined) return undefined;
    this.#byPosition.delete(position);
    this.#leave(held.group);
    return held.batch;
  }

  /** Does a reader go on here, that has not come yet? */
  isAwaited(partition: number, start: number): boolean {
    return this.#ends.has(`${partition}:${start}`);
  }

  /** Buffers that may be filled. */
  get room(): number {
    return this.#buffersMax - this.#buffers;
  }

  /** Makes room of what nobody came for; to be called before each read ahead. */
  dropForgotten(): void {
    this.#reads++;
    for (const group of this.#groups) {
      if (this.room > 0 || group.reading !== undefined) return;
      if (this.#reads - group.bornAt <= readsPatience) return;
      this.#drop(group);
    }
  }

  /** Batches to come in so many buffers, when `reading` is done. Rejects as that does. */
  async add(batches: readonly AheadBatch[], buffers: number, reading: Promise<void>) {
    const group: Group = {
      buffers,
      batches,
      left: batches.length,
      bornAt: this.#reads,
      // Who waits for it only wants to know when.
      reading: reading.catch(() => undefined),
    };
    for (const batch of batches) this.#byPosition.set(batch.position, { batch, group });
    this.#groups.add(group);
    this.#buffers += buffers;
    try {
      await reading;
      group.reading = undefined;
    } catch (error) {
      group.reading = undefined;
      this.#drop(group);
      throw error;
    }
  }

  #drop(group: Group): void {
    for (const { position, buffer } of group.batches) {
      if (this.#byPosition.get(position)?.group !== group) continue;
      this.#byPosition.delete(position);
      buffer.letGo();
      this.#leave(group);
    }
  }

  #leave(group: Group): void {
    group.left--;
    if (group.left > 0) return;
    this.#groups.delete(group);
    this.#buffers -= group.buffers;
  }
}
