/**
 * The header of a request. The client id keeps its int16 length even in version 2, because a
 * broker reads it before it knows whether the request is flexible.
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const requestHeader = {
  name: 'RequestHeader',
  versions: [1, 2],
  flexibleFrom: 2,
  fields: {
    requestApiKey: { type: 'int16' },
    requestApiVersion: { type: 'int16' },
    correlationId: { type: 'int32' },
    clientId: { type: 'string', nullable: true, flexible: false },
  },
} as const satisfies MessageTable;

export type RequestHeader = Output<typeof requestHeader>;
export type RequestHeaderInput = Input<typeof requestHeader>;
