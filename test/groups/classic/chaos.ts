/**
 * A coordinator, in Kafka's or in keyed delivery, a disk and a crowd of consumers that do anything
 * in any order, from one seed. After each step the rules that must always hold are checked. One
 * consumer among them behaves as a good client does, and must never be thrown out.
 */

import assert from 'node:assert/strict';
import { type Random, seededRandom } from '../../../src/core/random.ts';
import {
  classicDefaults,
  type GroupEvent,
  type KeyedRules,
} from '../../../src/groups/classic/context.ts';
import { ClassicCoordinator } from '../../../src/groups/classic/coordinator.ts';
import type { ClassicGroup } from '../../../src/groups/classic/group.ts';
import type { JoinGroupResponse, SyncGroupResponse } from '../../../src/groups/classic/messages.ts';
import { encodeAssignment, readAssignment } from '../../../src/groups/consumer-protocol.ts';
import type { Now } from '../../../src/groups/deadlines.ts';
import { decodeGroupImage, type GroupImage } from '../../../src/groups/group-image.ts';
import { ErrorCode } from '../../../src/protocol/error-codes.ts';
import { encodeGroupImage } from '../encode-group-image.ts';
import { subscription } from './subscription.ts';

export const groupId = 'g';
const laneCount = 8;

export interface Client {
  readonly name: string;
  readonly instance: string | null;
  readonly protocols: readonly string[];
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  memberId: string;
  generationId: number;
  protocol: string;
  /** Whom the last JoinGroup answer told this client to assign to. */
  assignsTo: readonly string[];
}

type Write = {
  readonly image: GroupImage | null;
  readonly done: (isDurable: boolean, now: Now) => void;
};

export class Chaos {
  readonly random: Random;
  coordinator: ClassicCoordinator;
  monotonicMs = 0;
  /** Counts takeovers after a crash: what was not durable then is lost, and may be forgotten. */
  crashes = 0;
  /** Requests that are still to be answered, by the coordinator that took them. */
  readonly #unanswered = new Map<ClassicCoordinator, Set<number>>();
  readonly #writes: Write[] = [];
  readonly #groups = new Set<ClassicGroup>();
  readonly #assignments = new Map<string, string>();
  readonly #leaders = new Map<string, string>();
  #disk: Buffer | null = null;
  /** Deletions begin the counting of generations anew. */
  #lives = 0;
  #requests = 0;
  #ids = 0;

  readonly #isKeyed: boolean;

  constructor(seed: number, isKeyed: boolean) {
    this.random = seededRandom(seed);
    this.#isKeyed = isKeyed;
    this.coordinator = this.#newCoordinator();
  }

  get now(): Now {
    return { monotonicMs: this.monotonicMs, wallMs: 1_700_000_000_000 + this.monotonicMs };
  }

  below(max: number): number {
    return Math.floor(this.random.next() * max);
  }

