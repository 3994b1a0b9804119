import { ByteReader, ByteWriter } from '../core/bytes.ts';

/**
 * The meta of each entry type: effects, not commands. What a leader decided (offsets, ids, times)
 * is written out, so that each replica applies the same bytes and reaches the same state.
 */

export interface TopicCreated {
  readonly name: string;
  /** 32 hex digits. */
  readonly topicId: string;
  /** Number of partition 0; the others follow it. Never used before. */
  readonly firstPartition: number;
  readonly partitionCount: number;
  readonly configs: ReadonlyMap<string, string>;
}

export interface PartitionsAdded {
  readonly topicId: string;
  readonly firstPartition: number;
  readonly partitionCount: number;
}

/** Kafka's resource types, as DescribeConfigs names them. */
export const ConfigResource = { topic: 2, broker: 4, group: 32 } as const;

export interface ConfigsSet {
  readonly resourceType: number;
  /** Topic id, group id, node id, or '' for the cluster-wide default of all nodes. */
  readonly resource: string;
  /** null removes the override. */
  readonly changes: ReadonlyMap<string, string | null>;
}

export interface LogStart {
  readonly partition: number;
  readonly offset: number;
  /** Bytes of the whole batches that this drops. */
  readonly droppedBytes: number;
}

export interface CommittedOffset {
  readonly offset: number;
  readonly leaderEpoch: number;
  readonly metadata: string;
  readonly commitMs: number;
  /** When it expires by the client's own wish (OffsetCommit v2 to v4), or -1. */
  readonly expireMs: number;
}

export interface OffsetsCommitted {
  readonly groupId: string;
  readonly offsets: readonly (readonly [partition: number, offset: CommittedOffset])[];
}

export interface OffsetsDeleted {
  readonly groupId: string;
  readonly partitions: readonly number[];
}

export interface GroupStored {
  readonly groupId: string;
  readonly image: Buffer;
}

export interface ProducersExpired {
  readonly producers: readonly (readonly [partition: number, producerId: number])[];
}

export interface HardStateStored {
  readonly term: number;
  readonly votedFor: string | null;
}

export function encodeHardState(value: HardStateStored): Buffer {
  return new ByteWriter(64).f64(value.term).nullableString(value.votedFor).finish();
}
export function decodeHardState(meta: Buffer): HardStateStored {
  const reader = new ByteReader(meta);
  return { term: reader.f64(), votedFor: reader.nullableString() };
}

/** The members of the Raft group, each `node id:directory id`. */
export interface Members {
  readonly voters: readonly string[];
  readonly learners: readonly string[];
  /** Put out by an operator, for ever: with a new data folder a node is another member. */
  readonly removed: readonly string[];
}

/** What a snapshot knows of the log that it covers: how far back it reaches, and its terms. */
export interface LogFacts extends HardStateStored {
  /** The entry before the first one; undefined in snapshots that did not say so. */
  readonly base: LogPlace | undefined;
  /** Where each term begins behind it. */
  readonly runs: readonly LogPlace[];
}
export interface LogPlace {
  readonly index: number;
  readonly term: number;
}

export function encodeLogFacts({ base, runs, ...hardState }: LogFacts): Buffer {
  const writer = new ByteWriter(128).f64(hardState.term).nullableString(hardState.votedFor);
  if (base === undefined) return writer.finish();
  writer.uvarint(base.index).uvarint(base.term).uvarint(runs.length);
  for (const { index, term } of runs) writer.uvarint(index).uvarint(term);
  return writer.finish();
}
export function decodeLogFacts(bytes: Buffer): LogFacts {
  const reader = new ByteReader(bytes);
  const hardState = { term: reader.f64(), votedFor: reader.nullableString() };
  if (reader.remaining === 0) return { ...hardState, base: undefined, runs: [] };
  const place = () => ({ index: reader.uvarint(), term: reader.uvarint() });
  const base = place();
  return { ...hardState, base, runs: Array.from({ length: reader.count(2) }, place) };
}

export function encodeMembers({ voters, learners, removed }: Members): Buffer {
  const writer = new ByteWriter(128);
  for (const members of [voters, learners, removed]) {
    writer.uvarint(members.length);
    for (const member of members) writer.string(member);
  }
  return writer.finish();
}
export function decodeMembers(meta: Buffer): Members {
  const reader = new ByteReader(meta);
  const list = () => Array.from({ length: reader.count() }, () => reader.string());
  return { voters: list(), learners: list(), removed: list() };
}

/** Those of them that count for Raft. */
export function decodeConfiguration(meta: Buffer): Pick<Members, 'voters' | 'learners'> {
  const { voters, learners } = decodeMembers(meta);
  return { voters, learners };
}

