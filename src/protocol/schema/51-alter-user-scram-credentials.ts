/** AlterUserScramCredentials (KIP-554). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const alterUserScramCredentialsRequest = {
  name: 'AlterUserScramCredentialsRequest',
  apiKey: 51,
  versions: [0, 0],
  flexibleFrom: 0,
  fields: {
    deletions: {
      items: {
        name: { type: 'string' },
        mechanism: { type: 'int8' },
      },
    },
    upsertions: {
      items: {
        name: { type: 'string' },
        mechanism: { type: 'int8' },
        iterations: { type: 'int32' },
        salt: { type: 'bytes' },
        saltedPassword: { type: 'bytes' },
      },
    },
  },
} as const satisfies MessageTable;

export type AlterUserScramCredentialsRequest = Output<typeof alterUserScramCredentialsRequest>;
export type AlterUserScramCredentialsRequestInput = Input<typeof alterUserScramCredentialsRequest>;

export const alterUserScramCredentialsResponse = {
  name: 'AlterUserScramCredentialsResponse',
  apiKey: 51,
  versions: [0, 0],
  flexibleFrom: 0,
  fields: {
    throttleTimeMs: { type: 'int32' },
    results: {
      items: {
        user: { type: 'string' },
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', nullable: true },
      },
    },
  },
} as const satisfies MessageTable;

export type AlterUserScramCredentialsResponse = Output<typeof alterUserScramCredentialsResponse>;
export type AlterUserScramCredentialsResponseInput = Input<
  typeof alterUserScramCredentialsResponse
>;
