/** DescribeGroups: classic groups with their members. */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const describeGroupsRequest = {
  name: 'DescribeGroupsRequest',
  apiKey: 15,
  versions: [0, 6],
  flexibleFrom: 5,
  fields: {
    groups: { items: 'string' },
    includeAuthorizedOperations: { type: 'bool', since: 3 },
  },
} as const satisfies MessageTable;

export type DescribeGroupsRequest = Output<typeof describeGroupsRequest>;
export type DescribeGroupsRequestInput = Input<typeof describeGroupsRequest>;

export const describeGroupsResponse = {
  name: 'DescribeGroupsResponse',
  apiKey: 15,
  versions: [0, 6],
  flexibleFrom: 5,
  fields: {
    throttleTimeMs: { type: 'int32', since: 1, ignorable: true },
    groups: {
      items: {
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', since: 6, nullable: true, default: null },
        groupId: { type: 'string' },
        groupState: { type: 'string' },
        protocolType: { type: 'string' },
        protocolData: { type: 'string' },
        members: {
          items: {
            memberId: { type: 'string' },
            groupInstanceId: {
              type: 'string',
              since: 4,
              nullable: true,
              default: null,
              ignorable: true,
            },
            clientId: { type: 'string' },
            clientHost: { type: 'string' },
            memberMetadata: { type: 'bytes' },
            memberAssignment: { type: 'bytes' },
          },
        },
        authorizedOperations: { type: 'int32', since: 3, default: -0x80000000 },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeGroupsResponse = Output<typeof describeGroupsResponse>;
export type DescribeGroupsResponseInput = Input<typeof describeGroupsResponse>;
