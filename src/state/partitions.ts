import { assert } from '../core/assert.ts';
import type { ByteReader, ByteWriter } from '../core/bytes.ts';
import type { Topic } from './topics.ts';

/** Partitions come in pages, so that the memory of deleted ones is given back. */
export const partitionsPerPage = 1024;

interface Page {
  live: number;
  readonly topics: (Topic | undefined)[];
  readonly index: Uint32Array;
  readonly logStart: Float64Array;
  readonly end: Float64Array;
  readonly bytes: Float64Array;
  readonly maxTimestamp: Float64Array;
  readonly maxTimestampBase: Float64Array;
}

/**
 * The replicated facts of each partition, in typed columns by partition number. A partition number
 * is tenant-wide and never used again; the journal knows partitions by nothing else.
 */
export class PartitionTable {
  readonly #pages = new Map<number, Page>();
  #next = 0;
  #live = 0;

  /** The number that the next new partition gets. */
  get next(): number {
    return this.#next;
  }

  get live(): number {
    return this.#live;
  }

  pages(): IterableIterator<number> {
    return this.#pages.keys();
  }

  add(partition: number, topic: Topic, index: number): void {
    assert(partition >= this.#next, 'a partition number is never used again');
    this.attach(partition, topic, index);
    this.#next = partition + 1;
  }

  /** Ties a partition to its topic; its columns stay as they are. */
  attach(partition: number, topic: Topic, index: number): void {
    const page = this.#makePage(pageOf(partition));
    const at = partition % partitionsPerPage;
    page.live++;
    this.#live++;
    page.topics[at] = topic;
    page.index[at] = index;
  }

  remove(partition: number): void {
    const number = pageOf(partition);
    const page = this.#pages.get(number)!;
    page.topics[partition % partitionsPerPage] = undefined;
    page.live--;
    this.#live--;
    // The page that numbers are still taken from stays: its columns are needed again.
    if (page.live === 0 && number < pageOf(this.#next)) this.#pages.delete(number);
  }

  /** Undefined for a partition that is deleted or never was. */
  topic(partition: number): Topic | undefined {
    return this.#pages.get(pageOf(partition))?.topics[partition % partitionsPerPage];
  }

  exists(partition: number): boolean {
    return this.topic(partition) !== undefined;
  }

  /** Which partition of its topic it is. */
  index(partition: number): number {
    return this.#page(partition).index[partition % partitionsPerPage]!;
  }
  logStart(partition: number): number {
    return this.#page(partition).logStart[partition % partitionsPerPage]!;
  }
  /** Offset after the last committed record: log end and high watermark alike. */
  end(partition: number): number {
    return this.#page(partition).end[partition % partitionsPerPage]!;
  }
  /** Bytes of the batches that are retained. */
  bytes(partition: number): number {
    return this.#page(partition).bytes[partition % partitionsPerPage]!;
  }
  /** Greatest timestamp ever appended, -1 without any. */
  maxTimestamp(partition: number): number {
    return this.#page(partition).maxTimestamp[partition % partitionsPerPage]!;
  }
  /** Base offset of the batch with that timestamp. */
  maxTimestampBase(partition: number): number {
    return this.#page(partition).maxTimestampBase[partition % partitionsPerPage]!;
  }

  append(
    partition: number,
    base: number,
    count: number,
    bytes: number,
    maxTimestamp: number,
  ): void {
    const page = this.#page(partition);
    const at = partition % partitionsPerPage;
    assert(base === page.end[at], 'batches of a partition follow each other without a gap');
    page.end[at] = base + count;
    page.bytes[at] = page.bytes[at]! + bytes;
    if (maxTimestamp > page.maxTimestamp[at]!) {
      page.maxTimestamp[at] = maxTimestamp;
      page.maxTimestampBase[at] = base;
    }
  }

  moveLogStart(partition: number, offset: number, droppedBytes: number): void {
    const page = this.#page(partition);
    const at = partition % partitionsPerPage;
    assert(offset <= page.end[at]!, 'a log start lies within its log');
    if (offset <= page.logStart[at]!) return;
    page.logStart[at] = offset;
    page.bytes[at] = Math.max(0, page.bytes[at]! - droppedBytes);
  }

  /** The columns of a page, for a snapshot. */
  writePage(writer: ByteWriter, number: number): void {
    writer.uvarint(number);
    for (const column of columnsOf(this.#pages.get(number)!)) {
      writer.raw(new Uint8Array(column.buffer, column.byteOffset, column.byteLength));
    }
  }

  readPage(reader: ByteReader): void {
    const page = this.#makePage(reader.uvarint());
    for (const column of columnsOf(page)) {
      const bytes = new Uint8Array(column.buffer, column.byteOffset, column.byteLength);
      bytes.set(reader.raw(bytes.length));
    }
  }

  restoreNext(next: number): void {
    this.#next = next;
  }

  #page(partition: number): Page {
    return this.#pages.get(pageOf(partition))!;
  }

  #makePage(number: number): Page {
    const page = this.#pages.get(number) ?? newPage();
    this.#pages.set(number, page);
    return page;
  }
}

export function pageOf(partition: number): number {
  return Math.floor(partition / partitionsPerPage);
}

function newPage(): Page {
  return {
    live: 0,
    topics: new Array<Topic | undefined>(partitionsPerPage).fill(undefined),
    index: new Uint32Array(partitionsPerPage),
    logStart: new Float64Array(partitionsPerPage),
    end: new Float64Array(partitionsPerPage),
    bytes: new Float64Array(partitionsPerPage),
    maxTimestamp: new Float64Array(partitionsPerPage).fill(-1),
    maxTimestampBase: new Float64Array(partitionsPerPage).fill(-1),
  };
}

function columnsOf(page: Page): Float64Array[] {
  return [page.logStart, page.end, page.bytes, page.maxTimestamp, page.maxTimestampBase];
}
