import { ErrorCode } from '../protocol/error-codes.ts';
import type { FetchPartitions } from './fetch-partitions.ts';
import { FetchResponseWriter } from './fetch-response.ts';
import type { FetchSession } from './fetch-session.ts';
import type { FoundPartitions } from './found-partitions.ts';
import type { RequestContext } from './handler.ts';
import { batchesFrom, MessageSets, type PartitionMessages } from './message-sets.ts';
import type { CurrentLeader, NodeEndpoint } from './nodes.ts';

export interface FetchAnswerOptions {
  readonly correlationId: number;
  readonly partitions: FetchPartitions;
  readonly session: FetchSession | undefined;
  readonly isIncremental: boolean;
  readonly isReadCommitted: boolean;
  readonly bytesMax: number;
}

/** Partitions that are handled in one turn of the loop: less than a millisecond. */
const partitionsPerTurn = 500;
const noBatches: readonly Buffer[] = [];
const currentLeaderFrom = 12;

/** Makes the answer of a fetch out of what was found and read, and remembers what it told. */
export class FetchAnswer {
  readonly #context: RequestContext;
  readonly #found: FoundPartitions;
  readonly #pieces: readonly Buffer[][];
  readonly #options: FetchAnswerOptions;
  readonly #writer: FetchResponseWriter;
  #toldLeader = false;
  readonly #sets: MessageSets | undefined;
  /** Of the found that have records, where they are no batches but `#sets`. */
  readonly #messages = new Map<number, PartitionMessages>();
  readonly #perTopic: Int32Array;
  #told = 0;
  /** What of the found belongs in the answer. */
  readonly #news: Int32Array;
  #newsCount = 0;
  /** The same, topic by topic. */
  #order: Int32Array | undefined;
  #converted = 0;
  #written = 0;
  #topic = -1;

  constructor(
    context: RequestContext,
    found: FoundPartitions,
    pieces: readonly Buffer[][],
    options: FetchAnswerOptions,
  ) {
    const { broker, apiVersion } = context;
    const { correlationId, partitions, isReadCommitted, bytesMax } = options;
    this.#context = context;
    this.#found = found;
    this.#pieces = pieces;
    this.#options = options;
    this.#perTopic = new Int32Array(partitions.topicNumberEnd);
    this.#news = new Int32Array(found.count);
    this.#writer = new FetchResponseWriter(apiVersion, correlationId, isReadCommitted);
    this.#sets =
      apiVersion < batchesFrom ? new MessageSets(broker, apiVersion, bytesMax) : undefined;
  }

