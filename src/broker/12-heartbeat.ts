import { heartbeatRequest, heartbeatResponse } from '../protocol/schema/12-heartbeat.ts';
import { defineHandler } from './handler.ts';

export const heartbeat = defineHandler({
  request: heartbeatRequest,
  response: heartbeatResponse,
  versions: [0, 4],
  handle(request, { broker }, answer) {
    const errorCode = broker.groups.run((coordinator, now) => coordinator.heartbeat(request, now));
    answer({ errorCode });
  },
});
