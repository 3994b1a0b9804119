/** The header of a response. Version 1 goes with flexible versions, except for ApiVersions. */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const responseHeader = {
  name: 'ResponseHeader',
  versions: [0, 1],
  flexibleFrom: 1,
  fields: {
    correlationId: { type: 'int32' },
  },
} as const satisfies MessageTable;

export type ResponseHeader = Output<typeof responseHeader>;
export type ResponseHeaderInput = Input<typeof responseHeader>;
