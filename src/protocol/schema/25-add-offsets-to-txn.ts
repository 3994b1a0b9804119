/** AddOffsetsToTxn: makes a group part of a transaction (KIP-98). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const addOffsetsToTxnRequest = {
  name: 'AddOffsetsToTxnRequest',
  apiKey: 25,
  versions: [0, 4],
  flexibleFrom: 3,
  fields: {
    transactionalId: { type: 'string' },
    producerId: { type: 'int64' },
    producerEpoch: { type: 'int16' },
    groupId: { type: 'string' },
  },
} as const satisfies MessageTable;

export type AddOffsetsToTxnRequest = Output<typeof addOffsetsToTxnRequest>;
export type AddOffsetsToTxnRequestInput = Input<typeof addOffsetsToTxnRequest>;

export const addOffsetsToTxnResponse = {
  name: 'AddOffsetsToTxnResponse',
  apiKey: 25,
  versions: [0, 4],
  flexibleFrom: 3,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16' },
  },
} as const satisfies MessageTable;

export type AddOffsetsToTxnResponse = Output<typeof addOffsetsToTxnResponse>;
export type AddOffsetsToTxnResponseInput = Input<typeof addOffsetsToTxnResponse>;
