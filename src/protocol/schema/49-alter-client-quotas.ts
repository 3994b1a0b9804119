/** AlterClientQuotas (KIP-546). */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const alterClientQuotasRequest = {
  name: 'AlterClientQuotasRequest',
  apiKey: 49,
  versions: [0, 1],
  flexibleFrom: 1,
  fields: {
    entries: {
      items: {
        entity: {
          items: {
            entityType: { type: 'string' },
            entityName: { type: 'string', nullable: true },
          },
        },
        ops: {
          items: {
            key: { type: 'string' },
            value: { type: 'float64' },
            remove: { type: 'bool' },
          },
        },
      },
    },
    validateOnly: { type: 'bool' },
  },
} as const satisfies MessageTable;

export type AlterClientQuotasRequest = Output<typeof alterClientQuotasRequest>;
export type AlterClientQuotasRequestInput = Input<typeof alterClientQuotasRequest>;

export const alterClientQuotasResponse = {
  name: 'AlterClientQuotasResponse',
  apiKey: 49,
  versions: [0, 1],
  flexibleFrom: 1,
  fields: {
    throttleTimeMs: { type: 'int32' },
    entries: {
      items: {
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', nullable: true },
        entity: {
          items: {
            entityType: { type: 'string' },
            entityName: { type: 'string', nullable: true },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type AlterClientQuotasResponse = Output<typeof alterClientQuotasResponse>;
export type AlterClientQuotasResponseInput = Input<typeof alterClientQuotasResponse>;
