import { figuresOf, type Lease, leaseOf, oldestLease } from '../../groups/keyed/figures.ts';
import type { Member } from '../../groups/keyed/member.ts';
import { demandOf } from '../../groups/keyed/room.ts';
import { slotsMax } from '../../state/keyed/keyed-table.ts';
import type { Topic } from '../../state/topics.ts';
import type { Broker } from '../broker.ts';
import type { Delivery } from '../keyed/delivery.ts';
import { lanesFor } from '../keyed/notices.ts';
import { shownKey } from '../keyed/shown-key.ts';
import { joined, opened } from './json-pieces.ts';

/** What operators see of groups, as JSON. The names are part of the interface. */

export type GroupSummary = ReturnType<typeof groupSummary>;
export type TopicView = ReturnType<typeof topicView>;

/** One group with its topics; undefined where there is none of that name. */
export function groupSummary(broker: Broker, groupId: string) {
  const group = broker.keyed.group(groupId);
  const { groupState, members, protocolType } = describe(broker, groupId);
  return {
    group: groupId,
    state: groupState as string,
    protocolType,
    /** Null where it has had none: it only commits. */
    generation: group?.generationId ?? null,
    members: members.length,
    topics: topicsOf(broker, groupId).map((topic) => topicView(broker, groupId, topic)),
  };
}

/** A group with all that there is to see of it. */
export type GroupDetails = Omit<GroupSummary, 'members' | 'topics'> & {
  readonly members: readonly GroupMember[];
  readonly topics: readonly TopicDetails[];
};
export type GroupMember = ReturnType<typeof groupMembers>[number];
export type TopicDetails = TopicView & {
  readonly members: readonly ReturnType<typeof memberView>[];
  readonly partitions: readonly PartitionView[];
};

/** `GroupDetails` as JSON, in pieces: a topic may have a hundred thousand partitions. */
export function* groupDetails(broker: Broker, groupId: string): Iterable<string> {
  // Taken once: between pieces topics may come and go.
  const names = topicsOf(broker, groupId);
  const { topics, ...head } = groupSummary(broker, groupId);
  yield opened({ ...head, members: groupMembers(broker, groupId) }, 'topics');
  for (const [i, topic] of names.entries()) {
    const members = topicMembers(broker, groupId, topic);
    yield `${i === 0 ? '' : ','}${opened({ ...topics[i], members }, 'partitions')}`;
    yield* joined(partitionsOf(broker, groupId, topic));
    yield ']}';
  }
  yield ']}\n';
}

function groupMembers(broker: Broker, groupId: string) {
  return describe(broker, groupId).members.map((member) => ({
    member: member.memberId,
    instance: member.groupInstanceId,
    client: member.clientId,
    host: member.clientHost,
  }));
}

export function hasGroup(broker: Broker, groupId: string): boolean {
  return broker.groups.run((coordinator) => coordinator.has(groupId));
}

/** In no order: there may be a hundred thousand. */
export function groupIds(broker: Broker): string[] {
  return [...broker.groups.run((coordinator) => coordinator.groupIds())];
}

function describe(broker: Broker, groupId: string) {
  return broker.groups.run((coordinator) => coordinator.describe(groupId, 5));
}

/** Those that it subscribes to, has committed offsets of, or gets in keyed delivery, by name. */
function topicsOf(broker: Broker, groupId: string): Topic[] {
  const { partitions } = broker.replica.state.topics;
  const topics = new Set<Topic>();
  for (const { topic } of broker.keyed.of(groupId)) topics.add(topic);
  for (const partition of broker.replica.state.offsets.of(groupId)?.keys() ?? []) {
    const topic = partitions.topic(partition);
    if (topic !== undefined) topics.add(topic);
  }
  for (const name of broker.keyed.group(groupId)?.subscribedTopics ?? []) {
    const topic = broker.topics.byName(name);
    if (topic !== undefined) topics.add(topic);
  }
  return [...topics].sort((a, b) => (a.name < b.name ? -1 : 1));
}

const noFigures = {
  granted: 0,
  inHand: 0,
  leasedKeys: 0,
  pinnedKeys: 0,
  held: 0,
  heldByPinned: 0,
  waiting: { retry: 0, suspect: 0, deadLetter: 0, halted: 0 },
  heldByWaiting: 0,
};

