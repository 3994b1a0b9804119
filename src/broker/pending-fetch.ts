import type { ReadPlan } from '../log/log-reader.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import type {
  FetchRequest,
  FetchResponseInput,
  fetchResponse,
} from '../protocol/schema/01-fetch.ts';
import { FetchLook, type Found } from './fetch-look.ts';
import type { FetchPartitions } from './fetch-partitions.ts';
import type { FetchSession } from './fetch-session.ts';
import type { Answer, RequestContext } from './handler.ts';
import { batchesFrom, MessageSets, messageSetBytesMax, oneAtLeastFrom } from './message-sets.ts';

type PartitionResponse = FetchResponseInput['responses'][number]['partitions'][number];

const noBatches: Buffer[] = [];
const readCommitted = 1;

/**
 * One Fetch under way. It is answered at once if there are enough bytes, an error, or nothing to
 * wait for; otherwise it is parked until there is enough or `maxWaitMs` is over.
 */
export class PendingFetch {
  readonly #context: RequestContext;
  readonly #request: FetchRequest;
  readonly #partitions: FetchPartitions;
  readonly #session: FetchSession | undefined;
  readonly #answer: Answer<typeof fetchResponse>;
  readonly #isIncremental: boolean;
  #cancelTimer: (() => void) | undefined;
  #forgetClose: (() => void) | undefined;
  #parked = false;
  /** Counts looks: one that was overtaken by another while it waited for the disk gives up. */
  #looks = 0;
  /** Bytes that must be appended while parked before a new look is worth it. */
  #missingBytes = 0;

  constructor(
    context: RequestContext,
    request: FetchRequest,
    partitions: FetchPartitions,
    session: FetchSession | undefined,
    answer: Answer<typeof fetchResponse>,
  ) {
    this.#context = context;
    this.#request = request;
    this.#partitions = partitions;
    this.#session = session;
    this.#answer = answer;
    this.#isIncremental = session !== undefined && request.sessionEpoch > 0;
  }

