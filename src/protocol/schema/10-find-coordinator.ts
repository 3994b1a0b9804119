/** FindCoordinator. Versions 4 and up ask for several keys at once (KIP-699). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const findCoordinatorRequest = {
  name: 'FindCoordinatorRequest',
  apiKey: 10,
  versions: [0, 6],
  flexibleFrom: 3,
  fields: {
    key: { type: 'string', until: 3 },
    keyType: { type: 'int8', since: 1, default: 0 },
    coordinatorKeys: { items: 'string', since: 4 },
  },
} as const satisfies MessageTable;

export type FindCoordinatorRequest = Output<typeof findCoordinatorRequest>;
export type FindCoordinatorRequestInput = Input<typeof findCoordinatorRequest>;

export const findCoordinatorResponse = {
  name: 'FindCoordinatorResponse',
  apiKey: 10,
  versions: [0, 6],
  flexibleFrom: 3,
  fields: {
    throttleTimeMs: { type: 'int32', since: 1, ignorable: true },
    errorCode: { type: 'int16', until: 3 },
    errorMessage: { type: 'string', since: 1, until: 3, nullable: true, ignorable: true },
    nodeId: { type: 'int32', until: 3 },
    host: { type: 'string', until: 3 },
    port: { type: 'int32', until: 3 },
    coordinators: {
      since: 4,
      items: {
        key: { type: 'string' },
        nodeId: { type: 'int32' },
        host: { type: 'string' },
        port: { type: 'int32' },
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', nullable: true },
      },
    },
  },
} as const satisfies MessageTable;

export type FindCoordinatorResponse = Output<typeof findCoordinatorResponse>;
export type FindCoordinatorResponseInput = Input<typeof findCoordinatorResponse>;
