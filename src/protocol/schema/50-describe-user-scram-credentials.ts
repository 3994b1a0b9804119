/** DescribeUserScramCredentials (KIP-554). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const describeUserScramCredentialsRequest = {
  name: 'DescribeUserScramCredentialsRequest',
  apiKey: 50,
  versions: [0, 0],
  flexibleFrom: 0,
  fields: {
    users: {
      nullable: true,
      items: {
        name: { type: 'string' },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeUserScramCredentialsRequest = Output<
  typeof describeUserScramCredentialsRequest
>;
export type DescribeUserScramCredentialsRequestInput = Input<
  typeof describeUserScramCredentialsRequest
>;

export const describeUserScramCredentialsResponse = {
  name: 'DescribeUserScramCredentialsResponse',
  apiKey: 50,
  versions: [0, 0],
  flexibleFrom: 0,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16' },
    errorMessage: { type: 'string', nullable: true },
    results: {
      items: {
        user: { type: 'string' },
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', nullable: true },
        credentialInfos: {
          items: {
            mechanism: { type: 'int8' },
            iterations: { type: 'int32' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeUserScramCredentialsResponse = Output<
  typeof describeUserScramCredentialsResponse
>;
export type DescribeUserScramCredentialsResponseInput = Input<
  typeof describeUserScramCredentialsResponse
>;
