import type { CancelTimer, Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import { encodeProducersExpired } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import type { Replica } from './replica.ts';
import type { TrustedClock } from './trusted-clock.ts';

export interface ProducerExpiryOptions {
  readonly replica: Replica;
  readonly clock: Clock;
  readonly trustedClock: TrustedClock;
  readonly settings: () => {
    /** `producer.id.expiration.ms` */
    readonly expirationMs: number;
    /** `producer.state.max` */
    readonly statesMax: number;
  };
  readonly log: Logger;
  readonly onFatal: (error: unknown) => void;
}

/** Time between looks for idle producers (Kafka's producer.id.expiration.check.interval.ms). */
const checkIntervalMs = 600_000;
const looksPerTurn = 5000;
const expiredPerEntry = 2000;
/** At the bound so much of it is freed at once, so that not every new producer has a look made. */
const freedShare = 0.1;
/** Times that are sampled to find how long the longest idle tenth has been idle. */
const samplesMax = 4096;

type ProducerKey = readonly [partition: number, producerId: number];

/**
 * Forgets idempotent producers: those that have been idle for `producer.id.expiration.ms`, and,
 * as soon as there are more than `producer.state.max` pairs of partition and producer, the longest
 * idle ones. A forgotten producer may write on; only a repeat of an old batch is not noticed.
 */
export class ProducerExpiry {
  readonly #options: ProducerExpiryOptions;
  #cancelTimer: CancelTimer | undefined;
  #running: Promise<void> | undefined;
  #stopped = false;

  constructor(options: ProducerExpiryOptions) {
    this.#options = options;
    this.#setTimer();
    options.replica.listen({
      onGroupApplied: () => {
        if (this.#isFull && this.#running === undefined) this.#run(() => this.#makeRoom());
      },
    });
  }

  /** Resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    await this.#running;
  }

  /** Resolves when what is under way is through, if anything is. */
  async settled(): Promise<void> {
    await this.#running;
  }

  get #isFull(): boolean {
    return this.#options.replica.state.producers.size > this.#options.settings().statesMax;
  }

  #setTimer(): void {
    if (this.#stopped) return;
    this.#cancelTimer = this.#options.clock.after(checkIntervalMs, () => {
      this.#setTimer();
      if (this.#running === undefined) this.#run(() => this.#expireIdle());
    });
  }

  #run(job: () => Promise<void>): void {
    if (this.#stopped || !this.#options.replica.isLeader) return;
    this.#running = job().then(
      () => {
        this.#running = undefined;
      },
      (error: unknown) => this.#options.onFatal(error),
    );
  }

  async #expireIdle(): Promise<void> {
    const { clock, trustedClock, settings, log } = this.#options;
    if (!trustedClock.mayExpire()) return;
    const count = await this.#forget(clock.wallMs() - settings().expirationMs);
    if (count > 0) log.debug({ count }, 'idle producers were forgotten');
  }

  async #makeRoom(): Promise<void> {
    const { settings, log } = this.#options;
    while (this.#isFull && !this.#stopped && this.#options.replica.isLeader) {
      const count = await this.#forget(await this.#idleTime());
      if (count === 0) return;
      const { statesMax } = settings();
      log.warn({ count, statesMax }, 'more producers than producer.state.max, some were forgotten');
    }
  }

  /** The time before which as many were last heard of as are to be forgotten; from a sample. */
  async #idleTime(): Promise<number> {
    const { producers } = this.#options.replica.state;
    const room = this.#options.settings().statesMax * (1 - freedShare);
    const step = Math.max(1, Math.floor(producers.size / samplesMax));
    const times: number[] = [];
    let index = 0;
    for (const [, , { lastMs }] of producers.all()) {
      if (index % step === 0) times.push(lastMs);
      index++;
      if (index % looksPerTurn === 0) await this.#turn();
    }
    times.sort((a, b) => a - b);
    const share = Math.max(0, 1 - room / index);
    return (times[Math.floor(share * times.length)] ?? 0) + 1;
  }

  /** Forgets the producers that were last heard of before `beforeMs`; answers how many. */
  async #forget(beforeMs: number): Promise<number> {
    const { producers } = this.#options.replica.state;
    let idle: ProducerKey[] = [];
    let looks = 0;
    let count = 0;
    // The table may change between turns: its maps can be walked all the same.
    for (const [partition, producerId, { lastMs }] of producers.all()) {
      if (lastMs < beforeMs) idle.push([partition, producerId]);
      looks++;
      const isTurnOver = looks % looksPerTurn === 0;
      if (isTurnOver || idle.length >= expiredPerEntry) {
        count += await this.#expire(idle);
        idle = [];
      }
      if (isTurnOver) await this.#turn();
      if (this.#stopped) return count;
    }
    return count + (await this.#expire(idle));
  }

  async #expire(producers: readonly ProducerKey[]): Promise<number> {
    if (producers.length === 0) return 0;
    const outcome = await this.#options.replica.proposeAndWait({
      type: EntryType.producersExpired,
      meta: encodeProducersExpired({ producers }),
    });
    return outcome === 'applied' ? producers.length : 0;
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => this.#options.clock.soon(resolve));
  }
}
