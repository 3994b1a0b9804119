import { assert } from '../core/assert.ts';
import { ByteReader, ByteWriter } from '../core/bytes.ts';
import { BrokerError } from '../core/errors.ts';
import {
  ConfigResource,
  type ConfigsSet,
  decodeBatches,
  decodeClusterFounded,
  decodeConfigsSet,
  decodeGroupDeleted,
  decodeGroupStored,
  decodeLogStarts,
  decodeOffsetsCommitted,
  decodeOffsetsDeleted,
  decodePartitionsAdded,
  decodeProducerIdsAllocated,
  decodeProducersExpired,
  decodeTopicCreated,
  decodeTopicDeleted,
} from './commands.ts';
import { EntryType, entryVersion } from './entry-types.ts';
import { OffsetTable } from './offsets.ts';
import { ProducerTable } from './producers.ts';
import { readStoredBatch } from './stored-batch.ts';
import { TopicTable } from './topics.ts';

/** A committed entry, as far as the state machine looks at it. */
export interface AppliedEntry {
  readonly type: number;
  readonly version: number;
  readonly term: number;
  readonly index: number;
  readonly meta: Buffer;
  readonly batches: readonly Buffer[];
  readonly partitions: readonly number[];
}

/**
 * The replicated state of a tenant. It only applies: it never decides, reads no clock and draws no
 * random number, so equal entries give equal state on every replica and after every restart.
 */
export class StateMachine {
  readonly topics = new TopicTable();
  readonly producers = new ProducerTable();
  readonly offsets = new OffsetTable();
  /** Durable images of groups, as their coordinator wrote them. */
  readonly groupImages = new Map<string, Buffer>();
  /** Cluster-wide overrides of broker settings. */
  readonly brokerConfigs = new Map<string, string>();
  readonly groupConfigs = new Map<string, Map<string, string>>();
  /** Terms in which a leader began, ascending: the leader epochs that there were. */
  readonly terms: number[] = [];
  clusterId = '';
  nextProducerId = 0;
  #appliedIndex = 0;
  #appliedTerm = 0;

  get appliedIndex(): number {
    return this.#appliedIndex;
  }
  get appliedTerm(): number {
    return this.#appliedTerm;
  }

  apply(entry: AppliedEntry): void {
    assert(entry.index === this.#appliedIndex + 1, 'entries are applied one after the other');
    if (entry.version > entryVersion) throw unknownEntry(entry);
    this.#applyEffects(entry);
    this.#appliedIndex = entry.index;
    this.#appliedTerm = entry.term;
  }

  #applyEffects(entry: AppliedEntry): void {
    const { meta } = entry;
    switch (entry.type) {
      case EntryType.noop:
        this.terms.push(entry.term);
        break;
      case EntryType.batches:
        this.#appendBatches(entry);
        break;
      case EntryType.topicCreated:
        this.topics.create(decodeTopicCreated(meta));
        break;
      case EntryType.topicDeleted:
        this.#deleteTopic(decodeTopicDeleted(meta));
        break;
      case EntryType.partitionsAdded:
        this.topics.addPartitions(decodePartitionsAdded(meta));
        break;
      case EntryType.configsSet:
        this.#setConfigs(decodeConfigsSet(meta));
        break;
      case EntryType.logStartsMoved:
        this.#moveLogStarts(meta);
        break;
      case EntryType.offsetsCommitted:
        this.offsets.commit(decodeOffsetsCommitted(meta));
        break;
      case EntryType.offsetsDeleted:
        this.offsets.delete(decodeOffsetsDeleted(meta));
        break;
      case EntryType.groupStored:
        this.#storeGroup(meta);
        break;
      case EntryType.groupDeleted:
        this.#deleteGroup(decodeGroupDeleted(meta));
        break;
      case EntryType.producerIdsAllocated:
        this.nextProducerId = decodeProducerIdsAllocated(meta);
        break;
      case EntryType.producersExpired:
        for (const [partition, id] of decodeProducersExpired(meta).producers) {
          this.producers.expire(partition, id);
        }
        break;
      case EntryType.clusterFounded:
        this.clusterId = decodeClusterFounded(meta);
        break;
      default:
        throw unknownEntry(entry);
    }
  }

