/** DescribeLogDirs: where partitions lie and how large they are. */
import type { Input, MessageTable, Output } from '../schema-types.ts';

export const describeLogDirsRequest = {
  name: 'DescribeLogDirsRequest',
  apiKey: 35,
  versions: [0, 5],
  flexibleFrom: 2,
  fields: {
    topics: {
      nullable: true,
      items: {
        topic: { type: 'string' },
        partitions: { items: 'int32' },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeLogDirsRequest = Output<typeof describeLogDirsRequest>;
export type DescribeLogDirsRequestInput = Input<typeof describeLogDirsRequest>;

export const describeLogDirsResponse = {
  name: 'DescribeLogDirsResponse',
  apiKey: 35,
  versions: [0, 5],
  flexibleFrom: 2,
  fields: {
    throttleTimeMs: { type: 'int32' },
    errorCode: { type: 'int16', since: 3, ignorable: true },
    results: {
      items: {
        errorCode: { type: 'int16' },
        logDir: { type: 'string' },
        topics: {
          items: {
            name: { type: 'string' },
            partitions: {
              items: {
                partitionIndex: { type: 'int32' },
                partitionSize: { type: 'int64' },
                offsetLag: { type: 'int64' },
                isFutureKey: { type: 'bool' },
              },
            },
          },
        },
        totalBytes: { type: 'int64', since: 4, default: -1, ignorable: true },
        usableBytes: { type: 'int64', since: 4, default: -1, ignorable: true },
        isCordoned: { type: 'bool', since: 5, default: false, ignorable: true },
      },
    },
  },
} as const satisfies MessageTable;

export type DescribeLogDirsResponse = Output<typeof describeLogDirsResponse>;
export type DescribeLogDirsResponseInput = Input<typeof describeLogDirsResponse>;
