/** ShareGroupHeartbeat (KIP-932). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const shareGroupHeartbeatRequest = {
  name: 'ShareGroupHeartbeatRequest',
  apiKey: 76,
  versions: [1, 1],
  flexibleFrom: 1,
  fields: {
    groupId: { type: 'string' },
    memberId: { type: 'string' },
    memberEpoch: { type: 'int32' },
    rackId: { type: 'string', nullable: true, default: null },
    subscribedTopicNames: { items: 'string', nullable: true, default: null },
  },
} as const satisfies MessageTable;

export type ShareGroupHeartbeatRequest = Output<typeof shareGroupHeartbeatRequest>;
export type ShareGroupHeartbeatRequestInput = Input<typeof shareGroupHeartbeatRequest>;

export const shareGroupHeartbeatResponse = {
  name: 'ShareGroupHeartbeatResponse',
  apiKey: 76,
  versions: [1, 1],
  flexibleFrom: 1,
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

export type ShareGroupHeartbeatResponse = Output<typeof shareGroupHeartbeatResponse>;
export type ShareGroupHeartbeatResponseInput = Input<typeof shareGroupHeartbeatResponse>;