  #appendBatches(entry: AppliedEntry): void {
    const appendedMs = decodeBatches(entry.meta);
    const { partitions } = this.topics;
    for (let i = 0; i < entry.batches.length; i++) {
      const batch = entry.batches[i]!;
      const partition = entry.partitions[i]!;
      const facts = readStoredBatch(batch);
      const count = facts.lastOffsetDelta + 1;
      partitions.append(partition, facts.baseOffset, count, batch.length, facts.maxTimestamp);
      if (facts.producerId >= 0) this.producers.append(partition, facts, appendedMs);
    }
  }

  #deleteTopic(topicId: string): void {
    const topic = this.topics.delete(topicId);
    for (const partition of topic.partitions) this.producers.removePartition(partition);
    this.offsets.removePartitions(topic.partitions);
  }

  #setConfigs(set: ConfigsSet): void {
    const target =
      set.resourceType === ConfigResource.topic
        ? this.topics.byId(set.resource)!.configs
        : set.resourceType === ConfigResource.group
          ? (this.groupConfigs.get(set.resource) ?? new Map<string, string>())
          : this.brokerConfigs;
    for (const [key, value] of set.changes) {
      if (value === null) target.delete(key);
      else target.set(key, value);
    }
    if (set.resourceType !== ConfigResource.group) return;
    if (target.size === 0) this.groupConfigs.delete(set.resource);
    else this.groupConfigs.set(set.resource, target);
  }

  #moveLogStarts(meta: Buffer): void {
    for (const { partition, offset, droppedBytes } of decodeLogStarts(meta)) {
      this.topics.partitions.moveLogStart(partition, offset, droppedBytes);
    }
  }

  #storeGroup(meta: Buffer): void {
    const { groupId, image } = decodeGroupStored(meta);
    this.groupImages.set(groupId, image);
  }

  #deleteGroup(groupId: string): void {
    this.groupImages.delete(groupId);
    this.offsets.deleteGroup(groupId);
  }

  /** The whole state as bytes, for snapshots and for comparing replicas. */
  image(): Buffer {
    const writer = new ByteWriter(64 * 1024);
    writer.u8(imageVersion).uvarint(this.#appliedIndex).uvarint(this.#appliedTerm);
    writer.string(this.clusterId).uvarint(this.nextProducerId);
    writer.uvarint(this.terms.length);
    for (const term of this.terms) writer.uvarint(term);
    writeStrings(writer, this.brokerConfigs);
    writer.uvarint(this.groupConfigs.size);
    for (const [groupId, configs] of this.groupConfigs) {
      writeStrings(writer.string(groupId), configs);
    }
    this.topics.write(writer);
    this.producers.write(writer);
    this.offsets.write(writer);
    writer.uvarint(this.groupImages.size);
    for (const [groupId, image] of this.groupImages) writer.string(groupId).bytes(image);
    return writer.finish();
  }

  /** Restores what `image` wrote into a fresh state machine. */
  restore(image: Buffer): void {
    const reader = new ByteReader(image);
    const version = reader.u8();
    if (version > imageVersion) {
      throw new BrokerError(
        'JOURNAL_VERSION_UNKNOWN',
        `the snapshot has version ${version}, which this version of Keylane does not know`,
      );
    }
    this.#appliedIndex = reader.uvarint();
    this.#appliedTerm = reader.uvarint();
    this.clusterId = reader.string();
    this.nextProducerId = reader.uvarint();
    for (let left = reader.count(); left > 0; left--) this.terms.push(reader.uvarint());
    readStrings(reader, this.brokerConfigs);
    for (let left = reader.count(); left > 0; left--) {
      const configs = new Map<string, string>();
      this.groupConfigs.set(reader.string(), configs);
      readStrings(reader, configs);
    }
    this.topics.read(reader);
    this.producers.read(reader);
    this.offsets.read(reader);
    for (let left = reader.count(2); left > 0; left--) {
      const groupId = reader.string();
      this.groupImages.set(groupId, Buffer.from(reader.bytes()));
    }
    reader.end();
  }
}

const imageVersion = 1;

function writeStrings(writer: ByteWriter, map: ReadonlyMap<string, string>): void {
  writer.uvarint(map.size);
  for (const [key, value] of map) writer.string(key).string(value);
}

function readStrings(reader: ByteReader, into: Map<string, string>): void {
  for (let left = reader.count(2); left > 0; left--) into.set(reader.string(), reader.string());
}

function unknownEntry(entry: AppliedEntry): BrokerError {
  return new BrokerError(
    'JOURNAL_VERSION_UNKNOWN',
    `entry ${entry.index} has type ${entry.type} version ${entry.version}, which this version of ` +
      'Keylane does not know: it was written by a newer one',
    { index: entry.index, type: entry.type, version: entry.version },
  );
}
