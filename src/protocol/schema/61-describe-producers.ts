/** DescribeProducers: producer state of partitions (KIP-664). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const describeProducersRequest = {
  name: 'DescribeProducersRequest',
  apiKey: 61,
  versions: [0, 0],
  flexibleFrom: 0,
  fields: {
    topics: {
      items: {
        name: { type: 'string' },
        partitionIndexes: { items: 'int32' },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeProducersRequest = Output<typeof describeProducersRequest>;
export type DescribeProducersRequestInput = Input<typeof describeProducersRequest>;

export const describeProducersResponse = {
  name: 'DescribeProducersResponse',
  apiKey: 61,
  versions: [0, 0],
  flexibleFrom: 0,
  fields: {
    throttleTimeMs: { type: 'int32' },
    topics: {
      items: {
        name: { type: 'string' },
        partitions: {
          items: {
            partitionIndex: { type: 'int32' },
            errorCode: { type: 'int16' },
            errorMessage: { type: 'string', nullable: true, default: null },
            activeProducers: {
              items: {
                producerId: { type: 'int64' },
                producerEpoch: { type: 'int32' },
                lastSequence: { type: 'int32', default: -1 },
                lastTimestamp: { type: 'int64', default: -1 },
                coordinatorEpoch: { type: 'int32' },
                currentTxnStartOffset: { type: 'int64', default: -1 },
              },
            },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeProducersResponse = Output<typeof describeProducersResponse>;
export type DescribeProducersResponseInput = Input<typeof describeProducersResponse>;
