/** LeaveGroup. Versions 3 and up remove several members at once, by static id too (KIP-345). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const leaveGroupRequest = {
  name: 'LeaveGroupRequest',
  apiKey: 13,
  versions: [0, 5],
  flexibleFrom: 4,
  fields: {
    groupId: { type: 'string' },
    memberId: { type: 'string', until: 2 },
    members: {
      since: 3,
      items: {
        memberId: { type: 'string' },
        groupInstanceId: { type: 'string', nullable: true, default: null },
        reason: { type: 'string', since: 5, nullable: true, default: null, ignorable: true },
      },
    },
  },
} as const satisfies MessageTable;

export type LeaveGroupRequest = Output<typeof leaveGroupRequest>;
export type LeaveGroupRequestInput = Input<typeof leaveGroupRequest>;

export const leaveGroupResponse = {
  name: 'LeaveGroupResponse',
  apiKey: 13,
  versions: [0, 5],
  flexibleFrom: 4,
  fields: {
    throttleTimeMs: { type: 'int32', since: 1, ignorable: true },
    errorCode: { type: 'int16' },
    members: {
      since: 3,
      items: {
        memberId: { type: 'string' },
        groupInstanceId: { type: 'string', nullable: true },
        errorCode: { type: 'int16' },
      },
    },
  },
} as const satisfies MessageTable;

export type LeaveGroupResponse = Output<typeof leaveGroupResponse>;
export type LeaveGroupResponseInput = Input<typeof leaveGroupResponse>;
