import { ErrorCode } from '../protocol/error-codes.ts';
import { heartbeatRequest, heartbeatResponse } from '../protocol/schema/12-heartbeat.ts';
import { defineHandler } from './handler.ts';

export const heartbeat = defineHandler({
  request: heartbeatRequest,
  response: heartbeatResponse,
  versions: [0, 4],
  handle(request, context, answer) {
    const { broker } = context;
    if (!broker.groups.isCoordinator) {
      answer({ errorCode: ErrorCode.NOT_COORDINATOR });
      return;
    }
    broker.groups.heardFrom(context, request.groupId, request.memberId);
    const errorCode = broker.groups.run((coordinator, now) => coordinator.heartbeat(request, now));
    answer({ errorCode });
  },
});
