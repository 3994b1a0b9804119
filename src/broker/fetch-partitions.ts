import { ErrorCode } from '../protocol/error-codes.ts';
import type { AppendWaiter, FetchWaiters } from './fetch-waiters.ts';
import { noRow, PartitionRows } from './partition-rows.ts';

export { noRow } from './partition-rows.ts';

export interface FetchTopic {
  readonly name: string;
  /** 32 hex digits; zero below version 13. */
  readonly id: string;
}

interface CountedTopic extends FetchTopic {
  readonly key: string;
  partitions: number;
}

/** In place of the next ready row. */
const notReady = -2;
const notRegistered = -1;

/** What is known of each partition, by row. */
interface Columns {
  /** Tenant-wide number of the stored partition; -1 where it is not known. */
  readonly stored: Int32Array;
  readonly fetchOffset: Float64Array;
  readonly bytesMax: Int32Array;
  readonly currentLeaderEpoch: Int32Array;
  /** What the last answer said, to leave out what has not changed (KIP-227). */
  readonly sentHighWatermark: Float64Array;
  readonly sentLogStart: Float64Array;
  readonly sentError: Int16Array;
  /** Neighbours among the ready ones. */
  readonly next: Int32Array;
  readonly previous: Int32Array;
  /** What the waiters call the registration. */
  readonly registration: Int32Array;
}

/**
 * The partitions of one fetch or one fetch session, as the client last asked for them, and which of
 * them are worth a look, in their order: those with something new since they were last found to
 * have nothing. There may be 100,000 of them, so they are rows in typed columns, 70 bytes each, and
 * nothing here but `watch` and `unwatch` takes more steps the more there are.
 */
export class FetchPartitions implements AppendWaiter {
  readonly #waiters: FetchWaiters;
  readonly #rows: PartitionRows;
  readonly #topics: (CountedTopic | undefined)[] = [];
  readonly #freeTopics: number[] = [];
  readonly #topicByKey = new Map<string, number>();
  #columns: Columns;
  #firstReady = noRow;
  #lastReady = noRow;
  #readyCount = 0;
  #registered = false;
  /** Bytes appended since the fetch was parked. */
  appendedBytes = 0;
  /** Something else happened to a partition: its start moved, its topic is gone. */
  sawOtherNews = false;
  /** Called after appends while a fetch is parked. */
  onNews: (() => void) | undefined;

  /** The seed is any int32, unknown to clients. There is room for `capacity`; it grows. */
  constructor(waiters: FetchWaiters, seed: number, capacity: number) {
    this.#waiters = waiters;
    this.#rows = new PartitionRows(seed, capacity);
    this.#columns = newColumns(this.#rows.capacity);
  }

  get size(): number {
    return this.#rows.size;
  }

  /** Number of a topic within this fetch or session; made if there is none. */
  topicNumber({ name, id }: FetchTopic): number {
    const key = `${id}${name}`;
    const known = this.#topicByKey.get(key);
    if (known !== undefined) return known;
    const number = this.#freeTopics.pop() ?? this.#topics.length;
    this.#topics[number] = { name, id, key, partitions: 0 };
    this.#topicByKey.set(key, number);
    return number;
  }

  findTopic({ name, id }: FetchTopic): number | undefined {
    return this.#topicByKey.get(`${id}${name}`);
  }

  /** All topic numbers are below this. */
  get topicNumberEnd(): number {
    return this.#topics.length;
  }

  /** A topic that has partitions here. */
  topic(number: number): FetchTopic {
    return this.#topics[number]!;
  }

  /** The row of a partition, or noRow. */
  find(topic: number, index: number): number {
    return this.#rows.find(topic, index);
  }

