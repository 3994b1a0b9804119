/** Clients that ask the leader's planners without a protocol between: the most load in little time. */
import assert from 'node:assert/strict';
import { codecs } from '../../src/core/codecs.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import type { Replica } from '../../src/replica/replica.ts';
import {
  encodeLogStarts,
  encodeOffsetsCommitted,
  encodeTopicCreated,
} from '../../src/state/commands.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import { topicSettings } from '../replica/topic-settings.ts';
import type { Clients } from './clients.ts';
import type { ClusterWorld } from './cluster-world.ts';
import type { SimNode } from './sim-node.ts';

const partitionCount = 2;
const producerCount = 8;

/** An idempotent producer as a client runs it: one batch at a time, until it is acknowledged. */
interface Producer {
  readonly id: number;
  readonly partition: number;
  nextSequence: number;
  inFlight: { readonly value: string; isAsked: boolean } | undefined;
}

export class DirectClients implements Clients {
  readonly #world: ClusterWorld;
  readonly #producers: Producer[] = [];
  #committedOffset = 0;
  #ackedOffset = 0;
  #values = 0;
  #isFounded = false;
  #createdIn = 0;

  constructor(world: ClusterWorld) {
    this.#world = world;
  }

  act(): void {
    const { nodes, random } = this.#world;
    // Clients mostly know who leads; two may believe so.
    const leaders = nodes.filter(({ replica }) => replica?.isLeader === true);
    const isKnown = leaders.length > 0 && random.next() < 0.85;
    const node = this.#world.pick(isKnown ? leaders : nodes);
    if (node.isPaused) return;
    for (let i = this.#world.below(4); i >= 0; i--) this.#askOne(node);
  }

  #askOne(node: SimNode): void {
    const { replica } = node;
    if (replica === undefined) return;
    this.#read(replica);
    if (!replica.isLeader) return;
    const dice = this.#world.random.next();
    if (!this.#isFounded) this.#createTopic(replica);
    else if (dice < 0.75) this.#produce(node, this.#anyProducer());
    else if (dice < 0.8) this.#deleteRecords(replica);
    else this.#commitOffset(replica);
  }

  onResumed(replica: Replica): void {
    this.#read(replica);
  }

  /** What a leader would answer is not older than what anybody was told before. */
  #read(replica: Replica): void {
    if (!replica.mayAnswer) return;
    this.#world.counts.reads++;
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
      const partition = this.#world.below(partitionCount);
      const id = this.#producers.length;
      this.#producers.push({ id, partition, nextSequence: 0, inFlight: undefined });
    }
    return this.#world.pick(this.#producers);
  }

  #produce(node: SimNode, producer: Producer): void {
    const { counts, random, truth } = this.#world;
    if (producer.inFlight?.isAsked === true) {
      // The client has lost its patience: it asks again, wherever the leader is now.
      if (random.next() < 0.8) return;
    }
    if (producer.inFlight !== undefined) counts.resent++;
    producer.inFlight ??= { value: `v${this.#values++}`, isAsked: false };
    const asked = producer.inFlight;
    asked.isAsked = true;
    const { id: producerId, partition, nextSequence: baseSequence } = producer;
    const facts = { producerId, producerEpoch: 0, baseSequence };
    const timestamp = this.#world.recordMs;
    const records = buildBatch(
      { records: [{ key: null, value: Buffer.from(asked.value), timestamp }], ...facts },
      codecs,
    );
    const part = { partition, topicPartition: 'orders', settings: topicSettings, records };
    const { replica } = node;
    // As the broker: without a lease nothing is planned, and no answer leaves.
    if (replica?.mayAnswer !== true) {
      asked.isAsked = false;
      return;
    }
    node.planner!.produce([part], 11, ([outcome]) => {
      if (producer.inFlight !== asked) return;
      asked.isAsked = false;
      if (!replica.mayAnswer) return;
      const { errorCode, baseOffset } = outcome!;
      if (errorCode === ErrorCode.NONE) {
        counts.acknowledged++;
        producer.inFlight = undefined;
        producer.nextSequence++;
        const stored = truth.record(partition, baseOffset);
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
    const starts = Array.from({ length: partitionCount }, (_, partition) => {
      const logStart = partitions.logStart(partition);
      const offset = Math.max(logStart, partitions.end(partition) - this.#world.below(4));
      return { partition, offset, droppedBytes: 0 };
    }).filter(({ partition, offset }) => offset > partitions.logStart(partition));
    if (starts.length === 0) return;
    this.#world.counts.deletions++;
    replica.propose({ type: EntryType.logStartsMoved, meta: encodeLogStarts(starts) });
  }

  finish(round: number): void {
    const node = this.#world.nodes.find(({ replica }) => replica?.isLeader === true);
    if (node === undefined) return;
    if (!this.#isFounded) this.#createTopic(node.replica!);
    else if (round % 5 === 0) {
      for (const producer of this.#producers) {
        if (producer.inFlight === undefined) continue;
        producer.inFlight.isAsked = false;
        this.#produce(node, producer);
      }
    }
  }

  get isDone(): boolean {
    return this.#isFounded && this.#producers.every(({ inFlight }) => inFlight === undefined);
  }

  check(): void {
    this.#world.truth.checkSequences();
  }

  describe(): string {
    return `${this.#producers.filter(({ inFlight }) => inFlight !== undefined).length} wait`;
  }
}
