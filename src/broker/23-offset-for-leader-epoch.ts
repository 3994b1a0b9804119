import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type OffsetForLeaderEpochRequest,
  type OffsetForLeaderEpochResponseInput,
  offsetForLeaderEpochRequest,
  offsetForLeaderEpochResponse,
} from '../protocol/schema/23-offset-for-leader-epoch.ts';
import type { Replica } from '../replica/replica.ts';
import { leaderEpochOf } from '../state/leader-epoch.ts';
import type { Broker } from './broker.ts';
import { defineHandler } from './handler.ts';

type AskedPartition = OffsetForLeaderEpochRequest['topics'][number]['partitions'][number];
type PartitionResponse = OffsetForLeaderEpochResponseInput['topics'][number]['partitions'][number];

const undefinedEpoch = -1;

export const offsetForLeaderEpoch = defineHandler({
  request: offsetForLeaderEpochRequest,
  response: offsetForLeaderEpochResponse,
  versions: [0, 4],
  handle(request, { broker }, answer) {
    findAll(request, broker).then(
      (topics) => answer({ topics }),
      (error: unknown) => broker.fatal(error),
    );
  },
});

/** One partition after the other: each may read from disk, and a request may name very many. */
async function findAll(
  request: OffsetForLeaderEpochRequest,
  broker: Broker,
): Promise<OffsetForLeaderEpochResponseInput['topics']> {
  const topics = [];
  for (const { topic, partitions } of request.topics) {
    const found: PartitionResponse[] = [];
    for (const asked of partitions) found.push(await find(asked, topic, broker));
    topics.push({ topic, partitions: found });
  }
  return topics;
}

async function find(
  { partition: index, currentLeaderEpoch, leaderEpoch }: AskedPartition,
  topicName: string,
  broker: Broker,
): Promise<PartitionResponse> {
  const { replica } = broker;
  const error = (errorCode: ErrorCode) => ({ partition: index, errorCode });
  // What a follower has may end earlier: that would look like a truncated log.
  if (!replica.mayAnswer) return error(ErrorCode.NOT_LEADER_OR_FOLLOWER);
  const partition = broker.topics.byName(topicName)?.partitions[index];
  if (partition === undefined) return error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  if (currentLeaderEpoch >= 0 && currentLeaderEpoch < replica.leaderEpoch) {
    return error(ErrorCode.FENCED_LEADER_EPOCH);
  }
  if (currentLeaderEpoch > replica.leaderEpoch) return error(ErrorCode.UNKNOWN_LEADER_EPOCH);
  const found = await endOfEpoch(replica, partition, leaderEpoch);
  return {
    partition: index,
    errorCode: ErrorCode.NONE,
    leaderEpoch: found.epoch,
    endOffset: found.endOffset,
  };
}

interface EpochEnd {
  readonly epoch: number;
  readonly endOffset: number;
}

/**
 * The largest epoch that is not above the one asked for, and where it ended in this partition
 * (KIP-101; Kafka's LeaderEpochFileCache.endOffsetFor). Epochs are the same for all
 * partitions.
 */
async function endOfEpoch(replica: Replica, partition: number, asked: number): Promise<EpochEnd> {
  const { terms, topics } = replica.state;
  const latest = replica.leaderEpoch;
  if (asked < 0 || asked > latest) return { epoch: undefinedEpoch, endOffset: -1 };
  const epoch = terms.map(leaderEpochOf).findLast((each) => each <= asked) ?? asked;
  // Nothing is awaited before these are read: the partition is there.
  let endOffset = topics.partitions.end(partition);
  if (asked === latest) return { epoch, endOffset };
  const logStart = topics.partitions.logStart(partition);
  await replica.journal.extents.walkLoading(
    { partition, start: { epochAbove: asked } },
    (baseOffset) => {
      // Of batches that are partly or wholly deleted, nothing below the log start is known.
      endOffset = Math.max(baseOffset, logStart);
      return false;
    },
  );
  return { epoch, endOffset };
}