  #newCoordinator(): ClassicCoordinator {
    const options = { ...classicDefaults, initialRebalanceDelayMs: this.below(3) * 500 };
    const coordinator: ClassicCoordinator = new ClassicCoordinator(options, {
      uuid: () => String(++this.#ids),
      persist: (_, image, done) => {
        if (coordinator !== this.coordinator) return done(false, this.now);
        this.#writes.push({ image, done });
      },
      onEvent: (group, event) => {
        this.#groups.add(group);
        if (this.#isKeyed) checkKeyedEvent(group, event);
      },
      keyedRules: () => (this.#isKeyed ? this.#keyedRules : null),
    });
    this.#unanswered.set(coordinator, new Set());
    return coordinator;
  }

  readonly #keyedRules: KeyedRules = {
    rebalanceWaitMs: 1_000,
    laneCount: () => laneCount,
    keepsSilent: ({ memberId }, { monotonicMs }) =>
      memberId.startsWith('c5') && Math.floor(monotonicMs / 20_000) % 2 === 0,
  };

  /** Finishes up to `count` writes in order; a failed one loses only itself. */
  finishWrites(count: number, failsOneIn: number): void {
    for (; count > 0 && this.#writes.length > 0; count--) {
      const { image, done } = this.#writes.shift()!;
      const isDurable = failsOneIn === 0 || this.below(failsOneIn) > 0;
      if (isDurable) {
        this.#disk = image === null ? null : encodeGroupImage(image);
        if (image === null) this.#lives++;
      }
      done(isDurable, this.now);
    }
  }

  advance(ms: number): void {
    const until = this.monotonicMs + ms;
    for (;;) {
      const next = this.coordinator.nextDeadlineMs();
      if (next > until) break;
      this.monotonicMs = Math.max(this.monotonicMs, next);
      this.coordinator.expire(this.now);
      this.check();
    }
    this.monotonicMs = until;
  }

  /** The node dies: nobody is answered, and writes that were under way may or may not be there. */
  crash(): void {
    this.crashes++;
    const survivors = this.below(this.#writes.length + 1);
    for (const { image } of this.#writes.splice(0).slice(0, survivors)) {
      this.#disk = image === null ? null : encodeGroupImage(image);
      if (image === null) this.#lives++;
    }
    this.#unanswered.delete(this.coordinator);
    this.#takeOver();
  }

  /** Leadership is handed over: everybody is answered. */
  handOver(): void {
    this.crashes++;
    const former = this.coordinator;
    former.unload(this.now);
    // What was being written fails; it tells those who wait for it.
    for (const { done } of this.#writes.splice(0)) done(false, this.now);
    assert.equal(this.#unanswered.get(former)!.size, 0, 'unload leaves nobody waiting');
    assert.equal(former.nextDeadlineMs(), Number.POSITIVE_INFINITY, 'and no timer');
    this.#takeOver();
  }

  #takeOver(): void {
    this.#groups.clear();
    this.coordinator = this.#newCoordinator();
    if (this.#disk === null) return;
    this.coordinator.restore(groupId, decodeGroupImage(this.#disk), this.now);
  }

  join(client: Client, memberId: string, then: (response: JoinGroupResponse) => void): void {
    const once = this.#request();
    const apiVersion = this.below(10);
    this.coordinator.joinGroup(
      {
        apiVersion: client.instance === null ? apiVersion : 5 + this.below(5),
        groupId,
        memberId,
        groupInstanceId: client.instance,
        clientId: client.name,
        clientHost: '/127.0.0.1',
        protocolType: 'consumer',
        protocols: client.protocols.map((name) => ({ name, metadata: subscription([name]) })),
        sessionTimeoutMs: client.sessionTimeoutMs,
        rebalanceTimeoutMs: client.rebalanceTimeoutMs,
        reason: null,
      },
      this.now,
      (response) => {
        once();
        if (response.errorCode === ErrorCode.NONE) this.#noteGeneration(client, response);
        if (response.errorCode === ErrorCode.MEMBER_ID_REQUIRED) {
          client.memberId = response.memberId;
        }
        then(response);
      },
    );
  }

  #noteGeneration(client: Client, response: JoinGroupResponse): void {
    const { generationId, memberId, leader, members } = response;
    client.memberId = memberId;
    client.generationId = generationId;
    client.protocol = response.protocolName!;
    client.assignsTo = response.skipAssignment ? [] : members.map((member) => member.memberId);
    if (client.assignsTo.length === 0) return;
    assert.equal(leader, memberId, 'only the leader is shown the members');
    const key = `${this.crashes}/${this.#lives}/${generationId}`;
    const other = this.#leaders.get(key);
    assert.ok(other === undefined || other === memberId, `two leaders in generation ${key}`);
    this.#leaders.set(key, memberId);
  }

  sync(client: Client, then: (response: SyncGroupResponse) => void): void {
    const once = this.#request();
    const { memberId, generationId } = client;
    const salt = this.below(1_000_000);
    this.coordinator.syncGroup(
      {
        apiVersion: this.below(6),
        groupId,
        generationId,
        memberId,
        groupInstanceId: client.instance,
        protocolType: 'consumer',
        protocolName: client.protocol,
        assignments: client.assignsTo.map((id) => ({
          memberId: id,
          assignment: this.#assignment(`${id}:${generationId}:${salt}`, id),
        })),
      },
      this.now,
      (response) => {
        once();
        if (response.errorCode === ErrorCode.NONE) {
          this.#noteAssignment(client, generationId, response.assignment);
        }
        then(response);
      },
    );
  }

  /** Given out is durable: not even a crash may let a generation have another assignment. */
  #noteAssignment(client: Client, generationId: number, bytes: Buffer): void {
    const assignment = bytes.toString('latin1');
    const key = `${this.#lives}/${generationId}/${client.instance ?? client.memberId}`;
    const before = this.#assignments.get(key);
    assert.ok(before === undefined || before === assignment, `${key}: ${before} and ${assignment}`);
    this.#assignments.set(key, assignment);
    const text = this.#isKeyed ? readAssignment(bytes)?.userData : bytes;
    // Nothing assigned, or leftovers alone.
    if (text == null || text.length === 0) return;
    assert.equal(Number(text.toString().split(':')[1]), generationId, 'made for this generation');
  }

  /** In keyed delivery it names one lane or none; the other lanes are left over. */
  #assignment(text: string, memberId: string): Buffer {
    const userData = Buffer.from(text);
    if (!this.#isKeyed) return userData;
    const number = Number(memberId.split('-').at(-1));
    const lanes = Array.from({ length: laneCount }, (_, lane) => lane).filter(
      (lane) => lane % 3 > 0 && lane === number % laneCount,
    );
    const partitions = new Map([['range', lanes]]);
    return encodeAssignment({ version: 0, partitions, userData });
  }

  heartbeat(client: Client): ErrorCode {
    const { memberId, generationId, instance } = client;
    const request = { groupId, memberId, generationId, groupInstanceId: instance };
    return this.coordinator.heartbeat(request, this.now);
  }

  leave(client: Client, byInstance: boolean): void {
    const once = this.#request();
    const memberId = byInstance ? '' : client.memberId;
    const leaving = { memberId, groupInstanceId: client.instance, reason: null };
    this.coordinator.leaveGroup({ groupId, members: [leaving] }, this.now, once);
  }

  commit(client: Client): ErrorCode {
    const { memberId, generationId, instance } = client;
    const isTransactional = this.below(4) === 0;
    const check = { apiVersion: 8, groupId, memberId, generationId, isTransactional };
    return this.coordinator.validateOffsetCommit({ ...check, groupInstanceId: instance }, this.now);
  }

  delete(): void {
    this.coordinator.deleteGroup(groupId, this.now, this.#request());
  }

  /** Hands out a callback that must be called once, by this coordinator. */
  #request(): () => void {
    const id = ++this.#requests;
    const coordinator = this.coordinator;
    const waiting = this.#unanswered.get(coordinator)!;
    waiting.add(id);
    return () => {
      if (this.#unanswered.has(coordinator)) assert.ok(waiting.delete(id), 'answered twice');
    };
  }

  get unansweredCount(): number {
    return this.#unanswered.get(this.coordinator)!.size;
  }

  check(): void {
    for (const group of this.#groups) {
      if (group.state === 'Dead') this.#groups.delete(group);
      else checkGroup(group);
    }
  }
}

function checkKeyedEvent(group: ClassicGroup, event: GroupEvent): void {
  if (event.kind === 'memberRemoved') assert.notEqual(event.cause, 'did not rejoin');
  if (event.kind !== 'assignmentPlanned') return;
  const topic = group.protocolName!;
  const lanes = [...event.assignments.values()].flatMap((owned) => owned?.get(topic) ?? []);
  const all = new Set(lanes);
  assert.equal(all.size, laneCount, 'every lane has an owner');
}

/** What must hold for a group between any two events. */
function checkGroup(group: ClassicGroup): void {
  const members = [...group.members.values()];
  const awaiting = members.filter((member) => member.awaitingJoin !== null);
  assert.equal(group.awaitingJoinCount, awaiting.length);
  assert.equal(group.leaderId === null, members.length === 0);
  if (group.leaderId !== null) assert.ok(group.members.has(group.leaderId));
  const instances = members.filter((member) => member.groupInstanceId !== null);
  assert.equal(group.staticMembers.size, instances.length);
  for (const { memberId, groupInstanceId } of instances) {
    assert.equal(group.staticMembers.get(groupInstanceId!), memberId);
  }
  for (const id of group.pendingSyncs) assert.ok(group.members.has(id));
  for (const id of group.pendingJoins.keys()) assert.ok(!group.members.has(id));
  for (const member of members) {
    assert.ok(member.session.isScheduled || member.isKeptByParkedRequest, 'nobody lives for ever');
    if (member.awaitingSync !== null) assert.equal(group.state, 'CompletingRebalance');
  }
  checkState(group);
}

function checkState(group: ClassicGroup): void {
  switch (group.state) {
    case 'Empty':
      assert.equal(group.members.size, 0);
      assert.ok(!group.joinTimer.isScheduled && !group.syncTimer.isScheduled);
      break;
    case 'PreparingRebalance':
      assert.ok(group.joinTimer.isScheduled, 'every round ends');
      assert.ok(group.isInitialRound || !group.hasAllMembersJoined, 'no round waits for nobody');
      break;
    case 'CompletingRebalance':
      assert.ok(group.members.size > 0 && group.awaitingJoinCount === 0);
      assert.ok(group.syncTimer.isScheduled || group.pendingSyncs.size === 0);
      break;
    default:
      assert.ok(group.members.size > 0 && !group.joinTimer.isScheduled);
  }
}