/** The figures of one topic: records that are not finished, and what they wait for. */
export function topicView(broker: Broker, groupId: string, topic: Topic) {
  const delivery = broker.keyed.get(groupId, topic.id);
  const unfinished = unfinishedRecords(broker, groupId, topic, delivery);
  const figures = delivery === undefined ? noFigures : figuresOf(delivery.dispatcher);
  const { granted, held, waiting, heldByWaiting } = figures;
  const failed = waiting.retry + waiting.suspect + waiting.deadLetter + waiting.halted;
  const lease =
    delivery === undefined ? undefined : oldestLease(delivery.dispatcher, broker.keyed.now());
  const counters = delivery?.dispatcher.counters;
  return {
    topic: topic.name,
    mode: delivery === undefined ? 'log' : 'keyed',
    /** What the settings say; it takes effect when every member has rejoined or left. */
    configuredMode: broker.deliveryOf(groupId, topic.name).mode,
    slot: delivery?.slot ?? null,
    lanes: topic.partitions.length,
    unfinished,
    /** Free for the next consumer that asks. */
    ready: Math.max(unfinished - granted - held - failed - heldByWaiting, 0),
    ...figures,
    oldestLease: lease === undefined ? null : leaseView(broker, lease),
    /** Since the broker started. */
    delivered: counters?.granted ?? 0,
    redelivered: counters?.redelivered ?? 0,
    finished: counters?.finished ?? 0,
    failedAttempts: counters?.charged ?? 0,
    deadLetters: counters?.deadLetters ?? 0,
    commitsBeyond: counters?.commitsBeyond ?? 0,
    hints: delivery === undefined ? logHints(broker, groupId, topic) : hintsOf(broker, delivery),
  };
}

function logHints(broker: Broker, groupId: string, topic: Topic): string[] {
  const isKeyed = broker.deliveryOf(groupId, topic.name).mode === 'keyed';
  if (!isKeyed || broker.replica.state.keyed.freeSlot(topic.id) !== undefined) return [];
  return [`the topic has ${slotsMax} groups in keyed delivery, and room for no other`];
}

function hintsOf(broker: Broker, delivery: Delivery): string[] {
  const hints: string[] = [];
  if (broker.keyed.watch.wantsPoll(delivery)) {
    hints.push('keys wait for automatic commits of a busy consumer: set delivery.ack=poll');
  }
  const group = broker.keyed.group(delivery.groupId);
  const idle = group === undefined ? 0 : group.members.size - lanesFor(broker, group);
  if (idle > 0) hints.push(`${idle} consumers have no lane and are idle: add partitions`);
  return hints;
}

export function leaseView(broker: Broker, { member, ageMs, partition, offset, key }: Lease) {
  return {
    ...shownKey(key),
    member: member.id,
    client: member.traits.name,
    ageMs: Math.round(ageMs),
    partition: broker.replica.state.topics.partitions.index(partition),
    offset,
  };
}

function unfinishedRecords(
  broker: Broker,
  groupId: string,
  topic: Topic,
  delivery: Delivery | undefined,
): number {
  let sum = 0;
  for (const partition of topic.partitions) {
    sum += unfinishedOf(broker, groupId, partition, delivery)?.unfinished ?? 0;
  }
  return sum;
}

/** Undefined where the group has no position in the partition. */
function unfinishedOf(
  broker: Broker,
  groupId: string,
  partition: number,
  delivery: Delivery | undefined,
) {
  const { topics, offsets } = broker.replica.state;
  const logStart = topics.partitions.logStart(partition);
  const end = topics.partitions.end(partition);
  if (delivery === undefined) {
    const committed = offsets.get(groupId, partition)?.offset;
    if (committed === undefined) return undefined;
    const low = Math.max(committed, logStart);
    return { logStart, end, low, finishedAbove: 0, unfinished: Math.max(end - low, 0) };
  }
  const finished = delivery.dispatcher.ledger.finished(partition);
  const low = Math.max(finished.low, logStart);
  const unfinished = Math.max(end - low - finished.above, 0);
  return { logStart, end, low, finishedAbove: finished.above, unfinished };
}

export type PartitionView = NonNullable<ReturnType<typeof unfinishedOf>> & {
  readonly partition: number;
};

function* partitionsOf(broker: Broker, groupId: string, topic: Topic): Iterable<PartitionView> {
  const delivery = broker.keyed.get(groupId, topic.id);
  const { partitions } = broker.replica.state.topics;
  for (const [index, partition] of topic.partitions.entries()) {
    if (!partitions.exists(partition)) return;
    const found = unfinishedOf(broker, groupId, partition, delivery);
    if (found !== undefined) yield { partition: index, ...found };
  }
}

function topicMembers(broker: Broker, groupId: string, topic: Topic) {
  const delivery = broker.keyed.get(groupId, topic.id);
  if (delivery === undefined) return [];
  const { dispatcher } = delivery;
  return [...dispatcher.members.values()].map((member) => memberView(broker, delivery, member));
}

function memberView(broker: Broker, { dispatcher }: Delivery, member: Member) {
  const lease = leaseOf(dispatcher, member, broker.keyed.now());
  const present = [...member.ranges].filter(({ isPresent }) => isPresent);
  return {
    member: member.id,
    /** The kind of client that it was recognized as. */
    client: member.traits.name,
    lanes: present.map(({ lane }) => lane).sort((a, b) => a - b),
    inHand: member.inHand,
    window: member.window.size(demandOf(dispatcher, member)),
    handledNotCommitted: member.unfinished - member.inHand,
    leaseMs: Number.isFinite(member.leaseMs) ? member.leaseMs : null,
    oldestLease: lease === undefined ? null : leaseView(broker, lease),
  };
}
