import { assert } from '../core/assert.ts';
import type { ByteReader, ByteWriter } from '../core/bytes.ts';
import { BrokerError } from '../core/errors.ts';
import {
  type AdmittedNode,
  type ClusterNode,
  ConfigResource,
  type ConfigsSet,
  decodeBatches,
  decodeClusterFounded,
  decodeConfigsSet,
  decodeFeatureLevel,
  decodeGroupDeleted,
  decodeGroupStored,
  decodeLogStarts,
  decodeMembers,
  decodeNodeAdmitted,
  decodeNodeStored,
  decodeOffsetsCommitted,
  decodeOffsetsDeleted,
  decodePartitionsAdded,
  decodeProducerIdsAllocated,
  decodeProducersExpired,
  decodeTopicCreated,
  decodeTopicDeleted,
  encodeMembers,
  type Members,
  type OffsetsCommitted,
  type OffsetsDeleted,
  type PartitionsAdded,
  readAdmittedNode,
  readClusterNode,
  type TopicCreated,
  writeAdmittedNode,
  writeClusterNode,
} from './commands.ts';
import { EntryType, entryVersion } from './entry-types.ts';
import { ImageWriter, imageVersionMax, readImage } from './image.ts';
import { decodeKeyedChange } from './keyed/effects.ts';
import { KeyedTable, ledgerKey } from './keyed/keyed-table.ts';
import type { Ledger } from './keyed/ledger.ts';
import { OffsetTable } from './offsets.ts';
import { pageOf } from './partitions.ts';
import { ProducerTable } from './producers.ts';
import { readStoredBatch } from './stored-batch.ts';
import { decodeTenantCreated, decodeTenantDeleted, TenantTable } from './tenants.ts';
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
 *
 * Effects on a topic or partition that an entry before has deleted are void: they were planned
 * while the deletion was under way.
 */
