import type { BlockCache, MissingBlock } from './block-cache.ts';
import { type ExtentTable, noRow } from './extent-table.ts';
import type { IndexBlock, IndexFile } from './index-file.ts';

/**
 * Called for extents in the order of their offsets; false ends the walk. Plain numbers and no
 * objects: a fetch passes over thousands of small batches.
 */
export type ExtentVisitor = (
  baseOffset: number,
  count: number,
  maxTimestamp: number,
  leaderEpoch: number,
  position: number,
  bytes: number,
) => boolean;

/** Where a walk over a partition's extents begins. */
export type WalkStart =
  /** The first extent that ends above the offset. */
  | { readonly offset: number }
  /** The first extent of a later leader epoch than this. */
  | { readonly epochAbove: number };

export interface Walk {
  readonly partition: number;
  readonly start: WalkStart;
  /** Extents whose greatest timestamp is below this may be left out. */
  readonly timestampMin?: number;
}

/** The extents of one journal file: in memory until it is sealed, then in an index file. */
export interface IndexedFile {
  readonly table: ExtentTable | undefined;
  readonly index: IndexFile | undefined;
}

/** A row of either kind of index. */
interface Rows {
  partition(row: number): number;
  baseOffset(row: number): number;
  endOffset(row: number): number;
  count(row: number): number;
  maxTimestamp(row: number): number;
  leaderEpoch(row: number): number;
  position(row: number): number;
  bytes(row: number): number;
}

type HeldBlocks = readonly {
  readonly file: IndexFile;
  readonly number: number;
  readonly block: IndexBlock;
}[];

/** Thrown within a walk when a block is not in memory; never leaves this file. */
class BlockNeeded {
  readonly missing: MissingBlock;
  constructor(missing: MissingBlock) {
    this.missing = missing;
  }
}

/**
 * All extents of a tenant, over all files, oldest first. Lookups are synchronous; when they need
 * an index block that is not in memory they say which, and the caller loads it and asks again.
 */
export class ExtentIndex {
  readonly #files: readonly IndexedFile[];
  readonly #cache: BlockCache;
  /** Blocks that the loading walk under way has read since its last step forward. */
  #held: HeldBlocks = [];

  constructor(files: readonly IndexedFile[], cache: BlockCache) {
    this.#files = files;
    this.#cache = cache;
  }

  /** Walks a partition's extents; answers the block that was missing, if the walk is not whole. */
  walk(walk: Walk, visit: ExtentVisitor): MissingBlock | undefined {
    try {
      this.#walk(walk, visit);
      return undefined;
    } catch (error) {
      if (error instanceof BlockNeeded) return error.missing;
      throw error;
    }
  }

  /**
   * As `walk`, but loads what is missing; the visitor sees no extent twice. The blocks that it has
   * loaded stay at hand until it gets on, so that it ends however small and busy the cache is.
   */
  async walkLoading(walk: Walk, visit: ExtentVisitor): Promise<void> {
    let seenEnd = -1;
    let held: { file: IndexFile; number: number; block: IndexBlock }[] = [];
    const once: ExtentVisitor = (base, count, maxTimestamp, epoch, position, bytes) => {
      if (base < seenEnd) return true;
      seenEnd = base + count;
      held = [];
      return visit(base, count, maxTimestamp, epoch, position, bytes);
    };
    for (;;) {
      const rest = seenEnd < 0 ? walk : { ...walk, start: { offset: seenEnd } };
      this.#held = held;
      const missing = this.walk(rest, once);
      this.#held = [];
      if (missing === undefined) return;
      const block = await this.#cache.load(missing);
      held.push({ file: missing.file, number: missing.block, block });
    }
  }

  async load(missing: MissingBlock): Promise<void> {
    await this.#cache.load(missing);
  }

