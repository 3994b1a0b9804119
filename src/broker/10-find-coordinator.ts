import { ErrorCode } from '../protocol/error-codes.ts';
import {
  findCoordinatorRequest,
  findCoordinatorResponse,
} from '../protocol/schema/10-find-coordinator.ts';
import { defineHandler } from './handler.ts';

const groupKeyType = 0;
/** From this version on several keys are asked for at once (KIP-699). */
const batchedFrom = 4;

export const findCoordinator = defineHandler({
  request: findCoordinatorRequest,
  response: findCoordinatorResponse,
  versions: [0, 6],
  handle(request, context, answer) {
    const { broker, apiVersion } = context;
    const { leaderId } = broker.nodes;
    const endpoints = broker.nodes.endpoints(context.client);
    // The one coordinator is the leader; transactions and share groups have none.
    const coordinator = endpoints.find(({ nodeId }) => nodeId === leaderId);
    const nobody = { nodeId: -1, host: '', port: -1 };
    const found =
      request.keyType !== groupKeyType
        ? {
            errorCode: ErrorCode.INVALID_REQUEST,
            errorMessage: `Coordinators of type ${request.keyType} are not supported`,
            ...nobody,
          }
        : {
            errorCode:
              coordinator === undefined ? ErrorCode.COORDINATOR_NOT_AVAILABLE : ErrorCode.NONE,
            errorMessage: null,
            ...(coordinator ?? nobody),
          };
    if (apiVersion < batchedFrom) answer(found);
    else answer({ coordinators: request.coordinatorKeys.map((key) => ({ key, ...found })) });
  },
});
