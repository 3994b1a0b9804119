/** EndTxn: commits or aborts. Version 5 answers with the next producer epoch (KIP-890). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const endTxnRequest = {
  name: 'EndTxnRequest',
  apiKey: 26,
  versions: [0, 5],
  flexibleFrom: 3,
  fields: {
    transactionalId: { type: 'string' },
    producerId: { type: 'int64' },
    producerEpoch: { type: 'int16' },
    committed: { type: 'bool' },
  },
} as const satisfies MessageTable;

export type EndTxnRequest = Output<typeof endTxnRequest>;
export type EndTxnRequestInput = Input<typeof endTxnRequest>;

export const endTxnResponse = {
  name: 'EndTxnResponse',
  apiKey: 26,
  versions: [0, 5],
  flexibleFrom: 3,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16' },
    producerId: { type: 'int64', since: 5, default: -1, ignorable: true },
    producerEpoch: { type: 'int16', since: 5, default: -1, ignorable: true },
  },
} as const satisfies MessageTable;

export type EndTxnResponse = Output<typeof endTxnResponse>;
export type EndTxnResponseInput = Input<typeof endTxnResponse>;
