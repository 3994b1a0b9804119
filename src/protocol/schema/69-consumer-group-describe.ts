/** ConsumerGroupDescribe (KIP-848). */
import type { Fields, Input, MessageTable, Output } from '../schema-types.ts';

export const consumerGroupDescribeRequest = {
  name: 'ConsumerGroupDescribeRequest',
  apiKey: 69,
  versions: [0, 1],
  flexibleFrom: 0,
  fields: {
    groupIds: { items: 'string' },
    includeAuthorizedOperations: { type: 'bool' },
  },
} as const satisfies MessageTable;

export type ConsumerGroupDescribeRequest = Output<typeof consumerGroupDescribeRequest>;
export type ConsumerGroupDescribeRequestInput = Input<typeof consumerGroupDescribeRequest>;

const assignment = {
  topicPartitions: {
    items: {
      topicId: { type: 'uuid' },
      topicName: { type: 'string' },
      partitions: { items: 'int32' },
    },
  },
} as const satisfies Fields;

export const consumerGroupDescribeResponse = {
  name: 'ConsumerGroupDescribeResponse',
  apiKey: 69,
  versions: [0, 1],
  flexibleFrom: 0,
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
            instanceId: { type: 'string', nullable: true, default: null },
            rackId: { type: 'string', nullable: true, default: null },
            memberEpoch: { type: 'int32' },
            clientId: { type: 'string' },
            clientHost: { type: 'string' },
            subscribedTopicNames: { items: 'string' },
            subscribedTopicRegex: { type: 'string', nullable: true, default: null },
            assignment: { struct: assignment },
            targetAssignment: { struct: assignment },
            memberType: { type: 'int8', since: 1, default: -1, ignorable: true },
          },
        },
        authorizedOperations: { type: 'int32', default: -0x80000000 },
      },
    },
  },
} as const satisfies MessageTable;

export type ConsumerGroupDescribeResponse = Output<typeof consumerGroupDescribeResponse>;
export type ConsumerGroupDescribeResponseInput = Input<typeof consumerGroupDescribeResponse>;
