/**
 * The rounds in which a group comes to its next generation: gathering the members, ending the
 * gathering, and waiting for their SyncGroup (Kafka's GroupMetadataManager, classic part).
 */

import { assert } from '../../core/assert.ts';
import { ErrorCode } from '../../protocol/error-codes.ts';
import type { Now } from '../deadlines.ts';
import type { ClassicContext, KeyedRules, RemovalCause } from './context.ts';
import type { ClassicGroup } from './group.ts';
import { keyedRules, leaderMs, metadataForLeader, otherLeader, roundMs } from './keyed-rounds.ts';
import { type ClassicMember, emptyBuffer } from './member.ts';
import type { JoinGroupResponse, SyncGroupResponse } from './messages.ts';
import { joinError, joinedGeneration, syncError } from './responses.ts';
import { ClassicState, canRebalance } from './state.ts';

/** A round that found nobody is not tried again sooner, whatever timeouts the members gave. */
const emptyRoundDelayMsMin = 1_000;

/** The member is alive: its session starts anew. */
export function touchSession(
  context: ClassicContext,
  member: ClassicMember,
  now: Now,
  timeoutMs = member.facts.sessionTimeoutMs,
): void {
  context.deadlines.schedule(member.session, now.monotonicMs + timeoutMs);
}

export function answerJoin(
  context: ClassicContext,
  group: ClassicGroup,
  member: ClassicMember,
  response: JoinGroupResponse,
): void {
  const respond = group.setAwaitingJoin(member, null);
  if (respond !== null) context.answer(respond, response);
}

export function answerSync(
  context: ClassicContext,
  member: ClassicMember,
  response: SyncGroupResponse,
): boolean {
  const respond = member.awaitingSync;
  if (respond === null) return false;
  member.awaitingSync = null;
  context.answer(respond, response);
  return true;
}

/**
 * Takes a member out. What it has parked is answered UNKNOWN_MEMBER_ID, so that a client that is
 * still there joins again under a new id.
 */
export function removeMember(
  context: ClassicContext,
  group: ClassicGroup,
  member: ClassicMember,
  cause: RemovalCause,
  reason = '',
): void {
  answerJoin(context, group, member, joinError('', ErrorCode.UNKNOWN_MEMBER_ID));
  answerSync(context, member, syncError(ErrorCode.UNKNOWN_MEMBER_ID));
  context.deadlines.cancel(member.session);
  group.remove(member);
  context.event(group, { kind: 'memberRemoved', member, cause, reason });
}

/** After a change of members or of their metadata: a new round, or a step in the present one. */
export function rebalanceOrAdvance(
  context: ClassicContext,
  group: ClassicGroup,
  reason: string,
  now: Now,
): void {
  if (canRebalance(group.state)) prepareRebalance(context, group, reason, now);
  else advanceRound(context, group, now);
}

/** Ends the round if it need not wait any longer. An initial round always waits for its timer. */
export function advanceRound(context: ClassicContext, group: ClassicGroup, now: Now): void {
  if (group.state !== ClassicState.preparingRebalance || group.isInitialRound) return;
  if (group.hasAllMembersJoined) completeRound(context, group, now);
  else limitRound(context, group, now);
}

/** In keyed delivery a round ends soon after the first one has rejoined. */
function limitRound(context: ClassicContext, group: ClassicGroup, now: Now): void {
  if (group.isRoundLimited || group.awaitingJoinCount === 0) return;
  const rules = keyedRules(context, group);
  if (rules === null) return;
  group.isRoundLimited = true;
  context.deadlines.schedule(group.joinTimer, now.monotonicMs + roundMs(group, rules));
}

export function prepareRebalance(
  context: ClassicContext,
  group: ClassicGroup,
  reason: string,
  now: Now,
): void {
  if (group.state === ClassicState.completingRebalance) {
    dropAssignments(context, group, ErrorCode.REBALANCE_IN_PROGRESS, now);
  }
  group.pendingSyncs.clear();
  group.isRoundLimited = false;
  context.deadlines.cancel(group.syncTimer);
  group.transitionTo(ClassicState.preparingRebalance, now);
  context.event(group, { kind: 'rebalanceStarted', reason });
  if (group.isInitialRound) {
    startInitialRound(context, group, now);
  } else if (group.hasAllMembersJoined) {
    completeRound(context, group, now);
  } else {
    context.deadlines.schedule(group.joinTimer, now.monotonicMs + group.rebalanceTimeoutMs);
    limitRound(context, group, now);
  }
}

/**
 * The first round of an empty group waits for more members to come, so that a deployment causes
 * one rebalance and not one per consumer: a delay, prolonged while members keep joining, up to the
 * rebalance timeout in all (KIP-134).
 */
function startInitialRound(context: ClassicContext, group: ClassicGroup, now: Now): void {
  const delayMs = context.options.initialRebalanceDelayMs;
  group.newMemberAdded = false;
  group.initialRound = { delayMs, remainingMs: Math.max(group.rebalanceTimeoutMs - delayMs, 0) };
  if (delayMs === 0) completeRound(context, group, now);
  else context.deadlines.schedule(group.joinTimer, now.monotonicMs + delayMs);
}

/** The time of the gathering is up. */
export function onJoinTimer(context: ClassicContext, group: ClassicGroup, now: Now): void {
  if (group.isRoundLimited && keyedRules(context, group) === null) {
    // Kafka's rules hold again, by which whoever is late is thrown out: they get their full time.
    group.isRoundLimited = false;
    context.deadlines.schedule(group.joinTimer, now.monotonicMs + group.rebalanceTimeoutMs);
    return;
  }
  const round = group.initialRound;
  if (round !== null && group.newMemberAdded && round.remainingMs > 0) {
    const delayMs = Math.min(context.options.initialRebalanceDelayMs, round.remainingMs);
    group.newMemberAdded = false;
    group.initialRound = { delayMs, remainingMs: Math.max(round.remainingMs - round.delayMs, 0) };
    context.deadlines.schedule(group.joinTimer, now.monotonicMs + delayMs);
  } else {
    completeRound(context, group, now);
  }
}

