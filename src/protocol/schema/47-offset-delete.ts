/** OffsetDelete: removes committed offsets of topics that the group no longer reads (KIP-496). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const offsetDeleteRequest = {
  name: 'OffsetDeleteRequest',
  apiKey: 47,
  versions: [0, 0],
  flexibleFrom: null,
  fields: {
    groupId: { type: 'string' },
    topics: {
      items: {
        name: { type: 'string' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type OffsetDeleteRequest = Output<typeof offsetDeleteRequest>;
export type OffsetDeleteRequestInput = Input<typeof offsetDeleteRequest>;

export const offsetDeleteResponse = {
  name: 'OffsetDeleteResponse',
  apiKey: 47,
  versions: [0, 0],
  flexibleFrom: null,
  fields: {
    errorCode: { type: 'int16' },
    throttleTimeMs: { type: 'int32' },
    topics: {
      items: {
        name: { type: 'string' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            errorCode: { type: 'int16' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type OffsetDeleteResponse = Output<typeof offsetDeleteResponse>;
export type OffsetDeleteResponseInput = Input<typeof offsetDeleteResponse>;
