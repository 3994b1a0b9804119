/**
 * What a consumer of a classic group says in JoinGroup: an int16 version, then this. A reader
 * ignores what a newer version appends.
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const consumerProtocolSubscription = {
  name: 'ConsumerProtocolSubscription',
  versions: [0, 3],
  flexibleFrom: null,
  fields: {
    topics: { items: 'string' },
    userData: { type: 'bytes', nullable: true, default: null },
    ownedPartitions: {
      since: 1,
      ignorable: true,
      items: {
        topic: { type: 'string' },
        partitions: { items: 'int32' },
      },
    },
    generationId: { type: 'int32', since: 2, default: -1, ignorable: true },
    rackId: { type: 'string', since: 3, nullable: true, default: null, ignorable: true },
  },
} as const satisfies MessageTable;

export type ConsumerProtocolSubscription = Output<typeof consumerProtocolSubscription>;
export type ConsumerProtocolSubscriptionInput = Input<typeof consumerProtocolSubscription>;
