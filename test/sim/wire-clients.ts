/**
 * Clients that speak Kafka's protocol: producers, consumers of a log and consumers by key. They
 * know what they were told, and check that everybody keeps to it.
 */
import assert from 'node:assert/strict';
import { codecs } from '../../src/core/codecs.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import {
  offsetFetchRequest,
  offsetFetchResponse,
} from '../../src/protocol/schema/09-offset-fetch.ts';
import {
  createTopicsRequest,
  createTopicsResponse,
} from '../../src/protocol/schema/19-create-topics.ts';
import {
  deleteRecordsRequest,
  deleteRecordsResponse,
} from '../../src/protocol/schema/21-delete-records.ts';
import {
  initProducerIdRequest,
  initProducerIdResponse,
} from '../../src/protocol/schema/22-init-producer-id.ts';
import { produceTo } from '../broker/records.ts';
import type { Clients } from './clients.ts';
import type { ClusterWorld } from './cluster-world.ts';
import { connectTo, Disconnected, leaderOf, type SimClient } from './sim-client.ts';
import { SimConsumer } from './sim-consumer.ts';
import { SimHastyProducer } from './sim-hasty-producer.ts';
import { SimReader } from './sim-reader.ts';
import { type ConsumedTopic, type TopicName, topics } from './sim-topics.ts';

const configs = {
  orders: [],
  chat: [{ name: 'delivery.mode', value: 'keyed' }],
  hasty: [],
} as const;
const keyCount = 6;
const consumersMax = 3;

/** Errors after which a producer looks for the leader, and sends the same again. */
const retried: readonly number[] = [
  ...[ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR],
  ...[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.REQUEST_TIMED_OUT],
];

export class WireClients implements Clients {
  readonly world: ClusterWorld;
  /** What each group has handled to the end, and committed with the broker's word for it. */
  readonly handled = new Set<string>();
  readonly committed = new Set<string>();
  readonly #acknowledged = { orders: new Set<string>(), chat: new Set<string>() };
  readonly #consumers: SimConsumer[] = [];
  /** Whose handler has a record of this key. */
  readonly #inHandler = new Map<string, SimConsumer>();
  /** Of the log: the first offset that nobody has handled, and what was committed, by partition. */
  readonly #nextOffset = [0, 0];
  readonly ackedOffset = [0, 0];
  /** The end of each partition of the log, as acknowledged to some producer. */
  readonly ackedEnd = [0, 0];
  #waiting = 0;
  #lag = Number.POSITIVE_INFINITY;
  #values = 0;
  #names = 0;
  #isFounded = false;
  /** Everything works again: nothing new is begun. */
  isEnding = false;

  constructor(world: ClusterWorld) {
    this.world = world;
    this.#start(() => this.#create());
  }

