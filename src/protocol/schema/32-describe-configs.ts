/**
 * DescribeConfigs. Null configuration keys mean all of them; version 0 says only whether a value
 * is the default.
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const describeConfigsRequest = {
  name: 'DescribeConfigsRequest',
  apiKey: 32,
  versions: [0, 4],
  flexibleFrom: 4,
  fields: {
    resources: {
      items: {
        resourceType: { type: 'int8' },
        resourceName: { type: 'string' },
        configurationKeys: { items: 'string', nullable: true },
      },
    },
    includeSynonyms: { type: 'bool', since: 1, default: false },
    includeDocumentation: { type: 'bool', since: 3, default: false },
  },
} as const satisfies MessageTable;

export type DescribeConfigsRequest = Output<typeof describeConfigsRequest>;
export type DescribeConfigsRequestInput = Input<typeof describeConfigsRequest>;

export const describeConfigsResponse = {
  name: 'DescribeConfigsResponse',
  apiKey: 32,
  versions: [0, 4],
  flexibleFrom: 4,
  fields: {
    throttleTimeMs: { type: 'int32' },
    results: {
      items: {
        errorCode: { type: 'int16' },
        errorMessage: { type: 'string', nullable: true },
        resourceType: { type: 'int8' },
        resourceName: { type: 'string' },
        configs: {
          items: {
            name: { type: 'string' },
            value: { type: 'string', nullable: true },
            readOnly: { type: 'bool' },
            isDefault: { type: 'bool', until: 0 },
            configSource: { type: 'int8', since: 1, default: -1, ignorable: true },
            isSensitive: { type: 'bool' },
            synonyms: {
              since: 1,
              ignorable: true,
              items: {
                name: { type: 'string' },
                value: { type: 'string', nullable: true },
                source: { type: 'int8' },
              },
            },
            configType: { type: 'int8', since: 3, default: 0, ignorable: true },
            documentation: { type: 'string', since: 3, nullable: true, ignorable: true },
          },
        },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeConfigsResponse = Output<typeof describeConfigsResponse>;
export type DescribeConfigsResponseInput = Input<typeof describeConfigsResponse>;
