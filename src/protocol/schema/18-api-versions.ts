/**
 * ApiVersions: what the broker speaks. The answer to an unsupported version has the form of
 * version 0, and its header is always of version 0 (KIP-511).
 */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const apiVersionsRequest = {
  name: 'ApiVersionsRequest',
  apiKey: 18,
  versions: [0, 5],
  flexibleFrom: 3,
  fields: {
    clientSoftwareName: { type: 'string', since: 3, ignorable: true },
    clientSoftwareVersion: { type: 'string', since: 3, ignorable: true },
    clusterId: { type: 'string', since: 5, nullable: true, default: null, ignorable: true },
    nodeId: { type: 'int32', since: 5, default: -1, ignorable: true },
  },
} as const satisfies MessageTable;

export type ApiVersionsRequest = Output<typeof apiVersionsRequest>;
export type ApiVersionsRequestInput = Input<typeof apiVersionsRequest>;

export const apiVersionsResponse = {
  name: 'ApiVersionsResponse',
  apiKey: 18,
  versions: [0, 5],
  flexibleFrom: 3,
  fields: {
    errorCode: { type: 'int16' },
    apiKeys: {
      items: {
        apiKey: { type: 'int16' },
        minVersion: { type: 'int16' },
        maxVersion: { type: 'int16' },
      },
    },
    throttleTimeMs: { type: 'int32', since: 1, ignorable: true },
    supportedFeatures: {
      since: 3,
      tag: 0,
      ignorable: true,
      items: {
        name: { type: 'string' },
        minVersion: { type: 'int16' },
        maxVersion: { type: 'int16' },
      },
    },
    finalizedFeaturesEpoch: { type: 'int64', since: 3, tag: 1, default: -1, ignorable: true },
    finalizedFeatures: {
      since: 3,
      tag: 2,
      ignorable: true,
      items: {
        name: { type: 'string' },
        maxVersionLevel: { type: 'int16' },
        minVersionLevel: { type: 'int16' },
      },
    },
    zkMigrationReady: { type: 'bool', since: 3, tag: 3, default: false, ignorable: true },
  },
} as const satisfies MessageTable;

export type ApiVersionsResponse = Output<typeof apiVersionsResponse>;
export type ApiVersionsResponseInput = Input<typeof apiVersionsResponse>;
