/**
 * OffsetCommit. Version 1 had a timestamp for each partition, versions 2 to 4 a retention time
 * for all, version 10 has topic ids.
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const offsetCommitRequest = {
  name: 'OffsetCommitRequest',
  apiKey: 8,
  versions: [0, 10],
  flexibleFrom: 8,
  fields: {
    groupId: { type: 'string' },
    generationIdOrMemberEpoch: { type: 'int32', since: 1, default: -1, ignorable: true },
    memberId: { type: 'string', since: 1, ignorable: true },
    groupInstanceId: { type: 'string', since: 7, nullable: true, default: null },
    retentionTimeMs: { type: 'int64', since: 2, until: 4, default: -1, ignorable: true },
    topics: {
      items: {
        name: { type: 'string', until: 9, ignorable: true },
        topicId: { type: 'uuid', since: 10, ignorable: true },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            committedOffset: { type: 'int64' },
            committedLeaderEpoch: { type: 'int32', since: 6, default: -1, ignorable: true },
            commitTimestamp: { type: 'int64', since: 1, until: 1, default: -1 },
            committedMetadata: { type: 'string', nullable: true },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type OffsetCommitRequest = Output<typeof offsetCommitRequest>;
export type OffsetCommitRequestInput = Input<typeof offsetCommitRequest>;

export const offsetCommitResponse = {
  name: 'OffsetCommitResponse',
  apiKey: 8,
  versions: [0, 10],
  flexibleFrom: 8,
  fields: {
    throttleTimeMs: { type: 'int32', since: 3, ignorable: true },
    topics: {
      items: {
        name: { type: 'string', until: 9, ignorable: true },
        topicId: { type: 'uuid', since: 10, ignorable: true },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            errorCode: { type: 'int16' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type OffsetCommitResponse = Output<typeof offsetCommitResponse>;
export type OffsetCommitResponseInput = Input<typeof offsetCommitResponse>;
