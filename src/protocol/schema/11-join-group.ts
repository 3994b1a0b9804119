/** JoinGroup: enters a classic group, or re-enters it when it rebalances. */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const joinGroupRequest = {
  name: 'JoinGroupRequest',
  apiKey: 11,
  versions: [0, 9],
  flexibleFrom: 6,
  fields: {
    groupId: { type: 'string' },
    sessionTimeoutMs: { type: 'int32' },
    rebalanceTimeoutMs: { type: 'int32', since: 1, default: -1, ignorable: true },
    memberId: { type: 'string' },
    groupInstanceId: { type: 'string', since: 5, nullable: true, default: null },
    protocolType: { type: 'string' },
    protocols: {
      items: {
        name: { type: 'string' },
        metadata: { type: 'bytes' },
      },
    },
    reason: { type: 'string', since: 8, nullable: true, default: null, ignorable: true },
  },
} as const satisfies MessageTable;

export type JoinGroupRequest = Output<typeof joinGroupRequest>;
export type JoinGroupRequestInput = Input<typeof joinGroupRequest>;

export const joinGroupResponse = {
  name: 'JoinGroupResponse',
  apiKey: 11,
  versions: [0, 9],
  flexibleFrom: 6,
  fields: {
    throttleTimeMs: { type: 'int32', since: 2, ignorable: true },
    errorCode: { type: 'int16' },
    generationId: { type: 'int32', default: -1 },
    protocolType: { type: 'string', since: 7, nullable: true, default: null, ignorable: true },
    protocolName: { type: 'string', nullable: 7 },
    leader: { type: 'string' },
    skipAssignment: { type: 'bool', since: 9, default: false },
    memberId: { type: 'string' },
    members: {
      items: {
        memberId: { type: 'string' },
        groupInstanceId: {
          type: 'string',
          since: 5,
          nullable: true,
          default: null,
          ignorable: true,
        },
        metadata: { type: 'bytes' },
      },
    },
  },
} as const satisfies MessageTable;

export type JoinGroupResponse = Output<typeof joinGroupResponse>;
export type JoinGroupResponseInput = Input<typeof joinGroupResponse>;
