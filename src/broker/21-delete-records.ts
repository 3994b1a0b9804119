import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type DeleteRecordsRequest,
  type DeleteRecordsResponseInput,
  deleteRecordsRequest,
  deleteRecordsResponse,
} from '../protocol/schema/21-delete-records.ts';
import type { Outcome } from '../replica/group-commit.ts';
import type { Broker } from './broker.ts';
import { defineHandler } from './handler.ts';

type AskedPartition = DeleteRecordsRequest['topics'][number]['partitions'][number];

/** Stands for the end of what consumers can read. */
const highWatermark = -1;

export const deleteRecords = defineHandler({
  request: deleteRecordsRequest,
  response: deleteRecordsResponse,
  versions: [0, 2],
  handle(request, { broker }, answer) {
    const plan = new DeletionPlan(request, broker);
    broker.logStarts.moveTo(plan.targets).then(
      (outcome) => answer({ throttleTimeMs: 0, topics: plan.topics(outcome) }),
      (error: unknown) => broker.fatal(error),
    );
  },
});

/** Up to where to delete, all partitions in one go; of one that is named twice the last counts. */
class DeletionPlan {
  readonly targets = new Map<number, number>();
  readonly #request: DeleteRecordsRequest;
  readonly #broker: Broker;
  /** One per partition of the request: its number, or the error. */
  readonly #places: ({ readonly partition: number } | { readonly error: ErrorCode })[] = [];

  constructor(request: DeleteRecordsRequest, broker: Broker) {
    this.#request = request;
    this.#broker = broker;
    for (const { name, partitions } of request.topics) {
      for (const asked of partitions) this.#places.push(this.#place(name, asked));
    }
  }

  #place(topicName: string, { partitionIndex, offset }: AskedPartition) {
    const partition = this.#broker.topics.byName(topicName)?.partitions[partitionIndex];
    if (partition === undefined) return { error: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION };
    const end = this.#broker.replica.state.topics.partitions.end(partition);
    const target = offset === highWatermark ? end : offset;
    // An offset below the present start is no error: what it asks for is done.
    if (target < 0 || target > end) return { error: ErrorCode.OFFSET_OUT_OF_RANGE };
    this.targets.set(partition, target);
    return { partition };
  }

  topics(outcome: Outcome): DeleteRecordsResponseInput['topics'] {
    let place = 0;
    return this.#request.topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partitionIndex }) => {
        const at = this.#places[place++]!;
        const errorCode = 'error' in at ? at.error : this.#errorOf(at.partition, outcome);
        if (errorCode !== ErrorCode.NONE || 'error' in at) {
          return { partitionIndex, lowWatermark: -1, errorCode };
        }
        const { partitions: table } = this.#broker.replica.state.topics;
        return { partitionIndex, lowWatermark: table.logStart(at.partition), errorCode };
      }),
    }));
  }

  #errorOf(partition: number, outcome: Outcome): ErrorCode {
    if (outcome === 'disk-full') return ErrorCode.KAFKA_STORAGE_ERROR;
    if (outcome === 'not-leader') return ErrorCode.NOT_LEADER_OR_FOLLOWER;
    return this.#broker.replica.state.topics.partitions.exists(partition)
      ? ErrorCode.NONE
      : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
  }
}
