/**
 * ConsumerGroupHeartbeat: the one request of the new group protocol. Null means unchanged since
 * the last one (KIP-848).
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const consumerGroupHeartbeatRequest = {
  name: 'ConsumerGroupHeartbeatRequest',
  apiKey: 68,
  versions: [0, 1],
  flexibleFrom: 0,
  fields: {
    groupId: { type: 'string' },
    memberId: { type: 'string' },
    memberEpoch: { type: 'int32' },
    instanceId: { type: 'string', nullable: true, default: null },
    rackId: { type: 'string', nullable: true, default: null },
    rebalanceTimeoutMs: { type: 'int32', default: -1 },
    subscribedTopicNames: { items: 'string', nullable: true, default: null },
    subscribedTopicRegex: { type: 'string', since: 1, nullable: true, default: null },
    serverAssignor: { type: 'string', nullable: true, default: null },
    topicPartitions: {
      nullable: true,
      default: null,
      items: {
        topicId: { type: 'uuid' },
        partitions: { items: 'int32' },
      },
    },
  },
} as const satisfies MessageTable;

export type ConsumerGroupHeartbeatRequest = Output<typeof consumerGroupHeartbeatRequest>;
export type ConsumerGroupHeartbeatRequestInput = Input<typeof consumerGroupHeartbeatRequest>;

export const consumerGroupHeartbeatResponse = {
  name: 'ConsumerGroupHeartbeatResponse',
  apiKey: 68,
  versions: [0, 1],
  flexibleFrom: 0,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16' },
    errorMessage: { type: 'string', nullable: true, default: null },
    memberId: { type: 'string', nullable: true, default: null },
    memberEpoch: { type: 'int32' },
    heartbeatIntervalMs: { type: 'int32' },
    assignment: {
      nullable: true,
      default: null,
      struct: {
        topicPartitions: {
          items: {
            topicId: { type: 'uuid' },
            partitions: { items: 'int32' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type ConsumerGroupHeartbeatResponse = Output<typeof consumerGroupHeartbeatResponse>;
export type ConsumerGroupHeartbeatResponseInput = Input<typeof consumerGroupHeartbeatResponse>;
