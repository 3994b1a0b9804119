/**
 * Random histories of keyed delivery: consumers that fetch, handle, commit, crash, leave, fail and
 * come back, operators, deletions and restarts, against a naive record of what happened. After each
 * step the invariants of keyed delivery are checked the slow way.
 */
import assert from 'node:assert/strict';
import { ByteReader, ByteWriter } from '../../../src/core/bytes.ts';
import { Proof } from '../../../src/groups/keyed/client-traits.ts';
import {
  Dispatcher,
  type DispatcherSettings,
  type ReturnCause,
} from '../../../src/groups/keyed/dispatcher.ts';
import type { Granted } from '../../../src/groups/keyed/grant.ts';
import { KeyPause } from '../../../src/groups/keyed/key-table.ts';
import type { LaneRange } from '../../../src/groups/keyed/lane-range.ts';
import { type FiledBatch, none, RecordState } from '../../../src/groups/keyed/record-store.ts';
import { roomOf } from '../../../src/groups/keyed/room.ts';
import type { Waiter } from '../../../src/groups/keyed/waiters.ts';
import { Ledger } from '../../../src/state/keyed/ledger.ts';
import { type Client, type ClientLane, kinds, type ModelRecord, type Rng } from './clients.ts';

const laneCount = 4;
const partitionCount = 3;

export class World {
  readonly #rng: Rng;
  readonly settings: DispatcherSettings;
  dispatcher: Dispatcher;
  /** What the journal holds: must always equal the planned ledger. */
  #durable: Ledger;
  readonly #log: FiledBatch[] = [];
  /** How many batches of the log the dispatcher was given. */
  #filed = 0;
  readonly records: ModelRecord[] = [];
  readonly #byPlace = new Map<string, ModelRecord>();
  readonly #ends = new Array<number>(partitionCount).fill(0);
  readonly #clients = new Map<string, Client>();
  #nextClient = 0;
  #nowMs = 1000;
  deadLetters = 0;
  /** Memory is short now and then: what held keys wait for stays in the log. */
  readonly #isShort: boolean;
  /** How far the log was read once more. */
  #reread: number | undefined;
  checks = 0;
  aheadCount = 0;
  aheadAtCommitCount = 0;
  /** Records that were finished by a commit in the range before the one that they are granted in. */
  committedAgain = 0;
  lastAction = '';

  constructor(rng: Rng, settings: DispatcherSettings) {
    this.#rng = rng;
    this.settings = settings;
    this.#isShort = rng.chance(0.3);
    const effect = { kind: 'opened' as const, slot: 1, laneBase: 10, starts: [] };
    this.dispatcher = new Dispatcher(Ledger.open('g', '00'.repeat(16), effect), settings);
    this.#durable = Ledger.open('g', '00'.repeat(16), effect);
  }

