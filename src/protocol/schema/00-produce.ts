/**
 * Produce: appends record batches. Topic ids replace names in version 13 (KIP-516); versions 10
 * and up name the new leader beside an error (KIP-951). Versions 0 to 2 carry message sets of
 * magic 0 and 1.
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const produceRequest = {
  name: 'ProduceRequest',
  apiKey: 0,
  versions: [0, 13],
  flexibleFrom: 9,
  fields: {
    transactionalId: { type: 'string', since: 3, nullable: true, default: null },
    acks: { type: 'int16' },
    timeoutMs: { type: 'int32' },
    topicData: {
      items: {
        name: { type: 'string', until: 12, ignorable: true },
        topicId: { type: 'uuid', since: 13, ignorable: true },
        partitionData: {
          items: {
            index: { type: 'int32' },
            records: { type: 'records', nullable: true },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type ProduceRequest = Output<typeof produceRequest>;
export type ProduceRequestInput = Input<typeof produceRequest>;

export const produceResponse = {
  name: 'ProduceResponse',
  apiKey: 0,
  versions: [0, 13],
  flexibleFrom: 9,
  fields: {
    responses: {
      items: {
        name: { type: 'string', until: 12, ignorable: true },
        topicId: { type: 'uuid', since: 13, ignorable: true },
        partitionResponses: {
          items: {
            index: { type: 'int32' },
            errorCode: { type: 'int16' },
            baseOffset: { type: 'int64' },
            logAppendTimeMs: { type: 'int64', since: 2, default: -1, ignorable: true },
            logStartOffset: { type: 'int64', since: 5, default: -1, ignorable: true },
            recordErrors: {
              since: 8,
              ignorable: true,
              items: {
                batchIndex: { type: 'int32' },
                batchIndexErrorMessage: { type: 'string', nullable: true, default: null },
              },
            },
            errorMessage: {
              type: 'string',
              since: 8,
              nullable: true,
              default: null,
              ignorable: true,
            },
            currentLeader: {
              since: 10,
              tag: 0,
              struct: {
                leaderId: { type: 'int32', default: -1 },
                leaderEpoch: { type: 'int32', default: -1 },
              },
            },
          },
        },
      },
    },
    throttleTimeMs: { type: 'int32', since: 1, default: 0, ignorable: true },
    nodeEndpoints: {
      since: 10,
      tag: 0,
      items: {
        nodeId: { type: 'int32' },
        host: { type: 'string' },
        port: { type: 'int32' },
        rack: { type: 'string', nullable: true, default: null },
      },
    },
  },
} as const satisfies MessageTable;

export type ProduceResponse = Output<typeof produceResponse>;
export type ProduceResponseInput = Input<typeof produceResponse>;
