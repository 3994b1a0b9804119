import type { Random } from '../core/random.ts';
import {
  encodeConfigsSet,
  encodeLogStarts,
  encodePartitionsAdded,
  encodeTopicCreated,
  encodeTopicDeleted,
  type LogStart,
} from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import type { Topic } from '../state/topics.ts';
import type { Outcome } from './group-commit.ts';
import type { Replica } from './replica.ts';

export interface NewTopic {
  readonly name: string;
  readonly partitionCount: number;
  /** Validated before. */
  readonly configs: ReadonlyMap<string, string>;
}

/**
 * Plans changes of topics. What is planned and not yet applied is kept in mind: a topic that is
 * being created is not created twice, and one that is being deleted takes no more records.
 */
export class TopicPlanner {
  readonly #replica: Replica;
  readonly #random: Random;
  readonly #creating = new Map<string, Promise<Outcome>>();
  readonly #deleting = new Set<string>();
  /** Partitions being added, by topic id: further changes of that topic wait. */
  readonly #growing = new Set<string>();
  #nextPartition = 0;
  #plannedPartitions = 0;

  constructor(replica: Replica, random: Random) {
    this.#replica = replica;
    this.#random = random;
    replica.listen({
      onPlansDropped: () => {
        this.#nextPartition = 0;
      },
    });
  }

  /** The topic, unless there is none or it is being deleted. */
  byName(name: string): Topic | undefined {
    return this.#live(this.#replica.state.topics.byName(name));
  }

  byId(topicId: string): Topic | undefined {
    return this.#live(this.#replica.state.topics.byId(topicId));
  }

  /** All topics but those being deleted. */
  *all(): Generator<Topic> {
    for (const topic of this.#replica.state.topics.all()) {
      if (!this.#deleting.has(topic.id)) yield topic;
    }
  }

  /** Partitions that exist or are planned. */
  get partitionCount(): number {
    return this.#replica.state.topics.partitions.live + this.#plannedPartitions;
  }

  /** The creation that is under way for a name, if any. */
  creating(name: string): Promise<Outcome> | undefined {
    return this.#creating.get(name);
  }

  /** The name must be free: no topic has it and none is being created with it. */
  create(topic: NewTopic): Promise<Outcome> {
    const firstPartition = this.#takePartitions(topic.partitionCount);
    const meta = encodeTopicCreated({ ...topic, topicId: this.newTopicId(), firstPartition });
    const created = this.#replica
      .proposeAndWait({ type: EntryType.topicCreated, meta })
      .finally(() => {
        this.#plannedPartitions -= topic.partitionCount;
        this.#creating.delete(topic.name);
      });
    this.#creating.set(topic.name, created);
    return created;
  }

  /** Is the topic being changed, so that a further change of its partitions has to wait? */
  isGrowing(topicId: string): boolean {
    return this.#growing.has(topicId);
  }

  addPartitions(topic: Topic, count: number): Promise<Outcome> {
    this.#growing.add(topic.id);
    const meta = encodePartitionsAdded({
      topicId: topic.id,
      firstPartition: this.#takePartitions(count),
      partitionCount: count,
    });
    return this.#replica.proposeAndWait({ type: EntryType.partitionsAdded, meta }).finally(() => {
      this.#plannedPartitions -= count;
      this.#growing.delete(topic.id);
    });
  }

  delete(topic: Topic): Promise<Outcome> {
    this.#deleting.add(topic.id);
    const meta = encodeTopicDeleted(topic.id);
    return this.#replica
      .proposeAndWait({ type: EntryType.topicDeleted, meta })
      .finally(() => this.#deleting.delete(topic.id));
  }

  setConfigs(
    resourceType: number,
    resource: string,
    changes: ReadonlyMap<string, string | null>,
  ): Promise<Outcome> {
    const meta = encodeConfigsSet({ resourceType, resource, changes });
    return this.#replica.proposeAndWait({ type: EntryType.configsSet, meta });
  }

  /** Each start lies between the partition's present start and end. */
  moveLogStarts(starts: readonly LogStart[]): Promise<Outcome> {
    return this.#replica.proposeAndWait({
      type: EntryType.logStartsMoved,
      meta: encodeLogStarts(starts),
    });
  }

  /** A random UUID of version 4, never zero, as Kafka makes them for topics. */
  newTopicId(): string {
    const bytes = this.#random.bytes(16);
    bytes[6] = (bytes[6]! & 0x0f) | 0x40;
    bytes[8] = (bytes[8]! & 0x3f) | 0x80;
    return bytes.toString('hex');
  }

  #takePartitions(count: number): number {
    const first = Math.max(this.#nextPartition, this.#replica.state.topics.partitions.next);
    this.#nextPartition = first + count;
    this.#plannedPartitions += count;
    return first;
  }

  #live(topic: Topic | undefined): Topic | undefined {
    return topic !== undefined && !this.#deleting.has(topic.id) ? topic : undefined;
  }
}
