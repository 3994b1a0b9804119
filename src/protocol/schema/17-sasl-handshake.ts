/** SaslHandshake: chooses the mechanism. */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const saslHandshakeRequest = {
  name: 'SaslHandshakeRequest',
  apiKey: 17,
  versions: [0, 1],
  flexibleFrom: null,
  fields: {
    mechanism: { type: 'string' },
  },
} as const satisfies MessageTable;

export type SaslHandshakeRequest = Output<typeof saslHandshakeRequest>;
export type SaslHandshakeRequestInput = Input<typeof saslHandshakeRequest>;

export const saslHandshakeResponse = {
  name: 'SaslHandshakeResponse',
  apiKey: 17,
  versions: [0, 1],
  flexibleFrom: null,
  fields: {
    errorCode: { type: 'int16' },
    mechanisms: { items: 'string' },
  },
} as const satisfies MessageTable;

export type SaslHandshakeResponse = Output<typeof saslHandshakeResponse>;
export type SaslHandshakeResponseInput = Input<typeof saslHandshakeResponse>;