  #walk(walk: Walk, visit: ExtentVisitor): void {
    const { partition, start } = walk;
    const timestampMin = walk.timestampMin ?? Number.NEGATIVE_INFINITY;
    const holds =
      'offset' in start
        ? (rows: Rows, row: number) => rows.endOffset(row) > start.offset
        : (rows: Rows, row: number) => rows.leaderEpoch(row) > start.epochAbove;
    let first = this.#fileToStart(partition, holds);
    for (; first < this.#files.length; first++) {
      const { table, index } = this.#files[first]!;
      let goOn = true;
      if (table !== undefined) goOn = walkTable(table, partition, start, visit);
      else if (index?.mayHold(partition) && index.facts.maxTimestamp >= timestampMin) {
        goOn = this.#walkIndex(index, partition, holds, timestampMin, visit);
      }
      if (!goOn) return;
    }
  }

  /**
   * The last file whose first extent of the partition does not hold yet: what is looked for is in
   * it, or is the first extent of a later one. Binary search over files, O(log) block reads.
   */
  #fileToStart(partition: number, holds: (rows: Rows, row: number) => boolean): number {
    let low = 0;
    let high = this.#files.length;
    let best = 0;
    while (low < high) {
      const middle = (low + high) >>> 1;
      let probe = middle;
      let first: { rows: Rows; row: number } | undefined;
      while (probe >= low) {
        first = this.#firstRow(this.#files[probe]!, partition);
        if (first !== undefined) break;
        probe--;
      }
      if (first === undefined) low = middle + 1;
      else if (holds(first.rows, first.row)) high = probe;
      else {
        best = probe;
        low = middle + 1;
      }
    }
    return best;
  }

  #firstRow(file: IndexedFile, partition: number): { rows: Rows; row: number } | undefined {
    if (file.table !== undefined) {
      const row = file.table.first(partition);
      return row === noRow ? undefined : { rows: file.table, row };
    }
    const { index } = file;
    if (!index?.mayHold(partition)) return undefined;
    const row = this.#lowerBound(index, partition, () => true);
    return row === undefined ? undefined : { rows: row.block, row: row.row };
  }

  /** The first row of the partition that holds, in an index file. */
  #lowerBound(
    index: IndexFile,
    partition: number,
    holds: (rows: Rows, row: number) => boolean,
  ): { block: IndexBlock; row: number; number: number } | undefined {
    const isBefore = (rows: Rows, row: number): boolean => {
      const at = rows.partition(row);
      return at < partition || (at === partition && !holds(rows, row));
    };
    let low = index.firstBlockOf(partition);
    let high = index.endBlockOf(partition);
    // The last block that begins before the wanted row, then the row within it or after it.
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (isBefore(this.#block(index, middle), 0)) low = middle;
      else high = middle;
    }
    for (let number = low; number < index.blocks; number++) {
      const block = this.#block(index, number);
      let from = 0;
      let to = block.rows;
      while (from < to) {
        const middle = (from + to) >>> 1;
        if (isBefore(block, middle)) from = middle + 1;
        else to = middle;
      }
      if (from === block.rows) continue;
      return block.partition(from) === partition ? { block, row: from, number } : undefined;
    }
    return undefined;
  }

  #walkIndex(
    index: IndexFile,
    partition: number,
    holds: (rows: Rows, row: number) => boolean,
    timestampMin: number,
    visit: ExtentVisitor,
  ): boolean {
    const found = this.#lowerBound(index, partition, holds);
    if (found === undefined) return true;
    let { row } = found;
    for (let number = found.number; number < index.blocks; number++) {
      const from = row;
      row = 0;
      if (index.blockMaxTimestamp(number) < timestampMin) continue;
      const block = this.#block(index, number);
      for (let at = from; at < block.rows; at++) {
        if (block.partition(at) !== partition) return true;
        if (!visitRow(block, at, visit)) return false;
      }
    }
    return true;
  }

  #block(index: IndexFile, block: number): IndexBlock {
    const held = this.#held.find((other) => other.file === index && other.number === block);
    const found = held?.block ?? this.#cache.get(index, block);
    if (found === undefined) throw new BlockNeeded({ file: index, block });
    return found;
  }
}

function walkTable(
  table: ExtentTable,
  partition: number,
  start: WalkStart,
  visit: ExtentVisitor,
): boolean {
  let row =
    'offset' in start
      ? table.findOffset(partition, start.offset)
      : table.findEpochAbove(partition, start.epochAbove);
  for (; row !== noRow; row = table.next(row)) if (!visitRow(table, row, visit)) return false;
  return true;
}

function visitRow(rows: Rows, row: number, visit: ExtentVisitor): boolean {
  return visit(
    rows.baseOffset(row),
    rows.count(row),
    rows.maxTimestamp(row),
    rows.leaderEpoch(row),
    rows.position(row),
    rows.bytes(row),
  );
}
