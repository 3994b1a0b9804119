import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type DescribeProducersResponseInput,
  describeProducersRequest,
  describeProducersResponse,
} from '../protocol/schema/61-describe-producers.ts';
import type { Broker } from './broker.ts';
import { distinctBy } from './distinct.ts';
import { defineHandler } from './handler.ts';

type PartitionResponse = DescribeProducersResponseInput['topics'][number]['partitions'][number];

/** The idempotent producers that each partition remembers (KIP-664). */
export const describeProducers = defineHandler({
  request: describeProducersRequest,
  response: describeProducersResponse,
  versions: [0, 0],
  handle(request, { broker }, answer) {
    answer({
      throttleTimeMs: 0,
      topics: distinctBy(request.topics, ({ name }) => name).map(({ name, partitionIndexes }) => ({
        name,
        partitions: distinctBy(partitionIndexes, (index) => index).map((index) =>
          describe(broker, name, index),
        ),
      })),
    });
  },
});

function describe(broker: Broker, topicName: string, partitionIndex: number): PartitionResponse {
  const partition = broker.topics.byName(topicName)?.partitions[partitionIndex];
  if (partition === undefined) {
    const errorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    return { partitionIndex, errorCode, activeProducers: [] };
  }
  const producers = broker.replica.state.producers.of(partition) ?? new Map();
  return {
    partitionIndex,
    errorCode: ErrorCode.NONE,
    activeProducers: [...producers].map(([producerId, { epoch, batches, lastMs }]) => ({
      producerId,
      producerEpoch: epoch,
      lastSequence: batches.at(-1)?.lastSequence ?? -1,
      lastTimestamp: lastMs,
      coordinatorEpoch: -1,
    })),
  };
}
