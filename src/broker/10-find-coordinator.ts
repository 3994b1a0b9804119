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
    const { nodeId } = broker;
    const { host, port } = broker.endpointFor(context.client);
    // The one coordinator is this node; transactions and share groups have none.
    const isKnown = request.keyType === groupKeyType;
    const found = isKnown
      ? { errorCode: ErrorCode.NONE, errorMessage: null, nodeId, host, port }
      : {
          errorCode: ErrorCode.INVALID_REQUEST,
          errorMessage: `Coordinators of type ${request.keyType} are not supported`,
          nodeId: -1,
          host: '',
          port: -1,
        };
    if (apiVersion < batchedFrom) answer(found);
    else answer({ coordinators: request.coordinatorKeys.map((key) => ({ key, ...found })) });
  },
});
