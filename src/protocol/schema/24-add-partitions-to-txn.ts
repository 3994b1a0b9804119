/**
 * AddPartitionsToTxn. Versions 4 and up are batched and come from brokers; clients use version 3
 * (KIP-890).
 */
import type { Fields, Input, MessageTable, Output } from '../schema-types.ts';

const addPartitionsToTxnTopic = {
  name: { type: 'string' },
  partitions: { items: 'int32' },
} as const satisfies Fields;

export const addPartitionsToTxnRequest = {
  name: 'AddPartitionsToTxnRequest',
  apiKey: 24,
  versions: [0, 5],
  flexibleFrom: 3,
  fields: {
    transactions: {
      since: 4,
      items: {
        transactionalId: { type: 'string' },
        producerId: { type: 'int64' },
        producerEpoch: { type: 'int16' },
        verifyOnly: { type: 'bool', default: false },
        topics: { items: addPartitionsToTxnTopic },
      },
    },
    v3AndBelowTransactionalId: { type: 'string', until: 3 },
    v3AndBelowProducerId: { type: 'int64', until: 3 },
    v3AndBelowProducerEpoch: { type: 'int16', until: 3 },
    v3AndBelowTopics: { items: addPartitionsToTxnTopic, until: 3 },
  },
} as const satisfies MessageTable;

export type AddPartitionsToTxnRequest = Output<typeof addPartitionsToTxnRequest>;
export type AddPartitionsToTxnRequestInput = Input<typeof addPartitionsToTxnRequest>;

const addPartitionsToTxnTopicResult = {
  name: { type: 'string' },
  resultsByPartition: {
    items: {
      partitionIndex: { type: 'int32' },
      partitionErrorCode: { type: 'int16' },
    },
  },
} as const satisfies Fields;

export const addPartitionsToTxnResponse = {
  name: 'AddPartitionsToTxnResponse',
  apiKey: 24,
  versions: [0, 5],
  flexibleFrom: 3,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16', since: 4, ignorable: true },
    resultsByTransaction: {
      since: 4,
      items: {
        transactionalId: { type: 'string' },
        topicResults: { items: addPartitionsToTxnTopicResult },
      },
    },
    resultsByTopicV3AndBelow: { items: addPartitionsToTxnTopicResult, until: 3 },
  },
} as const satisfies MessageTable;

export type AddPartitionsToTxnResponse = Output<typeof addPartitionsToTxnResponse>;
export type AddPartitionsToTxnResponseInput = Input<typeof addPartitionsToTxnResponse>;
