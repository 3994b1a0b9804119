import type { Now } from '../../groups/deadlines.ts';
import { Proof } from '../../groups/keyed/client-traits.ts';
import type { RangePart } from '../../groups/keyed/failures.ts';
import type { Granted } from '../../groups/keyed/grant.ts';
import type { LaneRange } from '../../groups/keyed/lane-range.ts';
import type { Member } from '../../groups/keyed/member.ts';
import { none } from '../../groups/keyed/record-store.ts';
import { roomOf } from '../../groups/keyed/room.ts';
import type { Parked } from '../broker.ts';
import { type FetchOptions, type FetchRequestView, RequestedPartitions } from '../fetch-request.ts';
import type { RequestContext } from '../handler.ts';
import type { Delivery, LaneWaiter } from './delivery.ts';
import { LaneAnswer, type LanePart } from './lane-answer.ts';
import { isLaneOffset, numberOf, slotOf } from './lane-numbers.ts';
import { type AskedPartition, LogParts } from './log-parts.ts';

/** Longer than it takes to read what is before the grants of a lane; shorter than clients wait. */
const loadingMsMax = 5000;

/**
 * For so long a fetch that came before the handler started waits for the commit that follows it.
 * Longer handlers would gain nothing, and a client that does not commit this time idles no longer.
 */
const commitAwaitedMs = 50;

/** The lanes of one group's topic, all of one member. */
interface Ask {
  readonly delivery: Delivery;
  readonly member: Member;
  /** Asked for at their ends: they may get new records. */
  readonly atEnd: LaneRange[];
  /** Asked for below their ends. */
  readonly repeats: RangePart[];
  readonly laneBytesMax: number;
}

/** Does the request name a lane? Then none of it belongs to a fetch session. */
export function namesLanes(request: FetchRequestView): boolean {
  const requested = new RequestedPartitions(request);
  while (requested.next()) if (isLaneOffset(requested.fetchOffset)) return true;
  return false;
}

/**
 * One Fetch of a member in keyed delivery. What it names says what the member has handled, what it
 * gives back, and what it wants again; then it is granted new records, or waits for some.
 */
export class LaneFetch implements Parked {
  readonly #context: RequestContext;
  readonly #options: FetchOptions;
  readonly #lanes: readonly AskedPartition[];
  readonly #logParts: LogParts;
  readonly #answer: LaneAnswer;
  #asks: Ask[] = [];
  #waiters: (LaneWaiter & { readonly delivery: Delivery })[] = [];
  #cancelTimer: (() => void) | undefined;
  #forgetClose: (() => void) | undefined;
  #isParked = false;

  constructor(context: RequestContext, correlationId: number, request: FetchRequestView) {
    this.#context = context;
    this.#options = request.options;
    const asked = [...askedPartitions(request)];
    this.#lanes = asked.filter(({ offset }) => isLaneOffset(offset));
    const others = asked.filter(({ offset }) => !isLaneOffset(offset));
    this.#logParts = new LogParts(context, request.options, others);
    const { options } = request;
    this.#answer = new LaneAnswer(context, correlationId, asked, options, this.#logParts);
  }

