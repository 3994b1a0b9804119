/** The broker of one simulated node, and connections to it. */
import assert from 'node:assert/strict';
import { Broker } from '../../src/broker/broker.ts';
import { serveForwarded } from '../../src/broker/forwarding.ts';
import { handlers } from '../../src/broker/handlers.ts';
import { BrokerSession } from '../../src/broker/session.ts';
import { withDefaults } from '../../src/config/settings.ts';
import { codecs } from '../../src/core/codecs.ts';
import { silentLogger } from '../../src/core/logger.ts';
import type { Connection } from '../../src/net/connection.ts';
import { JobThread } from '../../src/replica/job-thread.ts';
import { OpenThread } from '../../src/replica/open-thread.ts';
import type { Replica } from '../../src/replica/replica.ts';
import type { ClusterWorld } from './cluster-world.ts';
import type { SimNode } from './sim-node.ts';

/** How long members of groups may be silent, and have a record in hand. */
export const sessionTimeoutMs = 3000;
export const leaseMs = 6000;

/** Small times, where the defaults would take longer than a run. */
const settings = {
  listen: 'broker:9092',
  'group.initial.rebalance.delay.ms': 0,
  'group.min.session.timeout.ms': 100,
  'keyed.rebalance.wait.ms': 200,
  'retry.backoff.ms': 50,
  'lease.ms': leaseMs,
  'delivery.attempts.max': 0,
};

export class SimBroker {
  readonly broker: Broker;
  readonly #world: ClusterWorld;
  readonly #node: SimNode;
  readonly #connections = new Set<SimConnection>();
  readonly #jobs: JobThread;

  constructor(world: ClusterWorld, node: SimNode, replica: Replica, onFatal: (e: unknown) => void) {
    this.#world = world;
    this.#node = node;
    const { nodeId, host, port } = node.node;
    this.#jobs = new JobThread(onFatal);
    this.broker = new Broker({
      settings: withDefaults({ ...settings, 'node.id': nodeId }),
      listener: { listen: { host, port } },
      clock: node.clock,
      ...{
        random: world.random,
        codecs,
        log: silentLogger,
        replica,
        jobs: this.#jobs,
        apis: handlers,
        onFatal,
      },
      opener: new OpenThread(this.#jobs),
      cluster: {
        askNode: (to, request) => world.network.askNode(node, to, Buffer.concat(request)),
      },
    });
  }

  /** What another node passes on; the kind of the request was looked at. */
  async answer(request: Buffer): Promise<Buffer> {
    return Buffer.concat(await serveForwarded(this.broker, request));
  }

  connect(): SimConnection {
    const connection = new SimConnection(this.#world, this.#node, this.broker, () => {
      this.#connections.delete(connection);
    });
    this.#connections.add(connection);
    return connection;
  }

  /** The process is gone: so are its connections. */
  onEnd(): void {
    for (const connection of this.#connections) connection.close();
    const { violations, checks } = this.broker.keyed.invariants;
    this.#world.counts.keyedChecks += checks.holder + checks.books;
    assert.deepEqual(violations, { holder: 0, books: 0 }, 'invariants of keyed delivery');
  }

  /** As a node does when it is stopped. */
  async stop(): Promise<void> {
    this.broker.finishParked();
    await this.broker.stopJobs();
    await this.#jobs.stop();
  }
}

/** One connection of a client. Requests and answers take time; they come in order, or not at all. */
export class SimConnection {
  isClosed = false;
  /** Whether somebody else led already when the last answer was sent. */
  wasAnsweredLate = false;
  readonly #world: ClusterWorld;
  readonly #node: SimNode;
  readonly #session: BrokerSession;
  readonly #onClosed: () => void;
  readonly #onAnswer = new Map<number, (frame: Buffer | undefined) => void>();
  #requestMs = 0;
  #answerMs = 0;

  constructor(world: ClusterWorld, node: SimNode, broker: Broker, onClosed: () => void) {
    this.#world = world;
    this.#node = node;
    this.#onClosed = onClosed;
    const facts = { remoteAddress: 'client', localAddress: 'broker', localPort: 9092 };
    const connection = { id: world.nextConnectionId(), ...facts, close: () => this.close() };
    this.#session = new BrokerSession(broker, connection as unknown as Connection);
  }

  /** Sends a frame with its size; undefined if the connection ends before the answer. */
  ask(correlationId: number, bytes: Buffer): Promise<Buffer | undefined> {
    return new Promise((resolve) => {
      if (this.isClosed) {
        resolve(undefined);
        return;
      }
      this.#onAnswer.set(correlationId, resolve);
      this.#requestMs = this.#after(this.#requestMs, () => this.#serve(bytes.subarray(4)));
    });
  }

  #serve(frame: Buffer): void {
    if (this.isClosed) return;
    const correlationId = frame.readInt32BE(4);
    if (this.#node.replica?.consensus.isAsleep === true) this.#world.counts.awakings++;
    this.#session.onFrame(frame, {
      send: (pieces, afterWritten) => {
        if (this.isClosed) {
          afterWritten?.(false);
          return;
        }
        const answer = Buffer.concat(pieces ?? []).subarray(4);
        const { leader } = this.#world;
        this.wasAnsweredLate = leader !== undefined && leader !== this.#node;
        afterWritten?.(true);
        this.#answerMs = this.#after(this.#answerMs, () => {
          const onAnswer = this.#onAnswer.get(correlationId);
          this.#onAnswer.delete(correlationId);
          onAnswer?.(answer);
        });
      },
      onTurn: (callback) => callback(),
    });
  }

  /** A way of some milliseconds, behind what went before. */
  #after(earliestMs: number, callback: () => void): number {
    const { clock } = this.#world;
    const nowMs = clock.monotonicMs();
    const dueMs = Math.max(earliestMs, nowMs + this.#world.below(3));
    clock.after(dueMs - nowMs, this.#node.clock.guard(callback));
    return dueMs;
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#onClosed();
    if (this.#node.isUp) this.#session.onClose();
    for (const onAnswer of this.#onAnswer.values()) onAnswer(undefined);
    this.#onAnswer.clear();
  }
}
