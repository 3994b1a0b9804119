/**
 * A whole cluster in one process: the production code of raft, replica, log, state and the messages
 * between nodes, on a simulated clock, network and disks. One seed is one run. After each step it
 * is checked that no promise of a replicated log is broken.
 */
import assert from 'node:assert/strict';
import { nextConfiguration } from '../../src/cluster/formation.ts';
import { encodeMessage } from '../../src/cluster/peer-codec.ts';
import { codecs } from '../../src/core/codecs.ts';
import type { Random } from '../../src/core/random.ts';
import type { Entry } from '../../src/log/format.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import type { Message } from '../../src/raft/messages.ts';
import type { Replica } from '../../src/replica/replica.ts';
import {
  encodeLogStarts,
  encodeOffsetsCommitted,
  encodeTopicCreated,
} from '../../src/state/commands.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import { topicSettings } from '../replica/topic-settings.ts';
import { ClusterTruth } from './cluster-truth.ts';
import { SimClock } from './sim-clock.ts';
import type { SimDisk } from './sim-files.ts';
import { SimNode } from './sim-node.ts';

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
}

export interface ClusterWorldOptions {
  readonly nodes: number;
  /** Sabotage, to show that the simulation notices. */
  readonly lies?: SimDisk['lies'];
}

const partitionCount = 2;
const producerCount = 8;
/** An idempotent producer as a client runs it: one batch at a time, until it is acknowledged. */
interface Producer {
  readonly id: number;
  readonly partition: number;
  nextSequence: number;
  inFlight: { readonly value: string; isAsked: boolean } | undefined;
}

export class ClusterWorld {
  readonly counts: ClusterCounts = {
    ...{ elections: 0, crashes: 0, kills: 0, pauses: 0, partitions: 0, conflicts: 0 },
    ...{ acknowledged: 0, resent: 0, reads: 0, applied: 0, snapshots: 0, memberChanges: 0 },
    ...{ fullDisks: 0, starts: 0, handOvers: 0, installs: 0, deletions: 0, wipes: 0 },
    ...{ filesRemoved: 0, filesSealed: 0, tornWrites: 0 },
  };
  readonly clock: SimClock;
  readonly random: Random;
  readonly nodes: SimNode[];
  readonly lies: SimDisk['lies'];
  /** In many small files and snapshots more happens. */
  readonly sizes: { readonly fileBytesMax: number; readonly snapshotBytes: number };
  readonly truth = new ClusterTruth();
  readonly #cut = new Set<string>();
  #lossRate = 0;
  /** Some runs are wilder than others. */
  readonly #harmRate: number;
  readonly #producers: Producer[] = [];
  #committedOffset = 0;
  #ackedOffset = 0;
  #values = 0;
  #isFounded = false;
  #createdIn = 0;

  constructor(random: Random, options: ClusterWorldOptions) {
    this.random = random;
    this.clock = new SimClock(random);
    this.lies = options.lies ?? 'none';
    this.sizes = this.pick([
      { fileBytesMax: 1536, snapshotBytes: 1500 },
      { fileBytesMax: 3072, snapshotBytes: 2000 },
      { fileBytesMax: 8192, snapshotBytes: 6000 },
    ]);
    this.#harmRate = this.pick([0.02, 0.04, 0.08, 0.15]);
    this.nodes = Array.from({ length: options.nodes }, (_, i) => new SimNode(this, i + 1));
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
    else if (dice < 1 - this.#harmRate) this.#ask();
    else await this.#harm();
    for (const node of this.nodes) await node.takeSnapshot();
    this.#check();
  }

  // What clients do.

  #ask(): void {
    // Clients mostly know who leads; two may believe so.
    const leaders = this.nodes.filter(({ replica }) => replica?.isLeader === true);
    const isKnown = leaders.length > 0 && this.random.next() < 0.85;
    const node = this.pick(isKnown ? leaders : this.nodes);
    if (node.isPaused) return;
    for (let i = this.below(4); i >= 0; i--) this.#askOne(node);
  }