  start(): void {
    this.#look(this.#request.maxWaitMs <= 0).catch((error: unknown) => {
      this.#context.broker.fatal(error);
    });
  }

  /** Looks for records, and answers or parks. */
  async #look(mustAnswer: boolean): Promise<void> {
    const number = ++this.#looks;
    const { broker, apiVersion } = this.#context;
    const { minBytes } = this.#request;
    const look = new FetchLook(
      broker,
      this.#isIncremental ? this.#partitions.ready() : [...this.#partitions.all()],
      {
        bytesMax: this.#bytesMax,
        knowsTopicIds: apiVersion >= 13,
        endsWhenFull: this.#isIncremental,
        // Of a batch that is too large some messages may fit.
        oneOfEach: apiVersion < oneAtLeastFrom,
      },
    );
    for (let next = look.run(); next !== undefined; next = look.run()) {
      if (next === 'pause') await new Promise<void>((resolve) => broker.clock.soon(resolve));
      else await look.wait(next);
      if (number !== this.#looks) return;
    }
    const isEnough = look.bytes >= minBytes || this.#partitions.size === 0;
    if (mustAnswer || look.isError || isEnough) await this.#respond(look.found);
    else this.#park(minBytes - look.bytes);
  }

  #park(missingBytes: number): void {
    const { broker } = this.#context;
    this.#missingBytes = missingBytes;
    this.#partitions.appendedBytes = 0;
    this.#partitions.sawOtherNews = false;
    this.#partitions.onNews = () => this.#onNews();
    if (this.#parked) return;
    this.#parked = true;
    this.#partitions.watch();
    if (this.#session !== undefined) this.#session.finishParked = () => this.finishNow();
    this.#cancelTimer = broker.clock.after(this.#request.maxWaitMs, () => this.finishNow());
    this.#forgetClose = this.#context.onClosed(() => this.#unpark());
    broker.park(this);
  }

  #onNews(): void {
    const { appendedBytes, sawOtherNews } = this.#partitions;
    if (appendedBytes < this.#missingBytes && !sawOtherNews) return;
    this.#partitions.onNews = undefined;
    this.#look(false).catch((error: unknown) => this.#context.broker.fatal(error));
  }

  /** Time is up, or the broker stops: answers with what there is. */
  finishNow(): void {
    if (!this.#parked) return;
    this.#unpark();
    this.#look(true).catch((error: unknown) => this.#context.broker.fatal(error));
  }

  #unpark(): void {
    if (!this.#parked) return;
    this.#parked = false;
    this.#cancelTimer?.();
    this.#forgetClose?.();
    this.#partitions.onNews = undefined;
    if (this.#session === undefined) this.#partitions.unwatch();
    else this.#session.finishParked = undefined;
    this.#context.broker.unpark(this);
  }

  async #respond(found: readonly Found[]): Promise<void> {
    this.#looks++;
    this.#unpark();
    const { reader } = this.#context.broker;
    const plans: ReadPlan[] = [];
    for (const { plan } of found) if (plan !== undefined) plans.push(plan);
    const recent = reader.readRecent(plans);
    if (recent !== undefined) {
      this.#answer(this.#response(found, recent));
      return;
    }
    const read = await reader.read(plans);
    // Records that went away meanwhile are below the log start now: the next look says so.
    if (read === undefined) await this.#look(true);
    else this.#answer(this.#response(found, read.pieces), read.release);
  }

  get #bytesMax(): number {
    const { broker, apiVersion } = this.#context;
    const bytesMax = Math.min(this.#request.maxBytes, broker.settings['fetch.max.bytes']);
    return apiVersion < batchesFrom ? Math.min(bytesMax, messageSetBytesMax) : bytesMax;
  }

  #response(found: readonly Found[], pieces: readonly Buffer[][]): FetchResponseInput {
    const { broker, apiVersion } = this.#context;
    const sets =
      apiVersion < batchesFrom ? new MessageSets(broker, apiVersion, this.#bytesMax) : undefined;
    const responses: Topic[] = [];
    const byTopic = new Map<string, Topic>();
    let read = 0;
    for (const item of found) {
      const batches = item.plan === undefined ? noBatches : pieces[read++]!;
      if (!this.#isNews(item)) continue;
      const { topicName, topicId } = item.partition;
      const key = apiVersion >= 13 ? topicId : topicName;
      let topic = byTopic.get(key);
      if (topic === undefined) {
        topic = { topic: topicName, topicId, partitions: [] };
        byTopic.set(key, topic);
        responses.push(topic);
      }
      topic.partitions.push(this.#partitionResponse(item, batches, sets));
    }
    return { errorCode: ErrorCode.NONE, sessionId: this.#session?.id ?? 0, responses };
  }

  /** Does the partition belong in the answer? Remembers what it says. */
  #isNews({ partition, errorCode, highWatermark, logStart, plan }: Found): boolean {
    if (this.#session === undefined) return true;
    const hasRecords = plan !== undefined && plan.bytes > 0;
    const isNews =
      !this.#isIncremental ||
      hasRecords ||
      errorCode !== ErrorCode.NONE ||
      errorCode !== partition.sentError ||
      highWatermark !== partition.sentHighWatermark ||
      logStart !== partition.sentLogStart;
    partition.sentError = errorCode;
    partition.sentHighWatermark = highWatermark;
    partition.sentLogStart = logStart;
    // One for which there was no room stays where it is, before those that had their turn.
    const hasMore = partition.fetchOffset < highWatermark;
    if (hasRecords || errorCode !== ErrorCode.NONE) this.#partitions.moveToEnd(partition);
    else if (!hasMore) this.#partitions.markQuiet(partition);
    return isNews;
  }

  #partitionResponse(
    found: Found,
    batches: Buffer[],
    sets: MessageSets | undefined,
  ): PartitionResponse {
    const { broker } = this.#context;
    const { partition, highWatermark } = found;
    const isConverted = sets !== undefined && batches.length > 0;
    const { errorCode, records } = isConverted
      ? sets.of(partition, batches)
      : { errorCode: found.errorCode, records: batches };
    const isReadCommitted = this.#request.isolationLevel === readCommitted;
    const isFenced = errorCode === ErrorCode.FENCED_LEADER_EPOCH && this.#context.apiVersion >= 12;
    return {
      partitionIndex: partition.index,
      errorCode,
      highWatermark,
      lastStableOffset: highWatermark,
      logStartOffset: found.logStart,
      abortedTransactions: isReadCommitted ? [] : null,
      records,
      ...(isFenced && {
        currentLeader: { leaderId: broker.nodeId, leaderEpoch: broker.replica.leaderEpoch },
      }),
    };
  }
}

interface Topic {
  readonly topic: string;
  readonly topicId: string;
  readonly partitions: PartitionResponse[];
}