export class StateMachine {
  readonly topics = new TopicTable();
  readonly producers = new ProducerTable();
  readonly offsets = new OffsetTable();
  readonly keyed = new KeyedTable();
  /** Durable images of groups, as their coordinator wrote them. */
  readonly groupImages = new Map<string, Buffer>();
  /** Cluster-wide overrides of broker settings. */
  readonly brokerConfigs = new Map<string, string>();
  /** Overrides for single nodes, by node id. */
  readonly nodeConfigs = new Map<string, Map<string, string>>();
  readonly groupConfigs = new Map<string, Map<string, string>>();
  /** Terms in which a leader began, ascending: the leader epochs that there were. */
  readonly terms: number[] = [];
  /** Who is in the Raft group, and since which entry; undefined while it is who founded it. */
  members: (Members & { readonly index: number }) | undefined;
  /** Where nodes are reached, by node id. */
  readonly nodes = new Map<number, ClusterNode>();
  /** Where nodes are that may join, beside those that the settings name, by node id. */
  readonly admitted = new Map<number, AdmittedNode>();
  /** In the state of the system group. */
  readonly tenants = new TenantTable();
  /** Of the entries that may be written: see `entry-types.ts`. */
  featureLevel = 1;
  clusterId = '';
  nextProducerId = 0;
  #appliedIndex = 0;
  #appliedTerm = 0;
  /** An image under way: each cell must be written before it changes. */
  #imageWriter: ImageWriter | undefined;

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
        this.#appendBatches(entry, decodeBatches(meta));
        break;
      case EntryType.topicCreated:
        this.#createTopic(decodeTopicCreated(meta));
        break;
      case EntryType.topicDeleted:
        this.#deleteTopic(decodeTopicDeleted(meta));
        break;
      case EntryType.partitionsAdded:
        this.#addPartitions(decodePartitionsAdded(meta));
        break;
      case EntryType.configsSet:
        this.#setConfigs(decodeConfigsSet(meta));
        break;
      case EntryType.logStartsMoved:
        this.#moveLogStarts(meta);
        break;
      case EntryType.offsetsCommitted:
        this.#commitOffsets(decodeOffsetsCommitted(meta));
        break;
      case EntryType.offsetsDeleted:
        this.#deleteOffsets(decodeOffsetsDeleted(meta));
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
          this.#imageWriter?.touchProducers(partition);
          this.producers.expire(partition, id);
        }
        break;
      case EntryType.keyed:
        this.#changeKeyed(entry);
        break;
      default:
        this.#changeCluster(entry);
    }
  }

  /** Who is in the cluster, what its nodes can do, and for whom. */
  #changeCluster(entry: AppliedEntry): void {
    const { meta } = entry;
    switch (entry.type) {
      case EntryType.clusterFounded:
        this.clusterId = decodeClusterFounded(meta);
        break;
      case EntryType.members:
        this.#changeMembers({ index: entry.index, ...decodeMembers(meta) });
        break;
      case EntryType.nodeStored: {
        const node = decodeNodeStored(meta);
        this.nodes.set(node.nodeId, node);
        break;
      }
      case EntryType.featureLevelRaised:
        this.featureLevel = Math.max(this.featureLevel, decodeFeatureLevel(meta));
        break;
      case EntryType.nodeAdmitted: {
        const node = decodeNodeAdmitted(meta);
        this.admitted.set(node.nodeId, node);
        break;
      }
      case EntryType.tenantCreated:
        this.tenants.create(decodeTenantCreated(meta));
        break;
      case EntryType.tenantDeleted:
        this.tenants.delete(decodeTenantDeleted(meta));
        break;
      default:
        throw unknownEntry(entry);
    }
  }

  #appendBatches(entry: AppliedEntry, appendedMs: number): void {
    const { partitions } = this.topics;
    for (let i = 0; i < entry.batches.length; i++) {
      const batch = entry.batches[i]!;
      const partition = entry.partitions[i]!;
      if (!partitions.exists(partition)) continue;
      const facts = readStoredBatch(batch);
      const count = facts.lastOffsetDelta + 1;
      this.#imageWriter?.touchPage(pageOf(partition));
      partitions.append(partition, facts.baseOffset, count, batch.length, facts.maxTimestamp);
      if (facts.producerId < 0) continue;
      this.#imageWriter?.touchProducers(partition);
      this.producers.append(partition, facts, appendedMs);
    }
  }

  #changeKeyed(entry: AppliedEntry): void {
    const change = decodeKeyedChange(entry.meta);
    this.#appendBatches(entry, change.appendedMs);
    if (this.topics.byId(change.topicId) === undefined) return;
    this.#imageWriter?.touchLedger(ledgerKey(change.groupId, change.topicId));
    this.keyed.apply(change);
  }

  #touchLedgers(ledgers: Iterable<Ledger>): void {
    for (const { groupId, topicId } of ledgers) {
      this.#imageWriter?.touchLedger(ledgerKey(groupId, topicId));
    }
  }

  /** Of nodes that are no members any more nothing is kept: they have to be added again. */
  #changeMembers(members: Members & { readonly index: number }): void {
    const former = nodeIdsOf(this.members);
    this.members = members;
    const present = nodeIdsOf(members);
    for (const nodeId of this.nodes.keys()) if (!present.has(nodeId)) this.nodes.delete(nodeId);
    for (const nodeId of former) if (!present.has(nodeId)) this.admitted.delete(nodeId);
  }

  #createTopic(created: TopicCreated): void {
    this.#touchPages(created.firstPartition, created.partitionCount);
    this.topics.create(created);
  }

  #addPartitions(added: PartitionsAdded): void {
    if (this.topics.byId(added.topicId) === undefined) return;
    this.#imageWriter?.touchTopic(added.topicId);
    this.#touchPages(added.firstPartition, added.partitionCount);
    this.topics.addPartitions(added);
  }

  #touchPages(firstPartition: number, count: number): void {
    const last = pageOf(firstPartition + count - 1);
    for (let page = pageOf(firstPartition); page <= last; page++)
      this.#imageWriter?.touchPage(page);
  }

  #commitOffsets({ groupId, offsets }: OffsetsCommitted): void {
    const { partitions } = this.topics;
    const live = offsets.filter(([partition]) => partitions.exists(partition));
    if (live.length === 0) return;
    this.#imageWriter?.touchOffsets(groupId);
    this.offsets.commit({ groupId, offsets: live });
  }

  #deleteOffsets(deleted: OffsetsDeleted): void {
    this.#imageWriter?.touchOffsets(deleted.groupId);
    this.offsets.delete(deleted);
  }

  #deleteTopic(topicId: string): void {
    const image = this.#imageWriter;
    const doomed = this.topics.byId(topicId);
    if (doomed === undefined) return;
    if (image !== undefined) {
      image.touchTopic(topicId);
      for (const partition of doomed.partitions) {
        image.touchPage(pageOf(partition));
        image.touchProducers(partition);
      }
      image.touchAllOffsets();
    }
    this.#touchLedgers(this.keyed.ofTopic(topicId));
    this.topics.delete(topicId);
    this.keyed.removeTopic(topicId);
    for (const partition of doomed.partitions) this.producers.removePartition(partition);
    this.offsets.removePartitions(doomed.partitions);
  }

  #setConfigs({ resourceType, resource, changes }: ConfigsSet): void {
    if (resourceType === ConfigResource.topic) {
      const topic = this.topics.byId(resource);
      if (topic === undefined) return;
      this.#imageWriter?.touchTopic(resource);
      changeConfigs(topic.configs, changes);
    } else if (resourceType === ConfigResource.group) {
      changeConfigsOf(this.groupConfigs, resource, changes);
    } else if (resource === '') {
      changeConfigs(this.brokerConfigs, changes);
    } else {
      changeConfigsOf(this.nodeConfigs, resource, changes);
    }
  }

  #moveLogStarts(meta: Buffer): void {
    for (const { partition, offset, droppedBytes } of decodeLogStarts(meta)) {
      if (!this.topics.partitions.exists(partition)) continue;
      this.#imageWriter?.touchPage(pageOf(partition));
      this.topics.partitions.moveLogStart(partition, offset, droppedBytes);
    }
  }

  #storeGroup(meta: Buffer): void {
    const { groupId, image } = decodeGroupStored(meta);
    this.#imageWriter?.touchGroup(groupId);
    this.groupImages.set(groupId, image);
  }

  #deleteGroup(groupId: string): void {
    this.#imageWriter?.touchGroup(groupId);
    this.#imageWriter?.touchOffsets(groupId);
    this.groupImages.delete(groupId);
    this.offsets.deleteGroup(groupId);
    this.#touchLedgers(this.keyed.ofGroup(groupId));
    this.keyed.removeGroup(groupId);
  }

  /** Begins an image of the present state, to be written in slices. One at a time. */
  beginImage(): ImageWriter {
    assert(this.#imageWriter === undefined, 'one image is written at a time');
    this.#imageWriter = new ImageWriter(this);
    return this.#imageWriter;
  }

  endImage(): void {
    this.#imageWriter = undefined;
  }

  /** The whole state as bytes, equal for equal states: for comparing replicas. */
  image(): Buffer {
    const writer = new ImageWriter(this, true);
    while (writer.writeSlice());
    return writer.finish();
  }

  /** Restores an image into a fresh state machine. */
  restore(image: Buffer): void {
    const { appliedIndex, appliedTerm } = readImage(image, this);
    this.#appliedIndex = appliedIndex;
    this.#appliedTerm = appliedTerm;
  }

  /** Of images of this state: the newest one that all members can read. */
  get imageVersion(): number {
    return Math.min(this.featureLevel + 3, imageVersionMax);
  }

  /** What is not kept in tables. Small, so it is written at once when an image begins. */
  writeFacts(writer: ByteWriter): void {
    writer.string(this.clusterId).uvarint(this.nextProducerId).uvarint(this.terms.length);
    for (const term of this.terms) writer.uvarint(term);
    writeStrings(writer, this.brokerConfigs);
    writeNamedStrings(writer, this.groupConfigs);
    writer.uvarint(this.topics.partitions.next);
    writeNamedStrings(writer, this.nodeConfigs);
    writer.uvarint(this.keyed.laneBaseMin);
    writer.u8(this.members === undefined ? 0 : 1);
    if (this.members !== undefined) {
      writer.uvarint(this.members.index).bytes(encodeMembers(this.members));
    }
    writer.uvarint(this.nodes.size);
    for (const node of this.nodes.values()) writeClusterNode(writer, node);
    if (this.imageVersion < 5) return;
    writer.uvarint(this.featureLevel).uvarint(this.admitted.size);
    for (const node of this.admitted.values()) writeAdmittedNode(writer, node);
    if (this.imageVersion >= 6) this.tenants.write(writer);
  }

  /** The facts of an image of this version or an older one. */
  readFacts(reader: ByteReader, version: number): void {
    this.clusterId = reader.string();
    this.nextProducerId = reader.uvarint();
    for (let left = reader.count(); left > 0; left--) this.terms.push(reader.uvarint());
    readStrings(reader, this.brokerConfigs);
    readNamedStrings(reader, this.groupConfigs);
    this.topics.partitions.restoreNext(reader.uvarint());
    if (version >= 2) readNamedStrings(reader, this.nodeConfigs);
    if (version >= 3) this.keyed.restoreLaneBaseMin(reader.uvarint());
    if (version < 4) return;
    if (reader.u8() === 1) {
      const index = reader.uvarint();
      this.members = { index, ...decodeMembers(reader.bytes()) };
    }
    for (let left = reader.count(6); left > 0; left--) {
      const node = readClusterNode(reader);
      this.nodes.set(node.nodeId, node);
    }
    if (version < 5) return;
    this.featureLevel = reader.uvarint();
    for (let left = reader.count(3); left > 0; left--) {
      const node = readAdmittedNode(reader);
      this.admitted.set(node.nodeId, node);
    }
    if (version >= 6) this.tenants.read(reader);
  }
}

