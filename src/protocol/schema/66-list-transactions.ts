/** ListTransactions (KIP-664). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const listTransactionsRequest = {
  name: 'ListTransactionsRequest',
  apiKey: 66,
  versions: [0, 2],
  flexibleFrom: 0,
  fields: {
    stateFilters: { items: 'string' },
    producerIdFilters: { items: 'int64' },
    durationFilter: { type: 'int64', since: 1, default: -1 },
    transactionalIdPattern: { type: 'string', since: 2, nullable: true, default: null },
  },
} as const satisfies MessageTable;

export type ListTransactionsRequest = Output<typeof listTransactionsRequest>;
export type ListTransactionsRequestInput = Input<typeof listTransactionsRequest>;

export const listTransactionsResponse = {
  name: 'ListTransactionsResponse',
  apiKey: 66,
  versions: [0, 2],
  flexibleFrom: 0,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16' },
    unknownStateFilters: { items: 'string' },
    transactionStates: {
      items: {
        transactionalId: { type: 'string' },
        producerId: { type: 'int64' },
        transactionState: { type: 'string' },
      },
    },
  },
} as const satisfies MessageTable;

export type ListTransactionsResponse = Output<typeof listTransactionsResponse>;
export type ListTransactionsResponseInput = Input<typeof listTransactionsResponse>;
