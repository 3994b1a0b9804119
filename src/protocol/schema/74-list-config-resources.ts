/** ListConfigResources: in version 0 client metrics only (KIP-1142). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const listConfigResourcesRequest = {
  name: 'ListConfigResourcesRequest',
  apiKey: 74,
  versions: [0, 1],
  flexibleFrom: 0,
  fields: {
    resourceTypes: { items: 'int8', since: 1 },
  },
} as const satisfies MessageTable;

export type ListConfigResourcesRequest = Output<typeof listConfigResourcesRequest>;
export type ListConfigResourcesRequestInput = Input<typeof listConfigResourcesRequest>;

export const listConfigResourcesResponse = {
  name: 'ListConfigResourcesResponse',
  apiKey: 74,
  versions: [0, 1],
  flexibleFrom: 0,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16' },
    configResources: {
      items: {
        resourceName: { type: 'string' },
        resourceType: { type: 'int8', since: 1, default: 16, ignorable: true },
      },
    },
  },
} as const satisfies MessageTable;

export type ListConfigResourcesResponse = Output<typeof listConfigResourcesResponse>;
export type ListConfigResourcesResponseInput = Input<typeof listConfigResourcesResponse>;
