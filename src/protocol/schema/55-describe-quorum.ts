/** DescribeQuorum: voters and observers of the metadata quorum (KIP-595). */
import type { Fields, Input, MessageTable, Output } from '../schema-types.ts';

export const describeQuorumRequest = {
  name: 'DescribeQuorumRequest',
  apiKey: 55,
  versions: [0, 2],
  flexibleFrom: 0,
  fields: {
    topics: {
      items: {
        topicName: { type: 'string' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeQuorumRequest = Output<typeof describeQuorumRequest>;
export type DescribeQuorumRequestInput = Input<typeof describeQuorumRequest>;

const replicaState = {
  replicaId: { type: 'int32' },
  replicaDirectoryId: { type: 'uuid', since: 2 },
  logEndOffset: { type: 'int64' },
  lastFetchTimestamp: { type: 'int64', since: 1, default: -1, ignorable: true },
  lastCaughtUpTimestamp: { type: 'int64', since: 1, default: -1, ignorable: true },
} as const satisfies Fields;

export const describeQuorumResponse = {
  name: 'DescribeQuorumResponse',
  apiKey: 55,
  versions: [0, 2],
  flexibleFrom: 0,
  fields: {
    errorCode: { type: 'int16' },
    errorMessage: { type: 'string', since: 2, nullable: true, ignorable: true },
    topics: {
      items: {
        topicName: { type: 'string' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            errorCode: { type: 'int16' },
            errorMessage: { type: 'string', since: 2, nullable: true, ignorable: true },
            leaderId: { type: 'int32' },
            leaderEpoch: { type: 'int32' },
            highWatermark: { type: 'int64' },
            currentVoters: { items: replicaState },
            observers: { items: replicaState },
          },
        },
      },
    },
    nodes: {
      since: 2,
      items: {
        nodeId: { type: 'int32' },
        listeners: {
          items: {
            name: { type: 'string' },
            host: { type: 'string' },
            port: { type: 'uint16' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeQuorumResponse = Output<typeof describeQuorumResponse>;
export type DescribeQuorumResponseInput = Input<typeof describeQuorumResponse>;
