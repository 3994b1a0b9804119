/** DescribeTransactions (KIP-664). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const describeTransactionsRequest = {
  name: 'DescribeTransactionsRequest',
  apiKey: 65,
  versions: [0, 0],
  flexibleFrom: 0,
  fields: {
    transactionalIds: { items: 'string' },
  },
} as const satisfies MessageTable;

export type DescribeTransactionsRequest = Output<typeof describeTransactionsRequest>;
export type DescribeTransactionsRequestInput = Input<typeof describeTransactionsRequest>;

export const describeTransactionsResponse = {
  name: 'DescribeTransactionsResponse',
  apiKey: 65,
  versions: [0, 0],
  flexibleFrom: 0,
  fields: {
    throttleTimeMs: { type: 'int32' },
    transactionStates: {
      items: {
        errorCode: { type: 'int16' },
        transactionalId: { type: 'string' },
        transactionState: { type: 'string' },
        transactionTimeoutMs: { type: 'int32' },
        transactionStartTimeMs: { type: 'int64' },
        producerId: { type: 'int64' },
        producerEpoch: { type: 'int16' },
        topics: {
          items: {
            topic: { type: 'string' },
            partitions: { items: 'int32' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeTransactionsResponse = Output<typeof describeTransactionsResponse>;
export type DescribeTransactionsResponseInput = Input<typeof describeTransactionsResponse>;
