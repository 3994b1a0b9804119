import { ErrorCode } from '../../protocol/error-codes.ts';
import type { Now } from '../deadlines.ts';
import type { ClassicContext } from './context.ts';
import { keyedRules } from './keyed-rounds.ts';
import type { HeartbeatRequest } from './messages.ts';
import { touchSession } from './rebalance.ts';
import { ClassicState } from './state.ts';

export function heartbeat(context: ClassicContext, request: HeartbeatRequest, now: Now): ErrorCode {
  if (request.groupId === '') return ErrorCode.INVALID_GROUP_ID;
  const group = context.groups.get(request.groupId);
  if (group === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
  const errorCode = group.checkMember(request.memberId, request.groupInstanceId);
  if (errorCode !== ErrorCode.NONE) return errorCode;
  const member = group.members.get(request.memberId)!;
  const isPresent = request.generationId === group.generationId;
  if (!isPresent) {
    // Of a round that it missed a member is told as if it went on: ILLEGAL_GENERATION would make
    // Java consumers drop what they have handled and not committed.
    const isLate = group.wasGiven(member, request.generationId);
    if (!isLate || keyedRules(context, group) === null) return ErrorCode.ILLEGAL_GENERATION;
  } else if (!member.isNew) {
    member.noteGeneration(group.generationId);
  }
  touchSession(context, member, now);
  if (isPresent && group.state !== ClassicState.preparingRebalance) return ErrorCode.NONE;
  member.isAskedToRejoin = true;
  return ErrorCode.REBALANCE_IN_PROGRESS;
}
