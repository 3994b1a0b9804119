import type { CancelTimer } from '../core/clock.ts';
import { type GroupOffsetFacts, isOffsetExpired } from '../groups/offsets-rules.ts';
import type { Broker } from './broker.ts';

/** How many offsets and groups are looked at in one turn of the loop. */
const looksPerTurnMax = 5000;
/** How many offsets one entry deletes. */
const offsetsPerEntryMax = 1000;
/** The longest time that a timer of the platform can have. */
const timerMsMax = 2 ** 31 - 1;
const minuteMs = 60_000;

/**
 * Deletes committed offsets that are too old to keep, and groups of which nothing is left. The
 * leader looks at all of them now and then (`offsets.retention.check.interval.ms`) and writes what
 * is due as entries, so every replica deletes the same.
 */
export class OffsetExpiry {
  readonly #broker: Broker;
  #cancelTimer: CancelTimer | undefined;
  #stopped = false;
  #looks = 0;
  #expiredCount = 0;
  /** Deletions of this sweep that are not settled yet. */
  #deletions: Promise<void>[] = [];

  constructor(broker: Broker) {
    this.#broker = broker;
    this.#setTimer();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
  }

  #setTimer(): void {
    if (this.#stopped) return;
    const { clock, settings } = this.#broker;
    const delayMs = Math.min(settings['offsets.retention.check.interval.ms'], timerMsMax);
    this.#cancelTimer = clock.after(delayMs, () => {
      this.#sweep().then(
        () => this.#setTimer(),
        (error: unknown) => this.#broker.fatal(error),
      );
    });
  }

  async #sweep(): Promise<void> {
    const { trustedClock, clock, log, replica } = this.#broker;
    if (!replica.isLeader) return;
    // The time of the whole sweep: a clock that is set meanwhile is not believed unasked.
    const nowWallMs = clock.wallMs();
    if (trustedClock.mayExpire()) await this.#sweepOffsets(nowWallMs);
    await this.#settle();
    if (trustedClock.mayExpire()) this.#sweepDeliveries(nowWallMs);
    await this.#sweepGroups();
    if (this.#expiredCount > 0) log.info({ offsets: this.#expiredCount }, 'offsets expired');
    this.#expiredCount = 0;
  }

  async #sweepOffsets(nowWallMs: number): Promise<void> {
    const { replica, settings } = this.#broker;
    const retentionMs = settings['offsets.retention.minutes'] * minuteMs;
    const { offsets, topics } = replica.state;
    for (const groupId of offsets.groups()) {
      let facts = this.#factsOf(groupId);
      let expired: number[] = [];
      for (const [partition, offset] of offsets.of(groupId)!) {
        const { commitMs, expireMs } = offset;
        const topic = topics.partitions.topic(partition)!.name;
        const expireTimestampMs = expireMs === -1 ? null : expireMs;
        const committed = { topic, commitTimestampMs: commitMs, expireTimestampMs };
        if (isOffsetExpired(facts, committed, nowWallMs, retentionMs)) expired.push(partition);
        const isTurnOver = this.#countLook();
        if (!isTurnOver && expired.length < offsetsPerEntryMax) continue;
        this.#delete(groupId, expired);
        expired = [];
        if (!isTurnOver) continue;
        await this.#settle();
        if (this.#stopped) return;
        facts = this.#factsOf(groupId);
      }
      this.#delete(groupId, expired);
    }
  }

  /** What a group without members finished in keyed delivery is kept as long as its offsets are. */
  #sweepDeliveries(nowWallMs: number): void {
    const { replica, settings, groups, keyed } = this.#broker;
    const retentionMs = settings['offsets.retention.minutes'] * minuteMs;
    for (const groupId of [...replica.state.keyed.groups()]) {
      const sinceMs = groups.run((coordinator) => coordinator.isEmptySince(groupId));
      if (sinceMs !== null && nowWallMs - sinceMs >= retentionMs) keyed.close(groupId);
    }
  }

  #factsOf(groupId: string): GroupOffsetFacts | null {
    return this.#broker.groups.run((coordinator) => coordinator.offsetFacts(groupId));
  }

  /** To be called in the turn in which the offsets were looked at. */
  #delete(groupId: string, partitions: readonly number[]): void {
    const { offsets } = this.#broker;
    // Where a commit is under way what was seen is old; the next sweep sees the new.
    if (partitions.length === 0 || offsets.isCommitting(groupId)) return;
    const deletion = new Promise<void>((resolve) => {
      offsets.delete({ groupId, partitions }, (outcome) => {
        if (outcome === 'applied') this.#expiredCount += partitions.length;
        resolve();
      });
    });
    this.#deletions.push(deletion);
  }

  /** Groups without members whose last offset has gone, here or with its topic. */
  async #sweepGroups(): Promise<void> {
    const { groups, offsets, replica } = this.#broker;
    for (const groupId of groups.run((coordinator) => coordinator.groupIds())) {
      if (this.#stopped) return;
      const hasDeliveries = [...replica.state.keyed.ofGroup(groupId)].length > 0;
      const hasOffsets = replica.state.offsets.has(groupId) || hasDeliveries;
      if (!hasOffsets && !offsets.isCommitting(groupId)) {
        groups.run((coordinator, now) => coordinator.forget(groupId, now));
      }
      if (this.#countLook()) await this.#settle();
    }
  }

  /** Is it time to let others have a turn? */
  #countLook(): boolean {
    this.#looks++;
    return this.#looks % looksPerTurnMax === 0;
  }

  /** Waits for what is being deleted, at least until the next turn. */
  async #settle(): Promise<void> {
    const { clock } = this.#broker;
    const deletions = this.#deletions;
    this.#deletions = [];
    await Promise.all(deletions);
    await new Promise<void>((resolve) => clock.soon(resolve));
  }
}
