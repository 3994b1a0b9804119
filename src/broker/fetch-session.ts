import type { Random } from '../core/random.ts';
import { FetchPartitions } from './fetch-partitions.ts';
import type { FetchWaiters } from './fetch-waiters.ts';

/** A client's standing fetch: later requests name only what changes (KIP-227). */
export class FetchSession {
  readonly id: number;
  /** The epoch that the next request must carry. */
  epoch = 1;
  /** Version 13 and up name topics by id; the two kinds are not mixed in one session. */
  readonly usesTopicIds: boolean;
  readonly partitions: FetchPartitions;
  lastUsedMs: number;
  /** Answers the fetch that is parked for this session, if there is one. */
  finishParked: (() => void) | undefined;
  #isTaken = false;
  readonly #waiting: (() => void)[] = [];

  constructor(id: number, usesTopicIds: boolean, partitions: FetchPartitions, nowMs: number) {
    this.id = id;
    this.usesTopicIds = usesTopicIds;
    this.partitions = partitions;
    this.lastUsedMs = nowMs;
  }

  /**
   * A session serves one fetch at a time, from here to `leave`: its partitions do not change under
   * one that looks at them in slices. A client has one under way at most, unless it asks again on
   * another connection; then a parked one is answered now.
   */
  async enter(): Promise<void> {
    while (this.#isTaken) {
      this.finishParked?.();
      if (!this.#isTaken) break;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#isTaken = true;
  }

  leave(): void {
    this.#isTaken = false;
    this.#waiting.shift()?.();
  }
}

/** A session that was used this recently is not given up for a new one (Kafka's default). */
const evictableMs = 120_000;
/** Partitions of all sessions together, which take some 100 bytes each and need not exist. */
const partitionsMax = 1_000_000;

export class FetchSessions {
  readonly #slotsMax: number;
  readonly #waiters: FetchWaiters;
  /** In order of last use. */
  readonly #sessions = new Map<number, FetchSession>();
  readonly #random: Random;

  constructor(slotsMax: number, waiters: FetchWaiters, random: Random) {
    this.#slotsMax = slotsMax;
    this.#waiters = waiters;
    this.#random = random;
  }

  get size(): number {
    return this.#sessions.size;
  }

  get(id: number): FetchSession | undefined {
    return this.#sessions.get(id);
  }

  touch(session: FetchSession, nowMs: number): void {
    session.lastUsedMs = nowMs;
    this.#sessions.delete(session.id);
    this.#sessions.set(session.id, session);
  }

  /** Are there more partitions than all sessions together may have? */
  get hasTooMany(): boolean {
    let count = 0;
    for (const { partitions } of this.#sessions.values()) count += partitions.size;
    return count > partitionsMax;
  }

  /** Undefined when there is no room: the client then goes on with full fetches. */
  create(usesTopicIds: boolean, partitionCount: number, nowMs: number): FetchSession | undefined {
    while (this.hasTooMany) if (!this.#evict(nowMs)) return undefined;
    if (this.#sessions.size >= this.#slotsMax && !this.#evict(nowMs)) return undefined;
    const partitions = this.newPartitions(partitionCount);
    const session = new FetchSession(this.#nextId(), usesTopicIds, partitions, nowMs);
    session.partitions.watch();
    this.#sessions.set(session.id, session);
    return session;
  }

  /** For a session or a single fetch, with room for so many. */
  newPartitions(count: number): FetchPartitions {
    const seed = Math.floor(this.#random.next() * 0x7fffffff);
    return new FetchPartitions(this.#waiters, seed, count);
  }

  close(id: number): void {
    this.#sessions.get(id)?.partitions.unwatch();
    this.#sessions.delete(id);
  }

  #evict(nowMs: number): boolean {
    const oldest = this.#sessions.values().next().value;
    if (oldest === undefined || nowMs - oldest.lastUsedMs < evictableMs) return false;
    this.close(oldest.id);
    return true;
  }

  /** Random, so that a session from before a restart does not meet another one of its number. */
  #nextId(): number {
    for (;;) {
      const id = 1 + Math.floor(this.#random.next() * 0x7ffffffe);
      if (!this.#sessions.has(id)) return id;
    }
  }
}

/** The epoch after this one; 0 and -1 have meanings of their own. */
export function nextEpoch(epoch: number): number {
  return epoch === 0x7fffffff ? 1 : epoch + 1;
}
