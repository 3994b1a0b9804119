import assert from 'node:assert/strict';
import { codecs } from '../../src/core/codecs.ts';
import type { Random } from '../../src/core/random.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import type { Command } from '../../src/replica/consensus.ts';
import type { Outcome } from '../../src/replica/group-commit.ts';
import { type ProducePart, ProducePlanner } from '../../src/replica/produce-planner.ts';
import type { Replica } from '../../src/replica/replica.ts';
import {
  ConfigResource,
  encodeConfigsSet,
  encodeGroupDeleted,
  encodeGroupStored,
  encodeLogStarts,
  encodeOffsetsCommitted,
  encodeProducersExpired,
  encodeTopicCreated,
  encodeTopicDeleted,
} from '../../src/state/commands.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import { encodeKeyedChange } from '../../src/state/keyed/effects.ts';
import { topicSettings } from '../replica/topic-settings.ts';
import { RandomEffects } from '../state/keyed/random-effects.ts';
import type { Model } from './model.ts';
import type { SimClock } from './sim-clock.ts';

/** An idempotent producer as a client runs it: it goes on where its last acknowledged batch was. */
interface Producer {
  readonly id: number;
  readonly partition: number;
  nextSequence: number;
  /** Sent and not answered, in order. */
  inFlight: Buffer[];
  /** What was acknowledged last, to be sent again now and then. */
  last: { readonly records: Buffer; readonly baseOffset: number } | undefined;
}

/** Counts of what a run did, to see that it did anything. */
export interface WorkloadCounts {
  acknowledged: number;
  refused: number;
  duplicates: number;
  resent: number;
}

/** Random requests to one replica, and what their answers promise. */
export class Workload {
  readonly counts: WorkloadCounts = {
    acknowledged: 0,
    refused: 0,
    duplicates: 0,
    resent: 0,
  };
  readonly #random: Random;
  readonly #clock: SimClock;
  readonly #model: Model;
  /** Offsets that were acknowledged as committed, by group and partition: they only grow. */
  readonly #committed = new Map<string, number>();
  readonly #planned = new Map<string, number>();
  /** With `sync=interval` an acknowledged commit may be lost. */
  readonly #mayLoseTail: boolean;
  /** Requests may be refused for want of space. */
  readonly #mayRefuse: boolean;
  #replica: Replica;
  #planner: ProducePlanner;
  #producers: Producer[] = [];
  #topicIsPlanned = false;
  #topicsMade = 0;

  constructor(
    random: Random,
    clock: SimClock,
    model: Model,
    replica: Replica,
    { mayLoseTail, mayRefuse }: { mayLoseTail: boolean; mayRefuse: boolean },
  ) {
    this.#mayLoseTail = mayLoseTail;
    this.#mayRefuse = mayRefuse;
    this.#random = random;
    this.#clock = clock;
    this.#model = model;
    this.#replica = replica;
    this.#planner = this.#follow(replica);
  }