  /**
   * Goes on for a turn, and answers the whole when it is done; or what to wait for before it can
   * go on.
   */
  run(): Buffer[] | Promise<void> | undefined {
    this.#tellSome();
    if (this.#told < this.#found.count) return undefined;
    this.#order ??= this.#begin();
    return this.#convertSome(this.#order) ?? this.#writeSome(this.#order);
  }

  /** Finds out which of the found belong in the answer, and counts them by topic. */
  #tellSome(): void {
    const { partitions, session } = this.#options;
    const found = this.#found;
    const end = Math.min(found.count, this.#told + partitionsPerTurn);
    for (; this.#told < end; this.#told++) {
      if (session !== undefined && !this.#tell(this.#told)) continue;
      this.#news[this.#newsCount++] = this.#told;
      const topic = partitions.topicOf(found.row(this.#told));
      this.#perTopic[topic] = this.#perTopic[topic]! + 1;
    }
  }

  #begin(): Int32Array {
    let topics = 0;
    for (const count of this.#perTopic) if (count > 0) topics++;
    this.#writer.begin(ErrorCode.NONE, this.#options.session?.id ?? 0, topics);
    return this.#byTopic(this.#news.subarray(0, this.#newsCount));
  }

  /** Makes the messages for clients that know no batches: of one partition after the other. */
  #convertSome(order: Int32Array): Promise<void> | undefined {
    const sets = this.#sets;
    if (sets === undefined) return undefined;
    const { partitions } = this.#options;
    for (; this.#converted < order.length; this.#converted++) {
      const at = order[this.#converted]!;
      if (!this.#found.hasRecords(at) || this.#messages.has(at)) continue;
      const row = this.#found.row(at);
      const asked = {
        fetchOffset: partitions.fetchOffset(row),
        bytesMax: partitions.bytesMax(row),
      };
      const made = sets.of(asked, this.#found.of(at, this.#pieces)!);
      if (made instanceof Promise) {
        return made.then((messages) => void this.#messages.set(at, messages));
      }
      this.#messages.set(at, made);
    }
    return undefined;
  }

  #writeSome(order: Int32Array): Buffer[] | undefined {
    const { partitions } = this.#options;
    const end = Math.min(order.length, this.#written + partitionsPerTurn);
    for (; this.#written < end; this.#written++) {
      const at = order[this.#written]!;
      const topic = partitions.topicOf(this.#found.row(at));
      if (topic !== this.#topic) {
        if (this.#topic >= 0) this.#writer.endTopic();
        this.#writer.beginTopic(partitions.topic(topic), this.#perTopic[topic]!);
        this.#topic = topic;
      }
      this.#partition(at);
    }
    if (end < order.length) return undefined;
    if (this.#topic >= 0) this.#writer.endTopic();
    return this.#writer.finish(this.#toldLeader ? this.#leaderEndpoints() : []);
  }

  /** Sorts by topic and leaves the order within each; topics come in the order of their numbers. */
  #byTopic(news: Int32Array): Int32Array {
    const { partitions } = this.#options;
    const nextOf = new Int32Array(this.#perTopic.length);
    let start = 0;
    for (let topic = 0; topic < nextOf.length; topic++) {
      nextOf[topic] = start;
      start += this.#perTopic[topic]!;
    }
    const sorted = new Int32Array(news.length);
    for (const at of news) {
      const topic = partitions.topicOf(this.#found.row(at));
      sorted[nextOf[topic]!++] = at;
    }
    return sorted;
  }

  /** Is there anything in it that the client was not told yet? Remembers what it is told now. */
  #tell(at: number): boolean {
    const { partitions, isIncremental } = this.#options;
    const found = this.#found;
    const row = found.row(at);
    const errorCode = found.errorCode(at);
    const highWatermark = found.highWatermark(at);
    const logStart = found.logStart(at);
    const hasTurn = found.hasRecords(at) || errorCode !== ErrorCode.NONE;
    const isNews =
      !isIncremental || hasTurn || !partitions.isTold(row, errorCode, highWatermark, logStart);
    partitions.tell(row, errorCode, highWatermark, logStart);
    // One for which there was no room stays where it is, before those that had their turn.
    if (hasTurn) partitions.moveToEnd(row);
    else if (this.#isSettled(row, highWatermark, logStart)) partitions.markQuiet(row);
    return isNews;
  }

  /** Nothing to read, nor anything that came after the look, while other partitions were read. */
  #isSettled(row: number, highWatermark: number, logStart: number): boolean {
    const { partitions } = this.#options;
    const { partitions: state } = this.#context.broker.replica.state.topics;
    const stored = partitions.stored(row);
    return (
      partitions.fetchOffset(row) === highWatermark &&
      state.exists(stored) &&
      state.end(stored) === highWatermark &&
      state.logStart(stored) === logStart
    );
  }

  #partition(at: number): void {
    const { partitions } = this.#options;
    const found = this.#found;
    const row = found.row(at);
    const messages = this.#messages.get(at);
    const errorCode = messages?.errorCode ?? found.errorCode(at);
    const records = messages?.records ?? found.of(at, this.#pieces) ?? noBatches;
    const highWatermark = found.highWatermark(at);
    const logStart = found.logStart(at);
    const leader = tellsLeader(errorCode) ? this.#leader() : undefined;
    const index = partitions.index(row);
    this.#writer.partition(index, errorCode, highWatermark, logStart, records, leader);
  }

  #leader(): CurrentLeader | undefined {
    const { broker, apiVersion } = this.#context;
    if (apiVersion < currentLeaderFrom) return undefined;
    this.#toldLeader = true;
    return broker.nodes.leader;
  }

  #leaderEndpoints(): NodeEndpoint[] {
    const { broker, client } = this.#context;
    return broker.nodes.leaderEndpoints(client);
  }
}

/** Errors after which a client looks for the leader (KIP-951). */
export function tellsLeader(errorCode: ErrorCode): boolean {
  return (
    errorCode === ErrorCode.FENCED_LEADER_EPOCH || errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER
  );
}