export function encodeCommitMark(index: number): Buffer {
  return new ByteWriter(16).uvarint(index).finish();
}
export function decodeCommitMark(meta: Buffer): number {
  return new ByteReader(meta).uvarint();
}

/** A node of the cluster, and where it is reached. */
export interface ClusterNode {
  readonly nodeId: number;
  /** Identity of its data folder. */
  readonly directoryId: string;
  /** For clients. */
  readonly host: string;
  readonly port: number;
  /** For the other nodes. */
  readonly peerHost: string;
  readonly peerPort: number;
}

export function writeClusterNode(writer: ByteWriter, node: ClusterNode): ByteWriter {
  writer.uvarint(node.nodeId).string(node.directoryId).string(node.host).uvarint(node.port);
  return writer.string(node.peerHost).uvarint(node.peerPort);
}
export function readClusterNode(reader: ByteReader): ClusterNode {
  return {
    nodeId: reader.uvarint(),
    directoryId: reader.string(),
    host: reader.string(),
    port: reader.uvarint(),
    peerHost: reader.string(),
    peerPort: reader.uvarint(),
  };
}

export function encodeNodeStored(node: ClusterNode): Buffer {
  return writeClusterNode(new ByteWriter(128), node).finish();
}
export function decodeNodeStored(meta: Buffer): ClusterNode {
  return readClusterNode(new ByteReader(meta));
}

/** Where a node is that may join. */
export interface AdmittedNode {
  readonly nodeId: number;
  /** For the other nodes. */
  readonly peerHost: string;
  readonly peerPort: number;
}

export function writeAdmittedNode(writer: ByteWriter, node: AdmittedNode): ByteWriter {
  return writer.uvarint(node.nodeId).string(node.peerHost).uvarint(node.peerPort);
}
export function readAdmittedNode(reader: ByteReader): AdmittedNode {
  return { nodeId: reader.uvarint(), peerHost: reader.string(), peerPort: reader.uvarint() };
}

export function encodeNodeAdmitted(node: AdmittedNode): Buffer {
  return writeAdmittedNode(new ByteWriter(64), node).finish();
}
export function decodeNodeAdmitted(meta: Buffer): AdmittedNode {
  return readAdmittedNode(new ByteReader(meta));
}

export function encodeFeatureLevel(level: number): Buffer {
  return new ByteWriter(4).uvarint(level).finish();
}
export function decodeFeatureLevel(meta: Buffer): number {
  return new ByteReader(meta).uvarint();
}

/** When the leader took the batches, ms since 1970. */
export function encodeBatches(appendedMs: number): Buffer {
  const meta = Buffer.allocUnsafe(8);
  meta.writeDoubleLE(appendedMs, 0);
  return meta;
}
export function decodeBatches(meta: Buffer): number {
  return meta.readDoubleLE(0);
}

export function encodeTopicCreated(value: TopicCreated): Buffer {
  const writer = new ByteWriter();
  writer.string(value.name).raw(Buffer.from(value.topicId, 'hex'));
  writer.uvarint(value.firstPartition).uvarint(value.partitionCount).uvarint(value.configs.size);
  for (const [key, config] of value.configs) writer.string(key).string(config);
  return writer.finish();
}
export function decodeTopicCreated(meta: Buffer): TopicCreated {
  const reader = new ByteReader(meta);
  const name = reader.string();
  const topicId = readTopicId(reader);
  const firstPartition = reader.uvarint();
  const partitionCount = reader.uvarint();
  const configs = new Map<string, string>();
  for (let left = reader.count(2); left > 0; left--) configs.set(reader.string(), reader.string());
  return { name, topicId, firstPartition, partitionCount, configs };
}

export function encodeTopicDeleted(topicId: string): Buffer {
  return Buffer.from(topicId, 'hex');
}
export function decodeTopicDeleted(meta: Buffer): string {
  return readTopicId(new ByteReader(meta));
}

export function encodePartitionsAdded(value: PartitionsAdded): Buffer {
  return new ByteWriter(32)
    .raw(Buffer.from(value.topicId, 'hex'))
    .uvarint(value.firstPartition)
    .uvarint(value.partitionCount)
    .finish();
}
export function decodePartitionsAdded(meta: Buffer): PartitionsAdded {
  const reader = new ByteReader(meta);
  return {
    topicId: readTopicId(reader),
    firstPartition: reader.uvarint(),
    partitionCount: reader.uvarint(),
  };
}

