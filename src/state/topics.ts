import type { ByteReader, ByteWriter } from '../core/bytes.ts';
import type { PartitionsAdded, TopicCreated } from './commands.ts';
import { PartitionTable } from './partitions.ts';

export interface Topic {
  readonly name: string;
  /** 32 hex digits. */
  readonly id: string;
  /** Partition numbers, by partition index. */
  readonly partitions: number[];
  /** Overrides that were set; everything else comes from the broker's defaults. */
  readonly configs: Map<string, string>;
}

export class TopicTable {
  readonly partitions = new PartitionTable();
  readonly #byName = new Map<string, Topic>();
  readonly #byId = new Map<string, Topic>();

  get size(): number {
    return this.#byName.size;
  }
  byName(name: string): Topic | undefined {
    return this.#byName.get(name);
  }
  byId(id: string): Topic | undefined {
    return this.#byId.get(id);
  }
  all(): IterableIterator<Topic> {
    return this.#byName.values();
  }
  ids(): IterableIterator<string> {
    return this.#byId.keys();
  }

  create(created: TopicCreated): Topic {
    const topic: Topic = {
      name: created.name,
      id: created.topicId,
      partitions: [],
      configs: new Map(created.configs),
    };
    this.#put(topic);
    this.#addPartitions(topic, created.firstPartition, created.partitionCount);
    return topic;
  }

  addPartitions(added: PartitionsAdded): void {
    const topic = this.#byId.get(added.topicId)!;
    this.#addPartitions(topic, added.firstPartition, added.partitionCount);
  }

  #put(topic: Topic): void {
    this.#byName.set(topic.name, topic);
    this.#byId.set(topic.id, topic);
  }

  #addPartitions(topic: Topic, first: number, count: number): void {
    for (let i = 0; i < count; i++) {
      this.partitions.add(first + i, topic, topic.partitions.length);
      topic.partitions.push(first + i);
    }
  }

  /** Answers the topic that was deleted. */
  delete(topicId: string): Topic {
    const topic = this.#byId.get(topicId)!;
    this.#byId.delete(topicId);
    this.#byName.delete(topic.name);
    for (const partition of topic.partitions) this.partitions.remove(partition);
    return topic;
  }

  writeTopic(writer: ByteWriter, topicId: string): void {
    const topic = this.#byId.get(topicId)!;
    writer.string(topic.name).raw(Buffer.from(topic.id, 'hex')).uvarint(topic.configs.size);
    for (const [key, value] of topic.configs) writer.string(key).string(value);
    const runs = runsOf(topic.partitions);
    writer.uvarint(runs.length);
    for (const { first, count } of runs) writer.uvarint(first).uvarint(count);
  }

  readTopic(reader: ByteReader): void {
    const name = reader.string();
    const id = reader.raw(16).toString('hex');
    const configs = new Map<string, string>();
    for (let left = reader.count(2); left > 0; left--)
      configs.set(reader.string(), reader.string());
    const topic: Topic = { name, id, partitions: [], configs };
    for (let runs = reader.count(2); runs > 0; runs--) {
      const first = reader.uvarint();
      const count = reader.uvarint();
      for (let partition = first; partition < first + count; partition++) {
        this.partitions.attach(partition, topic, topic.partitions.length);
        topic.partitions.push(partition);
      }
    }
    this.#put(topic);
  }
}

interface Run {
  readonly first: number;
  count: number;
}

/** Partition numbers as ranges: a topic has one for each time that it got partitions. */
function runsOf(partitions: readonly number[]): Run[] {
  const runs: Run[] = [];
  for (const partition of partitions) {
    const last = runs.at(-1);
    if (last !== undefined && partition === last.first + last.count) last.count++;
    else runs.push({ first: partition, count: 1 });
  }
  return runs;
}
