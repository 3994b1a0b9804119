/** DeleteAcls. */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const deleteAclsRequest = {
  name: 'DeleteAclsRequest',
  apiKey: 31,
  versions: [0, 3],
  flexibleFrom: 2,
  fields: {
    filters: {
      items: {
        resourceTypeFilter: { type: 'int8' },
        resourceNameFilter: { type: 'string', nullable: true },
        patternTypeFilter: { type: 'int8', since: 1, default: 3 },
        principalFilter: { type: 'string', nullable: true },
        hostFilter: { type: 'string', nullable: true },
        operation: { type: 'int8' },
        permissionType: { type: 'int8' },
      },
    },
  },
} as const satisfies MessageTable;

export type DeleteAclsRequest = Output<typeof deleteAclsRequest>;
export type DeleteAclsRequestInput = Input<typeof deleteAclsRequest>;

export const deleteAclsResponse = {
  name: 'DeleteAclsResponse',
  apiKey: 31,
  versions: [0, 3],
  flexibleFrom: 2,
  fields: {
    throttleTimeMs: { type: 'int32' },
    filterResults: {
      items: {
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', nullable: true },
        matchingAcls: {
          items: {
            errorCode: { type: 'int16' },
            errorMessage: { type: 'string', nullable: true },
            resourceType: { type: 'int8' },
            resourceName: { type: 'string' },
            patternType: { type: 'int8', since: 1, default: 3 },
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

export type DeleteAclsResponse = Output<typeof deleteAclsResponse>;
export type DeleteAclsResponseInput = Input<typeof deleteAclsResponse>;
