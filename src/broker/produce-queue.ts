import type { Clock } from '../core/clock.ts';
import type { BatchOpener, CancelOpening, OpenedBatch, Opening } from '../replica/open-batch.ts';
import type { LargePart } from '../replica/produce-planner.ts';

/** One Produce request. */
export interface ProduceTurn {
  /** Bytes of its batches. */
  readonly bytes: number;
  /** Plans it; or else nothing, and answers what has to be opened before. */
  plan(): readonly LargePart[];
  /** What was opened, for the next `plan`. */
  takeOpened(large: readonly LargePart[], opened: readonly OpenedBatch[]): void;
  /** Answers that the broker is stopping. */
  refuse(): void;
}

/**
 * Bytes that one turn of the event loop plans of what has waited: as much as a socket brings in one
 * read, which is what bounds a turn otherwise.
 */
const turnBytesMax = 128 * 1024;
/**
 * Bytes of requests that may wait although their connection is gone. The network layer counts them
 * no more, so without a bound a client could fill the memory by coming and going.
 */
const closedBytesMax = 64 * 1024 * 1024;

/** What the queues of all connections share. */
export class ProduceQueues {
  readonly opener: BatchOpener;
  readonly clock: Clock;
  /** Bytes that wait in queues of closed connections. */
  closedBytes = 0;

  constructor(opener: BatchOpener, clock: Clock) {
    this.opener = opener;
    this.clock = clock;
  }

  /** For one connection. `onError` is told of errors that no one foresaw; they end the queue. */
  open(onError: (error: unknown) => void): ProduceQueue {
    return new ProduceQueue(this, onError);
  }
}

/**
 * The Produce requests of one connection. While one of them has large batches opened elsewhere, the
 * later ones wait, since an idempotent producer sends up to five whose sequences follow each other.
 * Otherwise nothing waits and nothing is kept.
 *
 * Only the first request has batches opened: so the connections take turns there.
 */
export class ProduceQueue {
  readonly #shared: ProduceQueues;
  readonly #onError: (error: unknown) => void;
  /** The first one is having batches opened, or is next to be planned. */
  #waiting: ProduceTurn[] = [];
  #waitingBytes = 0;
  #isClosed = false;
  #cancelOpening: CancelOpening | undefined;

  constructor(shared: ProduceQueues, onError: (error: unknown) => void) {
    this.#shared = shared;
    this.#onError = onError;
  }

  /** Plans the request, now or in its turn. */
  take(turn: ProduceTurn): void {
    if (this.#waiting.length > 0) {
      this.#push(turn);
      return;
    }
    const large = turn.plan();
    if (large.length === 0) return;
    this.#push(turn);
    this.#open(turn, large);
  }

  /**
   * The connection is gone. What was received is planned all the same, as producers with acks=0
   * expect; unless too much waits that nobody waits for.
   */
  onClose(): void {
    this.#isClosed = true;
    this.#shared.closedBytes += this.#waitingBytes;
    if (this.#shared.closedBytes > closedBytesMax) this.#drop();
  }

  #push(turn: ProduceTurn): void {
    this.#waiting.push(turn);
    this.#waitingBytes += turn.bytes;
  }

  #shift(): void {
    const bytes = this.#waiting.shift()?.bytes ?? 0;
    this.#waitingBytes -= bytes;
    if (this.#isClosed) this.#shared.closedBytes -= bytes;
  }

  #drop(): void {
    this.#cancelOpening?.();
    this.#cancelOpening = undefined;
    while (this.#waiting.length > 0) this.#shift();
  }

  #open(turn: ProduceTurn, large: readonly LargePart[]): void {
    this.#cancelOpening = this.#shared.opener.open(large, (result) => {
      this.#cancelOpening = undefined;
      this.#onOpened(turn, large, result);
    });
  }

  #onOpened(turn: ProduceTurn, large: readonly LargePart[], result: Opening): void {
    if (result === 'stopped') {
      for (const waiting of this.#waiting) waiting.refuse();
      this.#drop();
    } else if (result instanceof Error) {
      this.#drop();
      this.#onError(result);
    } else {
      turn.takeOpened(large, result);
      this.#run();
    }
  }

  /** Plans what waits, until something has to be opened. */
  #run(): void {
    let bytes = 0;
    for (let turn = this.#waiting[0]; turn !== undefined; turn = this.#waiting[0]) {
      if (bytes >= turnBytesMax) {
        this.#shared.clock.soon(() => this.#run());
        return;
      }
      bytes += turn.bytes;
      const large = this.#plan(turn);
      if (large === undefined) return;
      if (large.length > 0) {
        this.#open(turn, large);
        return;
      }
      this.#shift();
    }
  }

  /** Undefined if it failed, and the queue with it. */
  #plan(turn: ProduceTurn): readonly LargePart[] | undefined {
    try {
      return turn.plan();
    } catch (error) {
      this.#drop();
      this.#onError(error);
      return undefined;
    }
  }
}
