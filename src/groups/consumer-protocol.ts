/**
 * The blobs of protocol type `consumer`, which members and their leader exchange through the
 * coordinator: ConsumerProtocolSubscription and ConsumerProtocolAssignment, each an int16 version
 * and then the fields of its table.
 *
 * Kafka's coordinator looks at the topics of a subscription alone (offset expiry, OffsetDelete),
 * and passes on the rest as it came. So does this one, but for groups in keyed delivery: there it
 * shows absent members with what they own, and completes the leader's plan.
 */

import { decode, encode } from '../protocol/codec.ts';
import { DecodeError } from '../protocol/codec-error.ts';
import { consumerProtocolAssignment } from '../protocol/schema/consumer-protocol-assignment.ts';
import {
  type ConsumerProtocolSubscription,
  consumerProtocolSubscription,
} from '../protocol/schema/consumer-protocol-subscription.ts';
import type { MessageTable, Output } from '../protocol/schema-types.ts';

export const consumerProtocolType = 'consumer';

/** Partitions by topic; of a topic in keyed delivery they are its lanes. */
export type TopicPartitions = ReadonlyMap<string, readonly number[]>;

/** What the leader assigns to a member. */
export interface Assignment {
  readonly version: number;
  readonly partitions: TopicPartitions;
  readonly userData: Buffer | null;
}

/** From here on a subscription tells what its member owns (KIP-429). */
const ownedPartitionsSince = 1;

/**
 * Reads the topics of a subscription without the rest of it.
 *
 *     subscription := version int16, topics, rest
 *     topics       := count int32, count × name
 *     name         := length int16, UTF-8
 *
 * Every version begins like version 0 (Kafka's ClassicGroup.computeSubscribedTopics relies on it).
 * Null where the bytes are not a subscription.
 */
export function readSubscribedTopics(metadata: Buffer): string[] | null {
  if (metadata.length < 6 || metadata.readInt16BE(0) < 0) return null;
  const count = metadata.readInt32BE(2);
  // A name takes two bytes at least, so a larger count is a lie and must not size anything.
  if (count < 0 || count > (metadata.length - 6) / 2) return null;
  const topics: string[] = [];
  let at = 6;
  for (let i = 0; i < count; i++) {
    if (at + 2 > metadata.length) return null;
    const bytes = metadata.readInt16BE(at);
    at += 2;
    if (bytes < 0 || at + bytes > metadata.length) return null;
    topics.push(metadata.toString('utf8', at, at + bytes));
    at += bytes;
  }
  return topics;
}

/**
 * What the sender of this subscription still owns: nothing in version 0 and from clients that give
 * up everything before they rejoin. Null where the bytes are not a subscription.
 */
export function ownedPartitions(metadata: Buffer): TopicPartitions | null {
  const found = decodeBlob(consumerProtocolSubscription, metadata);
  return found === null ? null : byTopic(found.value.ownedPartitions);
}

/**
 * The same subscription, telling of other owned partitions, owned since that generation. As it was
 * where its version does not tell, or where it is none.
 */
export function withOwnedPartitions(
  metadata: Buffer,
  owned: TopicPartitions,
  generationId: number,
): Buffer {
  const found = decodeBlob(consumerProtocolSubscription, metadata);
  if (found === null || found.version < ownedPartitionsSince) return metadata;
  const value: ConsumerProtocolSubscription = {
    ...found.value,
    ownedPartitions: asItems(owned),
    generationId,
  };
  return encodeBlob(found.version, encode(consumerProtocolSubscription, found.version, value));
}

/** Null where the bytes are not an assignment. No bytes at all are an assignment of nothing. */
export function readAssignment(bytes: Buffer): Assignment | null {
  if (bytes.length === 0) return { version: 0, partitions: new Map(), userData: null };
  const found = decodeBlob(consumerProtocolAssignment, bytes);
  if (found === null) return null;
  const { assignedPartitions, userData } = found.value;
  return { version: found.version, partitions: byTopic(assignedPartitions), userData };
}

export function encodeAssignment({ version, partitions, userData }: Assignment): Buffer {
  const value = { assignedPartitions: asItems(partitions), userData };
  return encodeBlob(version, encode(consumerProtocolAssignment, version, value));
}

/** As consumers read them: a version that is not known yet is read as the newest known one. */
function decodeBlob<M extends MessageTable>(
  table: M,
  bytes: Buffer,
): { version: number; value: Output<M> } | null {
  if (bytes.length < 2) return null;
  const version = Math.min(bytes.readInt16BE(0), table.versions[1]);
  try {
    return { version, value: decode(table, version, bytes, 2, bytes.length, { trailing: true }) };
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}

function encodeBlob(version: number, pieces: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(2);
  head.writeInt16BE(version);
  return Buffer.concat([head, ...pieces]);
}

interface TopicItem {
  readonly topic: string;
  readonly partitions: readonly number[];
}

/** A topic may come twice. */
function byTopic(items: readonly TopicItem[]): TopicPartitions {
  const found = new Map<string, readonly number[]>();
  for (const { topic, partitions } of items) {
    const before = found.get(topic);
    found.set(topic, before === undefined ? partitions : [...before, ...partitions]);
  }
  return found;
}

function asItems(partitions: TopicPartitions): { topic: string; partitions: number[] }[] {
  return [...partitions].map(([topic, indexes]) => ({ topic, partitions: [...indexes] }));
}
