/**
 * Fetch: reads record batches, with fetch sessions from version 7 on (KIP-227) and topic ids
 * from version 13 on (KIP-516).
 */
import { INT64_MAX, type Input, type MessageTable, type Output } from '../schema-types.ts';

export const fetchRequest = {
  name: 'FetchRequest',
  apiKey: 1,
  versions: [0, 18],
  flexibleFrom: 12,
  fields: {
    clusterId: {
      type: 'string',
      since: 12,
      nullable: true,
      tag: 0,
      default: null,
      ignorable: true,
    },
    replicaId: { type: 'int32', until: 14, default: -1 },
    replicaState: {
      since: 15,
      tag: 1,
      struct: {
        replicaId: { type: 'int32', default: -1 },
        replicaEpoch: { type: 'int64', default: -1 },
      },
    },
    maxWaitMs: { type: 'int32' },
    minBytes: { type: 'int32' },
    maxBytes: { type: 'int32', since: 3, default: 0x7fffffff, ignorable: true },
    isolationLevel: { type: 'int8', since: 4, default: 0, ignorable: true },
    sessionId: { type: 'int32', since: 7, default: 0, ignorable: true },
    sessionEpoch: { type: 'int32', since: 7, default: -1, ignorable: true },
    topics: {
      items: {
        topic: { type: 'string', until: 12, ignorable: true },
        topicId: { type: 'uuid', since: 13, ignorable: true },
        partitions: {
          items: {
            partition: { type: 'int32' },
            currentLeaderEpoch: { type: 'int32', since: 9, default: -1, ignorable: true },
            fetchOffset: { type: 'int64' },
            lastFetchedEpoch: { type: 'int32', since: 12, default: -1 },
            logStartOffset: { type: 'int64', since: 5, default: -1, ignorable: true },
            partitionMaxBytes: { type: 'int32' },
            replicaDirectoryId: { type: 'uuid', since: 17, tag: 0, ignorable: true },
            highWatermark: {
              type: 'int64',
              since: 18,
              tag: 1,
              default: INT64_MAX,
              ignorable: true,
            },
          },
        },
      },
    },
    forgottenTopicsData: {
      since: 7,
      items: {
        topic: { type: 'string', until: 12, ignorable: true },
        topicId: { type: 'uuid', since: 13, ignorable: true },
        partitions: { items: 'int32' },
      },
    },
    rackId: { type: 'string', since: 11, default: '', ignorable: true },
  },
} as const satisfies MessageTable;

export type FetchRequest = Output<typeof fetchRequest>;
export type FetchRequestInput = Input<typeof fetchRequest>;

export const fetchResponse = {
  name: 'FetchResponse',
  apiKey: 1,
  versions: [0, 18],
  flexibleFrom: 12,
  fields: {
    throttleTimeMs: { type: 'int32', since: 1, ignorable: true },
    errorCode: { type: 'int16', since: 7, ignorable: true },
    sessionId: { type: 'int32', since: 7, default: 0 },
    responses: {
      items: {
        topic: { type: 'string', until: 12, ignorable: true },
        topicId: { type: 'uuid', since: 13, ignorable: true },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            errorCode: { type: 'int16' },
            highWatermark: { type: 'int64' },
            lastStableOffset: { type: 'int64', since: 4, default: -1, ignorable: true },
            logStartOffset: { type: 'int64', since: 5, default: -1, ignorable: true },
            divergingEpoch: {
              since: 12,
              tag: 0,
              struct: {
                epoch: { type: 'int32', default: -1 },
                endOffset: { type: 'int64', default: -1 },
              },
            },
            currentLeader: {
              since: 12,
              tag: 1,
              struct: {
                leaderId: { type: 'int32', default: -1 },
                leaderEpoch: { type: 'int32', default: -1 },
              },
            },
            snapshotId: {
              since: 12,
              tag: 2,
              struct: {
                endOffset: { type: 'int64', default: -1 },
                epoch: { type: 'int32', default: -1 },
              },
            },
            abortedTransactions: {
              since: 4,
              nullable: true,
              ignorable: true,
              items: {
                producerId: { type: 'int64' },
                firstOffset: { type: 'int64' },
              },
            },
            preferredReadReplica: { type: 'int32', since: 11, default: -1 },
            records: { type: 'records', nullable: true },
          },
        },
      },
    },
    nodeEndpoints: {
      since: 16,
      tag: 0,
      items: {
        nodeId: { type: 'int32' },
        host: { type: 'string' },
        port: { type: 'int32' },
        rack: { type: 'string', nullable: true, default: null },
      },
    },
  },
} as const satisfies MessageTable;

export type FetchResponse = Output<typeof fetchResponse>;
export type FetchResponseInput = Input<typeof fetchResponse>;
