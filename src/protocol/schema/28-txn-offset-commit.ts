/**
 * TxnOffsetCommit: offsets that count once the transaction commits. The generation has the name
 * that it got in version 6, together with topic ids.
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const txnOffsetCommitRequest = {
  name: 'TxnOffsetCommitRequest',
  apiKey: 28,
  versions: [0, 6],
  flexibleFrom: 3,
  fields: {
    transactionalId: { type: 'string' },
    groupId: { type: 'string' },
    producerId: { type: 'int64' },
    producerEpoch: { type: 'int16' },
    generationIdOrMemberEpoch: { type: 'int32', since: 3, default: -1 },
    memberId: { type: 'string', since: 3, default: '' },
    groupInstanceId: { type: 'string', since: 3, nullable: true, default: null },
    topics: {
      items: {
        name: { type: 'string', until: 5, ignorable: true },
        topicId: { type: 'uuid', since: 6, ignorable: true },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            committedOffset: { type: 'int64' },
            committedLeaderEpoch: { type: 'int32', since: 2, default: -1, ignorable: true },
            committedMetadata: { type: 'string', nullable: true },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type TxnOffsetCommitRequest = Output<typeof txnOffsetCommitRequest>;
export type TxnOffsetCommitRequestInput = Input<typeof txnOffsetCommitRequest>;

export const txnOffsetCommitResponse = {
  name: 'TxnOffsetCommitResponse',
  apiKey: 28,
  versions: [0, 6],
  flexibleFrom: 3,
  fields: {
    throttleTimeMs: { type: 'int32' },
    topics: {
      items: {
        name: { type: 'string', until: 5, ignorable: true },
        topicId: { type: 'uuid', since: 6, ignorable: true },
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

export type TxnOffsetCommitResponse = Output<typeof txnOffsetCommitResponse>;
export type TxnOffsetCommitResponseInput = Input<typeof txnOffsetCommitResponse>;
