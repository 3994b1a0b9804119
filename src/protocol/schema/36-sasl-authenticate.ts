/** SaslAuthenticate: one step of the exchange, and how long the session may last (KIP-368). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const saslAuthenticateRequest = {
  name: 'SaslAuthenticateRequest',
  apiKey: 36,
  versions: [0, 2],
  flexibleFrom: 2,
  fields: {
    authBytes: { type: 'bytes' },
  },
} as const satisfies MessageTable;

export type SaslAuthenticateRequest = Output<typeof saslAuthenticateRequest>;
export type SaslAuthenticateRequestInput = Input<typeof saslAuthenticateRequest>;

export const saslAuthenticateResponse = {
  name: 'SaslAuthenticateResponse',
  apiKey: 36,
  versions: [0, 2],
  flexibleFrom: 2,
  fields: {
    errorCode: { type: 'int16' },
    errorMessage: { type: 'string', nullable: true },
    authBytes: { type: 'bytes' },
    sessionLifetimeMs: { type: 'int64', since: 1, default: 0, ignorable: true },
  },
} as const satisfies MessageTable;

export type SaslAuthenticateResponse = Output<typeof saslAuthenticateResponse>;
export type SaslAuthenticateResponseInput = Input<typeof saslAuthenticateResponse>;
