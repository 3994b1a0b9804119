import { ReadPlan } from '../log/log-reader.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import type { Broker } from './broker.ts';
import { type FetchPartitions, noRow } from './fetch-partitions.ts';
import { FoundPartitions } from './found-partitions.ts';
import { isLaneOffset } from './keyed/lane-numbers.ts';

export interface FetchLookOptions {
  readonly bytesMax: number;
  /** Unknown topics are named by id. */
  readonly knowsTopicIds: boolean;
  /**
   * Partitions that a full answer has no room for may be left out: in a fetch session they have
   * their turn next. A full fetch tells of every partition.
   */
  readonly endsWhenFull: boolean;
  /** Each partition gives a batch however large it is, and not only the first of the answer. */
  readonly oneOfEach: boolean;
}

/** Looks at partitions in one turn of the loop, in which other fetches have theirs as well. */
const looksPerTurn = 250;

/**
 * One pass over the partitions of a fetch that are ready: which batches there are to read, within
 * the limits of the request. It runs without a pause as long as the index blocks it needs are in
 * memory, and never looks at a partition twice, so that it ends however small the cache of blocks
 * is. No partition is removed while it runs; what becomes ready meanwhile is for the next one.
 */
export class FetchLook {
  readonly found = new FoundPartitions();
  /** Bytes of all that was found. */
  bytes = 0;
  isError = false;
  /** Partitions looked at. */
  looks = 0;
  readonly #broker: Broker;
  readonly #leads: boolean;
  readonly #partitions: FetchPartitions;
  readonly #options: FetchLookOptions;
  #next: number;
  #left: number;
  #bytesLeft: number;

  constructor(broker: Broker, partitions: FetchPartitions, options: FetchLookOptions) {
    this.#broker = broker;
    this.#leads = broker.replica.mayAnswer;
    this.#partitions = partitions;
    this.#options = options;
    this.#next = partitions.firstReady;
    this.#left = partitions.readyCount;
    this.#bytesLeft = options.bytesMax;
  }

  /**
   * Goes on until the end (answers undefined), or to a partition for which it has to wait: then
   * call `wait` with its row. A pause is for others, in between.
   */
  run(): number | 'pause' | undefined {
    const isOverWhenFull = this.#options.endsWhenFull;
    for (let looks = 0; ; looks++) {
      if (looks === looksPerTurn) return 'pause';
      if (isOverWhenFull && this.#bytesLeft <= 0 && this.bytes > 0) return undefined;
      const row = this.#next;
      if (row === noRow || this.#left === 0) return undefined;
      this.#left--;
      // Before the look, which may take the partition out of the list.
      this.#next = this.#partitions.readyAfter(row);
      this.looks++;
      if (!this.#look(row)) return row;
    }
  }

  /** Looks at a partition whose index has to be read from disk. */
  async wait(row: number): Promise<void> {
    const plan = new ReadPlan();
    const { partitions } = this.#broker.replica.state.topics;
    const stored = this.#partitions.stored(row);
    const highWatermark = partitions.end(stored);
    const logStart = partitions.logStart(stored);
    const limits = this.#limits(row, highWatermark);
    const fetchOffset = this.#partitions.fetchOffset(row);
    await this.#broker.reader.planLoading(stored, fetchOffset, limits, plan);
    this.#add(row, highWatermark, logStart, plan);
  }

  /** False if an index block is not in memory. */
  #look(row: number): boolean {
    const errorCode = this.#check(row);
    if (errorCode !== ErrorCode.NONE) {
      this.isError = true;
      this.found.add(row, errorCode, -1, -1, undefined);
      return true;
    }
    const { partitions } = this.#broker.replica.state.topics;
    const stored = this.#partitions.stored(row);
    const fetchOffset = this.#partitions.fetchOffset(row);
    const highWatermark = partitions.end(stored);
    const logStart = partitions.logStart(stored);
    if (
      this.#options.endsWhenFull &&
      fetchOffset === highWatermark &&
      this.#partitions.isTold(row, ErrorCode.NONE, highWatermark, logStart)
    ) {
      this.#partitions.markQuiet(row);
      return true;
    }
    let plan: ReadPlan | undefined;
    if (fetchOffset < highWatermark && (this.#bytesLeft > 0 || this.bytes === 0)) {
      plan = new ReadPlan();
      const limits = this.#limits(row, highWatermark);
      if (!this.#broker.reader.plan(stored, fetchOffset, limits, plan)) return false;
    }
    this.#add(row, highWatermark, logStart, plan);
    return true;
  }

  #add(row: number, highWatermark: number, logStart: number, plan: ReadPlan | undefined): void {
    if (plan !== undefined && plan.bytes > 0) {
      this.found.add(row, ErrorCode.NONE, highWatermark, logStart, plan);
      this.bytes += plan.bytes;
      this.#bytesLeft -= plan.bytes;
      return;
    }
    this.found.add(row, ErrorCode.NONE, highWatermark, logStart, undefined);
    // There is a batch and no room for it in the answer. Smaller ones of other partitions might
    // fit, but to look for them in thousands of partitions costs more than another fetch.
    if (plan !== undefined && this.#bytesLeft < this.#partitions.bytesMax(row)) {
      this.#bytesLeft = 0;
    }
  }

  #limits(row: number, offsetEnd: number) {
    return {
      bytesMax: Math.min(this.#partitions.bytesMax(row), this.#bytesLeft),
      // The first batch of an answer is given however large it is (KIP-74).
      oneAtLeast: this.#options.oneOfEach || this.bytes === 0,
      offsetEnd,
    };
  }

  #check(row: number): ErrorCode {
    const { replica, topics } = this.#broker;
    const { partitions } = replica.state.topics;
    const stored = this.#partitions.stored(row);
    if (stored < 0 || !partitions.exists(stored)) {
      const { id } = this.#partitions.topic(this.#partitions.topicOf(row));
      return this.#options.knowsTopicIds && topics.byId(id) === undefined
        ? ErrorCode.UNKNOWN_TOPIC_ID
        : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    }
    const fetchOffset = this.#partitions.fetchOffset(row);
    // Who asks for a lane has met this node without a lease; that may have changed since. To be out
    // of range would make the client begin with the first record of the log.
    if (!this.#leads || isLaneOffset(fetchOffset)) return ErrorCode.NOT_LEADER_OR_FOLLOWER;
    const epoch = this.#partitions.currentLeaderEpoch(row);
    if (epoch >= 0 && epoch < replica.leaderEpoch) return ErrorCode.FENCED_LEADER_EPOCH;
    if (epoch > replica.leaderEpoch) return ErrorCode.UNKNOWN_LEADER_EPOCH;
    const isInRange =
      fetchOffset >= partitions.logStart(stored) && fetchOffset <= partitions.end(stored);
    return isInRange ? ErrorCode.NONE : ErrorCode.OFFSET_OUT_OF_RANGE;
  }
}
