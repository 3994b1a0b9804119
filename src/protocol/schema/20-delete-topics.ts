/** DeleteTopics. Version 6 takes topic ids instead of names (KIP-516). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const deleteTopicsRequest = {
  name: 'DeleteTopicsRequest',
  apiKey: 20,
  versions: [0, 6],
  flexibleFrom: 4,
  fields: {
    topics: {
      since: 6,
      items: {
        name: { type: 'string', nullable: true, default: null },
        topicId: { type: 'uuid' },
      },
    },
    topicNames: { items: 'string', until: 5, ignorable: true },
    timeoutMs: { type: 'int32' },
  },
} as const satisfies MessageTable;

export type DeleteTopicsRequest = Output<typeof deleteTopicsRequest>;
export type DeleteTopicsRequestInput = Input<typeof deleteTopicsRequest>;

export const deleteTopicsResponse = {
  name: 'DeleteTopicsResponse',
  apiKey: 20,
  versions: [0, 6],
  flexibleFrom: 4,
  fields: {
    throttleTimeMs: { type: 'int32', since: 1, ignorable: true },
    responses: {
      items: {
        name: { type: 'string', nullable: 6 },
        topicId: { type: 'uuid', since: 6, ignorable: true },
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', since: 5, nullable: true, default: null, ignorable: true },
      },
    },
  },
} as const satisfies MessageTable;

export type DeleteTopicsResponse = Output<typeof deleteTopicsResponse>;
export type DeleteTopicsResponseInput = Input<typeof deleteTopicsResponse>;
