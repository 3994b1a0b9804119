/**
 * When a committed offset is too old to keep, as Kafka rules it (ClassicGroup
 * .offsetExpirationCondition, OffsetExpirationConditionImpl, KIP-211). Pure: the leader asks, and
 * writes what expired as an entry.
 */

import { consumerProtocolType } from './consumer-protocol.ts';

/** What the rules need to know about a group. */
export interface GroupOffsetFacts {
  /** null: a group that only ever committed, without members. */
  readonly protocolType: string | null;
  readonly isEmpty: boolean;
  readonly isStable: boolean;
  /** Wall time at which the group came into its present state. */
  readonly stateTimestampMs: number;
  /** null: not known, or the members' metadata is no subscription. */
  readonly subscribedTopics: ReadonlySet<string> | null;
}

export interface CommittedOffsetFacts {
  readonly topic: string;
  readonly commitTimestampMs: number;
  /** Set by OffsetCommit versions 2 to 4 with a retention time of their own, else null. */
  readonly expireTimestampMs: number | null;
}

/** Unknown subscriptions count as subscribed to everything: nothing is deleted on a guess. */
export function isSubscribedToTopic(group: GroupOffsetFacts, topic: string): boolean {
  if (group.subscribedTopics !== null) return group.subscribedTopics.has(topic);
  return group.protocolType === consumerProtocolType;
}

/** `group` is null where the coordinator knows no such group: then only the commit's age counts. */
export function isOffsetExpired(
  group: GroupOffsetFacts | null,
  offset: CommittedOffsetFacts,
  nowWallMs: number,
  retentionMs: number,
): boolean {
  const baseMs = retentionStartsAtMs(group, offset);
  if (baseMs === null) return false;
  if (offset.expireTimestampMs !== null) return nowWallMs >= offset.expireTimestampMs;
  return nowWallMs - baseMs >= retentionMs;
}

/** From when on the retention time counts; null while the offset must stay. */
function retentionStartsAtMs(
  group: GroupOffsetFacts | null,
  offset: CommittedOffsetFacts,
): number | null {
  if (group === null || group.protocolType === null) return offset.commitTimestampMs;
  if (isSubscribedToTopic(group, offset.topic)) return null;
  if (group.isEmpty) return group.stateTimestampMs;
  const knowsItsTopics =
    group.protocolType === consumerProtocolType && group.subscribedTopics !== null;
  return knowsItsTopics && group.isStable ? offset.commitTimestampMs : null;
}
