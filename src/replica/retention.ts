import type { TopicSettings } from '../config/topic-settings.ts';
import type { CancelTimer, Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { LogStart } from '../state/commands.ts';
import type { Topic } from '../state/topics.ts';
import { extentsPerTurn, type LogStarts } from './log-starts.ts';
import type { Replica } from './replica.ts';
import type { TopicPlanner } from './topic-planner.ts';
import type { TrustedClock } from './trusted-clock.ts';

export interface RetentionOptions {
  readonly replica: Replica;
  readonly topics: TopicPlanner;
  readonly logStarts: LogStarts;
  readonly clock: Clock;
  readonly trustedClock: TrustedClock;
  /** `log.retention.check.interval.ms` */
  readonly checkIntervalMs: number;
  readonly topicSettings: (topic: Topic) => TopicSettings;
  readonly log: Logger;
  readonly onFatal: (error: unknown) => void;
}

/** Partitions that are looked at in one turn of the event loop. */
const partitionsPerTurn = 500;
/** Kafka looks for the first time so long after a start (log.initial.task.delay.ms). */
const firstLookMs = 30_000;
/** The longest time that a timer of the platform can have. */
const timerMsMax = 2 ** 31 - 1;
/** Partitions of which the age of the oldest batch is remembered, to pass them over quickly. */
const oldestMax = 100_000;

interface Candidate {
  readonly partition: number;
  readonly settings: TopicSettings;
}

/** One look at all partitions. */
interface Pass {
  readonly nowMs: number;
  /** Whether anything may be deleted because of its age. */
  readonly mayExpire: boolean;
  readonly candidates: Iterator<Candidate>;
  /** The partition of which more is to be looked at in the next turn. */
  unfinished: Candidate | undefined;
  isOver: boolean;
  deletedBytes: number;
}

/**
 * Deletes what retention.ms and retention.bytes say, from the oldest batch of each partition on.
 * Kafka's rules (UnifiedLog.deleteOldSegments), for batches where Kafka has segments:
 *
 * - by age: while the newest timestamp of the oldest batch is older than retention.ms. A batch
 *   without timestamps goes with the next one that has some.
 * - by size: while at least retention.bytes are left without the oldest batch.
 *
 * Log starts move by entries, so every replica deletes the same; the replica then removes journal
 * files in which nothing is left.
 */
export class Retention {
  readonly #options: RetentionOptions;
  /** Of partitions by number: their log start, and the newest timestamp of the batch there. */
  readonly #oldest = new Map<number, readonly [logStart: number, maxTimestamp: number]>();
  #cancelTimer: CancelTimer | undefined;
  #running: Promise<void> | undefined;
  #stopped = false;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#setTimer(Math.min(firstLookMs, options.checkIntervalMs));
  }

  /** Resolves when no look is under way any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    await this.#running;
  }

  /** Resolves when the look that is under way is through, if there is one. */
  async settled(): Promise<void> {
    await this.#running;
  }

  #setTimer(delayMs: number): void {
    if (this.#stopped) return;
    const { clock, checkIntervalMs, onFatal } = this.#options;
    this.#cancelTimer = clock.after(Math.min(delayMs, timerMsMax), () => {
      this.#running = this.#look().then(
        () => this.#setTimer(checkIntervalMs),
        (error: unknown) => onFatal(error),
      );
    });
  }

  async #look(): Promise<void> {
    const { clock, trustedClock, logStarts, log } = this.#options;
    const pass: Pass = {
      nowMs: clock.wallMs(),
      mayExpire: trustedClock.mayExpire(),
      candidates: this.#candidates(),
      unfinished: undefined,
      isOver: false,
      deletedBytes: 0,
    };
    while (!pass.isOver && !this.#stopped) {
      const outcome = await logStarts.move(() => this.#findStarts(pass));
      // A full disk takes no entry now; the next look comes anyway.
      if (outcome !== 'applied') break;
      await new Promise<void>((resolve) => clock.soon(resolve));
    }
    if (pass.deletedBytes > 0) log.info({ bytes: pass.deletedBytes }, 'old records were deleted');
  }

  /** Partitions that hold something and have a limit. */
  *#candidates(): Generator<Candidate> {
    const { replica, topics, topicSettings } = this.#options;
    const { partitions } = replica.state.topics;
    for (const topic of topics.all()) {
      const settings = topicSettings(topic);
      if (settings.retentionMs < 0 && settings.retentionBytes < 0) continue;
      for (const partition of topic.partitions) {
        // A topic may go between two turns; its partitions then have no columns any more.
        if (!partitions.exists(partition)) break;
        if (partitions.logStart(partition) < partitions.end(partition)) {
          yield { partition, settings };
        }
      }
    }
  }

  /** What may be found in one turn. */
  async #findStarts(pass: Pass): Promise<LogStart[]> {
    const starts: LogStart[] = [];
    let extentsLeft = extentsPerTurn;
    for (let left = partitionsPerTurn; left > 0 && extentsLeft > 0; left--) {
      const candidate = pass.unfinished ?? this.#next(pass);
      pass.unfinished = undefined;
      if (candidate === undefined) break;
      if (!this.#options.logStarts.isLive(candidate.partition)) continue;
      if (this.#isKnownToKeep(candidate, pass)) continue;
      const found = await this.#findStart(candidate, pass, extentsLeft);
      extentsLeft -= found.extents;
      if (found.start === undefined) continue;
      starts.push(found.start);
      pass.deletedBytes += found.start.droppedBytes;
      if (!found.isWhole) pass.unfinished = candidate;
    }
    return starts;
  }

  #next(pass: Pass): Candidate | undefined {
    const next = pass.candidates.next();
    pass.isOver = next.done === true;
    return next.done === true ? undefined : next.value;
  }

  /** Most looks find nothing: what the oldest batch of a partition is does not change. */
  #isKnownToKeep({ partition, settings }: Candidate, pass: Pass): boolean {
    const { partitions } = this.#options.replica.state.topics;
    const isTooMuch =
      settings.retentionBytes >= 0 && partitions.bytes(partition) > settings.retentionBytes;
    if (isTooMuch) return false;
    if (settings.retentionMs < 0 || !pass.mayExpire) return true;
    const oldest = this.#oldest.get(partition);
    if (oldest === undefined || oldest[0] !== partitions.logStart(partition)) return false;
    return pass.nowMs - oldest[1] <= settings.retentionMs;
  }

  async #findStart(
    { partition, settings }: Candidate,
    pass: Pass,
    extentsMax: number,
  ): Promise<{ start: LogStart | undefined; extents: number; isWhole: boolean }> {
    const { replica } = this.#options;
    const { partitions } = replica.state.topics;
    const { retentionMs, retentionBytes } = settings;
    const logStart = partitions.logStart(partition);
    const byAge = pass.mayExpire && retentionMs >= 0;
    let excess = retentionBytes < 0 ? -1 : partitions.bytes(partition) - retentionBytes;
    let offset = logStart;
    let droppedBytes = 0;
    /** Bytes that were passed over since `offset`, of batches without timestamps. */
    let ageless = 0;
    let extents = 0;
    await replica.journal.extents.walkLoading(
      { partition, start: { offset: logStart } },
      (baseOffset, count, maxTimestamp, _epoch, _position, bytes) => {
        extents++;
        const isOld = byAge && maxTimestamp >= 0 && pass.nowMs - maxTimestamp > retentionMs;
        const isTooMuch = excess >= bytes;
        if (isOld || isTooMuch) {
          droppedBytes += ageless + bytes;
          ageless = 0;
          offset = baseOffset + count;
        } else if (byAge && maxTimestamp < 0) ageless += bytes;
        else {
          if (baseOffset <= offset) this.#remember(partition, offset, maxTimestamp);
          return false;
        }
        excess -= bytes;
        return extents < extentsMax;
      },
    );
    const start = offset > logStart ? { partition, offset, droppedBytes } : undefined;
    return { start, extents, isWhole: extents < extentsMax };
  }

  #remember(partition: number, logStart: number, maxTimestamp: number): void {
    this.#oldest.delete(partition);
    if (this.#oldest.size >= oldestMax) {
      for (const first of this.#oldest.keys()) {
        this.#oldest.delete(first);
        break;
      }
    }
    this.#oldest.set(partition, [logStart, maxTimestamp]);
  }
}
