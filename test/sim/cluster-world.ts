/**
 * A whole cluster in one process: the production code of raft, replica, log, state and the messages
 * between nodes, on a simulated clock, network and disks. One seed is one run. After each step it
 * is checked that no promise of a replicated log is broken.
 */
import assert from 'node:assert/strict';
import type { Random } from '../../src/core/random.ts';
import type { DozeOptions } from '../../src/raft/ready.ts';
import type { Clients } from './clients.ts';
import { ClusterTruth } from './cluster-truth.ts';
import { DirectClients } from './direct-clients.ts';
import { Harm } from './harm.ts';
import { RaftSafety } from './raft-safety.ts';
import { SimClock } from './sim-clock.ts';
import type { SimDisk } from './sim-files.ts';
import { SimMembers } from './sim-members.ts';
import { SimNetwork } from './sim-network.ts';
import { SimNode } from './sim-node.ts';
import { WireClients } from './wire-clients.ts';

export interface ClusterCounts {
  /** Steps after which somebody leads and may answer. */
  ledSteps: number;
  elections: number;
  crashes: number;
  kills: number;
  pauses: number;
  partitions: number;
  conflicts: number;
  acknowledged: number;
  /** By the leader alone (acks=1). */
  acknowledgedAlone: number;
  resent: number;
  reads: number;
  applied: number;
  snapshots: number;
  memberChanges: number;
  fullDisks: number;
  starts: number;
  handOvers: number;
  installs: number;
  /** Machines that got a new disk. */
  wipes: number;
  /** Times that a node got a newer version. */
  upgrades: number;
  /** Requests that waited for a leader that dozed. */
  awakings: number;
  /** Times that records were deleted from the beginning of a partition. */
  deletions: number;
  filesRemoved: number;
  filesSealed: number;
  /** Ends of a process while it wrote. */
  tornWrites: number;
  /** Records that members of groups handled: of a log, and by key. */
  handled: number;
  handledByKey: number;
  /** Of those, again. */
  handledAgain: number;
  joins: number;
  /** Checks of invariants that the brokers made themselves. */
  keyedChecks: number;
}

export interface ClusterWorldOptions {
  readonly nodes: number;
  /** How clients ask; else the seed decides. */
  readonly clients?: 'direct' | 'wire';
  /** Sabotage, to show that the simulation notices. */
  readonly lies?: SimDisk['lies'];
  /** Is told what happens. */
  readonly trace?: ((line: string) => void) | undefined;
}

export class ClusterWorld {
  readonly counts: ClusterCounts = {
    ...{ ledSteps: 0, elections: 0, crashes: 0, kills: 0, pauses: 0, partitions: 0, conflicts: 0 },
    ...{
      acknowledged: 0,
      acknowledgedAlone: 0,
      resent: 0,
      reads: 0,
      applied: 0,
      snapshots: 0,
      memberChanges: 0,
    },
    ...{ fullDisks: 0, starts: 0, handOvers: 0, installs: 0, deletions: 0, wipes: 0, upgrades: 0 },
    awakings: 0,
    ...{ filesRemoved: 0, filesSealed: 0, tornWrites: 0, handled: 0, handledByKey: 0 },
    ...{ handledAgain: 0, joins: 0, keyedChecks: 0 },
  };
  readonly clock: SimClock;
  readonly random: Random;
  readonly nodes: SimNode[];
  readonly lies: SimDisk['lies'];
  /** In many small files and snapshots more happens. */
  readonly sizes: { readonly fileBytesMax: number; readonly snapshotBytes: number };
  /** In some runs the leader dozes when nothing happens, until clients ask for something. */
  readonly doze: { readonly doze?: DozeOptions };
  /** In small ones followers lag, and logs that differ are seen to differ. */
  readonly appendBytesMax: number;
  readonly truth = new ClusterTruth((what) => this.note(what));
  readonly #safety = new RaftSafety();
  /** Clients speak Kafka's protocol to a broker on each node. */
  readonly hasBrokers: boolean;
  readonly network = new SimNetwork(this);
  readonly members = new SimMembers(this);
  readonly #harm = new Harm(this);
  /** Some runs are wilder than others. */
  readonly #harmRate: number;
  readonly clients: Clients;
  readonly #trace: ((line: string) => void) | undefined;
  #nextConnectionId = 1;
  #failure: unknown;