  #askOne(node: SimNode): void {
    const { replica } = node;
    if (replica === undefined) return;
    this.read(replica);
    if (!replica.isLeader) return;
    this.#form(replica);
    const dice = this.random.next();
    if (!this.#isFounded) this.#createTopic(replica);
    else if (dice < 0.75) this.#produce(node, this.#anyProducer());
    else if (dice < 0.8) this.#deleteRecords(replica);
    else this.#commitOffset(replica);
  }

  /** What a leader would answer is not older than what anybody was told before. */
  read(replica: Replica): void {
    if (!replica.mayAnswer) return;
    this.counts.reads++;
    const offset = replica.state.offsets.get('g', 0)?.offset ?? 0;
    assert.ok(offset >= this.#ackedOffset, `a read of ${offset} after ${this.#ackedOffset}`);
  }

  #createTopic(replica: Replica): void {
    const created = {
      ...{ name: 'orders', topicId: '00112233445566778899aabbccddeeff' },
      ...{ firstPartition: 0, partitionCount, configs: new Map<string, string>() },
    };
    if (replica.state.topics.byName('orders') !== undefined) {
      this.#isFounded = true;
      return;
    }
    // A leader does it once: what an earlier one had planned is applied by now, or gone.
    if (this.#createdIn === replica.raft.term) return;
    this.#createdIn = replica.raft.term;
    const meta = encodeTopicCreated(created);
    replica.propose({ type: EntryType.topicCreated, meta }, (outcome) => {
      if (outcome === 'disk-full') this.#createdIn = 0;
    });
  }

  #anyProducer(): Producer {
    if (this.#producers.length < producerCount) {
      const partition = this.below(partitionCount);
      const id = this.#producers.length;
      this.#producers.push({ id, partition, nextSequence: 0, inFlight: undefined });
    }
    return this.pick(this.#producers);
  }

  #produce(node: SimNode, producer: Producer): void {
    if (producer.inFlight?.isAsked === true) {
      // The client has lost its patience: it asks again, wherever the leader is now.
      if (this.random.next() < 0.8) return;
    }
    if (producer.inFlight !== undefined) this.counts.resent++;
    producer.inFlight ??= { value: `v${this.#values++}`, isAsked: false };
    const asked = producer.inFlight;
    asked.isAsked = true;
    const { id: producerId, partition, nextSequence: baseSequence } = producer;
    const facts = { producerId, producerEpoch: 0, baseSequence };
    const records = buildBatch(
      { records: [{ key: null, value: Buffer.from(asked.value), timestamp: 1 }], ...facts },
      codecs,
    );
    const part = { partition, topicPartition: 'orders', settings: topicSettings, records };
    node.planner!.produce([part], 11, ([outcome]) => {
      if (producer.inFlight !== asked) return;
      asked.isAsked = false;
      const { errorCode, baseOffset } = outcome!;
      if (errorCode === ErrorCode.NONE) {
        this.counts.acknowledged++;
        producer.inFlight = undefined;
        producer.nextSequence++;
        const stored = this.truth.record(partition, baseOffset);
        assert.equal(stored, asked.value, `acknowledged at ${partition}:${baseOffset}`);
        return;
      }
      const isRetried =
        errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER ||
        errorCode === ErrorCode.KAFKA_STORAGE_ERROR;
      assert.ok(isRetried, `producer ${producerId}, sequence ${baseSequence}: error ${errorCode}`);
    });
  }

