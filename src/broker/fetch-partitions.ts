import { ErrorCode } from '../protocol/error-codes.ts';
import type { AppendWaiter, FetchWaiters, Registration } from './fetch-waiters.ts';

/**
 * One partition that a client fetches, as it last asked for it. There may be 100,000 of them in a
 * session, so it is its own registration for news.
 */
export class FetchPartition implements Registration {
  readonly topicName: string;
  /** 32 hex digits; zero below version 13. */
  readonly topicId: string;
  readonly index: number;
  /** Tenant-wide number of the stored partition; -1 where it is not known. */
  partition: number;
  fetchOffset = 0;
  bytesMax = 0;
  currentLeaderEpoch = -1;
  lastFetchedEpoch = -1;
  /** What the last answer said, to leave out what has not changed (KIP-227). */
  sentHighWatermark = -1;
  sentLogStart = -1;
  sentError = 0;
  /** The fetch or session that it belongs to. */
  readonly waiter: FetchPartitions;
  isRegistered = false;

  constructor(
    waiter: FetchPartitions,
    topicName: string,
    topicId: string,
    index: number,
    partition: number,
  ) {
    this.waiter = waiter;
    this.topicName = topicName;
    this.topicId = topicId;
    this.index = index;
    this.partition = partition;
  }

  /** Was the client told of this already? */
  isTold(highWatermark: number, logStart: number): boolean {
    return (
      this.sentHighWatermark === highWatermark &&
      this.sentLogStart === logStart &&
      this.sentError === ErrorCode.NONE
    );
  }

  onNews(): void {
    this.waiter.markReady(this);
  }
}

/**
 * The partitions of one fetch or one fetch session, in their order, and which of them are worth a
 * look: those with something new since they were last found to have nothing.
 */
export class FetchPartitions implements AppendWaiter {
  readonly #waiters: FetchWaiters;
  readonly #byKey = new Map<string, FetchPartition>();
  #ready = new Set<FetchPartition>();
  #registered = false;
  /** Bytes appended since the fetch was parked. */
  appendedBytes = 0;
  /** Something else happened to a partition: its start moved, its topic is gone. */
  sawOtherNews = false;
  /** Called after appends while a fetch is parked. */
  onNews: (() => void) | undefined;

  constructor(waiters: FetchWaiters) {
    this.#waiters = waiters;
  }

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): FetchPartition | undefined {
    return this.#byKey.get(key);
  }

  all(): IterableIterator<FetchPartition> {
    return this.#byKey.values();
  }

  /**
   * Those that were ready at the time of the first step, in turn. Not a copy: a look that ends with
   * a full answer takes a few hundred steps through what may be 100,000.
   */
  *ready(): Generator<FetchPartition> {
    let left = this.#ready.size;
    for (const partition of this.#ready) {
      if (left-- === 0) return;
      yield partition;
    }
  }

  add(key: string, partition: FetchPartition): void {
    this.#byKey.set(key, partition);
    this.#ready.add(partition);
    if (this.#registered) this.#register(partition);
  }

  remove(key: string): void {
    const partition = this.#byKey.get(key);
    if (partition === undefined) return;
    this.#byKey.delete(key);
    this.#ready.delete(partition);
    this.#unregister(partition);
  }

  markReady(partition: FetchPartition): void {
    this.#ready.add(partition);
  }

  /** Nothing to tell about it until something happens to it. */
  markQuiet(partition: FetchPartition): void {
    this.#ready.delete(partition);
  }

  /** Behind the others, so that all get their turn when answers are full. */
  moveToEnd(partition: FetchPartition): void {
    this.#ready.delete(partition);
    this.#ready.add(partition);
  }

  /** From now on appends mark partitions as ready. */
  watch(): void {
    if (this.#registered) return;
    this.#registered = true;
    for (const partition of this.#byKey.values()) this.#register(partition);
  }

  unwatch(): void {
    if (!this.#registered) return;
    this.#registered = false;
    for (const partition of this.#byKey.values()) this.#unregister(partition);
  }

  /** The stored partition behind a name is another one now (the topic was made anew). */
  rebind(partition: FetchPartition, stored: number): void {
    this.#unregister(partition);
    partition.partition = stored;
    if (this.#registered) this.#register(partition);
  }

  onAppended(bytes: number): void {
    this.appendedBytes += bytes;
    if (bytes === 0) this.sawOtherNews = true;
  }

  onGroupApplied(): void {
    this.onNews?.();
  }

  #register(partition: FetchPartition): void {
    if (partition.partition < 0) return;
    partition.isRegistered = true;
    this.#waiters.add(partition.partition, partition);
  }

  #unregister(partition: FetchPartition): void {
    if (!partition.isRegistered) return;
    this.#waiters.remove(partition.partition, partition);
    partition.isRegistered = false;
  }
}
