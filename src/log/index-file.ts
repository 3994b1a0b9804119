import { assert } from '../core/assert.ts';
import { crc32c } from '../core/crc32c.ts';
import { type ExtentTable, noRow } from './extent-table.ts';
import { type FilePort, isCode, type JournalFile } from './file-port.ts';

/**
 * The extents of a sealed journal file on disk, sorted by partition and offset. It holds nothing
 * that could not be found again in the journal file, so a missing or damaged one is rebuilt.
 *
 *   file   = header (64) block* sparse filter
 *   header = magic "KLIX" | u16 version | u16 zero | u32 rows | u32 filterBytes
 *          | f64 basePosition | f64 maxTimestamp | zeros
 *          | u32 crc of header, sparse and filter (with this field zero)
 *   block (4096) = 102 rows | u32 crc | zeros        the last one is padded with zeros
 *   row (40)     = u32 partition | u32 count | f64 baseOffset | f64 maxTimestamp
 *                | u32 position in the journal file | u32 bytes | u32 leaderEpoch | u32 zero
 *   sparse       = (u32 partition | f64 baseOffset | f64 maxTimestamp of the block)*   per block
 *   filter       = a Bloom filter of the partition numbers
 *
 * Memory keeps sparse and filter: 20 bytes for each 102 extents.
 */

export const indexVersion = 1;
export const blockBytes = 4096;
const headerBytes = 64;
const rowBytes = 40;
export const rowsPerBlock = 102;
const blockCrcAt = rowsPerBlock * rowBytes;
const sparseBytes = 20;
const filterBytesMax = 32 * 1024;
const magic = 0x58494c4b; // "KLIX"

/** Rows handled between two turns of the event loop while an index file is made. */
const rowsPerSlice = 4096;

export interface IndexFileFacts {
  readonly basePosition: number;
  /** Greatest timestamp of any record in the file. */
  readonly maxTimestamp: number;
  readonly rows: number;
}

/** A sealed file's index, open for reading. */
export class IndexFile {
  readonly facts: IndexFileFacts;
  readonly #files: FilePort;
  readonly #file: JournalFile;
  readonly #path: string;
  readonly #sparse: Buffer;
  readonly #filter: Buffer;
  readonly #reads = new Set<Promise<number>>();

  private constructor(
    files: FilePort,
    path: string,
    file: JournalFile,
    facts: IndexFileFacts,
    sparse: Buffer,
    filter: Buffer,
  ) {
    this.#files = files;
    this.#path = path;
    this.#file = file;
    this.facts = facts;
    this.#sparse = sparse;
    this.#filter = filter;
  }

  /** Opens an index file; undefined if it is absent, damaged or of another version: rebuild it. */
  static async open(files: FilePort, path: string): Promise<IndexFile | undefined> {
    const file = await openIfThere(files, path);
    if (file === undefined) return undefined;
    const opened = await readHead(file);
    if (opened === undefined) {
      await file.close();
      return undefined;
    }
    return new IndexFile(files, path, file, opened.facts, opened.sparse, opened.filter);
  }

  get blocks(): number {
    return this.#sparse.length / sparseBytes;
  }

  get memoryBytes(): number {
    return this.#sparse.length + this.#filter.length;
  }

