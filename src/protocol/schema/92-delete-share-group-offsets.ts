/** DeleteShareGroupOffsets (KIP-932). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const deleteShareGroupOffsetsRequest = {
  name: 'DeleteShareGroupOffsetsRequest',
  apiKey: 92,
  versions: [0, 0],
  flexibleFrom: 0,
  fields: {
    groupId: { type: 'string' },
    topics: {
      items: {
        topicName: { type: 'string' },
      },
    },
  },
} as const satisfies MessageTable;

export type DeleteShareGroupOffsetsRequest = Output<typeof deleteShareGroupOffsetsRequest>;
export type DeleteShareGroupOffsetsRequestInput = Input<typeof deleteShareGroupOffsetsRequest>;

export const deleteShareGroupOffsetsResponse = {
  name: 'DeleteShareGroupOffsetsResponse',
  apiKey: 92,
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
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', nullable: true, default: null },
      },
    },
  },
} as const satisfies MessageTable;

export type DeleteShareGroupOffsetsResponse = Output<typeof deleteShareGroupOffsetsResponse>;
export type DeleteShareGroupOffsetsResponseInput = Input<typeof deleteShareGroupOffsetsResponse>;
