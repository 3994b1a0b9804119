import { FetchAnswer } from './fetch-answer.ts';
import { FetchLook } from './fetch-look.ts';
import type { FetchPartitions } from './fetch-partitions.ts';
import type { FetchOptions } from './fetch-request.ts';
import { topicIdsFrom } from './fetch-request.ts';
import type { FetchSession } from './fetch-session.ts';
import type { FoundPartitions } from './found-partitions.ts';
import type { RequestContext } from './handler.ts';
import { batchesFrom, messageSetBytesMax, oneAtLeastFrom } from './message-sets.ts';

/** Which partitions a fetch is about, and the session that it belongs to. */
export interface Opened {
  readonly partitions: FetchPartitions;
  /** Entered; the fetch leaves it when it is answered. */
  readonly session: FetchSession | undefined;
  /** Tells only what is new, and not of every partition. */
  readonly isIncremental: boolean;
}

/**
 * One Fetch under way. It is answered at once if there are enough bytes, an error, or nothing to
 * wait for; otherwise it is parked until there is enough or `maxWaitMs` is over.
 */
export class PendingFetch {
  readonly #context: RequestContext;
  readonly #correlationId: number;
  readonly #options: FetchOptions;
  readonly #opened: Opened;
  #cancelTimer: (() => void) | undefined;
  #forgetClose: (() => void) | undefined;
  #parked = false;
  #isLooking = false;
  /** Nobody is there any more to take the answer. */
  #isClosed = false;
  /** Counts looks: one that was overtaken by another while it waited for the disk gives up. */
  #looks = 0;
  /** Bytes that must be appended while parked before a new look is worth it. */
  #missingBytes = 0;

  constructor(
    context: RequestContext,
    correlationId: number,
    options: FetchOptions,
    opened: Opened,
  ) {
    this.#context = context;
    this.#correlationId = correlationId;
    this.#options = options;
    this.#opened = opened;
  }

  start(): Promise<void> {
    return this.#look(this.#options.maxWaitMs <= 0);
  }

  /** Looks for records, and answers or parks. */
  async #look(mustAnswer: boolean): Promise<void> {
    const number = ++this.#looks;
    this.#isLooking = true;
    const { broker, apiVersion } = this.#context;
    const { partitions, isIncremental } = this.#opened;
    const look = new FetchLook(broker, partitions, {
      bytesMax: this.#bytesMax,
      knowsTopicIds: apiVersion >= topicIdsFrom,
      endsWhenFull: isIncremental,
      // Of a batch that is too large some messages may fit.
      oneOfEach: apiVersion < oneAtLeastFrom,
    });
    for (let next = look.run(); next !== undefined; next = look.run()) {
      if (next === 'pause') await new Promise<void>((resolve) => broker.clock.soon(resolve));
      else await look.wait(next);
      if (number !== this.#looks) return;
    }
    const { minBytes } = this.#options;
    const isEnough = look.bytes >= minBytes || partitions.size === 0;
    if (this.#isClosed) this.#end();
    else if (mustAnswer || look.isError || isEnough) await this.#respond(look.found);
    else this.#park(minBytes - look.bytes);
  }

  #lookAgain(mustAnswer: boolean): void {
    this.#look(mustAnswer).catch((error: unknown) => this.#context.broker.fatal(error));
  }

  #park(missingBytes: number): void {
    const { broker } = this.#context;
    const { partitions, session } = this.#opened;
    this.#isLooking = false;
    this.#missingBytes = missingBytes;
    partitions.appendedBytes = 0;
    partitions.sawOtherNews = false;
    partitions.onNews = () => this.#onNews();
    if (this.#parked) return;
    this.#parked = true;
    partitions.watch();
    if (session !== undefined) session.finishParked = () => this.finishNow();
    this.#cancelTimer = broker.clock.after(this.#options.maxWaitMs, () => this.finishNow());
    this.#forgetClose = this.#context.onClosed(() => this.#onClosed());
    broker.park(this);
  }

  #onNews(): void {
    const { partitions } = this.#opened;
    if (partitions.appendedBytes < this.#missingBytes && !partitions.sawOtherNews) return;
    partitions.onNews = undefined;
    this.#lookAgain(false);
  }

  /** Time is up, or the broker stops: answers with what there is. */
  finishNow(): void {
    if (!this.#parked) return;
    this.#unpark();
    this.#lookAgain(true);
  }

  #onClosed(): void {
    this.#isClosed = true;
    this.#unpark();
    if (!this.#isLooking) this.#end();
  }

  #unpark(): void {
    if (!this.#parked) return;
    this.#parked = false;
    this.#cancelTimer?.();
    this.#forgetClose?.();
    const { partitions, session } = this.#opened;
    partitions.onNews = undefined;
    if (session === undefined) partitions.unwatch();
    else session.finishParked = undefined;
    this.#context.broker.unpark(this);
  }

  #end(): void {
    this.#looks++;
    this.#unpark();
    this.#opened.session?.leave();
  }

  async #respond(found: FoundPartitions): Promise<void> {
    this.#looks++;
    this.#unpark();
    const { reader } = this.#context.broker;
    const recent = reader.readRecent(found.plans);
    if (recent !== undefined) {
      await this.#send(found, recent);
      return;
    }
    const read = await reader.read(found.plans);
    // Records that went away meanwhile are below the log start now: the next look says so.
    if (read === undefined) await this.#look(true);
    else await this.#send(found, read.pieces, read.release);
  }

  async #send(
    found: FoundPartitions,
    pieces: readonly Buffer[][],
    release?: () => void,
  ): Promise<void> {
    const { partitions, session, isIncremental } = this.#opened;
    const answer = new FetchAnswer(this.#context, found, pieces, {
      correlationId: this.#correlationId,
      partitions,
      session,
      isIncremental,
      isReadCommitted: this.#options.isolationLevel === readCommitted,
      bytesMax: this.#bytesMax,
    });
    for (;;) {
      const next = answer.run();
      if (Array.isArray(next)) {
        this.#end();
        this.#context.reply.send(next, release);
        return;
      }
      await (next ?? new Promise<void>((resolve) => this.#context.broker.clock.soon(resolve)));
    }
  }

  get #bytesMax(): number {
    const { broker, apiVersion } = this.#context;
    const bytesMax = Math.min(this.#options.maxBytes, broker.settings['fetch.max.bytes']);
    return apiVersion < batchesFrom ? Math.min(bytesMax, messageSetBytesMax) : bytesMax;
  }
}

const readCommitted = 1;
