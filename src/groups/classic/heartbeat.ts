import { ErrorCode } from '../../protocol/error-codes.ts';
import type { Now } from '../deadlines.ts';
import type { ClassicContext } from './context.ts';
import type { HeartbeatRequest } from './messages.ts';
import { touchSession } from './rebalance.ts';
import { ClassicState } from './state.ts';

export function heartbeat(context: ClassicContext, request: HeartbeatRequest, now: Now): ErrorCode {
  if (request.groupId === '') return ErrorCode.INVALID_GROUP_ID;
  const group = context.groups.get(request.groupId);
  if (group === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
  const errorCode = group.checkMember(request.memberId, request.groupInstanceId);
  if (errorCode !== ErrorCode.NONE) return errorCode;
  if (request.generationId !== group.generationId) return ErrorCode.ILLEGAL_GENERATION;
  touchSession(context, group.members.get(request.memberId)!, now);
  return group.state === ClassicState.preparingRebalance
    ? ErrorCode.REBALANCE_IN_PROGRESS
    : ErrorCode.NONE;
}
