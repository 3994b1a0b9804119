import { syncError } from '../groups/classic/responses.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import { syncGroupRequest, syncGroupResponse } from '../protocol/schema/14-sync-group.ts';
import { defineHandler } from './handler.ts';

/** Answered when the leader's assignment is durable; a connection that closes means nothing. */
export const syncGroup = defineHandler({
  request: syncGroupRequest,
  response: syncGroupResponse,
  versions: [0, 5],
  handle(request, context, answer) {
    const { broker, apiVersion } = context;
    if (!broker.groups.isCoordinator) {
      answer(syncError(ErrorCode.NOT_COORDINATOR));
      return;
    }
    broker.groups.heardFrom(context, request.groupId, request.memberId);
    const respond = broker.groups.paced(answer);
    broker.groups.run((coordinator, now) =>
      coordinator.syncGroup({ ...request, apiVersion }, now, respond),
    );
  },
});
