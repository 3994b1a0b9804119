/** AlterConfigs: replaces the whole configuration of a resource. */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const alterConfigsRequest = {
  name: 'AlterConfigsRequest',
  apiKey: 33,
  versions: [0, 2],
  flexibleFrom: 2,
  fields: {
    resources: {
      items: {
        resourceType: { type: 'int8' },
        resourceName: { type: 'string' },
        configs: {
          items: {
            name: { type: 'string' },
            value: { type: 'string', nullable: true },
          },
        },
      },
    },
    validateOnly: { type: 'bool' },
  },
} as const satisfies MessageTable;

export type AlterConfigsRequest = Output<typeof alterConfigsRequest>;
export type AlterConfigsRequestInput = Input<typeof alterConfigsRequest>;

export const alterConfigsResponse = {
  name: 'AlterConfigsResponse',
  apiKey: 33,
  versions: [0, 2],
  flexibleFrom: 2,
  fields: {
    throttleTimeMs: { type: 'int32' },
    responses: {
      items: {
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', nullable: true },
        resourceType: { type: 'int8' },
        resourceName: { type: 'string' },
      },
    },
  },
} as const satisfies MessageTable;

export type AlterConfigsResponse = Output<typeof alterConfigsResponse>;
export type AlterConfigsResponseInput = Input<typeof alterConfigsResponse>;
