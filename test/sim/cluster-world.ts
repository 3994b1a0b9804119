/**
 * A whole cluster in one process: the production code of raft, replica, log, state and the messages
 * between nodes, on a simulated clock, network and disks. One seed is one run. After each step it
 * is checked that no promise of a replicated log is broken.
 */
import assert from 'node:assert/strict';
import { nextConfiguration } from '../../src/cluster/formation.ts';
import { encodeMessage } from '../../src/cluster/peer-codec.ts';
import type { Random } from '../../src/core/random.ts';
import type { Entry } from '../../src/log/format.ts';
import type { Message } from '../../src/raft/messages.ts';
import type { Replica } from '../../src/replica/replica.ts';
import type { Clients } from './clients.ts';
import { ClusterTruth } from './cluster-truth.ts';
import { DirectClients } from './direct-clients.ts';
import { RaftSafety } from './raft-safety.ts';
import { SimClock } from './sim-clock.ts';
import type { SimDisk } from './sim-files.ts';
import { SimNode } from './sim-node.ts';
import { WireClients } from './wire-clients.ts';

export interface ClusterCounts {
  elections: number;
  crashes: number;
  kills: number;
  pauses: number;
  partitions: number;
  conflicts: number;
  acknowledged: number;
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
    ...{ elections: 0, crashes: 0, kills: 0, pauses: 0, partitions: 0, conflicts: 0 },
    ...{ acknowledged: 0, resent: 0, reads: 0, applied: 0, snapshots: 0, memberChanges: 0 },
    ...{ fullDisks: 0, starts: 0, handOvers: 0, installs: 0, deletions: 0, wipes: 0 },
    ...{ filesRemoved: 0, filesSealed: 0, tornWrites: 0, handled: 0, handledByKey: 0 },
    ...{ handledAgain: 0, joins: 0, keyedChecks: 0 },
  };
  readonly clock: SimClock;
  readonly random: Random;
  readonly nodes: SimNode[];
  readonly lies: SimDisk['lies'];
  /** In many small files and snapshots more happens. */
  readonly sizes: { readonly fileBytesMax: number; readonly snapshotBytes: number };
  /** In small ones followers lag, and logs that differ are seen to differ. */
  readonly appendBytesMax: number;
  readonly truth = new ClusterTruth((what) => this.note(what));
  readonly #safety = new RaftSafety();
  /** Clients speak Kafka's protocol to a broker on each node. */
  readonly hasBrokers: boolean;
  readonly #cut = new Set<string>();
  #lossRate = 0;
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
    this.#harmRate = this.pick([0.02, 0.04, 0.08, 0.15]);
    this.nodes = Array.from({ length: options.nodes }, (_, i) => new SimNode(this, i + 1));
    this.hasBrokers = (options.clients ?? this.pick(['direct', 'wire'])) === 'wire';
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
    else if (dice < 0.75) await this.clock.advance(this.below(15));
    else if (dice < 1 - this.#harmRate) {
      this.clients.act();
      this.#formBy(this.nodes.filter(({ isPaused }) => !isPaused));
    } else {
      await this.#harm();
      if (this.random.next() < 0.3) await this.#outlast();
    }
    for (const node of this.nodes) await node.takeSnapshot();
    this.#check();
  }

  /** What went wrong stays as it is for longer than an election takes. */
  async #outlast(): Promise<void> {
    for (let left = this.below(40); left > 0; left--) {
      await this.clock.advance(10);
      this.#check();
    }
  }

  #formBy(nodes: readonly SimNode[]): void {
    for (const { replica } of nodes) if (replica?.isLeader === true) this.#form(replica);
  }

  /** As cluster.ts does; now and then a member is put out, to come back later. */
  #form(replica: Replica): void {
    const { raft, consensus } = replica;
    if (!raft.mayReconfigure || this.random.next() < 0.8) return;
    const { configuration } = raft;
    const { voters, learners } = configuration;
    const lost = [...voters, ...learners].find((id) => this.nodes.every((node) => node.id !== id));
    if (lost !== undefined) {
      // An operator puts the former self of a node out.
      const without = (ids: readonly string[]) => ids.filter((id) => id !== lost);
      const next = { voters: without(voters), learners: without(learners) };
      consensus.proposeMembers({ ...next, removed: [] });
      return;
    }
    const present = this.nodes.filter(({ isUp, id }) => isUp && id !== raft.leaderId);
    const isShrinking = configuration.voters.length >= 3 && this.random.next() < 0.05;
    const victim = this.pick(present)?.id;
    const next = isShrinking
      ? { ...configuration, voters: configuration.voters.filter((id) => id !== victim) }
      : nextConfiguration(
          configuration,
          present.map(({ node, id }) => {
            const isCaughtUp = raft.lastIndex - (raft.peer(id)?.matchIndex ?? 0) < 20;
            return { node, isCaughtUp };
          }),
        );
    if (next === undefined || next.voters.length < 1) return;
    const isSame =
      next.voters.length === configuration.voters.length &&
      next.learners.length === configuration.learners.length;
    if (isSame) return;
    this.counts.memberChanges++;
    consensus.proposeMembers({ ...next, removed: [] });
  }

  // What goes wrong.

  async #harm(): Promise<void> {
    const node = this.pick(this.nodes);
    const dice = this.random.next();
    if (dice < 0.2) {
      const wasUp = node.isUp;
      if (wasUp) node.stop(this.random.next() < 0.6);
      // Whoever watches over it starts it again at once.
      if (!wasUp || this.random.next() < 0.4) await node.start();
    } else if (dice < 0.5) {
      const down = this.nodes.filter(({ isUp }) => !isUp);
      if (down.length > 0) await this.pick(down).start();
    } else if (dice < 0.6) {
      this.counts.partitions++;
      for (const other of this.nodes) {
        if (this.random.next() < 0.7) this.#cut.add(`${node.id}>${other.id}`);
        if (this.random.next() < 0.7) this.#cut.add(`${other.id}>${node.id}`);
      }
    } else if (dice < 0.63) this.#wipe();
    else if (dice < 0.8) {
      this.#cut.clear();
      this.#lossRate = this.pick([0, 0, 0.02, 0.2]);
    } else if (dice < 0.88) node.togglePause();
    else if (dice < 0.92) node.slowMs = this.pick([0, 10, 60]);
    else if (dice < 0.94) {
      if (node.replica?.consensus.handOver() === true) this.counts.handOvers++;
    } else if (dice < 0.96) node.clock.jumpWall(this.pick([-86_400_000, 315_360_000_000]));
    else node.changeQuota();
  }

  /** A disk is lost for good: no more of them than the group can bear. */
  #wipe(): void {
    const leader = this.nodes.find(({ replica }) => replica?.mayAnswer === true)?.replica;
    const { voters } = leader?.raft.configuration ?? { voters: [] };
    const isWhole = voters.every((id) => this.nodes.some((node) => node.id === id));
    if (leader?.raft.mayReconfigure !== true || voters.length < 3 || !isWhole) return;
    this.pick(this.nodes.filter(({ id }) => id !== leader.raft.leaderId)).wipe();
  }

  /** Everything works again: then all nodes come to the same state, and clients to their end. */
  async #heal(): Promise<void> {
    this.#cut.clear();
    this.#lossRate = 0;
    for (const node of this.nodes) {
      node.resume();
      node.slowMs = 0;
      node.disk.quotaBytes = Number.POSITIVE_INFINITY;
      if (!node.isUp) await node.start();
    }
    const isDone = () =>
      this.clients.isDone &&
      this.nodes.every(({ replica }) => replica?.state.appliedIndex === this.truth.committedEnd);
    for (let round = 0; !isDone(); round++) {
      assert.ok(round < 3000, `no end: ${this.#describe()}`);
      for (let i = 0; i < 20; i++) await this.clock.step();
      await this.clock.advance(10);
      for (const node of this.nodes) {
        await node.takeSnapshot();
        if (!node.isUp) await node.start();
      }
      this.#formBy(this.nodes);
      this.clients.finish(round);
      this.#check();
    }
    const [first, ...others] = this.nodes.map(({ replica }) => replica!.state.image());
    for (const other of others) assert.ok(other.equals(first!), 'all states are the same');
    for (const node of this.nodes) {
      await this.truth.checkRecords(node, this.clock);
    }
    this.clients.check();
    this.counts.elections = this.#safety.elections;
    this.counts.applied = this.truth.applied;
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

  #check(): void {
    this.#safety.check(this.nodes);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** A request that another node passes on; undefined if that does not answer. */
  async askNode(from: SimNode, nodeId: number, request: Buffer): Promise<Buffer | undefined> {
    const to = this.nodes.find(({ node }) => node.nodeId === nodeId);
    // The first byte says what it is.
    return this.#askOver(from, to, () => to!.answerForwarded(request.subarray(1)));
  }

  /** A request for a snapshot. */
  async ask(from: SimNode, member: string, request: Buffer): Promise<Buffer | undefined> {
    const to = this.nodes.find(({ id }) => id === member);
    return this.#askOver(from, to, () => to!.answerFetch(request));
  }

  async #askOver(
    from: SimNode,
    to: SimNode | undefined,
    answer: () => Promise<Buffer | undefined>,
  ): Promise<Buffer | undefined> {
    const isLost = () =>
      this.#cut.has(`${from.id}>${to?.id}`) ||
      this.#cut.has(`${to?.id}>${from.id}`) ||
      this.random.next() < this.#lossRate;
    const travel = () =>
      new Promise<void>((resolve) => {
        this.clock.after(this.below(6), from.clock.guard(resolve));
      });
    await travel();
    if (to === undefined || isLost()) return undefined;
    const answered = await answer();
    await travel();
    return isLost() ? undefined : answered;
  }

  send(from: SimNode, message: Message, entries: readonly Entry[]): void {
    const to = this.nodes.find(({ id }) => id === message.to);
    const isLost = this.#cut.has(`${from.id}>${message.to}`) || this.random.next() < this.#lossRate;
    if (to === undefined || isLost) return;
    const bytes = Buffer.concat(encodeMessage(message, entries));
    const copies = this.random.next() < 0.02 ? 2 : 1;
    for (let i = 0; i < copies; i++) {
      const delayMs = this.random.next() < 0.95 ? this.below(4) : this.below(300);
      this.clock.after(delayMs, () => to.receive(Buffer.from(bytes)));
    }
  }
}