  /** Goes on with another replica, after a start. */
  startWith(replica: Replica): void {
    this.#replica = replica;
    this.#planner = this.#follow(replica);
    this.#topicIsPlanned = false;
    if (this.#mayLoseTail) {
      this.#committed.clear();
      this.#producers = [];
    }
    for (const producer of [...this.#producers]) this.#resend(producer);
    for (const [key, offset] of this.#committed) {
      const [groupId, partition] = key.split('/') as [string, string];
      if (!replica.state.topics.partitions.exists(Number(partition))) continue;
      const found = replica.state.offsets.get(groupId, Number(partition));
      assert.ok(found !== undefined && found.offset >= offset, `the commit of ${key} is kept`);
    }
  }

  /** The model learns of every proposal, also those that the planner makes. */
  #follow(replica: Replica): ProducePlanner {
    const propose = replica.propose.bind(replica);
    replica.propose = (command, done) => {
      const index = this.#model.propose(command);
      propose(command, (outcome) => {
        if (outcome === 'applied') this.#model.acknowledge(index);
        done?.(outcome);
      });
    };
    replica.listen({
      onPlansDropped: () => this.#model.dropPlans(),
    });
    return new ProducePlanner(replica, this.#clock, codecs, 1_000_000);
  }

  #chance(share: number): boolean {
    return this.#random.next() < share;
  }

  #below(bound: number): number {
    return Math.floor(this.#random.next() * bound);
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items[this.#below(items.length)];
  }

  #livePartitions(): number[] {
    return [...this.#replica.state.topics.all()].flatMap((topic) => topic.partitions);
  }

  /** One random request. */
  act(): void {
    const partitions = this.#livePartitions();
    const dice = this.#random.next();
    if (partitions.length === 0 || dice > 0.98) this.#createTopic();
    else if (dice < 0.45) this.#produce(partitions);
    else if (dice < 0.7) this.#produceIdempotent(partitions);
    else if (dice < 0.85) this.#commitOffset(partitions);
    else if (dice < 0.91) this.#moveLogStart(partitions);
    else if (dice < 0.93) this.#deleteTopic();
    else if (dice < 0.95) this.#changeKeyed();
    else this.#other(partitions);
  }

  #propose(type: EntryType, meta: Buffer, done?: (outcome: Outcome) => void): void {
    const command: Command = { type, meta };
    this.#replica.propose(command, (outcome) => {
      if (outcome === 'applied') this.counts.acknowledged++;
      else this.counts.refused++;
      done?.(outcome);
    });
  }

  #createTopic(): void {
    // Numbers come from the applied state, so one at a time.
    if (this.#topicIsPlanned) return;
    this.#topicIsPlanned = true;
    const name = `topic-${this.#topicsMade++}`;
    const created = {
      name,
      topicId: this.#random.bytes(16).toString('hex'),
      firstPartition: this.#replica.state.topics.partitions.next,
      partitionCount: 1 + this.#below(4),
      configs: new Map(this.#chance(0.3) ? [['retention.ms', '1000']] : []),
    };
    const replica = this.#replica;
    this.#propose(EntryType.topicCreated, encodeTopicCreated(created), () => {
      if (replica === this.#replica) this.#topicIsPlanned = false;
    });
  }

  #deleteTopic(): void {
    const topic = this.#pick([...this.#replica.state.topics.all()]);
    if (topic === undefined) return;
    this.#propose(EntryType.topicDeleted, encodeTopicDeleted(topic.id));
  }

  #records(producer?: Producer): Buffer {
    const count = 1 + this.#below(4);
    const sizes = [10, 100, 900, 6000];
    const records = Array.from({ length: count }, () => ({
      key: this.#chance(0.5) ? Buffer.from(`key-${this.#below(10)}`) : null,
      value: this.#random.bytes(1 + this.#below(this.#chance(0.9) ? sizes[this.#below(3)]! : 6000)),
      timestamp: this.#clock.wallMs() - this.#below(1000),
    }));
    if (producer === undefined) return buildBatch({ records }, codecs);
    const baseSequence = producer.nextSequence;
    producer.nextSequence += count;
    return buildBatch({ records, producerId: producer.id, producerEpoch: 0, baseSequence }, codecs);
  }

  /** The planner changes the bytes that it is given; a client keeps what it sends. */
  #part(partition: number, sent: Buffer): ProducePart {
    const records = Buffer.from(sent);
    return { partition, topicPartition: `p-${partition}`, settings: topicSettings, records };
  }

  #produce(partitions: readonly number[]): void {
    const count = 1 + this.#below(3);
    const parts = Array.from({ length: count }, () =>
      this.#part(this.#pick(partitions)!, this.#records()),
    );
    this.#planner.produce(parts, 11, (outcomes) => {
      for (let i = 0; i < parts.length; i++) {
        this.#produced(parts[i]!, outcomes[i]!);
      }
    });
  }

  /** An answer without an error promises that the batch is stored at that offset, for good. */
  #produced(part: ProducePart, outcome: { errorCode: number; baseOffset: number }): void {
    if (outcome.errorCode !== ErrorCode.NONE) {
      this.counts.refused++;
      return;
    }
    this.counts.acknowledged++;
    const { partition } = part;
    if (!this.#model.state.topics.partitions.exists(partition)) return;
    const stored = this.#model.batches.get(partition);
    const found = stored?.find((batch) => batch.baseOffset === outcome.baseOffset);
    assert.ok(found !== undefined, 'an acknowledged batch is where the answer says');
    assert.ok(found.bytes.subarray(21).equals(part.records!.subarray(21)));
  }

  #produceIdempotent(partitions: readonly number[]): void {
    let producer = this.#pick(this.#producers);
    if (producer === undefined || this.#chance(0.1)) {
      const id = 1000 + this.#below(1_000_000_000);
      const partition = this.#pick(partitions)!;
      producer = { id, partition, nextSequence: 0, inFlight: [], last: undefined };
      this.#producers.push(producer);
    }
    if (!partitions.includes(producer.partition)) {
      this.#producers.splice(this.#producers.indexOf(producer), 1);
      return;
    }
    if (producer.last !== undefined && producer.inFlight.length === 0 && this.#chance(0.4)) {
      this.#repeat(producer, producer.last);
    } else if (producer.inFlight.length < 5) this.#send(producer, this.#records(producer));
  }

  /**
   * After a start a client sends again what was not answered. Some of it may be stored already: the
   * answer is the same, and nothing is there twice (see Model).
   */
  #resend(producer: Producer): void {
    const unanswered = producer.inFlight;
    producer.inFlight = [];
    if (!this.#replica.state.topics.partitions.exists(producer.partition)) return;
    for (const records of unanswered) {
      this.counts.resent++;
      this.#send(producer, records);
    }
  }

  #send(producer: Producer, records: Buffer): void {
    const part = this.#part(producer.partition, records);
    producer.inFlight.push(records);
    this.#planner.produce([part], 11, ([outcome]) => {
      // A batch that is refused at once is answered before those that wait for the disk.
      producer.inFlight.splice(producer.inFlight.indexOf(records), 1);
      this.#produced(part, outcome!);
      const isMissing = outcome!.errorCode === ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER;
      assert.ok(!isMissing || this.#mayRefuse, 'no batch of a producer is missing');
      if (outcome!.errorCode === ErrorCode.NONE) {
        producer.last = { records, baseOffset: outcome!.baseOffset };
      } else {
        // What follows is out of order now; a client would begin a new epoch.
        const at = this.#producers.indexOf(producer);
        if (at >= 0) this.#producers.splice(at, 1);
      }
    });
  }

  #repeat(producer: Producer, last: { records: Buffer; baseOffset: number }): void {
    const replica = this.#replica;
    const part = this.#part(producer.partition, last.records);
    this.#planner.produce([part], 11, ([outcome]) => {
      const { partitions } = replica.state.topics;
      if (outcome!.errorCode !== ErrorCode.NONE || !partitions.exists(part.partition)) return;
      assert.equal(outcome!.baseOffset, last.baseOffset, 'a repeated batch is not stored twice');
      this.counts.duplicates++;
    });
  }

  #commitOffset(partitions: readonly number[]): void {
    const groupId = `group-${this.#below(3)}`;
    const partition = this.#pick(partitions)!;
    const key = `${groupId}/${partition}`;
    const planned = this.#planned.get(key) ?? 0;
    const offset = planned + 1 + this.#below(5);
    this.#planned.set(key, offset);
    const committed = {
      offset,
      leaderEpoch: -1,
      metadata: 'm'.repeat(this.#below(20)),
      commitMs: this.#clock.wallMs(),
      expireMs: -1,
    };
    const meta = encodeOffsetsCommitted({ groupId, offsets: [[partition, committed]] });
    this.#propose(EntryType.offsetsCommitted, meta, (outcome) => {
      if (outcome === 'applied') this.#committed.set(key, offset);
    });
  }

  #moveLogStart(partitions: readonly number[]): void {
    const table = this.#replica.state.topics.partitions;
    const starts = partitions
      .filter(() => this.#chance(0.5))
      .map((partition) => {
        const start = table.logStart(partition);
        const offset = start + this.#below(table.end(partition) - start + 1);
        return { partition, offset, droppedBytes: this.#below(1000) };
      });
    this.#propose(EntryType.logStartsMoved, encodeLogStarts(starts));
  }

  #changeKeyed(): void {
    const { topics, keyed } = this.#replica.state;
    const { id: topicId, partitions } = this.#pick([...topics.all()])!;
    const groupId = `member-group-${this.#below(4)}`;
    const random = new RandomEffects(this.#random, partitions);
    const ledger = keyed.get(groupId, topicId);
    const effects =
      ledger === undefined
        ? [random.opened(keyed.freeSlot(topicId)!, keyed.laneBaseMin)]
        : Array.from({ length: 1 + this.#below(8) }, () => random.next(ledger));
    const change = { groupId, topicId, effects, appendedMs: 0 };
    this.#propose(EntryType.keyed, encodeKeyedChange(change));
  }

  #other(partitions: readonly number[]): void {
    const groupId = `member-group-${this.#below(4)}`;
    const dice = this.#below(5);
    if (dice === 0) {
      const image = this.#random.bytes(this.#below(300));
      this.#propose(EntryType.groupStored, encodeGroupStored({ groupId, image }));
    } else if (dice === 1) {
      this.#propose(EntryType.groupDeleted, encodeGroupDeleted(groupId));
    } else if (dice === 2) {
      const changes = new Map([['max.message.bytes', this.#chance(0.5) ? '2000000' : null]]);
      const set = { resourceType: ConfigResource.broker, resource: '', changes };
      this.#propose(EntryType.configsSet, encodeConfigsSet(set));
    } else if (dice === 3) {
      const topic = this.#pick([...this.#replica.state.topics.all()])!;
      const changes = new Map([['retention.ms', this.#chance(0.5) ? '9000' : null]]);
      const set = { resourceType: ConfigResource.topic, resource: topic.id, changes };
      this.#propose(EntryType.configsSet, encodeConfigsSet(set));
    } else {
      const producers = partitions.slice(0, 2).map((partition) => [partition, 5] as const);
      this.#propose(EntryType.producersExpired, encodeProducersExpired({ producers }));
    }
  }
}
