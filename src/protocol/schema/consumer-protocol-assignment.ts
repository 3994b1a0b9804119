/**
 * What the leader of a classic group assigns to a consumer: an int16 version, then this. A
 * reader ignores what a newer version appends.
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const consumerProtocolAssignment = {
  name: 'ConsumerProtocolAssignment',
  versions: [0, 3],
  flexibleFrom: null,
  fields: {
    assignedPartitions: {
      items: {
        topic: { type: 'string' },
        partitions: { items: 'int32' },
      },
    },
    userData: { type: 'bytes', nullable: true, default: null },
  },
} as const satisfies MessageTable;

export type ConsumerProtocolAssignment = Output<typeof consumerProtocolAssignment>;
export type ConsumerProtocolAssignmentInput = Input<typeof consumerProtocolAssignment>;
