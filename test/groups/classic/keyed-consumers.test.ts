/**
 * Consumers as they are, in a group in keyed delivery: they heartbeat in the background and come to
 * a round only when their handler is done, which may take longer than any session. From one seed
 * each. Nobody is thrown out, and when nobody joins or leaves any more the group comes to rest.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Random, seededRandom } from '../../../src/core/random.ts';
import { classicDefaults } from '../../../src/groups/classic/context.ts';
import { ClassicCoordinator } from '../../../src/groups/classic/coordinator.ts';
import type {
  JoinGroupResponse,
  JoinGroupResponseMember,
} from '../../../src/groups/classic/messages.ts';
import { ownedPartitions, readAssignment } from '../../../src/groups/consumer-protocol.ts';
import { ErrorCode, errorName } from '../../../src/protocol/error-codes.ts';
import { assignmentOf, cooperativeSubscription } from './lane-text.ts';

/** `SEEDS=1000` for a longer run. */
const seedCount = Number(process.env['SEEDS'] ?? 40);

const laneCount = 24;
const stepMs = 100;
const heartbeatMs = 3_000;
const handlerMsMax = 25_000;

type Assignor = (members: readonly JoinGroupResponseMember[]) => Map<string, number[]>;

/** All lanes in turn, whoever had them. */
const eager: Assignor = (members) => {
  const plan = new Map(members.map(({ memberId }) => [memberId, [] as number[]]));
  const shares = [...plan.values()];
  for (let lane = 0; lane < laneCount; lane++) shares[lane % shares.length]!.push(lane);
  return plan;
};

/**
 * Everybody keeps up to a fair share of what it owns, free lanes go to those who have least, and
 * what somebody else has to give up first is given to nobody yet. Claims of older generations do
 * not count (as in Kafka's cooperative-sticky assignor).
 */
const cooperative: Assignor = (members) => {
  const claims = members.map(({ memberId, metadata }) => ({
    memberId,
    lanes: ownedPartitions(metadata)!.get('t') ?? [],
    generationId: metadata.readInt32BE(metadata.length - 4),
  }));
  const newest = Math.max(...claims.map(({ generationId }) => generationId));
  const fairMin = Math.floor(laneCount / members.length);
  let extraCount = laneCount % members.length;
  claims.sort((a, b) => b.lanes.length - a.lanes.length);
  const isOwned = new Set<number>();
  const plan = new Map<string, number[]>();
  for (const { memberId, lanes, generationId } of claims) {
    const own = generationId === newest ? lanes : [];
    for (const lane of own) {
      assert.ok(!isOwned.has(lane), `lane ${lane} is claimed twice in generation ${newest}`);
      isOwned.add(lane);
    }
    const hasExtra = own.length > fairMin && extraCount > 0;
    if (hasExtra) extraCount--;
    plan.set(memberId, own.slice(0, fairMin + Number(hasExtra)));
  }
  for (let lane = 0; lane < laneCount; lane++) {
    if (isOwned.has(lane)) continue;
    const poorest = [...plan.values()].sort((a, b) => a.length - b.length)[0]!;
    poorest.push(lane);
  }
  return plan;
};

class Group {
  monotonicMs = 0;
  readonly random: Random;
  readonly assignor: Assignor;
  readonly coordinator: ClassicCoordinator;
  readonly consumers: Consumer[] = [];
  generationId = 0;
  /** Generations that began without someone. */
  absentCount = 0;
  #ids = 0;

  constructor(seed: number, assignor: Assignor) {
    this.random = seededRandom(seed);
    this.assignor = assignor;
    this.coordinator = new ClassicCoordinator(classicDefaults, {
      uuid: () => String(++this.#ids),
      persist: (_, __, done) => done(true, this.now),
      onEvent: ({ generationId, members }, event) => {
        this.generationId = generationId;
        if (event.kind === 'generationStarted') {
          const all = [...members.values()];
          this.absentCount += Number(all.some((one) => one.lastGenerationId < generationId));
        }
        if (event.kind === 'memberRemoved') assert.equal(event.cause, 'left');
      },
      keyedRules: () => ({
        rebalanceWaitMs: 1_000,
        laneCount: () => laneCount,
        keepsSilent: () => false,
      }),
    });
  }

  get now() {
    return { monotonicMs: this.monotonicMs, wallMs: this.monotonicMs };
  }

  below(max: number): number {
    return Math.floor(this.random.next() * max);
  }

  run(ms: number): void {
    for (const endMs = this.monotonicMs + ms; this.monotonicMs < endMs; ) {
      this.monotonicMs += stepMs;
      this.coordinator.expire(this.now);
      for (const consumer of this.consumers) consumer.step();
    }
  }

  leave(consumer: Consumer): void {
    this.consumers.splice(this.consumers.indexOf(consumer), 1);
    consumer.hasLeft = true;
    const { memberId } = consumer;
    const leaving = { memberId, groupInstanceId: null, reason: null };
    this.coordinator.leaveGroup({ groupId: 'g', members: [leaving] }, this.now, () => {});
  }
}

class Consumer {
  readonly #group: Group;
  memberId = '';
  owned: number[] = [];
  needsJoin = true;
  hasLeft = false;
  #generationId = -1;
  #isWaiting = false;
  #busyUntilMs = 0;
  #heartbeatMs = 0;