/**
 * Begins the next generation with those who rejoined, and with static members in any case; in
 * keyed delivery with all, as long as one of them can lead.
 */
function completeRound(context: ClassicContext, group: ClassicGroup, now: Now): void {
  assert(group.state === ClassicState.preparingRebalance, 'only a round can be completed');
  context.deadlines.cancel(group.joinTimer);
  const staysAbsent = keyedRules(context, group) !== null;
  for (const member of staysAbsent ? [] : [...group.members.values()]) {
    if (member.awaitingJoin === null && member.groupInstanceId === null) {
      removeMember(context, group, member, 'did not rejoin');
    }
  }
  if (!group.electJoinedLeader() && group.members.size > 0) {
    // Only absent members are left. Their sessions will end them, or they come back.
    group.isRoundLimited = false;
    const delayMs = Math.max(group.rebalanceTimeoutMs, emptyRoundDelayMsMin);
    context.deadlines.schedule(group.joinTimer, now.monotonicMs + delayMs);
    return;
  }
  group.initialRound = null;
  group.beginGeneration(now);
  if (group.members.size === 0) storeEmpty(context, group);
  else announceGeneration(context, group, now);
}

function announceGeneration(context: ClassicContext, group: ClassicGroup, now: Now): void {
  const rules = keyedRules(context, group);
  // The leader is shown who is absent, so all who are not are noted first.
  for (const member of group.members.values()) {
    if (member.awaitingJoin !== null) member.noteGeneration(group.generationId);
  }
  const as = { leader: group.leaderId!, metadataOf: metadataForLeader(context, group) };
  for (const member of group.members.values()) {
    if (member.awaitingJoin !== null) {
      answerJoin(context, group, member, joinedGeneration(group, member.memberId, as));
    } else if (rules !== null) {
      // That others rebalance is no sign of life of an absent one.
      continue;
    }
    touchSession(context, member, now);
    member.isNew = false;
    group.pendingSyncs.add(member.memberId);
  }
  group.isLeaderLimited = rules !== null;
  const waitMs = rules === null ? group.rebalanceTimeoutMs : leaderMs(group, rules);
  context.deadlines.schedule(group.syncTimer, now.monotonicMs + waitMs);
  context.event(group, { kind: 'generationStarted' });
}

function storeEmpty(context: ClassicContext, group: ClassicGroup): void {
  const waiting: ((isStored: boolean) => void)[] = [];
  group.emptyStored = waiting;
  group.isPersisted = true;
  context.event(group, { kind: 'empty' });
  context.persist(group.groupId, group.image(null), (isDurable) => {
    // If it failed, the last image with members stays; after a restart they would time out.
    if (!isDurable) context.event(group, { kind: 'persistFailed', what: 'empty group' });
    if (group.emptyStored === waiting) group.emptyStored = null;
    for (const callback of waiting) callback(isDurable);
  });
}

/**
 * Whoever got the generation and did not ask for the assignment in time is taken out. In keyed
 * delivery the first to be awaited is the leader, and not for long.
 */
export function onSyncTimer(context: ClassicContext, group: ClassicGroup, now: Now): void {
  const rules = keyedRules(context, group);
  if (rules !== null && group.state === ClassicState.completingRebalance) {
    onLeaderLate(context, group, rules, now);
    return;
  }
  if (group.isLeaderLimited) {
    awaitSyncs(context, group, now);
    return;
  }
  const late = [...group.pendingSyncs].map((memberId) => group.members.get(memberId)!);
  if (late.length === 0) return;
  for (const member of late) removeMember(context, group, member, 'did not sync');
  const reason = `members that did not sync in time: ${late.length}`;
  prepareRebalance(context, group, reason, now);
}

/** All that got the generation have their full time to ask for their assignment. */
export function awaitSyncs(context: ClassicContext, group: ClassicGroup, now: Now): void {
  group.isLeaderLimited = false;
  if (group.pendingSyncs.size === 0) return;
  context.deadlines.schedule(group.syncTimer, now.monotonicMs + group.rebalanceTimeoutMs);
}

/** A leader that has not assigned is absent: another present member leads a new round. */
function onLeaderLate(
  context: ClassicContext,
  group: ClassicGroup,
  rules: KeyedRules,
  now: Now,
): void {
  const isStoring = group.storingGenerationId === group.generationId;
  const other = isStoring ? null : otherLeader(group);
  if (other === null) {
    // The plan is on its way, or nobody waits for it.
    context.deadlines.schedule(group.syncTimer, now.monotonicMs + leaderMs(group, rules));
    return;
  }
  const reason = `leader ${group.leaderId} did not assign in time`;
  group.lateLeaderCount++;
  group.leaderId = other.memberId;
  prepareRebalance(context, group, reason, now);
}

/** The members' SyncGroup came to nothing: they are told so and have no assignment. */
export function dropAssignments(
  context: ClassicContext,
  group: ClassicGroup,
  errorCode: ErrorCode,
  now: Now,
): void {
  // In keyed delivery lanes stay with those who have them until a new plan is stored.
  const keepsAssignments = keyedRules(context, group) !== null;
  for (const member of group.members.values()) {
    if (!keepsAssignments) member.assignment = emptyBuffer;
    // While its request was parked a session that ran out was ignored, so it has to start anew.
    if (!answerSync(context, member, syncError(errorCode))) continue;
    member.isAskedToRejoin = true;
    touchSession(context, member, now);
  }
}
