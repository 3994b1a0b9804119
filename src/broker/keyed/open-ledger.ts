import { readSubscribedTopics } from '../../groups/consumer-protocol.ts';
import type { KeyedEffect } from '../../state/keyed/effects.ts';
import { slotsMax } from '../../state/keyed/keyed-table.ts';
import { Ledger } from '../../state/keyed/ledger.ts';
import type { Topic } from '../../state/topics.ts';
import type { Broker } from '../broker.ts';

/** What the deliveries that are there know beyond the applied state. */
export interface Planned {
  isTaken(slot: number): boolean;
  /** Above the lane numbers of deliveries whose end is planned. */
  readonly laneBaseMin: number;
}

/** A group's first ledger of a topic; undefined if no slot is left. */
export function openLedger(
  broker: Broker,
  groupId: string,
  topic: Topic,
  planned: Planned,
): { readonly ledger: Ledger; readonly effect: KeyedEffect } | undefined {
  const slot = freeSlot(broker, topic, planned);
  if (slot === undefined) return undefined;
  const { keyed, appliedIndex } = broker.replica.state;
  const laneBase = Math.max(keyed.laneBaseMin, planned.laneBaseMin, appliedIndex) + 1;
  const starts = startsOf(broker, groupId, topic);
  const effect = { kind: 'opened' as const, slot, laneBase, starts };
  return { ledger: Ledger.open(groupId, topic.id, effect), effect };
}

/**
 * Whether a group that somebody wants to join cannot be served: a topic of it is in keyed delivery,
 * new to the group, and has no slot left. Log delivery instead would break the order of its keys.
 */
export function lacksSlot(broker: Broker, groupId: string, metadata: Buffer | undefined): boolean {
  const topics = metadata === undefined ? null : readSubscribedTopics(metadata);
  for (const name of topics ?? []) {
    const topic = broker.topics.byName(name);
    if (topic === undefined || broker.keyed.get(groupId, topic.id) !== undefined) continue;
    if (!broker.keyed.isKeyed(groupId, name)) continue;
    const isTaken = (slot: number) => broker.keyed.bySlot(topic.id, slot) !== undefined;
    if (freeSlot(broker, topic, { isTaken, laneBaseMin: 0 }) !== undefined) continue;
    broker.keyed.notices.onNoSlot(groupId, name, slotsMax);
    return true;
  }
  return false;
}

/** The lowest slot that neither the state nor a plan has. */
function freeSlot(broker: Broker, topic: Topic, planned: Planned): number | undefined {
  const { keyed } = broker.replica.state;
  for (let slot = 1; slot <= slotsMax; slot++) {
    if (!planned.isTaken(slot) && keyed.bySlot(topic.id, slot) === undefined) return slot;
  }
  return undefined;
}

/** Where a new group begins: where it committed to, or as `delivery.start` says. */
function startsOf(broker: Broker, groupId: string, topic: Topic): (readonly [number, number])[] {
  const { topics, offsets } = broker.replica.state;
  const { partitions } = topics;
  const { start } = broker.deliveryOf(groupId, topic.name);
  return topic.partitions.map((partition) => {
    const first = partitions.logStart(partition);
    const end = partitions.end(partition);
    const committed = offsets.get(groupId, partition)?.offset ?? -1;
    if (committed >= 0) return [partition, Math.min(Math.max(committed, first), end)] as const;
    return [partition, start === 'latest' ? end : first] as const;
  });
}

/**
 * What a consumer that died had in hand is told from the rest when the next one comes, even if none
 * has ever finished anything. One that merely looked and left is forgotten.
 */
export function leavesTrace({ hasFinished, trials }: Ledger): boolean {
  return hasFinished || [...trials.values()].some(({ reason }) => reason !== 'left');
}
