/**
 * InitProducerId: a producer id and epoch, for idempotence or for a transactional id. Version 6
 * is two-phase commit, which Kafka does not offer yet (KIP-939).
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const initProducerIdRequest = {
  name: 'InitProducerIdRequest',
  apiKey: 22,
  versions: [0, 6],
  flexibleFrom: 2,
  fields: {
    transactionalId: { type: 'string', nullable: true },
    transactionTimeoutMs: { type: 'int32' },
    producerId: { type: 'int64', since: 3, default: -1 },
    producerEpoch: { type: 'int16', since: 3, default: -1 },
    enable2Pc: { type: 'bool', since: 6, default: false },
    keepPreparedTxn: { type: 'bool', since: 6, default: false },
  },
} as const satisfies MessageTable;

export type InitProducerIdRequest = Output<typeof initProducerIdRequest>;
export type InitProducerIdRequestInput = Input<typeof initProducerIdRequest>;

export const initProducerIdResponse = {
  name: 'InitProducerIdResponse',
  apiKey: 22,
  versions: [0, 6],
  flexibleFrom: 2,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16' },
    producerId: { type: 'int64', default: -1 },
    producerEpoch: { type: 'int16' },
    ongoingTxnProducerId: { type: 'int64', since: 6, default: -1 },
    ongoingTxnProducerEpoch: { type: 'int16', since: 6, default: -1 },
  },
} as const satisfies MessageTable;

export type InitProducerIdResponse = Output<typeof initProducerIdResponse>;
export type InitProducerIdResponseInput = Input<typeof initProducerIdResponse>;
