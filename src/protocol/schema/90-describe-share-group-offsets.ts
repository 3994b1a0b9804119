/** DescribeShareGroupOffsets (KIP-932). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const describeShareGroupOffsetsRequest = {
  name: 'DescribeShareGroupOffsetsRequest',
  apiKey: 90,
  versions: [0, 1],
  flexibleFrom: 0,
  fields: {
    groups: {
      items: {
        groupId: { type: 'string' },
        topics: {
          nullable: true,
          items: {
            topicName: { type: 'string' },
            partitions: { items: 'int32' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeShareGroupOffsetsRequest = Output<typeof describeShareGroupOffsetsRequest>;
export type DescribeShareGroupOffsetsRequestInput = Input<typeof describeShareGroupOffsetsRequest>;

export const describeShareGroupOffsetsResponse = {
  name: 'DescribeShareGroupOffsetsResponse',
  apiKey: 90,
  versions: [0, 1],
  flexibleFrom: 0,
  fields: {
    throttleTimeMs: { type: 'int32' },
    groups: {
      items: {
        groupId: { type: 'string' },
        topics: {
          items: {
            topicName: { type: 'string' },
            topicId: { type: 'uuid' },
            partitions: {
              items: {
                partitionIndex: { type: 'int32' },
                startOffset: { type: 'int64' },
                leaderEpoch: { type: 'int32' },
                lag: { type: 'int64', since: 1, default: -1, ignorable: true },
                errorCode: { type: 'int16' },
                errorMessage: { type: 'string', nullable: true, default: null },
              },
            },
          },
        },
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', nullable: true, default: null },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeShareGroupOffsetsResponse = Output<typeof describeShareGroupOffsetsResponse>;
export type DescribeShareGroupOffsetsResponseInput = Input<
  typeof describeShareGroupOffsetsResponse
>;
