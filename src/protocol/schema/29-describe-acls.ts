/** DescribeAcls. */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const describeAclsRequest = {
  name: 'DescribeAclsRequest',
  apiKey: 29,
  versions: [0, 3],
  flexibleFrom: 2,
  fields: {
    resourceTypeFilter: { type: 'int8' },
    resourceNameFilter: { type: 'string', nullable: true },
    patternTypeFilter: { type: 'int8', since: 1, default: 3 },
    principalFilter: { type: 'string', nullable: true },
    hostFilter: { type: 'string', nullable: true },
    operation: { type: 'int8' },
    permissionType: { type: 'int8' },
  },
} as const satisfies MessageTable;

export type DescribeAclsRequest = Output<typeof describeAclsRequest>;
export type DescribeAclsRequestInput = Input<typeof describeAclsRequest>;

export const describeAclsResponse = {
  name: 'DescribeAclsResponse',
  apiKey: 29,
  versions: [0, 3],
  flexibleFrom: 2,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16' },
    errorMessage: { type: 'string', nullable: true },
    resources: {
      items: {
        resourceType: { type: 'int8' },
        resourceName: { type: 'string' },
        patternType: { type: 'int8', since: 1, default: 3 },
        acls: {
          items: {
            principal: { type: 'string' },
            host: { type: 'string' },
            operation: { type: 'int8' },
            permissionType: { type: 'int8' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeAclsResponse = Output<typeof describeAclsResponse>;
export type DescribeAclsResponseInput = Input<typeof describeAclsResponse>;
