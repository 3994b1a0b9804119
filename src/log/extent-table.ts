/**
 * The extents of one journal file that is not sealed yet, in typed columns: about 50 bytes each,
 * no objects. Rows are in journal order. The rows of a partition form a chain in both directions;
 * `jump` pointers (Myers, "An applicative random-access stack", 1983) make a search by offset or
 * epoch O(log n) without any array per partition, so that a partition costs nothing here until it
 * is written to, and then a single map entry.
 */

export const noRow = 0xffffffff;

const rowsInitial = 1024;
const chainsInitial = 64;

/** Where one stored batch lies, and what of it a search needs. */
export interface Extent {
  readonly partition: number;
  readonly baseOffset: number;
  /** Offsets that the batch takes: last offset = baseOffset + count - 1. */
  readonly count: number;
  /** Greatest record timestamp, ms; -1 where there is none. */
  readonly maxTimestamp: number;
  readonly leaderEpoch: number;
  /** In the journal. */
  readonly position: number;
  readonly bytes: number;
}

export class ExtentTable {
  /** Positions are kept relative to the file's base. */
  readonly basePosition: number;
  #rows = 0;
  #partition = new Uint32Array(rowsInitial);
  #baseOffset = new Float64Array(rowsInitial);
  #count = new Uint32Array(rowsInitial);
  #maxTimestamp = new Float64Array(rowsInitial);
  #leaderEpoch = new Uint32Array(rowsInitial);
  #position = new Uint32Array(rowsInitial);
  #bytes = new Uint32Array(rowsInitial);
  #previous = new Uint32Array(rowsInitial);
  #next = new Uint32Array(rowsInitial);
  #jump = new Uint32Array(rowsInitial);
  #depth = new Uint32Array(rowsInitial);
  /** Which chain is a partition's; and the rows at the ends of each. */
  readonly #chains = new Map<number, number>();
  #first = new Uint32Array(chainsInitial);
  #last = new Uint32Array(chainsInitial);

  constructor(basePosition: number) {
    this.basePosition = basePosition;
  }

  get rows(): number {
    return this.#rows;
  }

  /** Partition numbers that have extents here, in no order. */
  partitions(): IterableIterator<number> {
    return this.#chains.keys();
  }

  partition(row: number): number {
    return this.#partition[row]!;
  }
  baseOffset(row: number): number {
    return this.#baseOffset[row]!;
  }
  count(row: number): number {
    return this.#count[row]!;
  }
  endOffset(row: number): number {
    return this.#baseOffset[row]! + this.#count[row]!;
  }
  maxTimestamp(row: number): number {
    return this.#maxTimestamp[row]!;
  }
  leaderEpoch(row: number): number {
    return this.#leaderEpoch[row]!;
  }
  position(row: number): number {
    return this.basePosition + this.#position[row]!;
  }
  bytes(row: number): number {
    return this.#bytes[row]!;
  }
  /** The partition's next row, or noRow. */
  next(row: number): number {
    return this.#next[row]!;
  }
  /** The partition's oldest row, or noRow. */
  first(partition: number): number {
    const chain = this.#chains.get(partition);
    return chain === undefined ? noRow : this.#first[chain]!;
  }
  last(partition: number): number {
    const chain = this.#chains.get(partition);
    return chain === undefined ? noRow : this.#last[chain]!;
  }

  /** Extents of a partition are added in the order of their offsets. */
  add(extent: Extent): void {
    const row = this.#rows++;
    if (row === this.#partition.length) this.#grow();
    const { partition } = extent;
    this.#partition[row] = partition;
    this.#baseOffset[row] = extent.baseOffset;
    this.#count[row] = extent.count;
    this.#maxTimestamp[row] = extent.maxTimestamp;
    this.#leaderEpoch[row] = extent.leaderEpoch;
    this.#position[row] = extent.position - this.basePosition;
    this.#bytes[row] = extent.bytes;
    this.#next[row] = noRow;
    const chain = this.#chains.get(partition);
    this.#link(row, chain === undefined ? noRow : this.#last[chain]!);
    if (chain === undefined) this.#addChain(partition, row);
    else this.#last[chain] = row;
  }

  #addChain(partition: number, row: number): void {
    const chain = this.#chains.size;
    if (chain === this.#first.length) {
      this.#first = grown(this.#first, new Uint32Array(chain * 2));
      this.#last = grown(this.#last, new Uint32Array(chain * 2));
    }
    this.#first[chain] = row;
    this.#last[chain] = row;
    this.#chains.set(partition, chain);
  }

  /** Chains a row behind `parent` and sets its jump pointer in constant time. */
  #link(row: number, parent: number): void {
    this.#previous[row] = parent;
    if (parent === noRow) {
      this.#jump[row] = noRow;
      this.#depth[row] = 0;
      return;
    }
    this.#next[parent] = row;
    this.#depth[row] = this.#depth[parent]! + 1;
    const jump = this.#jump[parent]!;
    const farther = jump === noRow ? noRow : this.#jump[jump]!;
    const doubles =
      jump !== noRow &&
      farther !== noRow &&
      this.#depth[parent]! - this.#depth[jump]! === this.#depth[jump]! - this.#depth[farther]!;
    this.#jump[row] = doubles ? farther : parent;
  }

  /** The partition's first row that ends above `offset`, or noRow. */
  findOffset(partition: number, offset: number): number {
    return this.#findFirst(partition, (row) => this.endOffset(row) > offset);
  }

  /** The partition's first row of an epoch above `epoch`, or noRow. */
  findEpochAbove(partition: number, epoch: number): number {
    return this.#findFirst(partition, (row) => this.#leaderEpoch[row]! > epoch);
  }

  /** The first row for which `holds`; once it holds for a row, it holds for all later ones. */
  #findFirst(partition: number, holds: (row: number) => boolean): number {
    let row = this.last(partition);
    if (row === noRow || !holds(row)) return noRow;
    for (;;) {
      const jump = this.#jump[row]!;
      if (jump !== noRow && holds(jump)) {
        row = jump;
        continue;
      }
      const previous = this.#previous[row]!;
      if (previous === noRow || !holds(previous)) return row;
      row = previous;
    }
  }

  #grow(): void {
    const rows = this.#partition.length * 2;
    this.#partition = grown(this.#partition, new Uint32Array(rows));
    this.#baseOffset = grown(this.#baseOffset, new Float64Array(rows));
    this.#count = grown(this.#count, new Uint32Array(rows));
    this.#maxTimestamp = grown(this.#maxTimestamp, new Float64Array(rows));
    this.#leaderEpoch = grown(this.#leaderEpoch, new Uint32Array(rows));
    this.#position = grown(this.#position, new Uint32Array(rows));
    this.#bytes = grown(this.#bytes, new Uint32Array(rows));
    this.#previous = grown(this.#previous, new Uint32Array(rows));
    this.#next = grown(this.#next, new Uint32Array(rows));
    this.#jump = grown(this.#jump, new Uint32Array(rows));
    this.#depth = grown(this.#depth, new Uint32Array(rows));
  }
}

function grown<T extends Uint32Array | Float64Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