  start(): void {
    const { broker } = this.#context;
    // Lanes belong to no session; the answer tells the client that it has none.
    if (this.#options.sessionId !== 0) broker.fetchSessions.close(this.#options.sessionId);
    for (const lane of this.#lanes) this.#sort(lane);
    const unloaded = this.#asks.find((ask) => ask.repeats.some(isUnloaded));
    if (unloaded === undefined) this.#serve();
    else this.#awaitLoading(unloaded.delivery);
  }

  /** After a restart what was granted before is read again: an answer without it would mislead. */
  #awaitLoading(delivery: Delivery): void {
    const { broker } = this.#context;
    const end = (goesOn: boolean) => {
      if (!this.#isParked) return;
      this.#isParked = false;
      stop();
      cancelTimer();
      forgetClose();
      broker.unpark(parked);
      this.#asks = [];
      if (goesOn) this.start();
      else this.#respondEmpty();
    };
    const stop = delivery.whileLoading(() => end(true));
    const cancelTimer = broker.clock.after(loadingMsMax, () => end(false));
    const forgetClose = this.#context.onClosed(() => end(false));
    const parked = { finishNow: () => end(false) };
    this.#isParked = true;
    broker.park(parked);
  }

  #serve(): void {
    const { broker, client } = this.#context;
    const now = broker.keyed.now();
    for (const { delivery, atEnd, repeats } of this.#asks) {
      delivery.supersede([...atEnd, ...repeats.map(({ range }) => range)]);
    }
    // What is proven comes before what is given back: it is not in hand any more.
    for (const { delivery, member, atEnd } of this.#asks) {
      delivery.dispatcher.prove(member, atEnd, now);
    }
    for (const ask of this.#asks) this.#takeBack(ask, client.connectionId);
    const parts: LanePart[] = [];
    for (const ask of this.#asks) {
      for (const { range, from } of ask.repeats) {
        parts.push({
          delivery: ask.delivery,
          range,
          from,
          to: range.end,
          isNew: false,
          durable: undefined,
        });
      }
    }
    for (const ask of this.#asks) this.#grant(ask, parts);
    if (parts.length > 0) {
      this.#respond(parts);
      return;
    }
    const waitMs = this.#waitMs(now);
    if (waitMs <= 0) this.#respondEmpty();
    else this.#park(waitMs);
  }

  /** How long a fetch waits that there is nothing for. */
  #waitMs(now: Now): number {
    const { maxWaitMs } = this.#options;
    const kept = this.#asks.filter((ask) => isKeptEmpty(ask, now));
    if (kept.length === 0) return maxWaitMs;
    const isCommitAwaited = kept.every(({ member }) => member.commitsPromptly);
    return isCommitAwaited ? Math.min(maxWaitMs, commitAwaitedMs) : 0;
  }

  /** Finds out what the request says of a lane. */
  #sort(lane: AskedPartition): void {
    const { broker } = this.#context;
    const topic =
      lane.topicName === ''
        ? broker.topics.byId(lane.topicId)
        : broker.topics.byName(lane.topicName);
    if (topic === undefined) return;
    const delivery = broker.keyed.bySlot(topic.id, slotOf(lane.offset));
    const range = delivery?.dispatcher.presentRange(lane.index);
    if (delivery === undefined || range === undefined) return;
    const n = startIn(delivery, range, numberOf(lane.offset));
    if (n === undefined) return;
    // It was told where the range begins, and so does not drop what it is answered from now on.
    if (numberOf(lane.offset) >= range.start) range.isProvisional = false;
    broker.keyed.handshakes.end(topic.id, lane.index);
    const { member } = range;
    let ask = this.#asks.find((one) => one.delivery === delivery && one.member === member);
    if (ask === undefined) {
      ask = { delivery, member, atEnd: [], repeats: [], laneBytesMax: lane.bytesMax };
      this.#asks.push(ask);
    }
    // A lane that is named twice counts once.
    if (ask.atEnd.includes(range) || ask.repeats.some((part) => part.range === range)) return;
    const first = Math.max(n, range.grants.firstN);
    if (first >= range.end) ask.atEnd.push(range);
    else ask.repeats.push({ range, from: first });
  }

  /** A repeated fetch may say that the client starts over: then it gets other records. */
  #takeBack(ask: Ask, connectionId: number): void {
    const { delivery, member, repeats, atEnd } = ask;
    const { dispatcher } = delivery;
    if (!member.traits.rejectsByRefetch || dispatcher.settings.neverRejects) return;
    const rejected = repeats.filter(
      ({ range, from }) =>
        range.writtenConnection === connectionId &&
        from >= range.writtenStart &&
        from < range.writtenEnd,
    );
    if (rejected.length === 0) return;
    const { rejectionSilenceMs } = member.traits;
    const isFailure = this.#context.client.silentMs >= rejectionSilenceMs;
    dispatcher.reject(member, rejected, isFailure, this.#context.broker.keyed.now());
    for (const part of rejected) {
      repeats.splice(repeats.indexOf(part), 1);
      atEnd.push(part.range);
    }
    delivery.serveSoon();
  }

  #grant(ask: Ask, parts: LanePart[]): void {
    const { delivery, atEnd } = ask;
    if (atEnd.length === 0) return;
    const waiter = this.#waiterOf(ask);
    const granted = delivery.dispatcher.grant(waiter, this.#context.broker.keyed.now());
    addGranted(parts, delivery, granted);
    delivery.pull();
  }

  #waiterOf(ask: Ask): LaneWaiter & { readonly delivery: Delivery } {
    const { delivery, member, atEnd, laneBytesMax } = ask;
    return {
      delivery,
      member,
      ranges: atEnd,
      bytesMax: this.#options.maxBytes,
      laneBytesMax,
      onGranted: (granted) => {
        const parts: LanePart[] = [];
        addGranted(parts, delivery, granted);
        this.#respond(parts);
      },
      finishNow: () => this.finishNow(),
    };
  }

