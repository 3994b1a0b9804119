/** DescribeCluster: brokers and controller (KIP-700). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const describeClusterRequest = {
  name: 'DescribeClusterRequest',
  apiKey: 60,
  versions: [0, 2],
  flexibleFrom: 0,
  fields: {
    includeClusterAuthorizedOperations: { type: 'bool' },
    endpointType: { type: 'int8', since: 1, default: 1 },
    includeFencedBrokers: { type: 'bool', since: 2 },
  },
} as const satisfies MessageTable;

export type DescribeClusterRequest = Output<typeof describeClusterRequest>;
export type DescribeClusterRequestInput = Input<typeof describeClusterRequest>;

export const describeClusterResponse = {
  name: 'DescribeClusterResponse',
  apiKey: 60,
  versions: [0, 2],
  flexibleFrom: 0,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16' },
    errorMessage: { type: 'string', nullable: true, default: null },
    endpointType: { type: 'int8', since: 1, default: 1 },
    clusterId: { type: 'string' },
    controllerId: { type: 'int32', default: -1 },
    brokers: {
      items: {
        brokerId: { type: 'int32' },
        host: { type: 'string' },
        port: { type: 'int32' },
        rack: { type: 'string', nullable: true, default: null },
        isFenced: { type: 'bool', since: 2 },
      },
    },
    clusterAuthorizedOperations: { type: 'int32', default: -0x80000000 },
  },
} as const satisfies MessageTable;

export type DescribeClusterResponse = Output<typeof describeClusterResponse>;
export type DescribeClusterResponseInput = Input<typeof describeClusterResponse>;