  /** False: certainly no extent of this partition. True: most likely one. */
  mayHold(partition: number): boolean {
    return filterHolds(this.#filter, partition);
  }

  blockMaxTimestamp(block: number): number {
    return this.#sparse.readDoubleLE(block * sparseBytes + 12);
  }

  /** The last block that begins with a lower partition, or 0: the partition's rows begin there. */
  firstBlockOf(partition: number): number {
    let low = 0;
    let high = this.blocks;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#sparse.readUInt32LE(middle * sparseBytes) < partition) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  /** The block after the last one that begins with this or a lower partition. */
  endBlockOf(partition: number): number {
    let low = 0;
    let high = this.blocks;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#sparse.readUInt32LE(middle * sparseBytes) <= partition) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  async readBlock(block: number): Promise<IndexBlock> {
    const bytes = Buffer.allocUnsafe(blockBytes);
    const reading = this.#file.read(bytes, 0, blockBytes, headerBytes + block * blockBytes);
    this.#reads.add(reading);
    const read = await reading.finally(() => this.#reads.delete(reading));
    const sound =
      read === blockBytes &&
      bytes.readUInt32LE(blockCrcAt) === crc32c(bytes.subarray(0, blockCrcAt));
    // Without the file, the next start makes it anew from the journal.
    if (!sound) await this.#files.remove(this.#path);
    assert(sound, `block ${block} of ${this.#path} is damaged; the file was removed`);
    const rows = Math.min(rowsPerBlock, this.facts.rows - block * rowsPerBlock);
    return new IndexBlock(bytes, rows, this.facts.basePosition);
  }

  /** Closes after the reads that are under way. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#reads);
    await this.#file.close();
  }
}

/** One decoded block; rows are read in place. */
export class IndexBlock {
  readonly rows: number;
  /** For the cache: since the block had its turn to go. */
  wasUsed = false;
  readonly #bytes: Buffer;
  readonly #basePosition: number;

  constructor(bytes: Buffer, rows: number, basePosition: number) {
    this.#bytes = bytes;
    this.rows = rows;
    this.#basePosition = basePosition;
  }

  partition(row: number): number {
    return this.#bytes.readUInt32LE(row * rowBytes);
  }
  count(row: number): number {
    return this.#bytes.readUInt32LE(row * rowBytes + 4);
  }
  baseOffset(row: number): number {
    return this.#bytes.readDoubleLE(row * rowBytes + 8);
  }
  endOffset(row: number): number {
    return this.baseOffset(row) + this.count(row);
  }
  maxTimestamp(row: number): number {
    return this.#bytes.readDoubleLE(row * rowBytes + 16);
  }
  position(row: number): number {
    return this.#basePosition + this.#bytes.readUInt32LE(row * rowBytes + 24);
  }
  bytes(row: number): number {
    return this.#bytes.readUInt32LE(row * rowBytes + 28);
  }
  leaderEpoch(row: number): number {
    return this.#bytes.readUInt32LE(row * rowBytes + 32);
  }
}

/**
 * Writes the index of a file under `path` (by way of a temporary name, synced, then renamed), in
 * slices: `pause` resolves in a later turn.
 */
export async function writeIndexFile(
  files: FilePort,
  folder: string,
  name: string,
  table: ExtentTable,
  pause: () => Promise<void>,
): Promise<void> {
  const partitions = Uint32Array.from(table.partitions()).sort();
  const blocks = Math.ceil(table.rows / rowsPerBlock);
  const sparse = Buffer.alloc(blocks * sparseBytes);
  const filter = Buffer.alloc(filterBytesFor(partitions.length));
  const body = Buffer.alloc(blocks * blockBytes);
  let maxTimestamp = -1;
  let written = 0;
  for (const partition of partitions) {
    addToFilter(filter, partition);
    for (let row = table.first(partition); row !== noRow; row = table.next(row)) {
      writeRow(body, sparse, written++, table, row);
      maxTimestamp = Math.max(maxTimestamp, table.maxTimestamp(row));
      if (written % rowsPerSlice === 0) await pause();
    }
  }
  for (let block = 0; block < blocks; block++) {
    const at = block * blockBytes;
    body.writeUInt32LE(crc32c(body.subarray(at, at + blockCrcAt)), at + blockCrcAt);
  }
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32LE(magic, 0);
  header.writeUInt16LE(indexVersion, 4);
  header.writeUInt32LE(table.rows, 8);
  header.writeUInt32LE(filter.length, 12);
  header.writeDoubleLE(table.basePosition, 16);
  header.writeDoubleLE(maxTimestamp, 24);
  header.writeUInt32LE(headCrc(header, sparse, filter), headerBytes - 4);
  const temporary = `${folder}/${name}.tmp`;
  const file = await files.open(temporary, 'create');
  try {
    await file.write([header, body, sparse, filter], 0);
    await file.sync();
  } catch (error) {
    await files.remove(temporary);
    throw error;
  } finally {
    await file.close();
  }
  await files.rename(temporary, `${folder}/${name}`);
  await files.syncFolder(folder);
}

function writeRow(
  body: Buffer,
  sparse: Buffer,
  index: number,
  table: ExtentTable,
  row: number,
): void {
  const block = Math.floor(index / rowsPerBlock);
  const inBlock = index % rowsPerBlock;
  const at = block * blockBytes + inBlock * rowBytes;
  body.writeUInt32LE(table.partition(row), at);
  body.writeUInt32LE(table.count(row), at + 4);
  body.writeDoubleLE(table.baseOffset(row), at + 8);
  body.writeDoubleLE(table.maxTimestamp(row), at + 16);
  body.writeUInt32LE(table.position(row) - table.basePosition, at + 24);
  body.writeUInt32LE(table.bytes(row), at + 28);
  body.writeUInt32LE(table.leaderEpoch(row), at + 32);
  const sparseAt = block * sparseBytes;
  if (inBlock === 0) {
    sparse.writeUInt32LE(table.partition(row), sparseAt);
    sparse.writeDoubleLE(table.baseOffset(row), sparseAt + 4);
    sparse.writeDoubleLE(table.maxTimestamp(row), sparseAt + 12);
  } else if (table.maxTimestamp(row) > sparse.readDoubleLE(sparseAt + 12)) {
    sparse.writeDoubleLE(table.maxTimestamp(row), sparseAt + 12);
  }
}

async function openIfThere(files: FilePort, path: string): Promise<JournalFile | undefined> {
  try {
    return await files.open(path, 'read');
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

async function readHead(
  file: JournalFile,
): Promise<{ facts: IndexFileFacts; sparse: Buffer; filter: Buffer } | undefined> {
  const size = await file.size();
  const header = Buffer.alloc(headerBytes);
  if ((await file.read(header, 0, headerBytes, 0)) !== headerBytes) return undefined;
  if (header.readUInt32LE(0) !== magic || header.readUInt16LE(4) !== indexVersion) return undefined;
  const rows = header.readUInt32LE(8);
  const filterBytes = header.readUInt32LE(12);
  const blocks = Math.ceil(rows / rowsPerBlock);
  const tailAt = headerBytes + blocks * blockBytes;
  const tailBytes = blocks * sparseBytes + filterBytes;
  if (size !== tailAt + tailBytes) return undefined;
  const tail = Buffer.alloc(tailBytes);
  if ((await file.read(tail, 0, tailBytes, tailAt)) !== tailBytes) return undefined;
  const sparse = tail.subarray(0, blocks * sparseBytes);
  const filter = tail.subarray(blocks * sparseBytes);
  const stored = header.readUInt32LE(headerBytes - 4);
  if (stored !== headCrc(header, sparse, filter)) return undefined;
  const facts = {
    basePosition: header.readDoubleLE(16),
    maxTimestamp: header.readDoubleLE(24),
    rows,
  };
  return { facts, sparse, filter };
}

function headCrc(header: Buffer, sparse: Buffer, filter: Buffer): number {
  return crc32c(filter, crc32c(sparse, crc32c(header.subarray(0, headerBytes - 4))));
}

/** About ten bits a partition (1 % false positives), within the bound. */
function filterBytesFor(partitions: number): number {
  const wanted = Math.max(8, Math.ceil((partitions * 10) / 8));
  return Math.min(filterBytesMax, 2 ** Math.ceil(Math.log2(wanted)));
}

const filterProbes = 4;

function filterBit(filter: Buffer, partition: number, probe: number): number {
  const hash = Math.imul(partition + 1, 0x9e3779b1) ^ Math.imul(probe + 1, 0x85ebca6b);
  const mixed = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35);
  return ((mixed ^ (mixed >>> 13)) >>> 0) % (filter.length * 8);
}

function addToFilter(filter: Buffer, partition: number): void {
  for (let probe = 0; probe < filterProbes; probe++) {
    const bit = filterBit(filter, partition, probe);
    filter[bit >>> 3] = filter[bit >>> 3]! | (1 << (bit & 7));
  }
}

function filterHolds(filter: Buffer, partition: number): boolean {
  for (let probe = 0; probe < filterProbes; probe++) {
    const bit = filterBit(filter, partition, probe);
    if ((filter[bit >>> 3]! & (1 << (bit & 7))) === 0) return false;
  }
  return true;
}
