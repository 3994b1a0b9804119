/** AlterShareGroupOffsets (KIP-932). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const alterShareGroupOffsetsRequest = {
  name: 'AlterShareGroupOffsetsRequest',
  apiKey: 91,
  versions: [0, 0],
  flexibleFrom: 0,
  fields: {
    groupId: { type: 'string' },
    topics: {
      items: {
        topicName: { type: 'string' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            startOffset: { type: 'int64' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type AlterShareGroupOffsetsRequest = Output<typeof alterShareGroupOffsetsRequest>;
export type AlterShareGroupOffsetsRequestInput = Input<typeof alterShareGroupOffsetsRequest>;

export const alterShareGroupOffsetsResponse = {
  name: 'AlterShareGroupOffsetsResponse',
  apiKey: 91,
  versions: [0, 0],
  flexibleFrom: 0,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16' },
    errorMessage: { type: 'string', nullable: true, default: null },
    responses: {
      items: {
        topicName: { type: 'string' },
        topicId: { type: 'uuid' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            errorCode: { type: 'int16' },
            errorMessage: { type: 'string', nullable: true, default: null },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type AlterShareGroupOffsetsResponse = Output<typeof alterShareGroupOffsetsResponse>;
export type AlterShareGroupOffsetsResponseInput = Input<typeof alterShareGroupOffsetsResponse>;