  #commitOffset(replica: Replica): void {
    const offset = ++this.#committedOffset;
    const committed = { offset, leaderEpoch: -1, metadata: '', commitMs: 1, expireMs: -1 };
    const meta = encodeOffsetsCommitted({ groupId: 'g', offsets: [[0, committed]] });
    const readBefore = replica.state.offsets.get('g', 0)?.offset ?? 0;
    assert.ok(readBefore <= offset);
    replica.propose({ type: EntryType.offsetsCommitted, meta }, (outcome) => {
      if (outcome === 'applied') this.#ackedOffset = Math.max(this.#ackedOffset, offset);
    });
  }

  /** All but the newest, so that journal files die. */
  #deleteRecords(replica: Replica): void {
    const { partitions } = replica.state.topics;
    const starts = Array.from({ length: partitionCount }, (_, partition) => ({
      partition,
      offset: Math.max(partitions.logStart(partition), partitions.end(partition) - this.below(4)),
      droppedBytes: 0,
    })).filter(({ partition, offset }) => offset > partitions.logStart(partition));
    if (starts.length === 0) return;
    this.counts.deletions++;
    replica.propose({ type: EntryType.logStartsMoved, meta: encodeLogStarts(starts) });
  }

  /** As cluster.ts does; now and then a member is put out, to come back later. */
  #form(replica: Replica): void {
    const { raft, consensus } = replica;
    if (!raft.mayReconfigure || this.random.next() < 0.8) return;
    const { configuration } = raft;
    const lost = configuration.voters.find((id) => this.nodes.every((node) => node.id !== id));
    if (lost !== undefined) {
      // An operator puts the former self of a node out.
      const voters = configuration.voters.filter((id) => id !== lost);
      consensus.proposeMembers({ ...configuration, voters, removed: [] });
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
      if (node.isUp) node.stop(this.random.next() < 0.6);
      else await node.start();
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
      this.#isFounded &&
      this.#producers.every(({ inFlight }) => inFlight === undefined) &&
      this.nodes.every(({ replica }) => replica?.state.appliedIndex === this.truth.committedEnd);
    for (let round = 0; !isDone(); round++) {
      assert.ok(round < 3000, `no end: ${this.#describe()}`);
      for (let i = 0; i < 20; i++) await this.clock.step();
      await this.clock.advance(10);
      for (const node of this.nodes) {
        await node.takeSnapshot();
        if (!node.isUp) await node.start();
      }
      for (const node of this.nodes) {
        if (node.replica?.isLeader !== true) continue;
        this.#form(node.replica);
        if (!this.#isFounded) this.#createTopic(node.replica);
        else if (round % 5 === 0 && round < 2000) this.#finishProducers(node);
      }
      this.#check();
    }
    const [first, ...others] = this.nodes.map(({ replica }) => replica!.state.image());
    for (const other of others) assert.ok(other.equals(first!), 'all states are the same');
    for (const node of this.nodes) {
      await this.truth.checkRecords(node, partitionCount, this.clock);
    }
    this.truth.checkSequences();
    this.counts.elections = this.truth.elections;
    this.counts.applied = this.truth.applied;
  }

  #finishProducers(node: SimNode): void {
    for (const producer of this.#producers) {
      if (producer.inFlight === undefined) continue;
      producer.inFlight.isAsked = false;
      this.#produce(node, producer);
    }
  }

  #describe(): string {
    return this.nodes
      .map(({ id, replica, isUp }) => {
        if (replica === undefined) return `${id} ${isUp}`;
        const { role, term, lastIndex, commitIndex, configuration } = replica.raft;
        const facts = `${role} of ${term}, ${replica.state.appliedIndex}/${commitIndex}/${lastIndex}`;
        return `${id} ${facts} ${configuration.voters}+${configuration.learners}`;
      })
      .join('; ');
  }

  // What must hold.

  #check(): void {
    for (const node of this.nodes) this.truth.checkLeader(node);
  }

  /** A request for a snapshot. */
  async ask(from: SimNode, member: string, request: Buffer): Promise<Buffer | undefined> {
    const to = this.nodes.find(({ id }) => id === member);
    const isLost = () =>
      this.#cut.has(`${from.id}>${member}`) ||
      this.#cut.has(`${member}>${from.id}`) ||
      this.random.next() < this.#lossRate;
    const travel = () =>
      new Promise<void>((resolve) => {
        this.clock.after(this.below(6), from.clock.guard(resolve));
      });
    await travel();
    if (to === undefined || isLost()) return undefined;
    const answer = await to.answerFetch(request);
    await travel();
    return isLost() ? undefined : answer;
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
