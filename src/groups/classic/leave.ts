import { ErrorCode } from '../../protocol/error-codes.ts';
import type { Now } from '../deadlines.ts';
import type { ClassicContext } from './context.ts';
import type { ClassicGroup } from './group.ts';
import { dropUnusedGroup, removePendingJoin } from './lifecycle.ts';
import type { LeaveGroupRequest, LeaveGroupResponse, LeavingMember, Respond } from './messages.ts';
import { rebalanceOrAdvance, removeMember } from './rebalance.ts';
import { ClassicState } from './state.ts';

/** Each member leaves, or fails to, on its own; all who leave cause one rebalance. */
export function leaveGroup(
  context: ClassicContext,
  request: LeaveGroupRequest,
  now: Now,
  respond: Respond<LeaveGroupResponse>,
): void {
  if (request.groupId === '') {
    context.answer(respond, { errorCode: ErrorCode.INVALID_GROUP_ID, members: [] });
    return;
  }
  const group = context.groups.get(request.groupId);
  const members = request.members.map((leaving) => ({
    memberId: leaving.memberId,
    groupInstanceId: leaving.groupInstanceId,
    errorCode: group === undefined ? ErrorCode.UNKNOWN_MEMBER_ID : leave(context, group, leaving),
  }));
  const response: LeaveGroupResponse = { errorCode: ErrorCode.NONE, members };
  const leftCount = members.filter(({ errorCode }) => errorCode === ErrorCode.NONE).length;
  if (group === undefined || leftCount === 0) {
    context.answer(respond, response);
    return;
  }
  if (group.state !== ClassicState.empty) {
    rebalanceOrAdvance(context, group, `members left: ${leftCount}`, now);
  }
  answerWhenStored(context, group, response, respond);
  dropUnusedGroup(context, group, now);
}

function leave(
  context: ClassicContext,
  group: ClassicGroup,
  { memberId, groupInstanceId, reason }: LeavingMember,
): ErrorCode {
  let leavingId: string | undefined = memberId;
  if (memberId === '') {
    // Admin clients remove static members by their instance id alone.
    leavingId = groupInstanceId === null ? undefined : group.staticMembers.get(groupInstanceId);
    if (leavingId === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
  } else if (removePendingJoin(context, group, memberId)) {
    return ErrorCode.NONE;
  } else {
    const errorCode = group.checkMember(memberId, groupInstanceId);
    if (errorCode !== ErrorCode.NONE) return errorCode;
  }
  const member = group.members.get(leavingId)!;
  removeMember(context, group, member, 'left', reason ?? 'no reason given');
  return ErrorCode.NONE;
}

/** If the last one left, the answer means that the group is durably Empty. */
function answerWhenStored(
  context: ClassicContext,
  group: ClassicGroup,
  response: LeaveGroupResponse,
  respond: Respond<LeaveGroupResponse>,
): void {
  if (group.emptyStored === null) {
    context.answer(respond, response);
    return;
  }
  group.emptyStored.push((isStored) => {
    const errorCode = isStored ? ErrorCode.NONE : ErrorCode.COORDINATOR_NOT_AVAILABLE;
    context.answer(respond, isStored ? response : { errorCode, members: [] });
  });
}
