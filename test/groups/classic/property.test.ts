import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ErrorCode, errorName } from '../../../src/protocol/error-codes.ts';
import { Chaos, type Client, groupId } from './chaos.ts';

/** `SEEDS=5000` for a longer run; a failure names its seed, `SEED=n` runs that one alone. */
const seedCount = Number(process.env['SEEDS'] ?? 300);
const onlySeed = process.env['SEED'];

const stepCount = 250;

function newClient(name: string, instance: string | null, given: Partial<Client>): Client {
  return {
    name,
    instance,
    protocols: ['range'],
    sessionTimeoutMs: 10_000,
    rebalanceTimeoutMs: 20_000,
    memberId: '',
    generationId: -1,
    protocol: 'range',
    assignsTo: [],
    ...given,
  };
}

/** A client as it should be: heartbeats in time, comes back when asked, assigns when it leads. */
class GoodClient {
  readonly client: Client = newClient('good', null, {});
  readonly #chaos: Chaos;
  /** Joined in a generation, or on the way to it. */
  #phase: 'out' | 'waiting' | 'member' = 'out';
  #heartbeatMs = 0;
  /** The coordinator that the last request went to. */
  #requestEpoch = 0;
  /** The coordinator that is known to know it. Only another one may have forgotten it. */
  #memberEpoch = 0;
  assignmentCount = 0;

  constructor(chaos: Chaos) {
    this.#chaos = chaos;
  }

  get isMember(): boolean {
    return this.#phase === 'member';
  }

  act(): void {
    const chaos = this.#chaos;
    // Requests that the former coordinator never answered are lost with their connections.
    const isLost = this.#requestEpoch !== chaos.crashes;
    if (isLost && this.#phase === 'waiting') this.#phase = 'out';
    if (this.#phase === 'out') this.#join();
    if (this.#phase !== 'member' || chaos.monotonicMs - this.#heartbeatMs < 3_000) return;
    this.#heartbeatMs = chaos.monotonicMs;
    const code = chaos.heartbeat(this.client);
    if (code === ErrorCode.REBALANCE_IN_PROGRESS) this.#join();
    else if (code !== ErrorCode.NONE) this.#expelled(code, 'Heartbeat');
  }

  #join(): void {
    this.#phase = 'waiting';
    const epoch = this.#chaos.crashes;
    this.#requestEpoch = epoch;
    this.#chaos.join(this.client, this.client.memberId, ({ errorCode }) => {
      if (epoch !== this.#chaos.crashes && errorCode !== ErrorCode.NOT_COORDINATOR) return;
      if (errorCode === ErrorCode.NONE) this.#sync(epoch);
      else if (errorCode === ErrorCode.MEMBER_ID_REQUIRED) this.#join();
      else this.#retry(errorCode, 'JoinGroup');
    });
  }

  #sync(epoch: number): void {
    this.#heartbeatMs = this.#chaos.monotonicMs;
    this.#chaos.sync(this.client, ({ errorCode }) => {
      if (errorCode === ErrorCode.NONE) {
        this.#phase = 'member';
        this.#memberEpoch = epoch;
        this.#heartbeatMs = this.#chaos.monotonicMs;
        this.assignmentCount++;
      } else if (errorCode === ErrorCode.REBALANCE_IN_PROGRESS) {
        this.#join();
      } else {
        this.#retry(errorCode, 'SyncGroup');
      }
    });
  }

  #retry(errorCode: ErrorCode, request: string): void {
    this.#phase = 'out';
    const isTransient =
      errorCode === ErrorCode.COORDINATOR_NOT_AVAILABLE || errorCode === ErrorCode.NOT_COORDINATOR;
    if (!isTransient) this.#expelled(errorCode, request);
  }

  #expelled(errorCode: ErrorCode, request: string): void {
    this.#phase = 'out';
    const wasLost = this.#memberEpoch !== this.#chaos.crashes;
    assert.ok(wasLost, `the good client was told ${errorName(errorCode)} by ${request}`);
    this.#memberEpoch = this.#chaos.crashes;
    this.client.memberId = '';
    this.client.generationId = -1;
  }
}

/** One of the crowd does one thing, sensible or not. */
function misbehave(chaos: Chaos, clients: readonly Client[]): void {
  const client = clients[chaos.below(clients.length)]!;
  const ignore = (): void => {};
  const dice = chaos.below(100);
  if (dice < 35) chaos.join(client, chaos.below(8) === 0 ? '' : client.memberId, ignore);
  else if (dice < 60) chaos.sync(client, ignore);
  else if (dice < 75) chaos.heartbeat(client);
  else if (dice < 83) chaos.commit(client);
  else if (dice < 90) chaos.leave(client, chaos.below(3) === 0);
  else if (dice < 92) client.memberId = '';
  else if (dice < 94) client.generationId += chaos.below(3) - 1;
  else if (dice < 95) chaos.delete();
  else if (dice < 96) chaos.coordinator.forget(groupId, chaos.now);
  else chaos.advance(chaos.below(4_000));
}

function crowd(chaos: Chaos): Client[] {
  return Array.from({ length: 6 }, (_, i) =>
    newClient(`c${i}`, i < 2 ? `i${i}` : null, {
      protocols: i % 2 === 0 ? ['range', 'sticky'] : ['sticky', 'range'],
      sessionTimeoutMs: 6_000 + chaos.below(20_000),
      rebalanceTimeoutMs: chaos.below(30_000),
    }),
  );
}

function run(seed: number, isKeyed: boolean): void {
  const chaos = new Chaos(seed, isKeyed);
  const good = new GoodClient(chaos);
  const clients = crowd(chaos);
  const failsOneIn = [0, 4, 10][seed % 3]!;
  for (let step = 0; step < stepCount; step++) {
    good.act();
    chaos.check();
    misbehave(chaos, clients);
    chaos.check();
    chaos.finishWrites(chaos.below(3), failsOneIn);
    if (chaos.below(120) === 0) chaos.crash();
    if (chaos.below(120) === 0) chaos.handOver();
    // Never so long that the good client could miss its own session.
    for (let i = chaos.below(3); i > 0; i--) {
      good.act();
      chaos.advance(chaos.below(1_500));
    }
    chaos.check();
  }
  settle(chaos, good);
}

/** The crowd falls silent: the good client alone ends up with the group, and nobody waits. */
function settle(chaos: Chaos, good: GoodClient): void {
  for (let i = 0; i < 200; i++) {
    good.act();
    chaos.finishWrites(10, 0);
    chaos.advance(1_000);
    chaos.check();
  }
  assert.ok(good.isMember && good.assignmentCount > 0, 'the good client has an assignment');
  const { groupState, members } = chaos.coordinator.describe(groupId, 6);
  assert.equal(groupState, 'Stable');
  assert.deepEqual(
    members.map(({ memberId }) => memberId),
    [good.client.memberId],
  );
  assert.equal(chaos.unansweredCount, 0, 'every request was answered');
}

for (const isKeyed of [false, true]) {
  const delivery = isKeyed ? 'keyed delivery' : 'log delivery';
  test(`random histories keep the rules of classic groups in ${delivery}`, () => {
    const seeds =
      onlySeed === undefined
        ? Array.from({ length: seedCount }, (_, i) => i + 1)
        : [Number(onlySeed)];
    for (const seed of seeds) {
      try {
        run(seed, isKeyed);
      } catch (error) {
        throw new Error(`seed ${seed}: ${error instanceof Error ? error.stack : error}`);
      }
    }
  });
}