  get now() {
    return { monotonicMs: this.#nowMs, wallMs: this.#nowMs };
  }

  /** One random event, and all checks. */
  step(): void {
    const actions: [number, () => void][] = [
      [20, () => this.#append()],
      [25, () => this.#fetch()],
      [30, () => this.#handle()],
      [15, () => this.#commit()],
      [3, () => this.#join()],
      [2, () => this.#remove('died')],
      [1, () => this.#remove('left')],
      [3, () => this.#moveLane()],
      [2, () => this.#rejoin()],
      [3, () => this.#fail()],
      [3, () => this.#passTime()],
      [1, () => this.#restart()],
      [1, () => this.#deleteBelow()],
    ];
    let at = this.#rng.below(actions.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, act] of actions) {
      at -= weight;
      if (at >= 0) continue;
      this.lastAction = act.toString();
      act();
      break;
    }
    this.#settle();
    this.#check();
  }

  /** Until everything is finished, with consumers that do nothing wrong. */
  drain(): void {
    for (let round = 0; this.records.some(({ isFinished }) => !isFinished); round++) {
      assert.ok(round < 5000, `stuck with ${this.#unfinished()}`);
      if (this.#clients.size === 0) this.#join();
      this.#nowMs += 50;
      for (const client of this.#clients.values()) {
        this.#fetchOf(client);
        for (const [lane, state] of client.lanes) {
          for (const { n, record } of state.queue.splice(0)) {
            record.isHandled = true;
            state.handled = n + 1;
          }
          this.#commitLane(client, lane, state);
        }
      }
      this.#expire();
      this.#settle();
      this.#check();
    }
    const { board, ledger } = this.dispatcher;
    for (const client of [...this.#clients.values()]) this.#removeClient(client, 'left');
    assert.equal(board.keys.size, 0, 'no key is left');
    assert.equal(board.store.batches, 0, 'no batch is left');
    assert.equal(board.readyRecords, 0, 'nothing is ready');
    assert.equal(ledger.trials.size, 0, 'no trial is left');
  }

  #unfinished(): string {
    const left = this.records.filter(({ isFinished }) => !isFinished).slice(0, 5);
    const members = [...this.dispatcher.members.values()].map(({ id, inHand, kept, ranges }) => {
      const lanes = [...ranges].map(({ lane, isPresent }) => `${lane}${isPresent ? '' : '-'}`);
      return `${id}: ${inHand} in hand, ${kept.length} kept, lanes ${lanes}`;
    });
    const places = left.map(
      ({ partition, offset, key }) => `${partition}:${offset} ${this.#describe(key)}`,
    );
    return [...places, ...members].join('; ');
  }

  #append(): void {
    const partition = this.#rng.below(partitionCount);
    const count = 1 + this.#rng.below(6);
    const keys: (string | null | undefined)[] = [];
    for (let i = 0; i < count; i++) {
      const kind = this.#rng.below(20);
      const isGap = kind === 0;
      keys.push(isGap ? undefined : kind === 1 ? null : `k${this.#rng.below(12)}`);
    }
    const baseOffset = this.#ends[partition]!;
    this.#ends[partition] = baseOffset + count;
    this.#log.push({
      partition,
      baseOffset,
      offsetCount: count,
      position: this.#log.length * 1000,
      bytes: 100 * count,
      keys,
      ends: keys.map((_, i) => 100 * (i + 1)),
    });
    keys.forEach((key, i) => {
      const offset = baseOffset + i;
      if (key === undefined) return;
      const record: ModelRecord = {
        ...{ partition, offset, key, grant: undefined, deliveries: 0 },
        ...{ isFinished: false, isDeleted: false, isHandled: false },
      };
      this.records.push(record);
      this.#byPlace.set(`${partition}:${offset}`, record);
    });
  }

  #anyClient(): Client | undefined {
    const clients = [...this.#clients.values()];
    return clients[this.#rng.below(Math.max(clients.length, 1))];
  }

  #fetch(): void {
    const client = this.#anyClient();
    if (client !== undefined && client.waiter === undefined) this.#fetchOf(client);
  }

  /** As a client does: all lanes at their positions. */
  #fetchOf(client: Client): void {
    const { dispatcher } = this;
    const member = dispatcher.members.get(client.id)!;
    if (client.waiter !== undefined) return;
    if (!this.#mayFetch(client)) return;
    client.hasAskedSince = true;
    const atEnd: LaneRange[] = [];
    const isOwn = (lane: number) => dispatcher.presentRange(lane)?.member === member;
    for (const [lane, state] of client.lanes) {
      if (!isOwn(lane)) continue;
      const range = dispatcher.presentRange(lane)!;
      if (state.position < range.start) state.position = range.start;
      if (state.position === range.end) atEnd.push(range);
      else this.#repeat(client, range, state);
    }
    if (atEnd.length === 0) return;
    dispatcher.prove(member, atEnd, this.now);
    const waiter: Waiter = { member, ranges: atEnd, bytesMax: 2000, laneBytesMax: 1000 };
    const granted = dispatcher.grant(waiter, this.now);
    if (granted.length > 0) {
      this.#deliver(client, granted);
      dispatcher.ahead.onAnswered(waiter);
      // What is worth while is a matter of speed: here it may happen after any answer.
      if (this.#rng.chance(0.5) && dispatcher.failures.isEmpty && dispatcher.waiters.size === 0) {
        this.aheadCount += dispatcher.ahead.grant(waiter, this.now).length;
      }
      return;
    }
    // It has an answer already.
    if (atEnd.length < [...client.lanes.keys()].filter(isOwn).length) return;
    dispatcher.sawEmpty(atEnd);
    client.waiter = waiter;
    dispatcher.waiters.park(waiter);
  }

  /** Clients are honest: they ask for more when they do so in the wild. */
  #mayFetch({ traits, lanes, answers, hasAskedSince }: Client): boolean {
    const queued = [...lanes.values()].flatMap(({ queue }) => queue);
    switch (traits.proof) {
      case Proof.everything:
        return queued.length === 0;
      case Proof.afterEmpty:
        return (
          queued.length === 0 ||
          (!hasAskedSince && queued.every(({ answer }) => answer === answers))
        );
      case Proof.afterLater:
        return queued.every(({ answer }) => answer === answers);
      case Proof.nothing:
        return true;
    }
  }

  /** What is still granted from the asked position on comes again. */
  #repeat(client: Client, range: LaneRange, state: ClientLane): void {
    client.answers++;
    client.hasAskedSince = false;
    range.grants.forEach(state.position, range.end, (n, count, partition, offset) => {
      for (let i = 0; i < count; i++) {
        const record = this.#byPlace.get(`${partition}:${offset + i}`)!;
        if (record.isDeleted) continue;
        state.queue.push({ n: n + i, record, answer: client.answers });
      }
    });
    state.position = range.end;
  }

  #deliver(client: Client, granted: readonly Granted[]): void {
    this.#noteReturned();
    client.answers++;
    client.hasAskedSince = false;
    for (const { range, from, to } of granted) {
      const state = client.lanes.get(range.lane)!;
      // What it handled of a former range it commits before it goes on.
      if (state.handled <= range.start) this.#commitLane(client, range.lane, state);
      range.grants.forEach(from, to, (n, count, partition, offset) => {
        for (let i = 0; i < count; i++) {
          const record = this.#byPlace.get(`${partition}:${offset + i}`)!;
          this.#checkDelivery(record, range);
          record.grant = { range, n: n + i };
          record.deliveries++;
          record.isHandled = false;
          state.queue.push({ n: n + i, record, answer: client.answers });
        }
      });
      state.position = to;
    }
  }

  /** Invariants 1, 2 and 7. */
  #checkDelivery(record: ModelRecord, range: LaneRange): void {
    this.checks++;
    const place = `${record.partition}:${record.offset}`;
    assert.ok(!record.isFinished, `${place} is finished and comes again`);
    assert.ok(record.grant === undefined, `${place} is in hand elsewhere`);
    if (record.key === null) return;
    for (const other of this.records) {
      if (other === record) return;
      if (other.key !== record.key || other.isFinished) continue;
      const where = other.grant?.range;
      // What was deleted in its hand holds up nothing that the same member has.
      if (other.isDeleted && where?.member === range.member) continue;
      const facts = `${other.isDeleted}, in ${where?.id}, ${where?.member.id}`;
      const otherPlace = `${other.partition}:${other.offset} ${this.#describe(other.key)}`;
      assert.ok(where === range, `${place} for ${range.id} overtakes ${otherPlace} ${facts}`);
    }
  }

  #handle(): void {
    const client = this.#anyClient();
    const busy = [...(client?.lanes.values() ?? [])].filter(({ queue }) => queue.length > 0);
    const state = busy[this.#rng.below(Math.max(busy.length, 1))];
    if (state === undefined) return;
    const { n, record } = state.queue.shift()!;
    record.isHandled = true;
    state.handled = n + 1;
  }

  #commit(): void {
    const client = this.#anyClient();
    if (client === undefined) return;
    if (this.#rng.chance(0.5)) this.#commitLanes(client, [...client.lanes]);
    else for (const [lane, state] of client.lanes) this.#commitLane(client, lane, state);
  }

  #commitLane(client: Client, lane: number, state: ClientLane): void {
    this.#commitLanes(client, [[lane, state]]);
  }

  /** In one request. */
  #commitLanes(client: Client, lanes: readonly (readonly [number, ClientLane])[]): void {
    const handled = lanes.filter(([, state]) => state.handled >= 0);
    for (const [lane, state] of handled) this.#finishLane(client, lane, state);
    const numbers = new Map(handled.map(([lane, state]) => [lane, state.handled]));
    const { dispatcher } = this;
    dispatcher.commit(client.id, numbers, this.now);
    const member = dispatcher.members.get(client.id);
    if (member !== undefined)
      this.aheadAtCommitCount += dispatcher.ahead.grantAtCommit(member, this.now).length;
  }

  #finishLane(client: Client, lane: number, state: ClientLane): void {
    const ranges = this.dispatcher.rangesOf(client.id, lane);
    for (const record of this.records) {
      const { grant } = record;
      if (grant === undefined || !ranges.includes(grant.range)) continue;
      if (grant.n >= state.handled || state.handled > grant.range.end) continue;
      record.isFinished = true;
      record.grant = undefined;
    }
    this.#finishTakenAgain(client, lane, state.handled);
  }

  /** What it was given again since is finished by a commit of it as it had it before. */
  #finishTakenAgain({ id }: Client, lane: number, to: number): void {
    const takenAgain = this.dispatcher.members.get(id)?.takenAgain ?? [];
    for (const { former, formerN, range, n } of takenAgain) {
      if (former.lane !== lane || formerN >= to || to > former.end) continue;
      range.grants.forEach(n, n + 1, (_n, _count, partition, offset) => {
        const record = this.#byPlace.get(`${partition}:${offset}`)!;
        record.isFinished = true;
        record.grant = undefined;
        this.committedAgain++;
      });
    }
  }

  #join(): void {
    if (this.#clients.size >= 4) return;
    const id = `m${this.#nextClient++}`;
    // An application that commits by itself has to be one whose polls prove something.
    const count = this.settings.finishesProven ? 3 : 4;
    const traits = kinds[this.#rng.below(count)]!;
    const client = { id, traits, lanes: new Map(), waiter: undefined };
    this.#clients.set(id, { ...client, answers: 0, hasAskedSince: false });
    this.dispatcher.addMember({ id, traits, leaseMs: 5000, sessionMs: 2000 });
    this.#share();
  }

  /** Every lane has an owner; lanes that change owners leave what is in hand where it is. */
  #share(): void {
    const clients = [...this.#clients.values()];
    for (let lane = 0; lane < laneCount; lane++) {
      const owner = clients[(lane + this.#nextClient) % Math.max(clients.length, 1)];
      const present = this.dispatcher.presentRange(lane);
      if (owner === undefined || present?.member.id === owner.id) continue;
      this.#giveLane(lane, owner);
    }
  }

  #giveLane(lane: number, owner: Client): void {
    const present = this.dispatcher.presentRange(lane);
    if (present !== undefined) this.#wakeEmpty(present.member.id);
    const start = this.dispatcher.openRange(lane, owner.id, this.now);
    // One that had the lane before and never gave it up goes on where it is.
    if (owner.lanes.has(lane)) return;
    owner.lanes.set(lane, { position: start, queue: [], handled: -1 });
  }

  #wakeEmpty(memberId: string): void {
    const client = this.#clients.get(memberId);
    if (client?.waiter === undefined) return;
    this.dispatcher.waiters.unpark(client.waiter);
    client.waiter = undefined;
  }

  #moveLane(): void {
    const client = this.#anyClient();
    if (client !== undefined) this.#giveLane(this.#rng.below(laneCount), client);
  }

  /** A client gives up what it has and gets its lanes anew: an eager rebalance. */
  #rejoin(): void {
    const client = this.#anyClient();
    if (client === undefined) return;
    this.#wakeEmpty(client.id);
    const member = this.dispatcher.members.get(client.id)!;
    const lanes = [...member.ranges].map(({ lane }) => lane);
    this.dispatcher.giveUp(client.id, lanes, this.#rng.chance(0.7), this.now);
    client.lanes.clear();
    this.#noteReturned();
    this.#share();
  }

  #remove(cause: ReturnCause): void {
    const client = this.#anyClient();
    if (client !== undefined) this.#removeClient(client, cause);
    this.#share();
  }

  #removeClient(client: Client, cause: ReturnCause): void {
    this.#wakeEmpty(client.id);
    this.dispatcher.removeMember(client.id, cause, this.now);
    this.#clients.delete(client.id);
    this.#noteReturned();
  }

  /** A handler throws: the client starts over at its record. */
  #fail(): void {
    const client = this.#anyClient();
    if (client?.traits.rejectsByRefetch !== true || client.waiter !== undefined) return;
    const member = this.dispatcher.members.get(client.id)!;
    const parts: { range: LaneRange; from: number }[] = [];
    for (const [lane, state] of client.lanes) {
      const range = this.dispatcher.presentRange(lane);
      const first = state.queue[0];
      if (first === undefined || range?.member !== member || first.n < range.start) continue;
      parts.push({ range, from: first.n });
      state.queue.length = 0;
      state.position = range.end;
    }
    if (parts.length === 0) return;
    this.dispatcher.reject(member, parts, this.#rng.chance(0.8), this.now);
    this.#noteReturned();
  }

  #passTime(): void {
    this.#nowMs += this.#rng.below(4000);
    this.#expire();
  }

  #expire(): void {
    for (const member of this.dispatcher.tick(this.now)) {
      const client = this.#clients.get(member.id);
      if (client !== undefined) this.#removeClient(client, 'lease');
    }
    this.#noteReturned();
    if (this.#clients.size > 0) this.#share();
  }

  /** The ledger says what came back; the model follows it, and checks that it was in hand. */
  #noteReturned(): void {
    for (const record of this.records) {
      const { grant } = record;
      if (grant === undefined || grant.range.countIn(grant.n, grant.n + 1) === 1) continue;
      record.grant = undefined;
      if (record.isDeleted) record.isFinished = true;
      const { partition, offset, isFinished, isHandled } = record;
      if (isFinished || !this.dispatcher.ledger.finished(partition).has(offset)) continue;
      // `delivery.ack=poll`: it came back for more.
      assert.ok(this.settings.finishesProven, `${partition}:${offset} is finished by nobody`);
      const { name } = grant.range.member.traits;
      assert.ok(isHandled, `${partition}:${offset} is finished by ${name}, not handled`);
      record.isFinished = true;
    }
  }

