/** DescribeClientQuotas (KIP-546). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const describeClientQuotasRequest = {
  name: 'DescribeClientQuotasRequest',
  apiKey: 48,
  versions: [0, 1],
  flexibleFrom: 1,
  fields: {
    components: {
      items: {
        entityType: { type: 'string' },
        matchType: { type: 'int8' },
        match: { type: 'string', nullable: true },
      },
    },
    strict: { type: 'bool' },
  },
} as const satisfies MessageTable;

export type DescribeClientQuotasRequest = Output<typeof describeClientQuotasRequest>;
export type DescribeClientQuotasRequestInput = Input<typeof describeClientQuotasRequest>;

export const describeClientQuotasResponse = {
  name: 'DescribeClientQuotasResponse',
  apiKey: 48,
  versions: [0, 1],
  flexibleFrom: 1,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16' },
    errorMessage: { type: 'string', nullable: true },
    entries: {
      nullable: true,
      items: {
        entity: {
          items: {
            entityType: { type: 'string' },
            entityName: { type: 'string', nullable: true },
          },
        },
        values: {
          items: {
            key: { type: 'string' },
            value: { type: 'float64' },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeClientQuotasResponse = Output<typeof describeClientQuotasResponse>;
export type DescribeClientQuotasResponseInput = Input<typeof describeClientQuotasResponse>;
