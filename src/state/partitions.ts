import { assert } from '../core/assert.ts';
import type { ByteReader, ByteWriter } from '../core/bytes.ts';
import type { Topic } from './topics.ts';

/** Partitions come in pages, so that the memory of deleted ones is given back. */
const pageSize = 1024;

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
  readonly #pages: (Page | undefined)[] = [];
  #next = 0;
  #live = 0;

  /** The number that the next new partition gets. */
  get next(): number {
    return this.#next;
  }

  get live(): number {
    return this.#live;
  }

  add(partition: number, topic: Topic, index: number): void {
    assert(partition >= this.#next, 'a partition number is never used again');
    this.#put(partition, topic, index);
    this.#next = partition + 1;
  }

  #put(partition: number, topic: Topic, index: number): void {
    const number = Math.floor(partition / pageSize);
    const page = this.#pages[number] ?? newPage();
    this.#pages[number] = page;
    const at = partition % pageSize;
    page.live++;
    this.#live++;
    page.topics[at] = topic;
    page.index[at] = index;
    page.maxTimestamp[at] = -1;
    page.maxTimestampBase[at] = -1;
  }

  remove(partition: number): void {
    const number = Math.floor(partition / pageSize);
    const page = this.#pages[number]!;
    page.topics[partition % pageSize] = undefined;
    page.live--;
    this.#live--;
    // The page that numbers are still taken from stays: its columns are needed again.
    if (page.live === 0 && number < Math.floor(this.#next / pageSize)) {
      this.#pages[number] = undefined;
    }
  }

  /** Undefined for a partition that is deleted or never was. */
  topic(partition: number): Topic | undefined {
    return this.#pages[Math.floor(partition / pageSize)]?.topics[partition % pageSize];
  }

  exists(partition: number): boolean {
    return this.topic(partition) !== undefined;
  }

  /** Which partition of its topic it is. */
  index(partition: number): number {
    return this.#page(partition).index[partition % pageSize]!;
  }
  logStart(partition: number): number {
    return this.#page(partition).logStart[partition % pageSize]!;
  }
  /** Offset after the last committed record: log end and high watermark alike. */
  end(partition: number): number {
    return this.#page(partition).end[partition % pageSize]!;
  }
  /** Bytes of the batches that are retained. */
  bytes(partition: number): number {
    return this.#page(partition).bytes[partition % pageSize]!;
  }
  /** Greatest timestamp ever appended, -1 without any. */
  maxTimestamp(partition: number): number {
    return this.#page(partition).maxTimestamp[partition % pageSize]!;
  }
  /** Base offset of the batch with that timestamp. */
  maxTimestampBase(partition: number): number {
    return this.#page(partition).maxTimestampBase[partition % pageSize]!;
  }

  append(
    partition: number,
    base: number,
    count: number,
    bytes: number,
    maxTimestamp: number,
  ): void {
    const page = this.#page(partition);
    const at = partition % pageSize;
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
    const at = partition % pageSize;
    assert(offset <= page.end[at]!, 'a log start lies within its log');
    if (offset <= page.logStart[at]!) return;
    page.logStart[at] = offset;
    page.bytes[at] = Math.max(0, page.bytes[at]! - droppedBytes);
  }

  #page(partition: number): Page {
    return this.#pages[Math.floor(partition / pageSize)]!;
  }

  writeColumns(writer: ByteWriter, partition: number): void {
    writer.uvarint(this.logStart(partition)).uvarint(this.end(partition));
    writer.uvarint(this.bytes(partition));
    writer.f64(this.maxTimestamp(partition)).f64(this.maxTimestampBase(partition));
  }

  /** Restores a partition from a snapshot, in any order of numbers. */
  readColumns(reader: ByteReader, partition: number, topic: Topic, index: number): void {
    this.#put(partition, topic, index);
    const page = this.#page(partition);
    const at = partition % pageSize;
    page.logStart[at] = reader.uvarint();
    page.end[at] = reader.uvarint();
    page.bytes[at] = reader.uvarint();
    page.maxTimestamp[at] = reader.f64();
    page.maxTimestampBase[at] = reader.f64();
  }

  restoreNext(next: number): void {
    this.#next = next;
  }
}

function newPage(): Page {
  return {
    live: 0,
    topics: new Array<Topic | undefined>(pageSize).fill(undefined),
    index: new Uint32Array(pageSize),
    logStart: new Float64Array(pageSize),
    end: new Float64Array(pageSize),
    bytes: new Float64Array(pageSize),
    maxTimestamp: new Float64Array(pageSize),
    maxTimestampBase: new Float64Array(pageSize),
  };
}