  /** The broker starts again: members live on, clients repeat what they were asking for. */
  #restart(): void {
    this.#flush();
    const writer = new ByteWriter();
    this.#durable.write(writer);
    const ledger = Ledger.read(new ByteReader(writer.finish()));
    this.dispatcher = new Dispatcher(ledger, this.settings);
    for (const { id, traits } of this.#clients.values()) {
      this.dispatcher.addMember({ id, traits, leaseMs: 5000, sessionMs: 2000 });
    }
    this.dispatcher.restore(this.now);
    this.#filed = 0;
    this.#reread = undefined;
    for (const client of this.#clients.values()) client.waiter = undefined;
    for (const record of this.records) {
      record.grant = undefined;
      // It is gone from the log, so nobody knows its key any more.
      if (record.isDeleted) record.isFinished = true;
    }
    for (const member of this.dispatcher.members.values()) {
      for (const range of member.ranges) {
        range.grants.forEach(range.start, range.end, (n, count, partition, offset) => {
          for (let i = 0; i < count; i++) {
            const record = this.#byPlace.get(`${partition}:${offset + i}`)!;
            if (!record.isFinished) record.grant = { range, n: n + i };
          }
        });
      }
    }
  }

  #deleteBelow(): void {
    const partition = this.#rng.below(partitionCount);
    const low = this.dispatcher.ledger.finished(partition).low;
    const to = Math.min(low + this.#rng.below(6), this.#ends[partition]!);
    for (const record of this.records) {
      if (record.partition !== partition || record.offset >= to) continue;
      // Its key stays where it is while it is in hand.
      record.isDeleted = true;
      if (record.grant === undefined) record.isFinished = true;
    }
    this.dispatcher.filing.deleteBelow(partition, to);
  }

