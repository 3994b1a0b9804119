/**
 * Metadata: brokers, topics, leaders. A null list of topics means all; in version 0 an empty one
 * does.
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const metadataRequest = {
  name: 'MetadataRequest',
  apiKey: 3,
  versions: [0, 13],
  flexibleFrom: 9,
  fields: {
    topics: {
      nullable: 1,
      items: {
        topicId: { type: 'uuid', since: 10, ignorable: true },
        name: { type: 'string', nullable: 10 },
      },
    },
    allowAutoTopicCreation: { type: 'bool', since: 4, default: true },
    includeClusterAuthorizedOperations: { type: 'bool', since: 8, until: 10 },
    includeTopicAuthorizedOperations: { type: 'bool', since: 8 },
  },
} as const satisfies MessageTable;

export type MetadataRequest = Output<typeof metadataRequest>;
export type MetadataRequestInput = Input<typeof metadataRequest>;

export const metadataResponse = {
  name: 'MetadataResponse',
  apiKey: 3,
  versions: [0, 13],
  flexibleFrom: 9,
  fields: {
    throttleTimeMs: { type: 'int32', since: 3, ignorable: true },
    brokers: {
      items: {
        nodeId: { type: 'int32' },
        host: { type: 'string' },
        port: { type: 'int32' },
        rack: { type: 'string', since: 1, nullable: true, default: null, ignorable: true },
      },
    },
    clusterId: { type: 'string', since: 2, nullable: true, default: null, ignorable: true },
    controllerId: { type: 'int32', since: 1, default: -1, ignorable: true },
    topics: {
      items: {
        errorCode: { type: 'int16' },
        name: { type: 'string', nullable: 12 },
        topicId: { type: 'uuid', since: 10, ignorable: true },
        isInternal: { type: 'bool', since: 1, default: false, ignorable: true },
        partitions: {
          items: {
            errorCode: { type: 'int16' },
            partitionIndex: { type: 'int32' },
            leaderId: { type: 'int32' },
            leaderEpoch: { type: 'int32', since: 7, default: -1, ignorable: true },
            replicaNodes: { items: 'int32' },
            isrNodes: { items: 'int32' },
            offlineReplicas: { items: 'int32', since: 5, ignorable: true },
          },
        },
        topicAuthorizedOperations: { type: 'int32', since: 8, default: -0x80000000 },
      },
    },
    clusterAuthorizedOperations: { type: 'int32', since: 8, until: 10, default: -0x80000000 },
    errorCode: { type: 'int16', since: 13, ignorable: true },
  },
} as const satisfies MessageTable;

export type MetadataResponse = Output<typeof metadataResponse>;
export type MetadataResponseInput = Input<typeof metadataResponse>;
