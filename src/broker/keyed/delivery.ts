import type { DeliverySettings } from '../../config/delivery-settings.ts';
import { ByteReader, ByteWriter } from '../../core/bytes.ts';
import type { Now } from '../../groups/deadlines.ts';
import type { DeliveryCounters } from '../../groups/keyed/counters.ts';
import { Dispatcher, type DispatcherSettings } from '../../groups/keyed/dispatcher.ts';
import type { Granted } from '../../groups/keyed/grant.ts';
import type { LaneRange } from '../../groups/keyed/lane-range.ts';
import type { NewMember } from '../../groups/keyed/member.ts';
import { isStocked } from '../../groups/keyed/room.ts';
import type { Waiter } from '../../groups/keyed/waiters.ts';
import type { StoredEntry } from '../../log/format.ts';
import { EntryType } from '../../state/entry-types.ts';
import { encodeKeyedChange, type KeyedEffect } from '../../state/keyed/effects.ts';
import { Ledger } from '../../state/keyed/ledger.ts';
import type { Topic } from '../../state/topics.ts';
import type { Broker } from '../broker.ts';
import { DeadLetters, type OwnBatches } from './dead-letters.ts';
import { Feed } from './feed.ts';
import type { KeyRules } from './ordering-keys.ts';

/** A fetch that waits: it is answered with what it was granted, or told that there is nothing. */
export interface LaneWaiter extends Waiter {
  onGranted(granted: readonly Granted[]): void;
  finishNow(): void;
}

/**
 * The keyed delivery of one topic to one group: a dispatcher, what feeds it, and its way into the
 * journal. Effects that are planned in one turn go out in one entry.
 */
export class Delivery {
  readonly groupId: string;
  readonly topic: Topic;
  settings: DeliverySettings;
  readonly dispatcher: Dispatcher;
  readonly #broker: Broker;
  readonly #feed: Feed;
  readonly #rules: KeyRules;
  /** Reads the log once more, for records that were left there. */
  #spillFeed: Feed | undefined;
  readonly #deadLetters: DeadLetters;
  readonly #parked = new Map<number, LaneWaiter>();
  /** Fetches that ask for grants of before a restart, which are not loaded yet. */
  readonly #loading = new Set<() => void>();
  readonly #aheadDurable = new WeakMap<LaneRange, Promise<boolean>>();
  #unflushed: KeyedEffect[] = [];
  #serveIsDue = false;
  #isStopped = false;

