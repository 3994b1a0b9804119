/**
 * ListGroups, filtered by state from version 4 on (KIP-518) and by type from version 5 on
 * (KIP-848).
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const listGroupsRequest = {
  name: 'ListGroupsRequest',
  apiKey: 16,
  versions: [0, 5],
  flexibleFrom: 3,
  fields: {
    statesFilter: { items: 'string', since: 4 },
    typesFilter: { items: 'string', since: 5 },
  },
} as const satisfies MessageTable;

export type ListGroupsRequest = Output<typeof listGroupsRequest>;
export type ListGroupsRequestInput = Input<typeof listGroupsRequest>;

export const listGroupsResponse = {
  name: 'ListGroupsResponse',
  apiKey: 16,
  versions: [0, 5],
  flexibleFrom: 3,
  fields: {
    throttleTimeMs: { type: 'int32', since: 1, ignorable: true },
    errorCode: { type: 'int16' },
    groups: {
      items: {
        groupId: { type: 'string' },
        protocolType: { type: 'string' },
        groupState: { type: 'string', since: 4, ignorable: true },
        groupType: { type: 'string', since: 5, ignorable: true },
      },
    },
  },
} as const satisfies MessageTable;

export type ListGroupsResponse = Output<typeof listGroupsResponse>;
export type ListGroupsResponseInput = Input<typeof listGroupsResponse>;
