import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type DescribeClusterRequest,
  describeClusterRequest,
  describeClusterResponse,
} from '../protocol/schema/60-describe-cluster.ts';
import { defineHandler } from './handler.ts';
import { allClusterOperations } from './operations.ts';
import type { Refusal } from './refusal.ts';

/** Which kind of node is asked for (KIP-919). */
const EndpointType = { broker: 1, controller: 2 } as const;
const notAsked = -0x80000000;

export const describeCluster = defineHandler({
  request: describeClusterRequest,
  response: describeClusterResponse,
  versions: [0, 2],
  handle(request, { broker, client }, answer) {
    const common = { throttleTimeMs: 0, clusterId: broker.replica.state.clusterId };
    const refusal = endpointError(request);
    if (refusal !== undefined) {
      answer({ ...common, ...refusal, controllerId: -1, brokers: [] });
      return;
    }
    answer({
      ...common,
      errorCode: ErrorCode.NONE,
      controllerId: broker.nodes.leaderId,
      brokers: broker.nodes.endpoints(client).map(({ nodeId, host, port }) => ({
        ...{ brokerId: nodeId, host, port },
      })),
      clusterAuthorizedOperations: request.includeClusterAuthorizedOperations
        ? allClusterOperations
        : notAsked,
    });
  },
});

function endpointError({ endpointType }: DescribeClusterRequest): Refusal | undefined {
  switch (endpointType) {
    case EndpointType.broker:
      return undefined;
    case EndpointType.controller:
      return {
        errorCode: ErrorCode.MISMATCHED_ENDPOINT_TYPE,
        errorMessage:
          'The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type ' +
          'CONTROLLER',
      };
    default:
      return {
        errorCode: ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        errorMessage: `Unsupported endpoint type ${endpointType}`,
      };
  }
}