  /** A client of its own: it ends with the run at the latest. */
  #start(run: () => Promise<void>): void {
    // What a client does is driven by the clock, never at once.
    this.world.clock.after(0, () => void run().catch(this.world.fail));
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.world.clock.after(ms, resolve);
    });
  }

  /** Until it works: with whoever leads. */
  async withLeader<T>(topic: string, ask: (client: SimClient) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const leaderId = await leaderOf(this.world, topic);
        const client = await connectTo(this.world, leaderId, 'client');
        try {
          return await ask(client);
        } finally {
          client.close();
        }
      } catch (error) {
        if (!(error instanceof Disconnected)) throw error;
        // As clients do, that would else ask all the time.
        await this.sleep(20 + this.world.below(30));
      }
    }
  }

  async #create(): Promise<void> {
    for (const [name, numPartitions] of Object.entries(topics) as [TopicName, number][]) {
      for (;;) {
        try {
          const client = await connectTo(this.world, undefined, 'admin');
          const answer = await client.ask(createTopicsRequest, createTopicsResponse, 7, {
            topics: [
              {
                name,
                numPartitions,
                replicationFactor: -1,
                assignments: [],
                configs: configs[name],
              },
            ],
          });
          client.close();
          const { errorCode } = answer.topics[0]!;
          if (errorCode === ErrorCode.NONE || errorCode === ErrorCode.TOPIC_ALREADY_EXISTS) break;
        } catch (error) {
          if (!(error instanceof Disconnected)) throw error;
        }
        // As clients do, that would else ask all the time.
        await this.sleep(20);
      }
    }
    this.#isFounded = true;
    for (let i = 0; i < 3; i++) {
      this.#start(() => this.#produce('chat', true));
      this.#start(() => this.#produce('orders', i < 2));
    }
    for (const topic of ['orders', 'chat'] as const) this.#addConsumer(topic);
    for (const { node } of this.world.nodes) {
      this.#start(() => new SimReader(this, node.nodeId).run());
    }
    this.#start(() => new SimHastyProducer(this).run());
  }

  /** One batch after the other, each until it is acknowledged. */
  async #produce(topic: ConsumedTopic, isIdempotent: boolean): Promise<void> {
    const { counts, truth } = this.world;
    const producerId = isIdempotent ? await this.withLeader(topic, initProducer) : -1;
    const sequences = new Map<number, number>();
    while (!this.isEnding) {
      const keyNumber = this.world.below(keyCount);
      const key = topic === 'chat' ? `k${keyNumber}` : null;
      const partition = keyNumber % topics[topic];
      const name = `${isIdempotent ? 'v' : 'w'}${this.#values++}`;
      const value = key === null ? name : `${name}@${key}`;
      const baseSequence = isIdempotent ? (sequences.get(partition) ?? 0) : -1;
      const records = buildBatch(
        {
          records: [
            {
              key: key === null ? null : Buffer.from(key),
              value: Buffer.from(value),
              timestamp: this.world.recordMs,
            },
          ],
          ...{ producerId, producerEpoch: isIdempotent ? 0 : -1, baseSequence },
        },
        codecs,
      );
      this.#waiting++;
      for (let isAcknowledged = false; !isAcknowledged; ) {
        await this.withLeader(topic, async (client) => {
          for (;;) {
            const outcome = await produceTo(client, { topic, partition, records });
            const { errorCode, baseOffset } = outcome;
            if (errorCode !== ErrorCode.NONE) {
              assert.ok(retried.includes(errorCode), `producing ${value}: error ${errorCode}`);
              throw new Disconnected();
            }
            isAcknowledged = true;
            const stored = truth.record(this.world.truth.partitionOf(topic, partition), baseOffset);
            assert.equal(stored, value, `acknowledged at ${topic}-${partition}:${baseOffset}`);
            if (topic === 'orders') {
              this.ackedEnd[partition] = Math.max(this.ackedEnd[partition]!, baseOffset + 1);
            }
            return;
          }
        });
        if (!isAcknowledged) counts.resent++;
      }
      this.#waiting--;
      counts.acknowledged++;
      this.#acknowledged[topic].add(value);
      sequences.set(partition, baseSequence + 1);
      // The load of a client that has other things to do, too.
      await this.sleep(this.world.below(30));
    }
  }

  #addConsumer(topic: ConsumedTopic): void {
    const ofTopic = this.#consumers.filter((one) => one.topic === topic && one.isAlive);
    if (ofTopic.length >= consumersMax) return;
    const consumer = new SimConsumer(this, topic, `c${this.#names++}`);
    this.#consumers.push(consumer);
    this.#start(() => consumer.run());
  }

  act(): void {
    if (!this.#isFounded) return;
    const topic = this.world.pick(['orders', 'chat'] as const);
    const dice = this.world.random.next();
    if (dice < 0.02) {
      const alive = this.#consumers.filter(({ isAlive }) => isAlive);
      if (alive.length > 0) this.world.pick(alive).kill();
    } else if (dice < 0.05) this.#addConsumer(topic);
    else if (dice < 0.1) this.#start(() => this.#deleteRecords(topic));
  }

  /** What all are through with, so that journal files die. */
  async #deleteRecords(topic: ConsumedTopic): Promise<void> {
    const { truth, counts } = this.world;
    if (this.#acknowledged[topic].size === 0) return;
    const partitions = Array.from({ length: topics[topic] }, (_, partitionIndex) => {
      let offset = 0;
      if (topic === 'orders') offset = this.ackedOffset[partitionIndex]!;
      else {
        const partition = this.world.truth.partitionOf(topic, partitionIndex);
        while (this.committed.has(truth.record(partition, offset) ?? '')) offset++;
      }
      return { partitionIndex, offset };
    }).filter(({ offset }) => offset > 0);
    if (partitions.length === 0) return;
    try {
      const client = await connectTo(this.world, await leaderOf(this.world, topic), 'admin');
      await client.ask(deleteRecordsRequest, deleteRecordsResponse, 2, {
        topics: [{ name: topic, partitions }],
        timeoutMs: 1000,
      });
      client.close();
      counts.deletions++;
    } catch (error) {
      if (!(error instanceof Disconnected)) throw error;
    }
  }

  // What consumers report.

  /** A record of a log comes to be handled: none before it was left out. */
  onLogRecord(partition: number, offset: number, value: string): void {
    const stored = this.world.truth.record(
      this.world.truth.partitionOf('orders', partition),
      offset,
    );
    assert.equal(value, stored, `what is read at ${partition}:${offset}`);
    const next = this.#nextOffset[partition]!;
    assert.ok(offset <= next, `${partition}:${offset} is handled before ${next}`);
    if (offset < next) this.world.counts.handledAgain++;
    this.#nextOffset[partition] = Math.max(next, offset + 1);
    this.world.counts.handled++;
    this.handled.add(value);
  }

  /** A record comes to be handled: in the order of its key, by nobody else at the same time. */
  onKeyBegins(consumer: SimConsumer, value: string): void {
    const { truth, counts } = this.world;
    this.world.note(() => `${consumer.name} begins ${value}`);
    assert.ok(!this.committed.has(value), `${value} was committed, and comes again`);
    for (const earlier of truth.valuesBefore(value)) {
      assert.ok(this.handled.has(earlier), `${value} comes before ${earlier} was handled`);
    }
    const key = value.split('@')[1]!;
    const other = this.#inHandler.get(key);
    // Who was silent for too long counts as gone.
    if (other?.isPresent === true && other !== consumer) {
      assert.fail(`${value} is given to ${consumer.name} while ${other.name} has its key`);
    }
    this.#inHandler.set(key, consumer);
    if (this.handled.has(value)) counts.handledAgain++;
    counts.handledByKey++;
  }

  onKeyEnds(consumer: SimConsumer, value: string): void {
    this.world.note(() => `${consumer.name} ends ${value}`);
    const key = value.split('@')[1]!;
    if (this.#inHandler.get(key) === consumer) this.#inHandler.delete(key);
    this.handled.add(value);
  }

  onResumed(): void {
    // Requests that lie in its sockets are looked at like all others.
  }

  finish(round: number): void {
    if (round > 100) this.isEnding = true;
    if (!this.#isFounded || round % 50 !== 0) return;
    this.#start(() => this.#askForLag());
    for (const topic of ['orders', 'chat'] as const) {
      if (!this.#consumers.some((one) => one.topic === topic && one.isAlive)) {
        this.#addConsumer(topic);
      }
    }
  }

  /** What the group that reads by key has not finished, as tools are told. */
  async #askForLag(): Promise<void> {
    const { nodes } = this.world;
    const count = topics.chat;
    const all = Array.from({ length: count }, (_, partition) => partition);
    const offsets = await this.withLeader('chat', async (client) => {
      const topics = [{ name: 'chat', partitionIndexes: all }];
      const answer = await client.ask(offsetFetchRequest, offsetFetchResponse, 9, {
        groups: [{ groupId: 'by-chat', memberId: null, memberEpoch: -1, topics }],
      });
      const [group] = answer.groups;
      // Who led when the client asked for it may not lead any more.
      if (group?.errorCode !== ErrorCode.NONE) throw new Disconnected();
      return group.topics[0]!.partitions.map(({ committedOffset }) => committedOffset);
    });
    const { partitions } =
      nodes.find(({ replica }) => replica?.isLeader)?.replica?.state.topics ?? {};
    if (partitions === undefined) return;
    const lags = offsets.map(
      (offset, i) => partitions.end(this.world.truth.partitionOf('chat', i)) - offset,
    );
    this.#lag = lags.reduce((a, b) => a + b, 0);
  }

  get isDone(): boolean {
    const { orders, chat } = this.#acknowledged;
    const isOver = this.isEnding && this.#waiting === 0 && this.#lag === 0;
    return isOver && isSubset(orders, this.handled) && isSubset(chat, this.handled);
  }

  check(): void {
    for (const consumer of this.#consumers) consumer.kill();
    this.world.truth.checkSequences();
  }

  describe(): string {
    const { orders, chat } = this.#acknowledged;
    const missing = [...chat].filter((value) => !this.handled.has(value));
    const unread = [...orders].filter((value) => !this.handled.has(value));
    const facts = [`${this.#waiting} wait`, `lag ${this.#lag}`];
    return [...facts, `not handled: ${[...missing, ...unread].slice(0, 9)}`].join(', ');
  }
}

async function initProducer(client: SimClient): Promise<number> {
  const answer = await client.ask(initProducerIdRequest, initProducerIdResponse, 4, {
    transactionalId: null,
    transactionTimeoutMs: 1000,
    producerId: -1,
    producerEpoch: -1,
  });
  if (answer.errorCode !== ErrorCode.NONE) throw new Disconnected();
  return answer.producerId;
}

function isSubset(part: ReadonlySet<string>, whole: ReadonlySet<string>): boolean {
  for (const value of part) if (!whole.has(value)) return false;
  return true;
}