  /** What follows of itself: appended batches are filed, dead letters written, fetches served. */
  #settle(): void {
    while (this.#filed < this.#log.length) {
      this.dispatcher.board.spill.isShort = this.#isShort;
      this.dispatcher.filing.file(this.#log[this.#filed++]!, this.now);
    }
    this.#readSpilled();
    for (const letter of this.dispatcher.failures.takeDeadLetters()) {
      const record = this.#byPlace.get(`${letter.partition}:${letter.offset}`)!;
      if (record.isFinished || !this.dispatcher.failures.isDead(letter)) continue;
      this.dispatcher.failures.bury(letter);
      record.isFinished = true;
      this.deadLetters++;
    }
    this.dispatcher.waiters.serve(this.now, (waiter, granted) => {
      const client = this.#clients.get(waiter.member.id)!;
      client.waiter = undefined;
      this.#deliver(client, granted);
    });
    for (const record of this.records) {
      if (record.isDeleted && record.grant === undefined) record.isFinished = true;
    }
    this.#noteReturned();
    this.#flush();
  }

  /** As the feed does, from the beginning, a little at a time. */
  #readSpilled(): void {
    const { board } = this.dispatcher;
    if (this.#reread === undefined) {
      if (!board.spill.isReadingDue) return;
      board.spill.beginReading();
      this.#reread = 0;
    }
    while (this.#reread < this.#log.length && board.spill.isReadingWanted) {
      this.dispatcher.filing.fileSpilled(this.#log[this.#reread++]!, this.now);
    }
    if (this.#reread < this.#log.length) return;
    board.endSpilled();
    this.#reread = undefined;
    this.#readSpilled();
  }

  #flush(): void {
    for (const effect of this.dispatcher.takeEffects()) this.#durable.apply(effect);
  }

