/**
 * OffsetFetch. Versions 8 and up ask for several groups at once (KIP-709), version 10 has topic
 * ids.
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const offsetFetchRequest = {
  name: 'OffsetFetchRequest',
  apiKey: 9,
  versions: [0, 10],
  flexibleFrom: 6,
  fields: {
    groupId: { type: 'string', until: 7 },
    topics: {
      until: 7,
      nullable: 2,
      items: {
        name: { type: 'string' },
        partitionIndexes: { items: 'int32' },
      },
    },
    groups: {
      since: 8,
      items: {
        groupId: { type: 'string' },
        memberId: { type: 'string', since: 9, nullable: true, default: null, ignorable: true },
        memberEpoch: { type: 'int32', since: 9, default: -1, ignorable: true },
        topics: {
          nullable: true,
          items: {
            name: { type: 'string', until: 9, ignorable: true },
            topicId: { type: 'uuid', since: 10, ignorable: true },
            partitionIndexes: { items: 'int32' },
          },
        },
      },
    },
    requireStable: { type: 'bool', since: 7, default: false },
  },
} as const satisfies MessageTable;

export type OffsetFetchRequest = Output<typeof offsetFetchRequest>;
export type OffsetFetchRequestInput = Input<typeof offsetFetchRequest>;

export const offsetFetchResponse = {
  name: 'OffsetFetchResponse',
  apiKey: 9,
  versions: [0, 10],
  flexibleFrom: 6,
  fields: {
    throttleTimeMs: { type: 'int32', since: 3, ignorable: true },
    topics: {
      until: 7,
      items: {
        name: { type: 'string' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            committedOffset: { type: 'int64' },
            committedLeaderEpoch: { type: 'int32', since: 5, default: -1, ignorable: true },
            metadata: { type: 'string', nullable: true },
            errorCode: { type: 'int16' },
          },
        },
      },
    },
    errorCode: { type: 'int16', since: 2, until: 7, default: 0, ignorable: true },
    groups: {
      since: 8,
      items: {
        groupId: { type: 'string' },
        topics: {
          items: {
            name: { type: 'string', until: 9, ignorable: true },
            topicId: { type: 'uuid', since: 10, ignorable: true },
            partitions: {
              items: {
                partitionIndex: { type: 'int32' },
                committedOffset: { type: 'int64' },
                committedLeaderEpoch: { type: 'int32', default: -1 },
                metadata: { type: 'string', nullable: true },
                errorCode: { type: 'int16' },
              },
            },
          },
        },
        errorCode: { type: 'int16', default: 0 },
      },
    },
  },
} as const satisfies MessageTable;

export type OffsetFetchResponse = Output<typeof offsetFetchResponse>;
export type OffsetFetchResponseInput = Input<typeof offsetFetchResponse>;