function nodeIdsOf(members: Members | undefined): Set<number> {
  const { voters, learners } = members ?? { voters: [], learners: [] };
  return new Set([...voters, ...learners].map((member) => Number.parseInt(member, 10)));
}

type Configs = Map<string, string>;

/** null removes an override. */
function changeConfigs(configs: Configs, changes: ConfigsSet['changes']): void {
  for (const [key, value] of changes) {
    if (value === null) configs.delete(key);
    else configs.set(key, value);
  }
}

/** Only those that have overrides are kept. */
function changeConfigsOf(
  all: Map<string, Configs>,
  name: string,
  changes: ConfigsSet['changes'],
): void {
  const configs = all.get(name) ?? new Map<string, string>();
  changeConfigs(configs, changes);
  if (configs.size === 0) all.delete(name);
  else all.set(name, configs);
}

function writeNamedStrings(writer: ByteWriter, all: ReadonlyMap<string, Configs>): void {
  writer.uvarint(all.size);
  for (const [name, strings] of all) writeStrings(writer.string(name), strings);
}

function readNamedStrings(reader: ByteReader, into: Map<string, Configs>): void {
  for (let left = reader.count(2); left > 0; left--) {
    const strings = new Map<string, string>();
    into.set(reader.string(), strings);
    readStrings(reader, strings);
  }
}

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