  #check(): void {
    this.checks++;
    this.#checkHands();
    this.#checkChains();
    this.#checkReady();
    const [planned, durable] = [new ByteWriter(), new ByteWriter()];
    this.dispatcher.ledger.write(planned);
    this.#durable.write(durable);
    assert.ok(planned.finish().equals(durable.finish()), 'the plan equals what is durable');
  }

  /** Counts that are kept are those that counting gives. */
  #checkHands(): void {
    for (const member of this.dispatcher.members.values()) {
      let [inHand, unfinished] = [0, 0];
      for (const range of member.ranges) {
        inHand += range.countIn(range.proven, range.end);
        unfinished += range.grants.records - range.ahead;
      }
      assert.equal(member.inHand, inHand, `in hand of ${member.id}`);
      assert.equal(member.unfinished, unfinished, `unfinished of ${member.id}`);
      assert.ok(member.inHand <= member.suspectLimit, 'a suspect is with few others');
    }
    for (const { partition, offset, isFinished, grant } of this.records) {
      const known = this.dispatcher.ledger.finished(partition).has(offset);
      if (isFinished) assert.ok(known, `${partition}:${offset} is finished`);
      else if (grant === undefined) assert.ok(!known, `${partition}:${offset} is not finished`);
    }
  }

  /** Invariant 10: nobody with room waits beside a key that is free and has nothing against it. */
  #checkReady(): void {
    const { dispatcher } = this;
    const waiting = dispatcher.waiters
      .all()
      .filter(
        ({ member }) =>
          roomOf(dispatcher, member, this.now) > 0 && !dispatcher.failures.isReserved(member),
      );
    if (waiting.length === 0) return;
    const blocked = new Set<string>();
    for (const record of this.records) {
      if (record.isFinished) continue;
      const { key } = record;
      if (key !== null && blocked.has(key)) continue;
      if (key !== null) blocked.add(key);
      if (record.grant !== undefined) continue;
      const place = `${record.partition}:${record.offset}`;
      const isHeldBack = dispatcher.ledger.trials.has(place) || (key !== null && this.#isKept(key));
      assert.ok(isHeldBack, `${place} ${this.#describe(key)} is ready and ${waiting.length} wait`);
    }
  }

  #describe(key: string | null): string {
    const { keys, store } = this.dispatcher.board;
    const id = key === null ? undefined : keys.find(key);
    if (id === undefined) return `(${key})`;
    const next = keys.nextPending[id]!;
    const facts = [keys.holder[id], keys.inHand[id], keys.pending[id], keys.kept[id]];
    const first = next < 0 ? 'none' : `${store.offset(next)} ${store.state[next]}`;
    return `(${key}: holder, in hand, pending, kept ${facts}, pause ${keys.pause[id]}, ${first})`;
  }

  /** The waiting records of each key are linked, and as many as are counted. */
  #checkChains(): void {
    const { keys, store } = this.dispatcher.board;
    const held = new Map<number, number>();
    const names = new Set(this.records.map(({ key }) => key));
    for (const name of names) {
      const id = name === null ? undefined : keys.find(name);
      if (id === undefined) continue;
      let count = 0;
      for (let ref = keys.nextPending[id]!; ref !== none; ref = store.next(ref)) {
        assert.equal(store.key[ref], id, `the chain of ${name} leads elsewhere`);
        assert.notEqual(store.state[ref], RecordState.granted, `${name}: granted behind waiting`);
        if (store.state[ref] === RecordState.pending) count++;
      }
      assert.equal(keys.pending[id], count, `waiting records of ${name}`);
      const holder = keys.holder[id]!;
      if (holder !== none) held.set(holder, (held.get(holder) ?? 0) + count);
    }
    this.#checkReadyKeys();
    for (const member of this.dispatcher.members.values()) {
      for (const { id } of member.ranges) {
        assert.equal(this.dispatcher.board.heldRecords(id), held.get(id) ?? 0, `held by ${id}`);
      }
    }
  }

  #checkReadyKeys(): void {
    const { keys, store, readyKeys } = this.dispatcher.board;
    const free = new Set<number>();
    let unkeyedCount = 0;
    for (let ref = 0; ref < store.state.length; ref++) {
      if (store.state[ref] !== RecordState.pending) continue;
      const key = store.key[ref]!;
      if (key < 0) unkeyedCount++;
      else if (keys.holder[key] === none && keys.pause[key] === KeyPause.none) free.add(key);
    }
    assert.equal(readyKeys, free.size + unkeyedCount, 'keys that are ready');
  }

  #isKept(key: string): boolean {
    const { keys } = this.dispatcher.board;
    const id = keys.find(key);
    return id !== undefined && keys.kept[id]! > 0;
  }
}
