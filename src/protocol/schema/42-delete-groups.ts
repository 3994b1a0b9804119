/** DeleteGroups (KIP-229). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const deleteGroupsRequest = {
  name: 'DeleteGroupsRequest',
  apiKey: 42,
  versions: [0, 3],
  flexibleFrom: 2,
  fields: {
    groupsNames: { items: 'string' },
  },
} as const satisfies MessageTable;

export type DeleteGroupsRequest = Output<typeof deleteGroupsRequest>;
export type DeleteGroupsRequestInput = Input<typeof deleteGroupsRequest>;

export const deleteGroupsResponse = {
  name: 'DeleteGroupsResponse',
  apiKey: 42,
  versions: [0, 3],
  flexibleFrom: 2,
  fields: {
    throttleTimeMs: { type: 'int32' },
    results: {
      items: {
        groupId: { type: 'string' },
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', since: 3, nullable: true, default: null, ignorable: true },
      },
    },
  },
} as const satisfies MessageTable;

export type DeleteGroupsResponse = Output<typeof deleteGroupsResponse>;
export type DeleteGroupsResponseInput = Input<typeof deleteGroupsResponse>;