  #park(waitMs: number): void {
    const { broker } = this.#context;
    this.#isParked = true;
    for (const ask of this.#asks) {
      if (ask.atEnd.length === 0) continue;
      const waiter = this.#waiterOf(ask);
      this.#waiters.push(waiter);
      ask.delivery.park(waiter);
      // What was planned on the way here, such as proofs, goes out.
      ask.delivery.flush();
    }
    this.#logParts.start(() => this.finishNow());
    broker.park(this);
    this.#cancelTimer = broker.clock.after(waitMs, () => this.finishNow());
    this.#forgetClose = this.#context.onClosed(() => this.#unpark());
  }

  #unpark(): void {
    if (!this.#isParked) return;
    this.#isParked = false;
    this.#cancelTimer?.();
    this.#forgetClose?.();
    this.#logParts.stop();
    for (const waiter of this.#waiters) waiter.delivery.unpark(waiter);
    this.#context.broker.unpark(this);
  }

  /**
   * Time is up, a newer fetch came for one of the lanes, or it went to somebody else; or there are
   * records in partitions of the log.
   */
  finishNow(): void {
    if (!this.#isParked) return;
    this.#respondEmpty();
  }

  #respond(parts: readonly LanePart[]): void {
    this.#unpark();
    for (const { delivery } of this.#asks) delivery.flush();
    this.#answer.send(parts, (sent) => this.#grantAhead(sent));
  }

  #grantAhead(sent: readonly LanePart[]): void {
    for (const ask of this.#asks) {
      const isSent = ({ delivery, range }: LanePart) =>
        delivery === ask.delivery && ask.atEnd.includes(range);
      const atEnd = sent.filter(isSent).map(({ range }) => range);
      if (atEnd.length > 0) ask.delivery.grantAhead(this.#waiterOf({ ...ask, atEnd }));
    }
  }

  #respondEmpty(): void {
    this.#unpark();
    for (const { delivery, atEnd } of this.#asks) {
      delivery.dispatcher.sawEmpty(atEnd);
      delivery.flush();
    }
    this.#answer.send([]);
  }
}

function* askedPartitions(request: FetchRequestView): Generator<AskedPartition> {
  const requested = new RequestedPartitions(request);
  while (requested.next()) {
    const { topic, index, fetchOffset, bytesMax, currentLeaderEpoch } = requested;
    const { name, id } = topic!;
    yield {
      topicName: name,
      topicId: id,
      index,
      offset: fetchOffset,
      bytesMax,
      leaderEpoch: currentLeaderEpoch,
    };
  }
}

/**
 * From where on the member wants records of its present range; undefined where it has no business.
 * At the end of a former range of its own it may not know yet that the range is a former one.
 */
function startIn(delivery: Delivery, range: LaneRange, n: number): number | undefined {
  if (n > range.end) return undefined;
  if (n >= range.start) return n;
  const lane = delivery.dispatcher.ledger.lane(range.lane)!;
  const isFormerEnd = lane.ranges.some(
    ({ memberId, end, start }) => memberId === range.member.id && end === n && start < range.start,
  );
  return isFormerEnd ? range.start : undefined;
}

function isUnloaded({ range, from }: RangePart): boolean {
  let isFirst = true;
  let isMissing = false;
  range.grants.forEach(from, range.end, (n) => {
    if (isFirst) isMissing = range.ref(n) === none;
    isFirst = false;
  });
  return isMissing;
}

/**
 * A client that sends its next fetch before the handler starts, and finds its window full, is
 * answered with nothing: the fetch after that comes when it is through with all it has. Once for
 * each answer with records, so that nobody spins. At once, unless a commit will say the same: then
 * this fetch takes what the commit makes room for.
 */
function isKeptEmpty({ delivery, member, atEnd }: Ask, now: Now): boolean {
  return (
    member.traits.proof === Proof.afterEmpty &&
    atEnd.some(({ sawEmpty }) => !sawEmpty) &&
    member.inHand > 0 &&
    roomOf(delivery.dispatcher, member, now) <= 0
  );
}

function addGranted(parts: LanePart[], delivery: Delivery, granted: readonly Granted[]): void {
  for (const { range, from, to, isAhead } of granted) {
    const durable = isAhead ? delivery.isAheadDurable(range) : undefined;
    parts.push({ delivery, range, from, to, isNew: true, durable });
  }
}
