import { resolve } from 'node:path';
import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type DescribeLogDirsRequest,
  describeLogDirsRequest,
  describeLogDirsResponse,
} from '../protocol/schema/35-describe-log-dirs.ts';
import type { Broker } from './broker.ts';
import { defineHandler } from './handler.ts';

type Asked = NonNullable<DescribeLogDirsRequest['topics']>[number];

/** All partitions share one journal in one folder; a partition's size is that of its records. */
export const describeLogDirs = defineHandler({
  request: describeLogDirsRequest,
  response: describeLogDirsResponse,
  versions: [0, 4],
  handle(request, { broker }, answer) {
    const asked = request.topics ?? everything(broker);
    answer({
      throttleTimeMs: 0,
      errorCode: ErrorCode.NONE,
      results: [
        {
          errorCode: ErrorCode.NONE,
          logDir: resolve(broker.settings.data),
          topics: asked.map((topic) => describe(broker, topic)),
          usableBytes: broker.replica.disk.freeBytes,
        },
      ],
    });
  },
});

function everything(broker: Broker): Asked[] {
  return [...broker.topics.all()].map(({ name, partitions }) => ({
    topic: name,
    partitions: [...partitions.keys()],
  }));
}

/** Partitions that are not there are left out, as in Kafka. */
function describe(broker: Broker, { topic: name, partitions }: Asked) {
  const topic = broker.topics.byName(name);
  const known = partitions.filter((index) => topic?.partitions[index] !== undefined);
  return {
    name,
    partitions: known.map((partitionIndex) => ({
      partitionIndex,
      partitionSize: broker.replica.state.topics.partitions.bytes(
        topic!.partitions[partitionIndex]!,
      ),
      offsetLag: 0,
      isFutureKey: false,
    })),
  };
}
