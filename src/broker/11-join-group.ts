import { joinGroupRequest, joinGroupResponse } from '../protocol/schema/11-join-group.ts';
import { clientHost } from './client-host.ts';
import { defineHandler } from './handler.ts';

/**
 * The answer may take until the round is over. That the connection closes meanwhile means nothing:
 * the client may come back on another one, and its session decides whether it is gone.
 */
export const joinGroup = defineHandler({
  request: joinGroupRequest,
  response: joinGroupResponse,
  versions: [0, 9],
  handle(request, { broker, client, clientId, apiVersion }, answer) {
    const join = { ...request, apiVersion, clientId, clientHost: clientHost(client) };
    const respond = broker.groups.paced(answer);
    broker.groups.run((coordinator, now) => coordinator.joinGroup(join, now, respond));
  },
});
