/** Heartbeat: keeps a member of a classic group alive. */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const heartbeatRequest = {
  name: 'HeartbeatRequest',
  apiKey: 12,
  versions: [0, 4],
  flexibleFrom: 4,
  fields: {
    groupId: { type: 'string' },
    generationId: { type: 'int32' },
    memberId: { type: 'string' },
    groupInstanceId: { type: 'string', since: 3, nullable: true, default: null },
  },
} as const satisfies MessageTable;

export type HeartbeatRequest = Output<typeof heartbeatRequest>;
export type HeartbeatRequestInput = Input<typeof heartbeatRequest>;

export const heartbeatResponse = {
  name: 'HeartbeatResponse',
  apiKey: 12,
  versions: [0, 4],
  flexibleFrom: 4,
  fields: {
    throttleTimeMs: { type: 'int32', since: 1, ignorable: true },
    errorCode: { type: 'int16' },
  },
} as const satisfies MessageTable;

export type HeartbeatResponse = Output<typeof heartbeatResponse>;
export type HeartbeatResponseInput = Input<typeof heartbeatResponse>;
