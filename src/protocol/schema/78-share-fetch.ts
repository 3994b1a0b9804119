/** ShareFetch: acquires records for a while, and acknowledges others (KIP-932). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const shareFetchRequest = {
  name: 'ShareFetchRequest',
  apiKey: 78,
  versions: [1, 2],
  flexibleFrom: 1,
  fields: {
    groupId: { type: 'string', nullable: true, default: null },
    memberId: { type: 'string', nullable: true },
    shareSessionEpoch: { type: 'int32' },
    maxWaitMs: { type: 'int32' },
    minBytes: { type: 'int32' },
    maxBytes: { type: 'int32', default: 0x7fffffff },
    maxRecords: { type: 'int32' },
    batchSize: { type: 'int32' },
    shareAcquireMode: { type: 'int8', since: 2, default: 0, ignorable: true },
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
    forgottenTopicsData: {
      items: {
        topicId: { type: 'uuid' },
        partitions: { items: 'int32' },
      },
    },
  },
} as const satisfies MessageTable;

export type ShareFetchRequest = Output<typeof shareFetchRequest>;
export type ShareFetchRequestInput = Input<typeof shareFetchRequest>;

export const shareFetchResponse = {
  name: 'ShareFetchResponse',
  apiKey: 78,
  versions: [1, 2],
  flexibleFrom: 1,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16' },
    errorMessage: { type: 'string', nullable: true, default: null },
    acquisitionLockTimeoutMs: { type: 'int32' },
    responses: {
      items: {
        topicId: { type: 'uuid' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            errorCode: { type: 'int16' },
            errorMessage: { type: 'string', nullable: true, default: null },
            acknowledgeErrorCode: { type: 'int16' },
            acknowledgeErrorMessage: { type: 'string', nullable: true, default: null },
            currentLeader: {
              struct: {
                leaderId: { type: 'int32' },
                leaderEpoch: { type: 'int32' },
              },
            },
            records: { type: 'records' },
            acquiredRecords: {
              items: {
                firstOffset: { type: 'int64' },
                lastOffset: { type: 'int64' },
                deliveryCount: { type: 'int16' },
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

export type ShareFetchResponse = Output<typeof shareFetchResponse>;
export type ShareFetchResponseInput = Input<typeof shareFetchResponse>;
