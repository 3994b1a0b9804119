/**
 * What is different in a group whose topics are all in keyed delivery: nobody waits long for a
 * member that is busy. A round ends soon after the first member rejoined, with a leader from among
 * those who did. The others are absent: they stay, are planned for, and come in when they have
 * time. Lanes may change hands under them, because ownership ranges keep former and new owners of
 * a lane apart.
 */

import {
  consumerProtocolType,
  readAssignment,
  readSubscribedTopics,
  type TopicPartitions,
  withOwnedPartitions,
} from '../consumer-protocol.ts';
import { type Candidate, withLeftovers } from '../lane-plan.ts';
import type { ClassicContext, KeyedRules } from './context.ts';
import type { ClassicGroup } from './group.ts';
import type { ClassicMember, MemberFacts } from './member.ts';
import { ClassicState } from './state.ts';

/**
 * The rules if the group is in keyed delivery, null where Kafka's hold. They do for a group that
 * has to be made smaller, because only Kafka's rounds turn members away.
 */
export function keyedRules(context: ClassicContext, group: ClassicGroup): KeyedRules | null {
  if (group.protocolType !== consumerProtocolType) return null;
  if (group.members.size > context.options.groupSizeMax) return null;
  return context.ports.keyedRules?.(group.groupId) ?? null;
}

/** It was in an earlier generation, and has not been told of the present one. */
export function isAbsent(group: ClassicGroup, member: ClassicMember): boolean {
  return member.lastGenerationId >= 0 && member.lastGenerationId !== group.generationId;
}

/** From the first rejoin of a round to its end. */
export function roundMs(group: ClassicGroup, rules: KeyedRules): number {
  return Math.min(rules.rebalanceWaitMs, group.rebalanceTimeoutMs);
}

/**
 * How long a leader may take to assign. Longer after each leader in a row that was late: so a
 * group whose assignor is slow comes to an end as well.
 */
export function leaderMs(group: ClassicGroup, rules: KeyedRules): number {
  const { rebalanceWaitMs } = rules;
  const patienceMs = rebalanceWaitMs * 2 ** Math.min(group.lateLeaderCount, 30);
  return Math.min(patienceMs, Math.max(group.rebalanceTimeoutMs, rebalanceWaitMs));
}

/** A present member that could lead instead; rather one that waits for its assignment already. */
export function otherLeader(group: ClassicGroup): ClassicMember | null {
  let other: ClassicMember | null = null;
  for (const member of group.members.values()) {
    if (member.memberId === group.leaderId || isAbsent(group, member)) continue;
    if (member.awaitingSync !== null) return member;
    other ??= member;
  }
  return other;
}

/**
 * The metadata that the leader is shown. An absent member said what it owned when it last joined;
 * what counts is what the last stored plan gave it since.
 */
export function metadataForLeader(
  context: ClassicContext,
  group: ClassicGroup,
): (member: ClassicMember) => Buffer {
  const protocolName = group.protocolName!;
  if (keyedRules(context, group) === null) return (member) => member.metadata(protocolName);
  return (member) => {
    const metadata = member.metadata(protocolName);
    const assignment = isAbsent(group, member) ? readAssignment(member.assignment) : null;
    if (assignment === null) return metadata;
    return withOwnedPartitions(metadata, assignment.partitions, group.assignedGenerationId);
  };
}

/**
 * Whether this JoinGroup is the first of a member that missed the round, and no reason for a new
 * one: it gets the present generation at once.
 */
export function comesLate(
  context: ClassicContext,
  group: ClassicGroup,
  member: ClassicMember,
  facts: MemberFacts,
): boolean {
  const hasGeneration =
    group.state === ClassicState.stable || group.state === ClassicState.completingRebalance;
  if (!hasGeneration || !isAbsent(group, member) || group.leaderId === member.memberId) {
    return false;
  }
  if (keyedRules(context, group) === null) return false;
  const protocolName = group.protocolName!;
  const metadata = facts.protocols.find(({ name }) => name === protocolName)?.metadata;
  return metadata !== undefined && haveSameTopics(member.metadata(protocolName), metadata);
}

function haveSameTopics(a: Buffer, b: Buffer): boolean {
  const before = readSubscribedTopics(a);
  const after = readSubscribedTopics(b);
  if (before === null || after === null) return false;
  const topics = new Set(before);
  const others = new Set(after);
  return topics.size === others.size && after.every((topic) => topics.has(topic));
}

/** The leader's plan with nothing left over, as far as there are present members to take it. */
export function completedPlan(
  group: ClassicGroup,
  rules: KeyedRules,
  plan: ReadonlyMap<string, Buffer>,
): ReadonlyMap<string, Buffer> {
  const candidates: Candidate[] = [];
  const lanes = new Map<string, number>();
  for (const member of group.members.values()) {
    if (isAbsent(group, member)) continue;
    const topics = readSubscribedTopics(member.metadata(group.protocolName!));
    if (topics === null) continue;
    candidates.push({ memberId: member.memberId, topics: new Set(topics) });
    for (const topic of topics) if (!lanes.has(topic)) lanes.set(topic, rules.laneCount(topic));
  }
  return withLeftovers(plan, lanes, candidates);
}

export function partitionsByMember(
  plan: ReadonlyMap<string, Buffer>,
): Map<string, TopicPartitions | null> {
  const assignments = new Map<string, TopicPartitions | null>();
  for (const [memberId, bytes] of plan) {
    assignments.set(memberId, readAssignment(bytes)?.partitions ?? null);
  }
  return assignments;
}
