/** Lanes as scripts write them: `t/0+t/2`, and `-` for none. */
import {
  encodeAssignment,
  ownedPartitions,
  readAssignment,
  type TopicPartitions,
} from '../../../src/groups/consumer-protocol.ts';
import { encode } from '../../../src/protocol/codec.ts';
import { consumerProtocolSubscription } from '../../../src/protocol/schema/consumer-protocol-subscription.ts';

export function parseLanes(text: string): Map<string, number[]> {
  const lanes = new Map<string, number[]>();
  for (const lane of text === '-' ? [] : text.split('+')) {
    const [topic, index] = lane.split('/');
    lanes.set(topic!, [...(lanes.get(topic!) ?? []), Number(index)]);
  }
  return lanes;
}

export function lanesText(lanes: TopicPartitions | null): string {
  if (lanes === null) return '?';
  const all = [...lanes].flatMap(([topic, indexes]) => indexes.map((index) => `${topic}/${index}`));
  return all.length === 0 ? '-' : all.join('+');
}

export function assignmentOf(text: string): Buffer {
  return encodeAssignment({ version: 1, partitions: parseLanes(text), userData: null });
}

export function assignmentText(bytes: Buffer): string {
  return lanesText(readAssignment(bytes)?.partitions ?? null);
}

/** A subscription of version 2, which tells what its member owns, since which generation. */
export function cooperativeSubscription(
  topics: readonly string[],
  owned: string,
  generationId: number,
): Buffer {
  const ownedItems = [...parseLanes(owned)].map(([topic, partitions]) => ({ topic, partitions }));
  const value = { topics: [...topics], userData: null, ownedPartitions: ownedItems, generationId };
  const version = Buffer.from([0, 2]);
  return Buffer.concat([version, ...encode(consumerProtocolSubscription, 2, value)]);
}

/** `t/0+t/1@5`: what a member is shown to own, since which generation. */
export function ownedText(metadata: Buffer): string {
  const owned = lanesText(ownedPartitions(metadata));
  if (metadata.readInt16BE(0) < 2) return owned;
  return `${owned}@${metadata.readInt32BE(metadata.length - 4)}`;
}
