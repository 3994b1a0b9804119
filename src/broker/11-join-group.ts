import type { JoinGroupResponse } from '../groups/classic/messages.ts';
import { joinError } from '../groups/classic/responses.ts';
import { consumerProtocolType } from '../groups/consumer-protocol.ts';
import { ErrorCode } from '../protocol/error-codes.ts';
import { joinGroupRequest, joinGroupResponse } from '../protocol/schema/11-join-group.ts';
import { Lazy } from '../protocol/slices.ts';
import { clientHost } from './client-host.ts';
import { defineHandler } from './handler.ts';
import { lacksSlot } from './keyed/open-ledger.ts';

/** As many members are told to a leader in one turn of the event loop. */
const membersPerTurn = 256;

/**
 * The answer may take until the round is over. That the connection closes meanwhile means nothing:
 * the client may come back on another one, and its session decides whether it is gone.
 */
export const joinGroup = defineHandler({
  request: joinGroupRequest,
  response: joinGroupResponse,
  versions: [0, 9],
  handle(request, context, answer, answerInSlices) {
    const { broker, client, clientId, apiVersion } = context;
    const join = { ...request, apiVersion, clientId, clientHost: clientHost(client) };
    const respond = broker.groups.paced((response: JoinGroupResponse) => {
      const { members } = response;
      if (members.length <= membersPerTurn) answer(response);
      else answerInSlices({ ...response, members: new Lazy(members) });
    });
    if (!broker.groups.isCoordinator) {
      respond(joinError(request.memberId, ErrorCode.NOT_COORDINATOR));
      return;
    }
    // It may close before the answer, and then nobody is heard on it any more.
    broker.groups.connections.open(context);
    // What a rejoin gives back depends on the client, which a new leader may not know yet.
    broker.groups.heardFrom(context, request.groupId, request.memberId);
    const metadata = request.protocols[0]?.metadata;
    if (
      request.protocolType === consumerProtocolType &&
      lacksSlot(broker, request.groupId, metadata)
    ) {
      respond(joinError('', ErrorCode.GROUP_MAX_SIZE_REACHED));
      return;
    }
    broker.groups.run((coordinator, now) =>
      coordinator.joinGroup(join, now, (response) => {
        if (response.errorCode === ErrorCode.NONE) {
          const { connections } = broker.groups;
          connections.note(client.connectionId, request.groupId, response.memberId);
        }
        respond(response);
      }),
    );
  },
});
