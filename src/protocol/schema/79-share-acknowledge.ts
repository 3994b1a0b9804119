/** ShareAcknowledge (KIP-932). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const shareAcknowledgeRequest = {
  name: 'ShareAcknowledgeRequest',
  apiKey: 79,
  versions: [1, 2],
  flexibleFrom: 1,
  fields: {
    groupId: { type: 'string', nullable: true, default: null },
    memberId: { type: 'string', nullable: true },
    shareSessionEpoch: { type: 'int32' },
    isRenewAck: { type: 'bool', since: 2, default: false },
    topics: {
      items: {
        topicId: { type: 'uuid' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            acknowledgementBatches: {
              items: {
                firstOffset: { type: 'int64' },
                lastOffset: { type: 'int64' },
                acknowledgeTypes: { items: 'int8' },
              },
            },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type ShareAcknowledgeRequest = Output<typeof shareAcknowledgeRequest>;
export type ShareAcknowledgeRequestInput = Input<typeof shareAcknowledgeRequest>;

export const shareAcknowledgeResponse = {
  name: 'ShareAcknowledgeResponse',
  apiKey: 79,
  versions: [1, 2],
  flexibleFrom: 1,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16' },
    errorMessage: { type: 'string', nullable: true, default: null },
    acquisitionLockTimeoutMs: { type: 'int32', since: 2, ignorable: true },
    responses: {
      items: {
        topicId: { type: 'uuid' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            errorCode: { type: 'int16' },
            errorMessage: { type: 'string', nullable: true, default: null },
            currentLeader: {
              struct: {
                leaderId: { type: 'int32' },
                leaderEpoch: { type: 'int32' },
              },
            },
          },
        },
      },
    },
    nodeEndpoints: {
      items: {
        nodeId: { type: 'int32' },
        host: { type: 'string' },
        port: { type: 'int32' },
        rack: { type: 'string', nullable: true, default: null },
      },
    },
  },
} as const satisfies MessageTable;

export type ShareAcknowledgeResponse = Output<typeof shareAcknowledgeResponse>;
export type ShareAcknowledgeResponseInput = Input<typeof shareAcknowledgeResponse>;
