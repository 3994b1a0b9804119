/** How groups come into being, end, and how sessions run out. */

import { assert } from '../../core/assert.ts';
import { type Now, Timer } from '../deadlines.ts';
import type { GroupImage } from '../group-image.ts';
import type { ClassicContext } from './context.ts';
import { ClassicGroup } from './group.ts';
import { keyedRules } from './keyed-rounds.ts';
import { ClassicMember, type MemberFacts } from './member.ts';
import {
  advanceRound,
  onJoinTimer,
  onSyncTimer,
  prepareRebalance,
  rebalanceOrAdvance,
  removeMember,
  touchSession,
} from './rebalance.ts';
import { ClassicState } from './state.ts';

/** How often it is asked anew whether a silent member may stay. */
const silentCheckMs = 1_000;

/** An Empty group that nothing is known of yet. */
export function createGroup(context: ClassicContext, groupId: string, now: Now): ClassicGroup {
  assert(!context.groups.has(groupId), `group ${groupId} exists already`);
  const group: ClassicGroup = new ClassicGroup(
    groupId,
    new Timer((at) => onJoinTimer(context, group, at)),
    new Timer((at) => onSyncTimer(context, group, at)),
    now,
  );
  context.groups.set(groupId, group);
  return group;
}

/** The same on behalf of a client; null if there are too many groups. */
export function createGroupIfRoom(
  context: ClassicContext,
  groupId: string,
  now: Now,
): ClassicGroup | null {
  const hasRoom = context.groups.size < context.options.groupsMax;
  return hasRoom ? createGroup(context, groupId, now) : null;
}

/** Forgets the group without a word to anybody; nothing of it may be parked. */
export function dropGroup(context: ClassicContext, group: ClassicGroup, now: Now): void {
  for (const timer of group.pendingJoins.values()) context.deadlines.cancel(timer);
  for (const { session } of group.members.values()) context.deadlines.cancel(session);
  context.deadlines.cancel(group.joinTimer);
  context.deadlines.cancel(group.syncTimer);
  group.pendingJoins.clear();
  group.transitionTo(ClassicState.dead, now);
  if (context.groups.get(group.groupId) === group) context.groups.delete(group.groupId);
}

/**
 * Groups are made by the mere mention of their name. One that came to nothing, such as a refused
 * JoinGroup or an id that was given out and never used, leaves no trace.
 */
export function dropUnusedGroup(context: ClassicContext, group: ClassicGroup, now: Now): void {
  const isUsed = group.isPersisted || group.holdsOffsets || group.pendingJoins.size > 0;
  if (group.state === ClassicState.empty && !isUsed) dropGroup(context, group, now);
}

export function createMember(
  context: ClassicContext,
  group: ClassicGroup,
  id: { readonly memberId: string; readonly groupInstanceId: string | null },
  facts: MemberFacts,
): ClassicMember {
  const member: ClassicMember = new ClassicMember(
    id.memberId,
    id.groupInstanceId,
    facts,
    new Timer((now) => onSessionTimer(context, group, member, now)),
  );
  return member;
}

/** Remembers an id that was given out, for as long as the session would last (KIP-394). */
export function addPendingJoin(
  context: ClassicContext,
  group: ClassicGroup,
  memberId: string,
  deadlineMs: number,
): void {
  if (group.pendingJoins.size >= context.options.pendingJoinsMax) {
    const [oldest] = group.pendingJoins.keys();
    removePendingJoin(context, group, oldest!);
  }
  const timer = new Timer((now) => {
    group.pendingJoins.delete(memberId);
    advanceRound(context, group, now);
    dropUnusedGroup(context, group, now);
  });
  group.pendingJoins.set(memberId, timer);
  context.deadlines.schedule(timer, deadlineMs);
}

export function removePendingJoin(
  context: ClassicContext,
  group: ClassicGroup,
  memberId: string,
): boolean {
  const timer = group.pendingJoins.get(memberId);
  if (timer === undefined) return false;
  context.deadlines.cancel(timer);
  return group.pendingJoins.delete(memberId);
}

function onSessionTimer(
  context: ClassicContext,
  group: ClassicGroup,
  member: ClassicMember,
  now: Now,
): void {
  // The answer to what is parked starts the session anew.
  if (member.isKeptByParkedRequest) return;
  if (keyedRules(context, group)?.keepsSilent(member, now) === true) {
    touchSession(context, member, now, silentCheckMs);
    return;
  }
  removeMember(context, group, member, 'session timeout');
  rebalanceOrAdvance(context, group, `member ${member.memberId} timed out`, now);
}

/**
 * Takes a group over from its image. Its members live on with full sessions: they go on with
 * heartbeats and commits and need not know that anything happened.
 */
export function restoreGroup(
  context: ClassicContext,
  groupId: string,
  image: GroupImage,
  now: Now,
): ClassicGroup {
  const group = createGroup(context, groupId, now);
  group.isPersisted = true;
  group.generationId = image.generationId;
  group.protocolName = image.protocolName;
  group.assignedGenerationId = image.members.length === 0 ? -1 : image.generationId;
  for (const { memberId, groupInstanceId, assignment, generations, ...facts } of image.members) {
    const member = createMember(context, group, { memberId, groupInstanceId }, facts);
    member.assignment = assignment;
    member.firstGenerationId = generations?.firstGenerationId ?? image.generationId;
    member.lastGenerationId = generations?.lastGenerationId ?? image.generationId;
    group.add(member, image.protocolType!);
    touchSession(context, member, now);
  }
  group.protocolType = image.protocolType;
  assert(image.leaderId === null || group.members.has(image.leaderId), 'the leader is a member');
  group.leaderId = image.leaderId;
  group.state = image.members.length === 0 ? ClassicState.empty : ClassicState.stable;
  group.stateTimestampMs = image.stateTimestampMs;
  group.noteSubscriptions();
  context.event(group, { kind: 'restored' });
  if (group.members.size > context.options.groupSizeMax) {
    // `group.max.size` was lowered: those who come back first stay.
    prepareRebalance(context, group, 'the restored group is too large', now);
  }
  return group;
}
