import { ReadPlan } from '../log/log-reader.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import type { Broker } from './broker.ts';
import type { FetchPartition } from './fetch-partitions.ts';

/** What was found in one partition: an error, or batches to read. */
export interface Found {
  readonly partition: FetchPartition;
  readonly errorCode: ErrorCode;
  readonly highWatermark: number;
  readonly logStart: number;
  readonly plan: ReadPlan | undefined;
}

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

/** Looks at partitions in one turn of the loop: milliseconds. */
const looksPerTurn = 1000;

/**
 * One pass over the partitions of a fetch: which batches there are to read, within the limits of
 * the request. It runs without a pause as long as the index blocks it needs are in memory, and
 * never looks at a partition twice, so that it ends however small the cache of blocks is.
 */
export class FetchLook {
  readonly found: Found[] = [];
  /** Bytes of all that was found. */
  bytes = 0;
  isError = false;
  readonly #broker: Broker;
  readonly #knowsTopicIds: boolean;
  readonly #endsWhenFull: boolean;
  readonly #oneOfEach: boolean;
  readonly #candidates: Iterator<FetchPartition>;
  #bytesLeft: number;

  constructor(broker: Broker, candidates: Iterable<FetchPartition>, options: FetchLookOptions) {
    this.#broker = broker;
    this.#candidates = candidates[Symbol.iterator]();
    this.#bytesLeft = options.bytesMax;
    this.#knowsTopicIds = options.knowsTopicIds;
    this.#endsWhenFull = options.endsWhenFull;
    this.#oneOfEach = options.oneOfEach;
  }

  /**
   * Goes on until the end, or to a partition for which it has to wait: then call `wait`. A pause is
   * for others, in between.
   */
  run(): FetchPartition | 'pause' | undefined {
    for (let looks = 0; ; looks++) {
      if (looks === looksPerTurn) return 'pause';
      if (this.#endsWhenFull && this.#bytesLeft <= 0 && this.bytes > 0) return undefined;
      const { done, value: partition } = this.#candidates.next();
      if (done === true) return undefined;
      if (!this.#look(partition)) return partition;
    }
  }

  /** Looks at a partition whose index has to be read from disk. */
  async wait(partition: FetchPartition): Promise<void> {
    const plan = new ReadPlan();
    const { highWatermark, logStart } = this.#facts(partition);
    const limits = this.#limits(partition, highWatermark);
    const { partition: stored, fetchOffset } = partition;
    await this.#broker.reader.planLoading(stored, fetchOffset, limits, plan);
    this.#addPlan({ partition, errorCode: ErrorCode.NONE, highWatermark, logStart, plan });
  }

  /** False if an index block is not in memory. */
  #look(partition: FetchPartition): boolean {
    const errorCode = this.#check(partition);
    if (errorCode !== ErrorCode.NONE) {
      this.isError = true;
      this.found.push({ partition, errorCode, highWatermark: -1, logStart: -1, plan: undefined });
      return true;
    }
    const { highWatermark, logStart } = this.#facts(partition);
    if (
      this.#endsWhenFull &&
      partition.fetchOffset === highWatermark &&
      partition.isTold(highWatermark, logStart)
    ) {
      partition.waiter.markQuiet(partition);
      return true;
    }
    let plan: ReadPlan | undefined;
    if (partition.fetchOffset < highWatermark && (this.#bytesLeft > 0 || this.bytes === 0)) {
      plan = new ReadPlan();
      const limits = this.#limits(partition, highWatermark);
      const { partition: stored, fetchOffset } = partition;
      if (!this.#broker.reader.plan(stored, fetchOffset, limits, plan)) return false;
    }
    this.#addPlan({ partition, errorCode, highWatermark, logStart, plan });
    return true;
  }

  #addPlan(found: Found): void {
    const { partition, plan } = found;
    if (plan === undefined || plan.bytes > 0) {
      this.found.push(found);
      this.bytes += plan?.bytes ?? 0;
      this.#bytesLeft -= plan?.bytes ?? 0;
      return;
    }
    this.found.push({ ...found, plan: undefined });
    // There is a batch and no room for it in the answer. Smaller ones of other partitions might
    // fit, but to look for them in thousands of partitions costs more than another fetch.
    if (this.#bytesLeft < partition.bytesMax) this.#bytesLeft = 0;
  }

  #limits(partition: FetchPartition, offsetEnd: number) {
    return {
      bytesMax: Math.min(partition.bytesMax, this.#bytesLeft),
      // The first batch of an answer is given however large it is (KIP-74).
      oneAtLeast: this.#oneOfEach || this.bytes === 0,
      offsetEnd,
    };
  }

  #facts({ partition }: FetchPartition) {
    const { partitions } = this.#broker.replica.state.topics;
    return { highWatermark: partitions.end(partition), logStart: partitions.logStart(partition) };
  }

  #check(partition: FetchPartition): ErrorCode {
    const { replica, topics } = this.#broker;
    const { partitions } = replica.state.topics;
    const stored = partition.partition;
    if (stored < 0 || !partitions.exists(stored)) {
      return this.#knowsTopicIds && topics.byId(partition.topicId) === undefined
        ? ErrorCode.UNKNOWN_TOPIC_ID
        : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    }
    const epoch = partition.currentLeaderEpoch;
    if (epoch >= 0 && epoch < replica.leaderEpoch) return ErrorCode.FENCED_LEADER_EPOCH;
    if (epoch > replica.leaderEpoch) return ErrorCode.UNKNOWN_LEADER_EPOCH;
    const { fetchOffset } = partition;
    const isInRange =
      fetchOffset >= partitions.logStart(stored) && fetchOffset <= partitions.end(stored);
    return isInRange ? ErrorCode.NONE : ErrorCode.OFFSET_OUT_OF_RANGE;
  }
}
