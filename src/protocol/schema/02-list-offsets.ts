/**
 * ListOffsets: the offset at a timestamp, or at the start or end of a partition. Version 0
 * answered with a list of offsets.
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const listOffsetsRequest = {
  name: 'ListOffsetsRequest',
  apiKey: 2,
  versions: [0, 11],
  flexibleFrom: 6,
  fields: {
    replicaId: { type: 'int32' },
    isolationLevel: { type: 'int8', since: 2 },
    topics: {
      items: {
        name: { type: 'string' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            currentLeaderEpoch: { type: 'int32', since: 4, default: -1, ignorable: true },
            timestamp: { type: 'int64' },
            maxNumOffsets: { type: 'int32', until: 0, default: 1 },
          },
        },
      },
    },
    timeoutMs: { type: 'int32', since: 10, ignorable: true },
  },
} as const satisfies MessageTable;

export type ListOffsetsRequest = Output<typeof listOffsetsRequest>;
export type ListOffsetsRequestInput = Input<typeof listOffsetsRequest>;

export const listOffsetsResponse = {
  name: 'ListOffsetsResponse',
  apiKey: 2,
  versions: [0, 11],
  flexibleFrom: 6,
  fields: {
    throttleTimeMs: { type: 'int32', since: 2, ignorable: true },
    topics: {
      items: {
        name: { type: 'string' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            errorCode: { type: 'int16' },
            oldStyleOffsets: { items: 'int64', until: 0 },
            timestamp: { type: 'int64', since: 1, default: -1 },
            offset: { type: 'int64', since: 1, default: -1 },
            leaderEpoch: { type: 'int32', since: 4, default: -1 },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type ListOffsetsResponse = Output<typeof listOffsetsResponse>;
export type ListOffsetsResponseInput = Input<typeof listOffsetsResponse>;
