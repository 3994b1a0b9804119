/**
 * Gives the partitions of a fetch row numbers, by topic and index, without a key or an object for
 * each: a session may have 100,000. Rows of removed partitions are used again.
 *
 * A hash table with linear probing, at most half full. Clients choose the indexes, so the hash is
 * seeded: nobody can send many that meet in one place.
 */
export const noRow = -1;

const freeTopic = 0xffffffff;

export class PartitionRows {
  readonly #seed: number;
  #topic: Uint32Array;
  /** The index of a partition; in a free row, the next free one. */
  #index: Int32Array;
  /** Row + 1; 0 is an empty bucket. */
  #buckets: Int32Array;
  /** Rows from here on were never used. */
  #end = 0;
  #firstFree = noRow;
  #size = 0;

  /** With room for so many, beyond which it grows. */
  constructor(seed: number, rows: number) {
    const capacity = Math.max(1, rows);
    this.#seed = seed;
    this.#topic = new Uint32Array(capacity);
    this.#index = new Int32Array(capacity);
    this.#buckets = new Int32Array(bucketsFor(capacity));
  }

  get size(): number {
    return this.#size;
  }

  /** All rows are below this. */
  get capacity(): number {
    return this.#topic.length;
  }

  get end(): number {
    return this.#end;
  }

  topic(row: number): number {
    return this.#topic[row]!;
  }

  index(row: number): number {
    return this.#index[row]!;
  }

  isUsed(row: number): boolean {
    return this.#topic[row] !== freeTopic;
  }

  find(topic: number, index: number): number {
    return this.#buckets[this.#bucketOf(topic, index)]! - 1;
  }

  /** The row of a partition that has none yet. */
  add(topic: number, index: number): number {
    let row = this.#firstFree;
    if (row !== noRow) this.#firstFree = this.#index[row]!;
    else {
      // There is no free row, so all are used that are copied here.
      if (this.#end === this.capacity) this.#grow(this.#end * 2);
      row = this.#end++;
    }
    this.#topic[row] = topic;
    this.#index[row] = index;
    this.#buckets[this.#bucketOf(topic, index)] = row + 1;
    this.#size++;
    return row;
  }

  remove(row: number): void {
    this.#empty(this.#bucketOf(this.#topic[row]!, this.#index[row]!));
    this.#topic[row] = freeTopic;
    this.#index[row] = this.#firstFree;
    this.#firstFree = row;
    this.#size--;
  }

  /** The bucket that holds the partition, or the empty one where it would go. */
  #bucketOf(topic: number, index: number): number {
    const mask = this.#buckets.length - 1;
    let bucket = this.#hash(topic, index) & mask;
    for (;;) {
      const row = this.#buckets[bucket]! - 1;
      if (row < 0 || (this.#index[row] === index && this.#topic[row] === topic)) return bucket;
      bucket = (bucket + 1) & mask;
    }
  }

  /** Rows behind an emptied bucket move up, so that no search ends too early (Knuth 6.4, R). */
  #empty(bucket: number): void {
    const mask = this.#buckets.length - 1;
    let hole = bucket;
    this.#buckets[hole] = 0;
    for (let at = (hole + 1) & mask; this.#buckets[at] !== 0; at = (at + 1) & mask) {
      const row = this.#buckets[at]! - 1;
      const home = this.#hash(this.#topic[row]!, this.#index[row]!) & mask;
      if (((at - home) & mask) < ((at - hole) & mask)) continue;
      this.#buckets[hole] = row + 1;
      this.#buckets[at] = 0;
      hole = at;
    }
  }

  #hash(topic: number, index: number): number {
    let hash = Math.imul(topic ^ this.#seed, 0x9e3779b1) ^ Math.imul(index, 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 16), 0xc2b2ae35);
    return hash ^ (hash >>> 15);
  }

  #grow(rows: number): void {
    const { length } = this.#topic;
    this.#topic = copied(this.#topic, new Uint32Array(rows));
    this.#index = copied(this.#index, new Int32Array(rows));
    this.#buckets = new Int32Array(bucketsFor(rows));
    for (let row = 0; row < length; row++) {
      this.#buckets[this.#bucketOf(this.#topic[row]!, this.#index[row]!)] = row + 1;
    }
  }
}

/** A power of two. */
function bucketsFor(rows: number): number {
  return 2 ** Math.ceil(Math.log2(rows * 2));
}

function copied<T extends Int32Array | Uint32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