  constructor(random: Random, options: ClusterWorldOptions) {
    this.random = random;
    this.clock = new SimClock(random);
    this.lies = options.lies ?? 'none';
    this.#trace = options.trace;
    this.sizes = this.pick([
      { fileBytesMax: 1536, snapshotBytes: 1500 },
      { fileBytesMax: 3072, snapshotBytes: 2000 },
      { fileBytesMax: 8192, snapshotBytes: 6000 },
    ]);
    this.appendBytesMax = this.pick([1, 300, 1024 * 1024]);
    this.#harmRate = this.pick([0.005, 0.01, 0.02, 0.05]);
    this.nodes = Array.from({ length: options.nodes }, (_, i) => new SimNode(this, i + 1));
    this.hasBrokers = (options.clients ?? this.pick(['direct', 'wire'])) === 'wire';
    const dozes = this.hasBrokers && random.next() < 0.5;
    this.doze = dozes ? { doze: { afterMs: 30, heartbeatMs: 120, timeoutMs: 300 } } : {};
    this.clients = this.hasBrokers ? new WireClients(this) : new DirectClients(this);
  }

  /** Something went wrong where nobody waits for it. */
  readonly fail = (error: unknown): void => {
    this.#failure ??= error;
  };

  /** For whoever looks for what went wrong. */
  note(what: () => string): void {
    this.#trace?.(`${this.clock.monotonicMs()} ${what()}`);
  }

  /** The time of a record: not of the future, nor too old, for a broker whose clock has jumped. */
  get recordMs(): number {
    return this.clock.wallMs() - 2 * 86_400_000;
  }

  nextConnectionId(): number {
    return this.#nextConnectionId++;
  }

  below(bound: number): number {
    return Math.floor(this.random.next() * bound);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }

  async run(steps: number): Promise<void> {
    for (const node of this.nodes) await node.start();
    for (let step = 0; step < steps; step++) await this.#step();
    await this.#heal();
  }

  async #step(): Promise<void> {
    const dice = this.random.next();
    if (dice < 0.55) for (let i = this.below(6); i >= 0; i--) await this.clock.step();
    else if (dice < 0.75) {
      // Nobody has to wait for an election step by step.
      if (this.leader === undefined && this.random.next() < 0.5) await this.pass(this.below(100));
      else await this.clock.advance(this.below(15));
    } else if (dice < 1 - this.#harmRate) {
      this.clients.act();
      this.#formBy(this.nodes.filter(({ isPaused }) => !isPaused));
    } else {
      await this.#harm.act();
    }
    await this.#harm.watch();
    for (const node of this.nodes) await node.takeSnapshot();
    if (this.leader !== undefined) this.counts.ledSteps++;
    this.check();
  }

  /** Time goes on, and disks get on with what they have to do. */
  async pass(ms: number): Promise<void> {
    for (let leftMs = ms; leftMs > 0; leftMs -= 5) {
      for (let steps = this.below(20); steps > 0 && (await this.clock.step()); steps--);
      await this.clock.advance(Math.min(leftMs, 5));
    }
  }

  #formBy(nodes: readonly SimNode[]): void {
    for (const node of nodes) this.members.form(node);
  }

  /** Who leads and may say so; undefined if nobody does. */
  get leader(): SimNode | undefined {
    return this.nodes.find(({ replica }) => replica?.mayAnswer === true);
  }

  /** Everything works again: then all nodes come to the same state, and clients to their end. */
  async #heal(): Promise<void> {
    await this.#harm.end();
    const isDone = () =>
      this.clients.isDone &&
      this.nodes.every(({ replica }) => replica?.state.appliedIndex === this.truth.committedEnd);
    for (let round = 0; !isDone(); round++) {
      assert.ok(round < 3000, `no end: ${this.#describe()}`);
      await this.pass(10);
      for (const node of this.nodes) {
        await node.takeSnapshot();
        if (!node.isUp) await node.start();
      }
      this.#formBy(this.nodes);
      this.clients.finish(round);
      this.check();
    }
    const [first, ...others] = this.nodes.map(({ replica }) => replica!.state.image());
    for (const other of others) assert.ok(other.equals(first!), 'all states are the same');
    for (const node of this.nodes) {
      await this.truth.checkRecords(node, this.clock);
    }
    this.clients.check();
    this.counts.elections = this.#safety.elections;
    this.counts.applied = this.truth.applied;
    this.counts.memberChanges = this.truth.memberChanges;
  }

  #describe(): string {
    return this.nodes
      .map(({ id, replica, isUp }) => {
        if (replica === undefined) return `${id} ${isUp}`;
        const { role, term, lastIndex, commitIndex, configuration } = replica.raft;
        const facts = `${role} of ${term}, ${replica.state.appliedIndex}/${commitIndex}/${lastIndex}`;
        return `${id} ${facts} ${configuration.voters}+${configuration.learners}`;
      })
      .concat(this.clients.describe())
      .join('; ');
  }

  // What must hold.

  check(): void {
    this.#safety.check(this.nodes);
    for (const { id, replica, level } of this.nodes) {
      const inForce = replica?.state.featureLevel ?? 0;
      assert.ok(inForce <= level, `${id} of level ${level} gets what is of level ${inForce}`);
    }
    if (this.#failure !== undefined) throw this.#failure;
  }
}