export function encodeConfigsSet(value: ConfigsSet): Buffer {
  const writer = new ByteWriter().u8(value.resourceType).string(value.resource);
  writer.uvarint(value.changes.size);
  for (const [key, config] of value.changes) writer.string(key).nullableString(config);
  return writer.finish();
}
export function decodeConfigsSet(meta: Buffer): ConfigsSet {
  const reader = new ByteReader(meta);
  const resourceType = reader.u8();
  const resource = reader.string();
  const changes = new Map<string, string | null>();
  for (let left = reader.count(2); left > 0; left--) {
    changes.set(reader.string(), reader.nullableString());
  }
  return { resourceType, resource, changes };
}

export function encodeLogStarts(starts: readonly LogStart[]): Buffer {
  const writer = new ByteWriter(16 + starts.length * 12).uvarint(starts.length);
  for (const start of starts) {
    writer.uvarint(start.partition).uvarint(start.offset).uvarint(start.droppedBytes);
  }
  return writer.finish();
}
export function decodeLogStarts(meta: Buffer): LogStart[] {
  const reader = new ByteReader(meta);
  return Array.from({ length: reader.count(3) }, () => ({
    partition: reader.uvarint(),
    offset: reader.uvarint(),
    droppedBytes: reader.uvarint(),
  }));
}

export function writeCommittedOffset(writer: ByteWriter, value: CommittedOffset): void {
  writer.f64(value.offset).f64(value.leaderEpoch).string(value.metadata);
  writer.f64(value.commitMs).f64(value.expireMs);
}
export function readCommittedOffset(reader: ByteReader): CommittedOffset {
  return {
    offset: reader.f64(),
    leaderEpoch: reader.f64(),
    metadata: reader.string(),
    commitMs: reader.f64(),
    expireMs: reader.f64(),
  };
}

export function encodeOffsetsCommitted(value: OffsetsCommitted): Buffer {
  const writer = new ByteWriter(64 + value.offsets.length * 48);
  writer.string(value.groupId).uvarint(value.offsets.length);
  for (const [partition, offset] of value.offsets) {
    writer.uvarint(partition);
    writeCommittedOffset(writer, offset);
  }
  return writer.finish();
}
export function decodeOffsetsCommitted(meta: Buffer): OffsetsCommitted {
  const reader = new ByteReader(meta);
  const groupId = reader.string();
  const offsets = Array.from(
    { length: reader.count(34) },
    () => [reader.uvarint(), readCommittedOffset(reader)] as const,
  );
  return { groupId, offsets };
}

export function encodeOffsetsDeleted(value: OffsetsDeleted): Buffer {
  const writer = new ByteWriter().string(value.groupId).uvarint(value.partitions.length);
  for (const partition of value.partitions) writer.uvarint(partition);
  return writer.finish();
}
export function decodeOffsetsDeleted(meta: Buffer): OffsetsDeleted {
  const reader = new ByteReader(meta);
  const groupId = reader.string();
  return {
    groupId,
    partitions: Array.from({ length: reader.count() }, () => reader.uvarint()),
  };
}

export function encodeGroupStored(value: GroupStored): Buffer {
  return new ByteWriter(64 + value.image.length).string(value.groupId).bytes(value.image).finish();
}
export function decodeGroupStored(meta: Buffer): GroupStored {
  const reader = new ByteReader(meta);
  return { groupId: reader.string(), image: Buffer.from(reader.bytes()) };
}

export function encodeGroupDeleted(groupId: string): Buffer {
  return new ByteWriter().string(groupId).finish();
}
export function decodeGroupDeleted(meta: Buffer): string {
  return new ByteReader(meta).string();
}

/** All producer ids below it are taken. */
export function encodeProducerIdsAllocated(nextProducerId: number): Buffer {
  return new ByteWriter(16).uvarint(nextProducerId).finish();
}
export function decodeProducerIdsAllocated(meta: Buffer): number {
  return new ByteReader(meta).uvarint();
}

export function encodeProducersExpired(value: ProducersExpired): Buffer {
  const writer = new ByteWriter(16 + value.producers.length * 8).uvarint(value.producers.length);
  for (const [partition, producerId] of value.producers)
    writer.uvarint(partition).uvarint(producerId);
  return writer.finish();
}
export function decodeProducersExpired(meta: Buffer): ProducersExpired {
  const reader = new ByteReader(meta);
  const producers = Array.from(
    { length: reader.count(2) },
    () => [reader.uvarint(), reader.uvarint()] as const,
  );
  return { producers };
}

export function encodeClusterFounded(clusterId: string): Buffer {
  return new ByteWriter(32).string(clusterId).finish();
}
export function decodeClusterFounded(meta: Buffer): string {
  return new ByteReader(meta).string();
}

function readTopicId(reader: ByteReader): string {
  return reader.raw(16).toString('hex');
}
