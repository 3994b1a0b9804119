/**
 * A whole cluster in one process: the production code of raft, replica, log, state and the messages
 * between nodes, on a simulated clock, network and disks. One seed is one run. After each step it
 * is checked that no promise of a replicated log is broken.
 */
import assert from 'node:assert/strict';
import { memberId, nextConfiguration, nodeIdOf } from '../../src/cluster/formation.ts';
import { decodeMessage, encodeMessage } from '../../src/cluster/peer-codec.ts';
import type { Clock } from '../../src/core/clock.ts';
import { codecs } from '../../src/core/codecs.ts';
import { crc32c } from '../../src/core/crc32c.ts';
import { BrokerError } from '../../src/core/errors.ts';
import type { Random } from '../../src/core/random.ts';
import { EntryReader } from '../../src/log/entry-reader.ts';
import type { Entry, StoredEntry } from '../../src/log/format.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import type { Message } from '../../src/raft/messages.ts';
import { Role } from '../../src/raft/raft.ts';
import { ProducePlanner } from '../../src/replica/produce-planner.ts';
import { Replica } from '../../src/replica/replica.ts';
import {
  encodeMembers,
  encodeOffsetsCommitted,
  encodeTopicCreated,
} from '../../src/state/commands.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import { readStoredBatch } from '../../src/state/stored-batch.ts';
import { reactions, SimClock } from './sim-clock.ts';
import { SimDisk } from './sim-files.ts';

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

/** Sabotage, to show that the simulation notices. */
export interface Sabotage {
  /** Asked for each message: false drops what the production code would have held back. */
  readonly disk?: SimDisk['lies'];
}

export interface ClusterWorldOptions {
  readonly nodes: number;
  readonly sabotage?: Sabotage;
}

