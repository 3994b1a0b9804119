/** ShareGroupDescribe (KIP-932). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const shareGroupDescribeRequest = {
  name: 'ShareGroupDescribeRequest',
  apiKey: 77,
  versions: [1, 1],
  flexibleFrom: 1,
  fields: {
    groupIds: { items: 'string' },
    includeAuthorizedOperations: { type: 'bool' },
  },
} as const satisfies MessageTable;

export type ShareGroupDescribeRequest = Output<typeof shareGroupDescribeRequest>;
export type ShareGroupDescribeRequestInput = Input<typeof shareGroupDescribeRequest>;

export const shareGroupDescribeResponse = {
  name: 'ShareGroupDescribeResponse',
  apiKey: 77,
  versions: [1, 1],
  flexibleFrom: 1,
  fields: {
    throttleTimeMs: { type: 'int32' },
    groups: {
      items: {
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', nullable: true, default: null },
        groupId: { type: 'string' },
        groupState: { type: 'string' },
        groupEpoch: { type: 'int32' },
        assignmentEpoch: { type: 'int32' },
        assignorName: { type: 'string' },
        members: {
          items: {
            memberId: { type: 'string' },
            rackId: { type: 'string', nullable: true, default: null },
            memberEpoch: { type: 'int32' },
            clientId: { type: 'string' },
            clientHost: { type: 'string' },
            subscribedTopicNames: { items: 'string' },
            assignment: {
              struct: {
                topicPartitions: {
                  items: {
                    topicId: { type: 'uuid' },
                    topicName: { type: 'string' },
                    partitions: { items: 'int32' },
                  },
                },
              },
            },
          },
        },
        authorizedOperations: { type: 'int32', default: -0x80000000 },
      },
    },
  },
} as const satisfies MessageTable;

export type ShareGroupDescribeResponse = Output<typeof shareGroupDescribeResponse>;
export type ShareGroupDescribeResponseInput = Input<typeof shareGroupDescribeResponse>;
