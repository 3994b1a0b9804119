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

  create(created: TopicCreated): Topic {
    const topic: Topic = {
      name: created.name,
      id: created.topicId,
      partitions: [],
      configs: new Map(created.configs),
    };
    this.#byName.set(topic.name, topic);
    this.#byId.set(topic.id, topic);
    this.#addPartitions(topic, created.firstPartition, created.partitionCount);
    return topic;
  }

  addPartitions(added: PartitionsAdded): void {
    const topic = this.#byId.get(added.topicId)!;
    this.#addPartitions(topic, added.firstPartition, added.partitionCount);
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

  write(writer: ByteWriter): void {
    writer.uvarint(this.partitions.next).uvarint(this.#byName.size);
    for (const topic of this.#byName.values()) {
      writer.string(topic.name).raw(Buffer.from(topic.id, 'hex')).uvarint(topic.configs.size);
      for (const [key, value] of topic.configs) writer.string(key).string(value);
      writer.uvarint(topic.partitions.length);
      for (const partition of topic.partitions) {
        writer.uvarint(partition);
        this.partitions.writeColumns(writer, partition);
      }
    }
  }

  read(reader: ByteReader): void {
    this.partitions.restoreNext(reader.uvarint());
    for (let topics = reader.count(); topics > 0; topics--) {
      const name = reader.string();
      const id = Buffer.from(Array.from({ length: 16 }, () => reader.u8())).toString('hex');
      const configs = new Map<string, string>();
      for (let left = reader.count(2); left > 0; left--) {
        configs.set(reader.string(), reader.string());
      }
      const topic: Topic = { name, id, partitions: [], configs };
      const count = reader.count();
      for (let index = 0; index < count; index++) {
        const partition = reader.uvarint();
        this.partitions.readColumns(reader, partition, topic, index);
        topic.partitions.push(partition);
      }
      this.#byName.set(name, topic);
      this.#byId.set(id, topic);
    }
  }
}