const partitionCount = 2;
const producerCount = 8;
const topicSettings = {
  messageBytesMax: 1_000_000,
  timestampType: 'CreateTime',
  timestampBeforeMaxMs: Number.MAX_SAFE_INTEGER,
  timestampAfterMaxMs: Number.MAX_SAFE_INTEGER,
  compressionType: 'producer',
  minInsyncReplicas: 1,
  retentionMs: -1,
  retentionBytes: -1,
} as const;

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
  readonly sabotage: Sabotage;
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
    this.sabotage = options.sabotage ?? {};
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
    else if (dice < 0.75) this.#produce(node);
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

  #produce(node: SimNode): void {
    if (this.#producers.length < producerCount) {
      const partition = this.below(partitionCount);
      const id = this.#producers.length;
      this.#producers.push({ id, partition, nextSequence: 0, inFlight: undefined });
    }
    const producer = this.pick(this.#producers);
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
            const isCaughtUp = raft.lastIndex - (raft.matchIndex(id) ?? 0) < 20;
            return { node, isCaughtUp };
          }),
        );
    if (next === undefined || next.voters.length < 1) return;
    const isSame =
      next.voters.length === configuration.voters.length &&
      next.learners.length === configuration.learners.length;
    if (isSame) return;
    this.counts.memberChanges++;
    consensus.proposeMembers(
      { type: EntryType.members, meta: encodeMembers({ ...next, removed: [] }) },
      next,
    );
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
      this.#produceAgain(node, producer);
    }
  }

  #produceAgain(node: SimNode, producer: Producer): void {
    const others = this.#producers.splice(0, this.#producers.length, producer);
    while (this.#producers.length < producerCount) this.#producers.push(producer);
    this.#produce(node);
    this.#producers.splice(0, this.#producers.length, ...others);
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

/** One machine: its clock and disk, and the process on it. */
export class SimNode {
  readonly id: string;
  readonly node: Parameters<typeof memberId>[0] & {
    readonly host: string;
    readonly port: number;
    readonly peerHost: string;
    readonly peerPort: number;
  };
  readonly clock: NodeClock;
  readonly disk: SimDisk;
  replica: Replica | undefined;
  planner: ProducePlanner | undefined;
  isUp = false;
  /** Calls of the disk take up to so long. */
  slowMs = 0;
  readonly #world: ClusterWorld;

  constructor(world: ClusterWorld, nodeId: number) {
    this.#world = world;
    const address = { host: 'h', port: 1, peerHost: 'h', peerPort: 2 };
    this.node = { nodeId, directoryId: `d${nodeId}`, ...address };
    this.id = memberId(this.node);
    this.clock = new NodeClock(world.clock);
    this.disk = new SimDisk({
      random: world.random,
      defer: (complete) => {
        const guarded = this.clock.guard(complete);
        if (this.slowMs === 0) world.clock.defer(guarded);
        else world.clock.after(world.below(this.slowMs), guarded);
      },
    });
    this.disk.lies = world.sabotage.disk ?? 'none';
  }

  get isPaused(): boolean {
    return this.clock.isPaused;
  }

  async start(): Promise<void> {
    this.isUp = true;
    const generation = this.clock.begin();
    const opening = Replica.open({
      files: this.disk.files(),
      folder: 'data/default',
      clock: this.clock,
      random: this.#world.random,
      voter: this.id,
      isFounder: nodeIdOf(this.id) === 1,
      peers: { send: (message, entries) => this.#world.send(this, message, entries) },
      times: { electionTimeoutMs: 100, heartbeatMs: 15 },
      journal: {
        ...{ sync: 'always', syncIntervalMs: 50, fileBytesMax: 8192, fileExtentsMax: 50 },
        ...{ recentBytesMax: 16_384, indexCacheBytesMax: 8192, snapshotBytes: 6000 },
        ...{ aheadBytesMin: 200, besideSyncMsMin: 1 },
      },
      disk: { lowWaterBytes: 0, reserveBytes: 0 },
      onFatal: (error) => {
        if (this.clock.generation === generation) throw error;
      },
    });
    let opened: Replica | undefined;
    try {
      opened = (await this.run(opening))?.replica;
    } catch (error) {
      const isFull = error instanceof BrokerError && error.code === 'DISK_FULL';
      if (!isFull) throw error;
    }
    if (opened === undefined) {
      this.stop(false);
      return;
    }
    this.replica = opened;
    this.planner = new ProducePlanner(opened, this.clock, codecs, 1_000_000);
    opened.listen({
      onApplied: (entry) => this.#world.onApplied(this, entry),
      onGroupApplied: () => {
        if (this.#world.random.next() < 0.1) this.#world.noteState(this, opened);
      },
      onPlansDropped: () => undefined,
    });
    // What was applied while it was opened: by the only voter, or by marks in its journal.
    await this.#world.onStarted(this, opened);
  }

  /** The rest of the world goes on meanwhile. */
  async run<T>(opening: Promise<T>): Promise<T | undefined> {
    let result: T | undefined;
    let failure: unknown;
    opening.then(
      (opened) => {
        result = opened;
      },
      (error: unknown) => {
        failure = error;
      },
    );
    await reactions();
    for (let i = 0; i < 5000 && result === undefined && failure === undefined; i++) {
      if (!(await this.#world.clock.step())) await this.#world.clock.advance(1);
    }
    if (failure !== undefined) throw failure;
    return result;
  }

  /** The process ends; with the machine, if `isCrash`. */
  stop(isCrash: boolean): void {
    this.resume();
    const isSnapshot = (path: string) => path.endsWith('.snapshot');
    this.#world.counts.snapshots += this.disk.paths().filter(isSnapshot).length;
    this.isUp = false;
    this.replica = undefined;
    this.planner = undefined;
    this.clock.end();
    if (isCrash) {
      this.#world.counts.crashes++;
      this.disk.crash({ keep: this.#world.random.next(), tear: this.#world.random.next() });
    } else {
      this.#world.counts.kills++;
      this.disk.kill();
    }
  }

  receive(frame: Buffer): void {
    const run = this.clock.guard(() => {
      const { message, entries } = decodeMessage(frame);
      const { raft, consensus } = this.replica ?? {};
      if (raft === undefined || consensus === undefined) return;
      const { lastIndex, lastTerm } = raft;
      consensus.receive(message, entries);
      if (raft.termAt(lastIndex) !== lastTerm) this.#world.counts.conflicts++;
    });
    if (this.isUp) run();
  }

  togglePause(): void {
    if (!this.isUp) return;
    if (this.isPaused) {
      // Requests that came while it was stopped are read first.
      if (this.replica !== undefined) this.#world.read(this.replica);
      this.resume();
    } else {
      this.#world.counts.pauses++;
      this.clock.isPaused = true;
    }
  }

  resume(): void {
    this.clock.resume();
  }

  changeQuota(): void {
    if (this.disk.quotaBytes === Number.POSITIVE_INFINITY) {
      this.#world.counts.fullDisks++;
      this.disk.quotaBytes = this.disk.usedBytes + this.#world.below(4000);
    } else this.disk.quotaBytes = Number.POSITIVE_INFINITY;
  }
}

/** The clock of one machine. While its process is stopped (SIGSTOP) what is due waits. */
export class NodeClock implements Clock {
  readonly #clock: SimClock;
  generation = 0;
  isPaused = false;
  #waiting: (() => void)[] = [];
  #wallAddedMs = 0;

  constructor(clock: SimClock) {
    this.#clock = clock;
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  wallMs(): number {
    return this.#clock.wallMs() + this.#wallAddedMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    return this.#clock.after(delayMs, this.guard(callback));
  }

  soon(callback: () => void): void {
    this.#clock.soon(this.guard(callback));
  }

  jumpWall(ms: number): void {
    this.#wallAddedMs += ms;
  }

  /** A process begins. */
  begin(): number {
    return ++this.generation;
  }

  end(): void {
    this.generation++;
    this.#waiting = [];
  }

  /** Runs while the process lives, and only then. */
  guard(callback: () => void): () => void {
    const { generation } = this;
    return () => {
      if (generation !== this.generation) return;
      if (this.isPaused) this.#waiting.push(callback);
      else callback();
    };
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    const { generation } = this;
    for (const callback of this.#waiting.splice(0)) {
      if (generation === this.generation) callback();
    }
  }
}