  /** `planned` is the ledger with all that is planned: the delivery owns it. */
  constructor(
    broker: Broker,
    topic: Topic,
    settings: DeliverySettings,
    planned: Ledger,
    counters: DeliveryCounters,
  ) {
    this.#broker = broker;
    this.groupId = planned.groupId;
    this.topic = topic;
    this.settings = settings;
    const hashSeed = broker.random.bytes(4).readInt32LE();
    this.dispatcher = new Dispatcher(planned, dispatcherSettings(settings), counters, hashSeed);
    this.#deadLetters = new DeadLetters(broker, this);
    const { dispatcher } = this;
    const loading = this.#loading;
    this.#rules = {
      orderingKey: settings.orderingKey,
      isNullSerial: settings.nullKeyOrder === 'serial',
    };
    this.#feed = new Feed(broker, topic, this.#rules, {
      startOf: (partition) => dispatcher.ledger.finished(partition).low,
      endOf: (partition) => broker.replica.state.topics.partitions.end(partition),
      // Grants of before a restart are loaded first, however much there is to grant.
      get readyRecords() {
        return loading.size > 0 ? 0 : dispatcher.board.readyRecords;
      },
      isStocked: (records) =>
        loading.size === 0 && isStocked(dispatcher, records, broker.keyed.now()),
      get isFull() {
        return dispatcher.board.spill.isShort;
      },
      file: (batch) => dispatcher.filing.file(batch, broker.keyed.now()),
      onLogStart: (partition, offset) => dispatcher.filing.deleteBelow(partition, offset),
      onFiled: () => this.#onFiled(),
    });
  }

  #onFiled(): void {
    for (const tell of [...this.#loading]) tell();
    this.serve();
  }

  /** Calls back each time that records were loaded, until what it answers is called. */
  whileLoading(tell: () => void): () => void {
    this.#loading.add(tell);
    this.pull();
    return () => this.#loading.delete(tell);
  }

  get slot(): number {
    return this.dispatcher.ledger.slot;
  }

  restore(members: readonly NewMember[], now: Now): void {
    for (const member of members) this.dispatcher.addMember(member);
    this.dispatcher.restore(now);
    this.flush();
    this.pull();
  }

  /**
   * A configuration changed. What records are ordered by, and the windows of members that are
   * there, stay as they were when the delivery, or the member, came.
   */
  changeSettings(settings: DeliverySettings): void {
    if (settings === this.settings) return;
    this.settings = settings;
    this.dispatcher.settings = dispatcherSettings(settings);
    this.dispatcher.failures.reconsiderHalted(this.#broker.keyed.now());
    this.serve();
  }

  /** Records that are not loaded, finished ones between them included. */
  get backlog(): number {
    return this.#feed.backlog;
  }

  /** Without members nothing is loaded. */
  get isAwake(): boolean {
    return !this.#isStopped && this.dispatcher.members.size > 0;
  }

  stop(): void {
    this.#isStopped = true;
    this.#feed.stop();
    this.#spillFeed?.stop();
    this.#deadLetters.stop();
    for (const tell of [...this.#loading]) tell();
    for (const waiter of this.dispatcher.waiters.all()) (waiter as LaneWaiter).finishNow();
  }

  /** An effect on the ledger as a whole, which its table applies. */
  planned(effect: KeyedEffect): void {
    this.#unflushed.push(effect);
    if (effect.kind === 'closed') this.flush();
  }

  /** Waits for records for these lanes; a lane has one waiting fetch, its newest. */
  park(waiter: LaneWaiter): void {
    for (const { lane } of waiter.ranges) this.#parked.set(lane, waiter);
    this.dispatcher.waiters.park(waiter);
  }

  unpark(waiter: LaneWaiter): void {
    for (const { lane } of waiter.ranges) {
      if (this.#parked.get(lane) === waiter) this.#parked.delete(lane);
    }
    this.dispatcher.waiters.unpark(waiter);
  }

  /** A newer fetch for the lanes came. */
  supersede(ranges: readonly LaneRange[]): void {
    for (const { lane } of ranges) this.emptyParked(lane);
  }

  /** Whoever waits for the lane is answered with nothing. */
  emptyParked(lane: number): void {
    this.#parked.get(lane)?.finishNow();
  }

  /** The lane goes to somebody else, or to nobody. */
  endLane(lane: number): void {
    this.emptyParked(lane);
    this.dispatcher.closeLane(lane, this.#broker.keyed.now());
  }

  /**
   * Puts what was planned since the last time on its way, with batches that belong to it; `done`
   * tells whether it is durable.
   */
  flush(done?: (isDurable: boolean) => void, own?: OwnBatches): void {
    this.#deadLetters.take();
    const effects = [...this.#unflushed.splice(0), ...this.dispatcher.takeEffects()];
    if (effects.length === 0) {
      if (done !== undefined) {
        this.#broker.replica.afterPlanned((outcome) => done(outcome === 'applied'));
      }
      return;
    }
    const change = {
      groupId: this.groupId,
      topicId: this.topic.id,
      effects,
      appendedMs: this.#broker.clock.wallMs(),
    };
    const command = { type: EntryType.keyed, meta: encodeKeyedChange(change), ...own };
    this.#broker.replica.propose(command, (outcome) => done?.(outcome === 'applied'));
  }

  onApplied(entry: StoredEntry): void {
    if (this.isAwake) this.#feed.onApplied(entry);
    // The group has members, but none of them has a lane yet: it is read when one has.
    else this.#feed.passOver();
  }

  /** A fetch was answered: the one that will follow is granted its records now, if that pays. */
  grantAhead(answered: Waiter): void {
    const { ahead } = this.dispatcher;
    ahead.onAnswered(answered);
    if (this.#isStopped || !ahead.isWorthwhile(answered)) return;
    this.#flushAhead(ahead.grant(answered, this.#broker.keyed.now()));
    this.pull();
  }

  /** A member committed: what that frees goes to those that wait, or to its next fetch. */
  onCommit(memberId: string): void {
    const { ahead, members } = this.dispatcher;
    const member = members.get(memberId);
    const ranges =
      member === undefined ? [] : ahead.grantAtCommit(member, this.#broker.keyed.now());
    if (ranges.length > 0) this.#flushAhead(ranges);
    else this.flush();
    this.serveSoon();
  }

  #flushAhead(ranges: readonly LaneRange[]): void {
    const durable = new Promise<boolean>((resolve) => this.flush(resolve));
    for (const range of ranges) this.#aheadDurable.set(range, durable);
  }

  /** Whether what the range was last granted ahead is durable, once that is settled. */
  isAheadDurable(range: LaneRange): Promise<boolean> {
    return this.#aheadDurable.get(range)!;
  }

  /** Grants to waiting fetches what there is; reads on if it is little. */
  serve(): void {
    this.#serveIsDue = false;
    if (this.#isStopped) return;
    this.#noteBacklog();
    this.dispatcher.waiters.serve(this.#broker.keyed.now(), (waiter, granted) => {
      (waiter as LaneWaiter).onGranted(granted);
    });
    this.flush();
    this.pull();
  }

  /** As `serve`, once at the end of the turn. */
  serveSoon(): void {
    if (this.#serveIsDue) return;
    this.#serveIsDue = true;
    this.#broker.clock.soon(() => {
      if (this.#serveIsDue) this.serve();
    });
  }

  pull(): void {
    if (!this.isAwake) return;
    this.#noteBacklog();
    const { board } = this.dispatcher;
    board.spill.isShort = board.bytes > this.#broker.settings['keyed.memory.bytes'];
    this.#feed.pull();
    this.#readSpilled();
  }

  /** Records that were left in the log are read again, when their keys are free. */
  #readSpilled(): void {
    const { board } = this.dispatcher;
    if (this.#spillFeed === undefined) {
      if (!board.spill.isReadingDue) return;
      board.spill.beginReading();
      this.#spillFeed = this.#makeSpillFeed();
    }
    this.#spillFeed.pull();
  }

  #makeSpillFeed(): Feed {
    const { dispatcher } = this;
    const { board } = dispatcher;
    const feed: Feed = new Feed(this.#broker, this.topic, this.#rules, {
      startOf: (partition) => dispatcher.ledger.finished(partition).low,
      endOf: (partition) => this.#feed.nextOf(partition),
      readyRecords: 0,
      isStocked: () => !board.spill.isReadingWanted,
      isFull: false,
      file: (batch) => dispatcher.filing.fileSpilled(batch, this.#broker.keyed.now()),
      onLogStart: () => undefined,
      onFiled: () => {
        if (feed.isCaughtUp && this.#spillFeed === feed) {
          board.endSpilled();
          this.#spillFeed = undefined;
        }
        this.serveSoon();
      },
    });
    return feed;
  }

  #noteBacklog(): void {
    this.dispatcher.backlog = this.#feed.backlog;
  }
}

function dispatcherSettings(settings: DeliverySettings): DispatcherSettings {
  return {
    finishesProven: settings.ack === 'poll',
    window: settings.window,
    unfinishedMax: settings.unfinishedMax,
    neverRejects: settings.refetch === 'repeat',
    attemptsMax: settings.attemptsMax,
    retryBackoffMs: settings.retryBackoffMs,
    retryBackoffMsMax: settings.retryBackoffMaxMs,
    halts: settings.deadLetterPolicy === 'halt',
  };
}

/** A ledger of its own for the leader to plan on. */
export function copyLedger(ledger: Ledger): Ledger {
  const writer = new ByteWriter();
  ledger.write(writer);
  return Ledger.read(new ByteReader(writer.finish()));
}
