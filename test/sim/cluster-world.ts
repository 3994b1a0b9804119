/**
 * A whole cluster in one process: the production code of raft, replica, log, state and the messages
 * between nodes, on a simulated clock, network and disks. One seed is one run. After each step it
 * is checked that no promise of a replicated log is broken.
 */
import assert from 'node:assert/strict';
import { nextConfiguration } from '../../src/cluster/formation.ts';
import { encodeMessage } from '../../src/cluster/peer-codec.ts';
import { codecs } from '../../src/core/codecs.ts';
import { crc32c } from '../../src/core/crc32c.ts';
import type { Random } from '../../src/core/random.ts';
import { EntryReader } from '../../src/log/entry-reader.ts';
import type { Entry, StoredEntry } from '../../src/log/format.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import type { Message } from '../../src/raft/messages.ts';
import { Role } from '../../src/raft/raft.ts';
import type { Replica } from '../../src/replica/replica.ts';
import { encodeOffsetsCommitted, encodeTopicCreated } from '../../src/state/commands.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import { readStoredBatch } from '../../src/state/stored-batch.ts';
import { topicSettings } from '../replica/topic-settings.ts';
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
    ...{ fullDisks: 0, starts: 0, handOvers: 0 },
  };
  readonly clock: SimClock;
  readonly random: Random;
  readonly nodes: SimNode[];
  readonly lies: SimDisk['lies'];
  /** What is committed, by index: of each entry its term and a checksum of its content. */
  readonly #log = new Map<number, string>();
  /** Values by partition and offset. */
  readonly #records = new Map<string, string>();
  /** Checksums of the state, by index. */
  readonly #states = new Map<number, number>();
  readonly #leaders = new Map<number, string>();
  #committedEnd = 0;
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
        const stored = this.#records.get(`${partition}:${baseOffset}`);
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

  /** As cluster.ts does; now and then a member is put out, to come back later. */
  #form(replica: Replica): void {
    const { raft, consensus } = replica;
    if (!raft.mayReconfigure || this.random.next() < 0.8) return;
    const { configuration } = raft;
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
    if (dice < 0.25) {
      if (node.isUp) node.stop(this.random.next() < 0.6);
      else await node.start();
    } else if (dice < 0.5) {
      const down = this.nodes.filter(({ isUp }) => !isUp);
      if (down.length > 0) await this.pick(down).start();
    } else if (dice < 0.65) {
      this.counts.partitions++;
      for (const other of this.nodes) {
        if (this.random.next() < 0.7) this.#cut.add(`${node.id}>${other.id}`);
        if (this.random.next() < 0.7) this.#cut.add(`${other.id}>${node.id}`);
      }
    } else if (dice < 0.8) {
      this.#cut.clear();
      this.#lossRate = this.pick([0, 0, 0.02, 0.2]);
    } else if (dice < 0.88) node.togglePause();
    else if (dice < 0.92) node.slowMs = this.pick([0, 10, 60]);
    else if (dice < 0.94) {
      if (node.replica?.consensus.handOver() === true) this.counts.handOvers++;
    } else if (dice < 0.96) node.clock.jumpWall(this.pick([-86_400_000, 315_360_000_000]));
    else node.changeQuota();
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
      this.nodes.every(({ replica }) => replica?.state.appliedIndex === this.#committedEnd);
    for (let round = 0; !isDone(); round++) {
      assert.ok(round < 3000, `no end: ${this.#describe()}`);
      for (let i = 0; i < 20; i++) await this.clock.step();
      await this.clock.advance(10);
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
    this.#checkSequences();
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

  /** Each sequence of a producer is stored once, in order. */
  #checkSequences(): void {
    const seen = new Set<string>();
    for (const value of this.#records.values()) {
      assert.ok(!seen.has(value), `${value} is stored twice`);
      seen.add(value);
    }
  }

  // What must hold.

  /** Election safety: a term has one leader (section 5.2). */
  #check(): void {
    for (const { replica, id } of this.nodes) {
      if (replica?.raft.role !== Role.leader) continue;
      const { term } = replica.raft;
      const known = this.#leaders.get(term);
      if (known === undefined) {
        this.#leaders.set(term, id);
        this.counts.elections++;
      } else assert.equal(id, known, `two leaders of term ${term}`);
    }
  }

  /** State machine safety: what one node applies at an index, all do (section 5.4.3). */
  onApplied(node: SimNode, entry: StoredEntry): void {
    this.counts.applied++;
    const { index, term, type, meta, batches } = entry;
    const content = crc32c(Buffer.concat([meta, ...batches]));
    const facts = `${term}:${type}:${content}`;
    const known = this.#log.get(index);
    if (known === undefined) {
      this.#log.set(index, facts);
      for (const [i, batch] of batches.entries()) this.#noteRecord(entry.partitions[i]!, batch);
    } else assert.equal(facts, known, `entry ${index} on ${node.id}`);
    this.#committedEnd = Math.max(this.#committedEnd, index);
  }

  #noteRecord(partition: number, batch: Buffer): void {
    const { baseOffset } = readStoredBatch(batch);
    const value = /v\d+/.exec(batch.subarray(61).toString('latin1'))![0];
    const place = `${partition}:${baseOffset}`;
    assert.equal(this.#records.get(place), undefined, `${place} is stored twice`);
    this.#records.set(place, value);
  }

  /** Equal entries give equal state, also from a snapshot and over a restart. */
  async onStarted(node: SimNode, replica: Replica): Promise<void> {
    this.counts.starts++;
    // What it applied before anybody listened.
    const reader = new EntryReader(replica.journal);
    const last = replica.state.appliedIndex;
    while (this.#committedEnd < last) {
      const entries = await node.run(reader.read(this.#committedEnd + 1, 100_000));
      for (const entry of entries!) if (entry.index <= last) this.onApplied(node, entry);
    }
    this.noteState(node, replica);
  }

  noteState(node: SimNode, replica: Replica): void {
    const { appliedIndex } = replica.state;
    const sum = crc32c(replica.state.image());
    const known = this.#states.get(appliedIndex);
    if (known === undefined) this.#states.set(appliedIndex, sum);
    else assert.equal(sum, known, `the state of ${node.id} at ${appliedIndex}`);
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