  constructor(group: Group) {
    this.#group = group;
  }

  step(): void {
    const group = this.#group;
    const { monotonicMs } = group;
    if (this.#isWaiting) return;
    if (this.#generationId >= 0 && monotonicMs - this.#heartbeatMs >= heartbeatMs) {
      this.#heartbeat();
    }
    if (monotonicMs < this.#busyUntilMs) return;
    if (this.needsJoin) this.#join();
    else if (group.below(50) === 0) this.#busyUntilMs = monotonicMs + group.below(handlerMsMax);
  }

  #heartbeat(): void {
    const { coordinator, now } = this.#group;
    this.#heartbeatMs = now.monotonicMs;
    const { memberId } = this;
    const request = { groupId: 'g', memberId, groupInstanceId: null };
    const code = coordinator.heartbeat({ ...request, generationId: this.#generationId }, now);
    if (code === ErrorCode.REBALANCE_IN_PROGRESS) this.needsJoin = true;
    else assert.equal(code, ErrorCode.NONE, errorName(code));
  }

  #join(): void {
    const { coordinator, now, assignor } = this.#group;
    this.#isWaiting = true;
    if (assignor === eager) this.owned = [];
    const owned = this.owned.map((lane) => `t/${lane}`).join('+') || '-';
    const metadata = cooperativeSubscription(['t'], owned, this.#generationId);
    coordinator.joinGroup(
      {
        apiVersion: 9,
        groupId: 'g',
        memberId: this.memberId,
        groupInstanceId: null,
        clientId: 'c',
        clientHost: '/127.0.0.1',
        protocolType: 'consumer',
        protocols: [{ name: 'p', metadata }],
        sessionTimeoutMs: 10_000,
        rebalanceTimeoutMs: 300_000,
        reason: null,
      },
      now,
      (response) => this.#joined(response),
    );
  }

  #joined({ errorCode, memberId, generationId, members }: JoinGroupResponse): void {
    if (this.hasLeft) return;
    this.memberId = memberId;
    this.#isWaiting = errorCode === ErrorCode.NONE;
    if (errorCode === ErrorCode.MEMBER_ID_REQUIRED) return;
    assert.equal(errorCode, ErrorCode.NONE, errorName(errorCode));
    this.#generationId = generationId;
    const { coordinator, now, assignor } = this.#group;
    this.#heartbeatMs = now.monotonicMs;
    const plan = members.length === 0 ? new Map<string, number[]>() : assignor(members);
    const assignments = [...plan].map(([id, lanes]) => {
      const text = lanes.map((lane) => `t/${lane}`).join('+') || '-';
      return { memberId: id, assignment: assignmentOf(text) };
    });
    const names = { groupInstanceId: null, protocolType: 'consumer', protocolName: 'p' };
    const request = { apiVersion: 5, groupId: 'g', generationId, memberId, ...names, assignments };
    coordinator.syncGroup(request, now, (response) => {
      this.#synced(response.errorCode, response.assignment);
    });
  }

  #synced(errorCode: ErrorCode, assignment: Buffer): void {
    if (this.hasLeft) return;
    this.#isWaiting = false;
    this.needsJoin = errorCode === ErrorCode.REBALANCE_IN_PROGRESS;
    if (this.needsJoin) return;
    assert.equal(errorCode, ErrorCode.NONE, errorName(errorCode));
    const assigned = [...(readAssignment(assignment)!.partitions.get('t') ?? [])];
    // A cooperative consumer that gave something up comes again to say so (KIP-429).
    this.needsJoin = this.owned.some((lane) => !assigned.includes(lane));
    this.owned = assigned;
  }
}

function play(seed: number, assignor: Assignor): Group {
  const group = new Group(seed, assignor);
  for (let i = 0; i < 10; i++) {
    if (group.consumers.length > 2 && group.below(4) === 0) {
      group.leave(group.consumers[group.below(group.consumers.length)]!);
    } else {
      group.consumers.push(new Consumer(group));
    }
    group.run(group.below(8_000));
  }
  group.run(180_000);
  const { generationId } = group;
  group.run(60_000);
  assert.equal(group.generationId, generationId, 'the group has come to rest');
  const owned = group.consumers.flatMap((consumer) => consumer.owned);
  assert.equal(owned.length, laneCount, 'every lane is somebody’s');
  assert.equal(new Set(owned).size, laneCount, 'and of one alone');
  const counts = group.consumers.map((consumer) => consumer.owned.length);
  assert.ok(Math.min(...counts) > 0, `nobody idles: ${counts}`);
  for (const { needsJoin } of group.consumers) assert.ok(!needsJoin);
  return group;
}

for (const [name, assignor] of Object.entries({ eager, cooperative })) {
  test(`busy ${name} consumers stay, and come to rest`, () => {
    let absentCount = 0;
    for (let seed = 1; seed <= seedCount; seed++) {
      try {
        absentCount += play(seed, assignor).absentCount;
      } catch (error) {
        throw new Error(`seed ${seed}: ${error instanceof Error ? error.stack : error}`);
      }
    }
    assert.ok(absentCount > seedCount, `generations without someone: ${absentCount}`);
  });
}