  /** Adds a partition that is not there yet, behind the others and ready. */
  add(topic: number, index: number, stored: number): number {
    const row = this.#rows.add(topic, index);
    this.#growColumns();
    this.#topics[topic]!.partitions++;
    const columns = this.#columns;
    columns.stored[row] = stored;
    columns.sentHighWatermark[row] = -1;
    columns.sentLogStart[row] = -1;
    columns.sentError[row] = ErrorCode.NONE;
    columns.next[row] = notReady;
    columns.registration[row] = notRegistered;
    this.markReady(row);
    if (this.#registered) this.#register(row);
    return row;
  }

  remove(row: number): void {
    this.markQuiet(row);
    this.#unregister(row);
    const number = this.#rows.topic(row);
    this.#rows.remove(row);
    const topic = this.#topics[number]!;
    if (--topic.partitions > 0) return;
    this.#topics[number] = undefined;
    this.#topicByKey.delete(topic.key);
    this.#freeTopics.push(number);
  }

  /** What the client asks for; the stored partition may be another one now (a topic made anew). */
  ask(
    row: number,
    stored: number,
    fetchOffset: number,
    bytesMax: number,
    currentLeaderEpoch: number,
  ): void {
    const columns = this.#columns;
    columns.fetchOffset[row] = fetchOffset;
    columns.bytesMax[row] = bytesMax;
    columns.currentLeaderEpoch[row] = currentLeaderEpoch;
    if (columns.stored[row] === stored) return;
    this.#unregister(row);
    columns.stored[row] = stored;
    if (this.#registered) this.#register(row);
  }

  topicOf(row: number): number {
    return this.#rows.topic(row);
  }
  index(row: number): number {
    return this.#rows.index(row);
  }
  stored(row: number): number {
    return this.#columns.stored[row]!;
  }
  fetchOffset(row: number): number {
    return this.#columns.fetchOffset[row]!;
  }
  bytesMax(row: number): number {
    return this.#columns.bytesMax[row]!;
  }
  currentLeaderEpoch(row: number): number {
    return this.#columns.currentLeaderEpoch[row]!;
  }

  /** Was the client told of this already? */
  isTold(row: number, errorCode: number, highWatermark: number, logStart: number): boolean {
    const { sentHighWatermark, sentLogStart, sentError } = this.#columns;
    return (
      sentHighWatermark[row] === highWatermark &&
      sentLogStart[row] === logStart &&
      sentError[row] === errorCode
    );
  }

  tell(row: number, errorCode: number, highWatermark: number, logStart: number): void {
    const { sentHighWatermark, sentLogStart, sentError } = this.#columns;
    sentHighWatermark[row] = highWatermark;
    sentLogStart[row] = logStart;
    sentError[row] = errorCode;
  }

  get readyCount(): number {
    return this.#readyCount;
  }

  get firstReady(): number {
    return this.#firstReady;
  }

  /** The ready one behind this one, or noRow. */
  readyAfter(row: number): number {
    return this.#columns.next[row]!;
  }

  markReady(row: number): void {
    const { next, previous } = this.#columns;
    if (next[row] !== notReady) return;
    next[row] = noRow;
    previous[row] = this.#lastReady;
    if (this.#lastReady === noRow) this.#firstReady = row;
    else next[this.#lastReady] = row;
    this.#lastReady = row;
    this.#readyCount++;
  }

  /** Nothing to tell about it until something happens to it. */
  markQuiet(row: number): void {
    const { next, previous } = this.#columns;
    const after = next[row]!;
    if (after === notReady) return;
    const before = previous[row]!;
    if (before === noRow) this.#firstReady = after;
    else next[before] = after;
    if (after === noRow) this.#lastReady = before;
    else previous[after] = before;
    next[row] = notReady;
    this.#readyCount--;
  }

  /** Behind the others, so that all get their turn when answers are full. */
  moveToEnd(row: number): void {
    this.markQuiet(row);
    this.markReady(row);
  }

  /** From now on appends mark partitions as ready. */
  watch(): void {
    if (this.#registered) return;
    this.#registered = true;
    for (let row = 0; row < this.#rows.end; row++) if (this.#rows.isUsed(row)) this.#register(row);
  }

  unwatch(): void {
    if (!this.#registered) return;
    this.#registered = false;
    for (let row = 0; row < this.#rows.end; row++) {
      if (this.#rows.isUsed(row)) this.#unregister(row);
    }
  }

  onAppended(row: number, bytes: number): void {
    this.markReady(row);
    this.appendedBytes += bytes;
    if (bytes === 0) this.sawOtherNews = true;
  }

  onGroupApplied(): void {
    this.onNews?.();
  }

  #register(row: number): void {
    const stored = this.#columns.stored[row]!;
    if (stored < 0) return;
    this.#columns.registration[row] = this.#waiters.add(stored, this, row);
  }

  #unregister(row: number): void {
    const { registration, stored } = this.#columns;
    if (registration[row] === notRegistered) return;
    this.#waiters.remove(stored[row]!, registration[row]!);
    registration[row] = notRegistered;
  }

  #growColumns(): void {
    const { capacity } = this.#rows;
    if (capacity > this.#columns.stored.length) this.#columns = grown(this.#columns, capacity);
  }
}

function newColumns(rows: number): Columns {
  return {
    stored: new Int32Array(rows),
    fetchOffset: new Float64Array(rows),
    bytesMax: new Int32Array(rows),
    currentLeaderEpoch: new Int32Array(rows),
    sentHighWatermark: new Float64Array(rows),
    sentLogStart: new Float64Array(rows),
    sentError: new Int16Array(rows),
    next: new Int32Array(rows),
    previous: new Int32Array(rows),
    registration: new Int32Array(rows),
  };
}

function grown(from: Columns, rows: number): Columns {
  const to = newColumns(rows);
  to.stored.set(from.stored);
  to.fetchOffset.set(from.fetchOffset);
  to.bytesMax.set(from.bytesMax);
  to.currentLeaderEpoch.set(from.currentLeaderEpoch);
  to.sentHighWatermark.set(from.sentHighWatermark);
  to.sentLogStart.set(from.sentLogStart);
  to.sentError.set(from.sentError);
  to.next.set(from.next);
  to.previous.set(from.previous);
  to.registration.set(from.registration);
  return to;
}
