import type { Logger } from '../../core/logger.ts';
import type { ClassicGroup } from '../../groups/classic/group.ts';
import type { Broker } from '../broker.ts';
import type { Delivery } from './delivery.ts';

/** Beyond this nothing more is told once: names come from clients. */
const noticesMax = 10_000;

/** What operators are told of a group when it happens, each thing once. */
export class Notices {
  readonly #log: Logger;
  readonly #told = new Set<string>();
  /** The generation of which a group was last told that it has too many members. */
  readonly #crowded = new Map<string, number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  #isFirst(...words: readonly string[]): boolean {
    const key = JSON.stringify(words);
    if (this.#told.has(key) || this.#told.size >= noticesMax) return false;
    this.#told.add(key);
    return true;
  }

  /** A member positions itself, and wants log delivery. */
  onLogOffsets(groupId: string, memberId: string, topic: string): void {
    if (!this.#isFirst('log offsets', groupId, memberId, topic)) return;
    this.#log.warn(
      { groupId, memberId, topic },
      'a member of a group in keyed delivery uses offsets of the log: it seems to position ' +
        'itself, and wants delivery.mode=log',
    );
  }

  /** Consumers without a lane are idle; once for each generation. */
  onAssigned({ groupId, generationId, members }: ClassicGroup, laneCount: number): void {
    if (laneCount >= members.size) {
      this.#crowded.delete(groupId);
      return;
    }
    if (this.#crowded.get(groupId) === generationId) return;
    this.#crowded.set(groupId, generationId);
    this.#log.warn(
      { groupId, generationId, members: members.size, lanes: laneCount },
      'a group has more consumers than lanes, so some are idle: add partitions to its topics',
    );
  }

  onNoSlot(groupId: string, topic: string, slots: number): void {
    if (!this.#isFirst('no slot', groupId, topic)) return;
    this.#log.error(
      { groupId, topic, slots },
      'no slot is left: a topic has room for so many groups in keyed delivery, and this one is ' +
        'refused; delete groups that are not used any more',
    );
  }

  /** Keys wait for a commit of records that were handled long ago. */
  onPinned({ groupId, topic }: Delivery, facts: object): void {
    if (!this.#isFirst('pinned', groupId, topic.id)) return;
    this.#log.warn(
      { groupId, topic: topic.name, ...facts },
      'records wait for keys whose records a busy consumer has handled and not committed: if its ' +
        'commits are automatic, set delivery.ack=poll for the group',
    );
  }

  /** The group is gone. */
  forget(groupId: string): void {
    this.#crowded.delete(groupId);
  }
}

/** Lanes, and partitions in log delivery, of all topics that the group's members want. */
export function lanesFor(broker: Broker, { subscribedTopics }: ClassicGroup): number {
  if (subscribedTopics === null) return Number.POSITIVE_INFINITY;
  let count = 0;
  for (const name of subscribedTopics) count += broker.topics.byName(name)?.partitions.length ?? 0;
  return count;
}
