/** CreateAcls. */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const createAclsRequest = {
  name: 'CreateAclsRequest',
  apiKey: 30,
  versions: [0, 3],
  flexibleFrom: 2,
  fields: {
    creations: {
      items: {
        resourceType: { type: 'int8' },
        resourceName: { type: 'string' },
        resourcePatternType: { type: 'int8', since: 1, default: 3 },
        principal: { type: 'string' },
        host: { type: 'string' },
        operation: { type: 'int8' },
        permissionType: { type: 'int8' },
      },
    },
  },
} as const satisfies MessageTable;

export type CreateAclsRequest = Output<typeof createAclsRequest>;
export type CreateAclsRequestInput = Input<typeof createAclsRequest>;

export const createAclsResponse = {
  name: 'CreateAclsResponse',
  apiKey: 30,
  versions: [0, 3],
  flexibleFrom: 2,
  fields: {
    throttleTimeMs: { type: 'int32' },
    results: {
      items: {
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', nullable: true },
      },
    },
  },
} as const satisfies MessageTable;

export type CreateAclsResponse = Output<typeof createAclsResponse>;
export type CreateAclsResponseInput = Input<typeof createAclsResponse>;
