import type { LeaveGroupResponse } from '../groups/classic/messages.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import { leaveGroupRequest, leaveGroupResponse } from '../protocol/schema/13-leave-group.ts';
import { defineHandler } from './handler.ts';

/** From this version on several members may leave at once (KIP-345). */
const batchedFrom = 3;

export const leaveGroup = defineHandler({
  request: leaveGroupRequest,
  response: leaveGroupResponse,
  versions: [0, 5],
  handle(request, { broker, apiVersion }, answer) {
    const { groupId, memberId } = request;
    const isBatched = apiVersion >= batchedFrom;
    const members = isBatched
      ? request.members
      : [{ memberId, groupInstanceId: null, reason: null }];
    const respond = (response: LeaveGroupResponse) => {
      answer(isBatched ? response : { errorCode: errorOfOne(response) });
    };
    if (!broker.groups.isCoordinator) {
      answer({ errorCode: ErrorCode.NOT_COORDINATOR });
      return;
    }
    broker.groups.run((coordinator, now) =>
      coordinator.leaveGroup({ groupId, members }, now, respond),
    );
  },
});

/** Where one member leaves its error is the error of all. */
function errorOfOne({ errorCode, members }: LeaveGroupResponse): ErrorCode {
  return errorCode === ErrorCode.NONE ? (members[0]?.errorCode ?? errorCode) : errorCode;
}
