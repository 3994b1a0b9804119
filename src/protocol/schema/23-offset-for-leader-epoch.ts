/**
 * OffsetForLeaderEpoch: where an epoch ended, to detect a log that was truncated (KIP-101,
 * KIP-320).
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const offsetForLeaderEpochRequest = {
  name: 'OffsetForLeaderEpochRequest',
  apiKey: 23,
  versions: [0, 4],
  flexibleFrom: 4,
  fields: {
    replicaId: { type: 'int32', since: 3, default: -2, ignorable: true },
    topics: {
      items: {
        topic: { type: 'string' },
        partitions: {
          items: {
            partition: { type: 'int32' },
            currentLeaderEpoch: { type: 'int32', since: 2, default: -1, ignorable: true },
            leaderEpoch: { type: 'int32' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type OffsetForLeaderEpochRequest = Output<typeof offsetForLeaderEpochRequest>;
export type OffsetForLeaderEpochRequestInput = Input<typeof offsetForLeaderEpochRequest>;

export const offsetForLeaderEpochResponse = {
  name: 'OffsetForLeaderEpochResponse',
  apiKey: 23,
  versions: [0, 4],
  flexibleFrom: 4,
  fields: {
    throttleTimeMs: { type: 'int32', since: 2, ignorable: true },
    topics: {
      items: {
        topic: { type: 'string' },
        partitions: {
          items: {
            errorCode: { type: 'int16' },
            partition: { type: 'int32' },
            leaderEpoch: { type: 'int32', since: 1, default: -1, ignorable: true },
            endOffset: { type: 'int64', default: -1 },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type OffsetForLeaderEpochResponse = Output<typeof offsetForLeaderEpochResponse>;
export type OffsetForLeaderEpochResponseInput = Input<typeof offsetForLeaderEpochResponse>;
