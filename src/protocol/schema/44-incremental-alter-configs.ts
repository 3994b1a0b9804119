/**
 * IncrementalAlterConfigs: sets, deletes, appends to or subtracts from single settings
 * (KIP-339).
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const incrementalAlterConfigsRequest = {
  name: 'IncrementalAlterConfigsRequest',
  apiKey: 44,
  versions: [0, 1],
  flexibleFrom: 1,
  fields: {
    resources: {
      items: {
        resourceType: { type: 'int8' },
        resourceName: { type: 'string' },
        configs: {
          items: {
            name: { type: 'string' },
            configOperation: { type: 'int8' },
            value: { type: 'string', nullable: true },
          },
        },
      },
    },
    validateOnly: { type: 'bool' },
  },
} as const satisfies MessageTable;

export type IncrementalAlterConfigsRequest = Output<typeof incrementalAlterConfigsRequest>;
export type IncrementalAlterConfigsRequestInput = Input<typeof incrementalAlterConfigsRequest>;

export const incrementalAlterConfigsResponse = {
  name: 'IncrementalAlterConfigsResponse',
  apiKey: 44,
  versions: [0, 1],
  flexibleFrom: 1,
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

export type IncrementalAlterConfigsResponse = Output<typeof incrementalAlterConfigsResponse>;
export type IncrementalAlterConfigsResponseInput = Input<typeof incrementalAlterConfigsResponse>;
