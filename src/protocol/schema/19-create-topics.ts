/** CreateTopics. */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const createTopicsRequest = {
  name: 'CreateTopicsRequest',
  apiKey: 19,
  versions: [0, 7],
  flexibleFrom: 5,
  fields: {
    topics: {
      items: {
        name: { type: 'string' },
        numPartitions: { type: 'int32' },
        replicationFactor: { type: 'int16' },
        assignments: {
          items: {
            partitionIndex: { type: 'int32' },
            brokerIds: { items: 'int32' },
          },
        },
        configs: {
          items: {
            name: { type: 'string' },
            value: { type: 'string', nullable: true },
          },
        },
      },
    },
    timeoutMs: { type: 'int32', default: 60000 },
    validateOnly: { type: 'bool', since: 1, default: false },
  },
} as const satisfies MessageTable;

export type CreateTopicsRequest = Output<typeof createTopicsRequest>;
export type CreateTopicsRequestInput = Input<typeof createTopicsRequest>;

export const createTopicsResponse = {
  name: 'CreateTopicsResponse',
  apiKey: 19,
  versions: [0, 7],
  flexibleFrom: 5,
  fields: {
    throttleTimeMs: { type: 'int32', since: 2, ignorable: true },
    topics: {
      items: {
        name: { type: 'string' },
        topicId: { type: 'uuid', since: 7, ignorable: true },
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', since: 1, nullable: true, ignorable: true },
        topicConfigErrorCode: { type: 'int16', since: 5, tag: 0, ignorable: true },
        numPartitions: { type: 'int32', since: 5, default: -1, ignorable: true },
        replicationFactor: { type: 'int16', since: 5, default: -1, ignorable: true },
        configs: {
          since: 5,
          nullable: true,
          ignorable: true,
          items: {
            name: { type: 'string' },
            value: { type: 'string', nullable: true },
            readOnly: { type: 'bool' },
            configSource: { type: 'int8', default: -1 },
            isSensitive: { type: 'bool' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type CreateTopicsResponse = Output<typeof createTopicsResponse>;
export type CreateTopicsResponseInput = Input<typeof createTopicsResponse>;
