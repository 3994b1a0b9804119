/** SyncGroup: the leader hands in the assignments, every member receives its own. */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const syncGroupRequest = {
  name: 'SyncGroupRequest',
  apiKey: 14,
  versions: [0, 5],
  flexibleFrom: 4,
  fields: {
    groupId: { type: 'string' },
    generationId: { type: 'int32' },
    memberId: { type: 'string' },
    groupInstanceId: { type: 'string', since: 3, nullable: true, default: null },
    protocolType: { type: 'string', since: 5, nullable: true, default: null, ignorable: true },
    protocolName: { type: 'string', since: 5, nullable: true, default: null, ignorable: true },
    assignments: {
      items: {
        memberId: { type: 'string' },
        assignment: { type: 'bytes' },
      },
    },
  },
} as const satisfies MessageTable;

export type SyncGroupRequest = Output<typeof syncGroupRequest>;
export type SyncGroupRequestInput = Input<typeof syncGroupRequest>;

export const syncGroupResponse = {
  name: 'SyncGroupResponse',
  apiKey: 14,
  versions: [0, 5],
  flexibleFrom: 4,
  fields: {
    throttleTimeMs: { type: 'int32', since: 1, ignorable: true },
    errorCode: { type: 'int16' },
    protocolType: { type: 'string', since: 5, nullable: true, default: null, ignorable: true },
    protocolName: { type: 'string', since: 5, nullable: true, default: null, ignorable: true },
    assignment: { type: 'bytes' },
  },
} as const satisfies MessageTable;

export type SyncGroupResponse = Output<typeof syncGroupResponse>;
export type SyncGroupResponseInput = Input<typeof syncGroupResponse>;
