/** DescribeTopicPartitions: topics page by page, with a cursor (KIP-966). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const describeTopicPartitionsRequest = {
  name: 'DescribeTopicPartitionsRequest',
  apiKey: 75,
  versions: [0, 0],
  flexibleFrom: 0,
  fields: {
    topics: {
      items: {
        name: { type: 'string' },
      },
    },
    responsePartitionLimit: { type: 'int32', default: 2000 },
    cursor: {
      nullable: true,
      default: null,
      struct: {
        topicName: { type: 'string' },
        partitionIndex: { type: 'int32' },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeTopicPartitionsRequest = Output<typeof describeTopicPartitionsRequest>;
export type DescribeTopicPartitionsRequestInput = Input<typeof describeTopicPartitionsRequest>;

export const describeTopicPartitionsResponse = {
  name: 'DescribeTopicPartitionsResponse',
  apiKey: 75,
  versions: [0, 0],
  flexibleFrom: 0,
  fields: {
    throttleTimeMs: { type: 'int32' },
    topics: {
      items: {
        errorCode: { type: 'int16' },
        name: { type: 'string', nullable: true },
        topicId: { type: 'uuid' },
        isInternal: { type: 'bool', default: false },
        partitions: {
          items: {
            errorCode: { type: 'int16' },
            partitionIndex: { type: 'int32' },
            leaderId: { type: 'int32' },
            leaderEpoch: { type: 'int32', default: -1 },
            replicaNodes: { items: 'int32' },
            isrNodes: { items: 'int32' },
            eligibleLeaderReplicas: { items: 'int32', nullable: true, default: null },
            lastKnownElr: { items: 'int32', nullable: true, default: null },
            offlineReplicas: { items: 'int32' },
          },
        },
        topicAuthorizedOperations: { type: 'int32', default: -0x80000000 },
      },
    },
    nextCursor: {
      nullable: true,
      default: null,
      struct: {
        topicName: { type: 'string' },
        partitionIndex: { type: 'int32' },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeTopicPartitionsResponse = Output<typeof describeTopicPartitionsResponse>;
export type DescribeTopicPartitionsResponseInput = Input<typeof describeTopicPartitionsResponse>;
