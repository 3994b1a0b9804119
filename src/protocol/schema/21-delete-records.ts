/** DeleteRecords: raises the first offset of a partition (KIP-107). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const deleteRecordsRequest = {
  name: 'DeleteRecordsRequest',
  apiKey: 21,
  versions: [0, 2],
  flexibleFrom: 2,
  fields: {
    topics: {
      items: {
        name: { type: 'string' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            offset: { type: 'int64' },
          },
        },
      },
    },
    timeoutMs: { type: 'int32' },
  },
} as const satisfies MessageTable;

export type DeleteRecordsRequest = Output<typeof deleteRecordsRequest>;
export type DeleteRecordsRequestInput = Input<typeof deleteRecordsRequest>;

export const deleteRecordsResponse = {
  name: 'DeleteRecordsResponse',
  apiKey: 21,
  versions: [0, 2],
  flexibleFrom: 2,
  fields: {
    throttleTimeMs: { type: 'int32' },
    topics: {
      items: {
        name: { type: 'string' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            lowWatermark: { type: 'int64' },
            errorCode: { type: 'int16' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type DeleteRecordsResponse = Output<typeof deleteRecordsResponse>;
export type DeleteRecordsResponseInput = Input<typeof deleteRecordsResponse>;
