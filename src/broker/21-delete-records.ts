import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type DeleteRecordsRequest,
  type DeleteRecordsResponseInput,
  deleteRecordsRequest,
  deleteRecordsResponse,
} from '../protocol/schema/21-delete-records.ts';
import type { Broker } from './broker.ts';
import { defineHandler } from './handler.ts';

type AskedPartition = DeleteRecordsRequest['topics'][number]['partitions'][number];
type PartitionResponse = DeleteRecordsResponseInput['topics'][number]['partitions'][number];

/** Stands for the end of what consumers can read. */
const highWatermark = -1;

export const deleteRecords = defineHandler({
  request: deleteRecordsRequest,
  response: deleteRecordsResponse,
  versions: [0, 2],
  handle(request, { broker }, answer) {
    Promise.all(
      request.topics.map(async ({ name, partitions }) => ({
        name,
        partitions: await Promise.all(
          partitions.map((partition) => deleteBelow(partition, name, broker)),
        ),
      })),
    ).then(
      (topics) => answer({ throttleTimeMs: 0, topics }),
      (error: unknown) => broker.fatal(error),
    );
  },
});

async function deleteBelow(
  { partitionIndex, offset }: AskedPartition,
  topicName: string,
  broker: Broker,
): Promise<PartitionResponse> {
  const refused = (errorCode: ErrorCode) => ({ partitionIndex, lowWatermark: -1, errorCode });
  const topic = broker.topics.byName(topicName);
  const partition = topic?.partitions[partitionIndex];
  if (topic === undefined || partition === undefined) {
    return refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  }
  const { partitions } = broker.replica.state.topics;
  const end = partitions.end(partition);
  const target = offset === highWatermark ? end : offset;
  // An offset below the present start is no error: what it asks for is done.
  if (target < 0 || target > end) return refused(ErrorCode.OFFSET_OUT_OF_RANGE);
  const outcome = await broker.logStarts.moveTo(partition, target);
  if (outcome === 'disk-full') return refused(ErrorCode.KAFKA_STORAGE_ERROR);
  if (outcome === 'stopped') return refused(ErrorCode.NOT_LEADER_OR_FOLLOWER);
  if (!partitions.exists(partition)) return refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  return {
    partitionIndex,
    lowWatermark: partitions.logStart(partition),
    errorCode: ErrorCode.NONE,
  };
}
