/**
 * CreatePartitions: raises the number of partitions. Null assignments leave the choice to the
 * broker.
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const createPartitionsRequest = {
  name: 'CreatePartitionsRequest',
  apiKey: 37,
  versions: [0, 3],
  flexibleFrom: 2,
  fields: {
    topics: {
      items: {
        name: { type: 'string' },
        count: { type: 'int32' },
        assignments: {
          nullable: true,
          items: {
            brokerIds: { items: 'int32' },
          },
        },
      },
    },
    timeoutMs: { type: 'int32' },
    validateOnly: { type: 'bool' },
  },
} as const satisfies MessageTable;

export type CreatePartitionsRequest = Output<typeof createPartitionsRequest>;
export type CreatePartitionsRequestInput = Input<typeof createPartitionsRequest>;

export const createPartitionsResponse = {
  name: 'CreatePartitionsResponse',
  apiKey: 37,
  versions: [0, 3],
  flexibleFrom: 2,
  fields: {
    throttleTimeMs: { type: 'int32' },
    results: {
      items: {
        name: { type: 'string' },
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', nullable: true, default: null },
      },
    },
  },
} as const satisfies MessageTable;

export type CreatePartitionsResponse = Output<typeof createPartitionsResponse>;
export type CreatePartitionsResponseInput = Input<typeof createPartitionsResponse>;
