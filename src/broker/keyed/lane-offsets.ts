import { partOf } from '../../groups/keyed/commit-parts.ts';
import type { CommittedOffset } from '../../state/commands.ts';
import type { Broker } from '../broker.ts';
import type { Client } from '../handler.ts';
import type { Delivery } from './delivery.ts';
import { isLaneOffset, laneOffset, numberOf, slotOf } from './lane-numbers.ts';

/** Who asks for offsets or commits them. */
export interface Asker {
  /** Empty or null where the request does not say. */
  readonly memberId: string | null;
  readonly clientId: string;
  readonly client: Client;
}

/**
 * The committed offsets of a group as this asker sees them: a member gets lane offsets for its
 * lanes, anybody else for each stored partition the log's end less its unfinished records, so that
 * the lag that any tool computes is the number of unfinished records.
 */
export function offsetsFor(
  broker: Broker,
  groupId: string,
  asker: Asker,
): ReadonlyMap<number, CommittedOffset> | undefined {
  const stored = broker.replica.state.offsets.of(groupId);
  const deliveries = [...broker.keyed.of(groupId)];
  if (deliveries.length === 0) return stored;
  const offsets = new Map(stored);
  const memberId = memberOf(broker, groupId, asker);
  for (const delivery of deliveries) {
    for (const [index, partition] of delivery.topic.partitions.entries()) {
      if (!delivery.dispatcher.members.has(memberId)) {
        offsets.set(partition, shownOffset(broker, delivery, partition));
        continue;
      }
      const n = positionOf(broker, delivery, index, memberId);
      offsets.set(partition, offsetOf(laneOffset(delivery.slot, n), ''));
      const handshake = { asker, slot: delivery.slot };
      broker.keyed.handshakes.begin(delivery.topic.id, index, handshake);
    }
  }
  return offsets;
}

/**
 * Where the member goes on in a lane. A fetch is known by its number alone, so this is told from
 * what is durable: a plan that is lost would leave the member with numbers that become another's.
 * A lane that it has not, or not yet, has nothing for it: it hears the number before the owner's
 * first one, which is in no range, and finds out by its next heartbeat.
 */
function positionOf(broker: Broker, delivery: Delivery, index: number, memberId: string): number {
  const durable = broker.replica.state.keyed.get(delivery.groupId, delivery.topic.id);
  const range = durable?.present(index);
  if (range?.memberId === memberId) return Math.min(range.grants.firstN, range.end);
  if (range !== undefined) return range.start - 1;
  return durable?.lane(index)?.end ?? delivery.dispatcher.ledger.laneBase;
}

function memberOf(broker: Broker, groupId: string, { memberId, client, clientId }: Asker): string {
  if (memberId !== null && memberId !== '') return memberId;
  const known = broker.groups.connections.memberOf(client.connectionId, groupId);
  if (known !== undefined) return known;
  return broker.keyed.onlyMember(groupId, clientId, client) ?? '';
}

function offsetOf(offset: number, metadata: string): CommittedOffset {
  return { offset, leaderEpoch: -1, metadata, commitMs: -1, expireMs: -1 };
}

/** What admin tools see for a stored partition. */
export function shownOffset(
  broker: Broker,
  { dispatcher }: Delivery,
  partition: number,
): CommittedOffset {
  const { partitions } = broker.replica.state.topics;
  const end = partitions.end(partition);
  const finished = dispatcher.ledger.finished(partition);
  const low = Math.max(finished.low, partitions.logStart(partition));
  const unfinished = Math.max(end - low - finished.above, 0);
  return offsetOf(end - unfinished, `keyed delivery: all below ${low} is finished`);
}

/**
 * What a commit says of a topic in keyed delivery: offsets by the lanes that they are for. False if
 * that is much: then only a part of it was done, and it is to be called again in another turn.
 */
export function commitLanes(
  broker: Broker,
  delivery: Delivery,
  memberId: string,
  offsets: ReadonlyMap<number, number>,
): boolean {
  const { dispatcher, topic, groupId } = delivery;
  const numbers = new Map<number, number>();
  for (const [lane, offset] of offsets) {
    if (memberId === '') reset(broker, delivery, topic.partitions[lane]!, offset);
    else if (!isLaneOffset(offset)) {
      broker.keyed.notices.onLogOffsets(groupId, memberId, topic.name);
    } else if (slotOf(offset) === delivery.slot) numbers.set(lane, numberOf(offset));
  }
  const part = partOf(dispatcher, memberId, numbers);
  for (const lane of dispatcher.commit(memberId, part ?? numbers, broker.keyed.now())) {
    const facts = { groupId, memberId, topic: topic.name, lane, offset: offsets.get(lane) };
    broker.log.warn(facts, 'a commit beyond all that the member was given changes nothing');
  }
  return part === undefined;
}

/** An operator moves a group without members. The value that is shown changes nothing. */
function reset(broker: Broker, delivery: Delivery, partition: number, offset: number): void {
  if (isLaneOffset(offset) || offset < 0) return;
  if (offset === shownOffset(broker, delivery, partition).offset) return;
  delivery.dispatcher.plan({ kind: 'reset', partition, offset });
}
