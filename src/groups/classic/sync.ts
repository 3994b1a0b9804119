import { ErrorCode } from '../../protocol/error-codes.ts';
import { consumerProtocolType } from '../consumer-protocol.ts';
import type { Now } from '../deadlines.ts';
import type { ClassicContext } from './context.ts';
import type { ClassicGroup } from './group.ts';
import { completedPlan, keyedRules, partitionsByMember } from './keyed-rounds.ts';
import { emptyBuffer } from './member.ts';
import type { Respond, SyncGroupRequest, SyncGroupResponse } from './messages.ts';
import {
  answerSync,
  awaitSyncs,
  dropAssignments,
  rebalanceOrAdvance,
  touchSession,
} from './rebalance.ts';
import { syncError, syncedAssignment } from './responses.ts';
import { ClassicState } from './state.ts';

/** From here on protocol type and name must be given (KIP-559). */
const protocolRequiredSince = 5;

export function syncGroup(
  context: ClassicContext,
  request: SyncGroupRequest,
  now: Now,
  respond: Respond<SyncGroupResponse>,
): void {
  const group = context.groups.get(request.groupId);
  const errorCode = checkSync(context, group, request);
  if (errorCode !== ErrorCode.NONE || group === undefined) {
    context.answer(respond, syncError(errorCode));
    return;
  }
  const member = group.members.get(request.memberId)!;
  member.noteGeneration(group.generationId);
  group.pendingSyncs.delete(member.memberId);
  if (group.pendingSyncs.size === 0) context.deadlines.cancel(group.syncTimer);
  if (group.state === ClassicState.stable) {
    touchSession(context, member, now);
    member.isAskedToRejoin = false;
    context.answer(respond, syncedAssignment(group, member.assignment));
    return;
  }
  // A request sent twice: the older one is answered too, and its client would join again.
  answerSync(context, member, syncError(ErrorCode.REBALANCE_IN_PROGRESS));
  member.awaitingSync = respond;
  const isLeader = group.leaderId === member.memberId;
  // One generation has one assignment: while it is being stored a second one is not looked at.
  if (isLeader && group.storingGenerationId !== group.generationId) {
    storeAssignments(context, group, request);
  }
}

function checkSync(
  context: ClassicContext,
  group: ClassicGroup | undefined,
  request: SyncGroupRequest,
): ErrorCode {
  const { apiVersion, protocolType, protocolName } = request;
  if (apiVersion >= protocolRequiredSince && (protocolType === null || protocolName === null)) {
    return ErrorCode.INCONSISTENT_GROUP_PROTOCOL;
  }
  if (request.groupId === '') return ErrorCode.INVALID_GROUP_ID;
  if (group === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
  const errorCode = group.checkMember(request.memberId, request.groupInstanceId);
  if (errorCode !== ErrorCode.NONE) return errorCode;
  if (request.generationId !== group.generationId) {
    const member = group.members.get(request.memberId)!;
    const isLate = group.wasGiven(member, request.generationId);
    if (!isLate || keyedRules(context, group) === null) return ErrorCode.ILLEGAL_GENERATION;
    member.isAskedToRejoin = true;
    return ErrorCode.REBALANCE_IN_PROGRESS;
  }
  if (differs(protocolType, group.protocolType) || differs(protocolName, group.protocolName)) {
    return ErrorCode.INCONSISTENT_GROUP_PROTOCOL;
  }
  if (group.state !== ClassicState.preparingRebalance) return ErrorCode.NONE;
  group.members.get(request.memberId)!.isAskedToRejoin = true;
  return ErrorCode.REBALANCE_IN_PROGRESS;
}

function differs(requested: string | null, own: string | null): boolean {
  return requested !== null && own !== null && requested !== own;
}

/**
 * The leader has assigned. When that is durable everybody gets what is theirs. In keyed delivery
 * lanes have new owners then, also if a newer round has begun meanwhile.
 */
function storeAssignments(
  context: ClassicContext,
  group: ClassicGroup,
  request: SyncGroupRequest,
): void {
  const { generationId } = group;
  const assignments = planFrom(context, group, request);
  group.storingGenerationId = generationId;
  group.storingAssignments = assignments;
  group.isPersisted = true;
  context.persist(group.groupId, group.image(assignments), (isDurable, now) => {
    if (group.storingGenerationId === generationId) {
      group.storingGenerationId = -1;
      group.storingAssignments = new Map();
    }
    if (isDurable) group.assignedGenerationId = generationId;
    // Someone may have joined, left or failed meanwhile; then a newer round is under way.
    const isAwaited =
      group.state === ClassicState.completingRebalance && group.generationId === generationId;
    if (!isAwaited) {
      if (isDurable && keyedRules(context, group) !== null) noteAssignments(group, assignments);
      return;
    }
    if (isDurable) {
      giveAssignments(context, group, assignments, now);
    } else {
      context.event(group, { kind: 'persistFailed', what: 'assignment' });
      dropAssignments(context, group, ErrorCode.COORDINATOR_NOT_AVAILABLE, now);
      rebalanceOrAdvance(context, group, 'the assignment could not be stored', now);
    }
  });
}

function planFrom(
  context: ClassicContext,
  group: ClassicGroup,
  request: SyncGroupRequest,
): Map<string, Buffer> {
  const plan = new Map<string, Buffer>();
  for (const { memberId, assignment } of request.assignments) {
    if (group.members.has(memberId)) plan.set(memberId, Buffer.from(assignment));
  }
  const rules = keyedRules(context, group);
  const completed = rules === null ? plan : new Map(completedPlan(group, rules, plan));
  // A group of mixed topics has lanes too, though its rounds are Kafka's.
  if (group.protocolType !== consumerProtocolType) return plan;
  context.event(group, {
    kind: 'assignmentPlanned',
    assignments: partitionsByMember(completed),
  });
  return completed;
}

function noteAssignments(group: ClassicGroup, assignments: ReadonlyMap<string, Buffer>): void {
  for (const member of group.members.values()) {
    member.assignment = assignments.get(member.memberId) ?? emptyBuffer;
  }
}

function giveAssignments(
  context: ClassicContext,
  group: ClassicGroup,
  assignments: ReadonlyMap<string, Buffer>,
  now: Now,
): void {
  noteAssignments(group, assignments);
  for (const member of group.members.values()) {
    const response = syncedAssignment(group, member.assignment);
    if (!answerSync(context, member, response)) continue;
    member.isAskedToRejoin = false;
    touchSession(context, member, now);
  }
  if (group.isLeaderLimited) awaitSyncs(context, group, now);
  group.lateLeaderCount = 0;
  group.transitionTo(ClassicState.stable, now);
  context.event(group, { kind: 'stable' });
}
