import { blockBytes, type IndexBlock, type IndexFile } from './index-file.ts';

/** A block that a lookup needs and that is not in memory: load it and look up again. */
export interface MissingBlock {
  readonly file: IndexFile;
  readonly block: number;
}

/**
 * The index blocks used last, within a bound of bytes; shared by all index files. A block that was
 * used since its turn came has a second chance: an exact order costs more than the lookups.
 */
export class BlockCache {
  readonly #blocksMax: number;
  readonly #blocks = new Map<IndexFile, Map<number, IndexBlock>>();
  /** In the order of their turns. */
  readonly #order = new Map<IndexBlock, MissingBlock>();
  readonly #loading = new Map<IndexFile, Map<number, Promise<IndexBlock>>>();

  constructor(bytesMax: number) {
    this.#blocksMax = Math.max(1, Math.floor(bytesMax / blockBytes));
  }

  get(file: IndexFile, block: number): IndexBlock | undefined {
    const found = this.#blocks.get(file)?.get(block);
    if (found !== undefined) found.wasUsed = true;
    return found;
  }

  /** Reads the block from disk; calls for the same block at the same time share one read. */
  async load({ file, block }: MissingBlock): Promise<IndexBlock> {
    const loading = this.#loading.get(file) ?? new Map<number, Promise<IndexBlock>>();
    this.#loading.set(file, loading);
    const underWay = loading.get(block);
    if (underWay !== undefined) return underWay;
    const reading = file.readBlock(block);
    loading.set(block, reading);
    try {
      const read = await reading;
      this.#add(file, block, read);
      return read;
    } finally {
      loading.delete(block);
      if (loading.size === 0) this.#loading.delete(file);
    }
  }

  #add(file: IndexFile, block: number, read: IndexBlock): void {
    const blocks = this.#blocks.get(file) ?? new Map<number, IndexBlock>();
    this.#blocks.set(file, blocks);
    blocks.set(block, read);
    read.wasUsed = true;
    this.#order.set(read, { file, block });
    while (this.#order.size > this.#blocksMax) {
      const [oldest, key] = this.#order.entries().next().value!;
      this.#order.delete(oldest);
      if (oldest.wasUsed) {
        oldest.wasUsed = false;
        this.#order.set(oldest, key);
        continue;
      }
      const of = this.#blocks.get(key.file);
      of?.delete(key.block);
      if (of?.size === 0) this.#blocks.delete(key.file);
    }
  }

  /** Forgets all blocks of a file that is being deleted. */
  drop(file: IndexFile): void {
    for (const block of this.#blocks.get(file)?.values() ?? []) this.#order.delete(block);
    this.#blocks.delete(file);
  }
}
