import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type OffsetCommitRequest,
  type OffsetCommitResponseInput,
  offsetCommitRequest,
  offsetCommitResponse,
} from '../protocol/schema/08-offset-commit.ts';
import type { CommittedOffset } from '../state/commands.ts';
import type { Topic } from '../state/topics.ts';
import type { Broker } from './broker.ts';
import { coordinatorError } from './coordinator-errors.ts';
import { defineHandler, type RequestContext } from './handler.ts';
import type { Delivery } from './keyed/delivery.ts';
import { commitLanes } from './keyed/lane-offsets.ts';

type RequestPartition = OffsetCommitRequest['topics'][number]['partitions'][number];
/** The error of a partition that is refused by itself, or undefined: it gets what the rest gets. */
type OwnError = ErrorCode | undefined;

const topicIdsFrom = 10;

/**
 * Version 0 once meant offsets kept in ZooKeeper, without any group: it is a commit like that of
 * a consumer that assigns itself its partitions.
 */
export const offsetCommit = defineHandler({
  request: offsetCommitRequest,
  response: offsetCommitResponse,
  versions: [0, 10],
  handle: commitOffsets,
});

function commitOffsets(
  request: OffsetCommitRequest,
  context: RequestContext,
  answer: (response: OffsetCommitResponseInput) => void,
): void {
  const plan = new CommitPlan(request, context);
  // As in Kafka: if no partition of the request exists the group is not looked at.
  if (!plan.namesPartitions) {
    answer(plan.response(ErrorCode.NONE));
    return;
  }
  const { broker, apiVersion } = context;
  if (!broker.groups.isCoordinator) {
    answer(plan.response(ErrorCode.NOT_COORDINATOR));
    return;
  }
  const { groupId, memberId, groupInstanceId, generationIdOrMemberEpoch } = request;
  broker.groups.heardFrom(context, groupId, memberId);
  const groupError = broker.groups.run((coordinator, now) =>
    coordinator.validateOffsetCommit(
      {
        apiVersion,
        groupId,
        generationId: generationIdOrMemberEpoch,
        memberId,
        groupInstanceId,
        isTransactional: false,
      },
      now,
    ),
  );
  if (groupError !== ErrorCode.NONE) {
    answer(plan.response(groupError));
    return;
  }
  const offsets = plan.offsets();
  const { deliveries, areDone } = takeLanes(broker, request, offsets);
  for (const delivery of deliveries) delivery.onCommit(memberId);
  if (!areDone) {
    // Whatever happens to the group meanwhile is found as if the request came then.
    broker.clock.soon(() => commitOffsets(request, context, answer));
    return;
  }
  if (offsets.size === 0) {
    if (deliveries.size === 0) answer(plan.response(ErrorCode.NONE));
    else broker.replica.afterPlanned((outcome) => answer(plan.response(coordinatorError(outcome))));
    return;
  }
  broker.offsets.commit({ groupId, offsets: [...offsets] }, (outcome) => {
    answer(plan.response(coordinatorError(outcome)));
  });
}

/**
 * Commits of lanes go to the keyed deliveries that they belong to; what is left in `offsets` is
 * committed to the log's partitions.
 */
function takeLanes(
  broker: Broker,
  { groupId, memberId }: OffsetCommitRequest,
  offsets: Map<number, CommittedOffset>,
): { deliveries: Set<Delivery>; areDone: boolean } {
  const commits = new Map<Delivery, Map<number, number>>();
  const { partitions } = broker.replica.state.topics;
  for (const [partition, { offset }] of offsets) {
    const delivery = broker.keyed.get(groupId, partitions.topic(partition)!.id);
    if (delivery === undefined) continue;
    const lanes = commits.get(delivery) ?? new Map<number, number>();
    commits.set(delivery, lanes.set(partitions.index(partition), offset));
    offsets.delete(partition);
  }
  let areDone = true;
  for (const [delivery, lanes] of commits) {
    if (!commitLanes(broker, delivery, memberId, lanes)) areDone = false;
  }
  return { deliveries: new Set(commits.keys()), areDone };
}

/** Which stored partitions a request names, and the answer in the request's order. */
class CommitPlan {
  readonly #request: OffsetCommitRequest;
  readonly #context: RequestContext;
  readonly #topics: readonly (Topic | undefined)[];

  constructor(request: OffsetCommitRequest, context: RequestContext) {
    this.#request = request;
    this.#context = context;
    const { topics } = context.broker;
    this.#topics = request.topics.map(({ name, topicId }) =>
      this.#byId ? topics.byId(topicId) : topics.byName(name),
    );
  }

  get #byId(): boolean {
    return this.#context.apiVersion >= topicIdsFrom;
  }

  /** Is any of the partitions there? */
  get namesPartitions(): boolean {
    return this.#request.topics.some(({ partitions }, i) =>
      partitions.some(
        ({ partitionIndex }) => this.#topics[i]?.partitions[partitionIndex] !== undefined,
      ),
    );
  }

  /** What to commit, by partition number; of several offsets for one partition the last. */
  offsets(): Map<number, CommittedOffset> {
    const offsets = new Map<number, CommittedOffset>();
    const nowMs = this.#context.broker.clock.wallMs();
    for (const [i, { partitions }] of this.#request.topics.entries()) {
      const topic = this.#topics[i];
      for (const partition of partitions) {
        if (this.#errorOf(topic, partition) !== undefined) continue;
        const number = topic!.partitions[partition.partitionIndex]!;
        offsets.set(number, committedOffset(partition, this.#request.retentionTimeMs, nowMs));
      }
    }
    return offsets;
  }

  /** `errorCode` stands for all partitions that have no error of their own. */
  response(errorCode: ErrorCode): OffsetCommitResponseInput {
    const isGroupError = errorCode !== ErrorCode.NONE;
    return {
      topics: this.#request.topics.map(({ name, topicId, partitions }, i) => ({
        name,
        topicId,
        partitions: partitions.map((partition) => {
          const unknown = this.#unknownError(this.#topics[i], partition);
          const ownError = this.#errorOf(this.#topics[i], partition);
          // The group is asked before the metadata is looked at.
          const either = isGroupError ? errorCode : (ownError ?? ErrorCode.NONE);
          return { partitionIndex: partition.partitionIndex, errorCode: unknown ?? either };
        }),
      })),
    };
  }

  #unknownError(topic: Topic | undefined, { partitionIndex }: RequestPartition): OwnError {
    if (topic === undefined && this.#byId) return ErrorCode.UNKNOWN_TOPIC_ID;
    if (topic?.partitions[partitionIndex] === undefined) {
      return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    }
    return undefined;
  }

  #errorOf(topic: Topic | undefined, partition: RequestPartition): OwnError {
    const unknown = this.#unknownError(topic, partition);
    if (unknown !== undefined) return unknown;
    const metadata = partition.committedMetadata ?? '';
    // Kafka counts characters (String.length), whatever the setting's name says.
    if (metadata.length > this.#context.broker.settings['offset.metadata.max.bytes']) {
      return ErrorCode.OFFSET_METADATA_TOO_LARGE;
    }
    // Kafka stores any int64; this broker only those that it can give back unchanged.
    if (!Number.isSafeInteger(partition.committedOffset)) {
      return ErrorCode.INVALID_COMMIT_OFFSET_SIZE;
    }
    return undefined;
  }
}

/** Negative offsets are kept as they are: kafkajs commits -1 and -2 for "latest" and "earliest". */
function committedOffset(
  partition: RequestPartition,
  retentionTimeMs: number,
  nowMs: number,
): CommittedOffset {
  const { commitTimestamp } = partition;
  return {
    offset: partition.committedOffset,
    leaderEpoch: partition.committedLeaderEpoch,
    metadata: partition.committedMetadata ?? '',
    commitMs: commitTimestamp === -1 ? nowMs : commitTimestamp,
    expireMs: retentionTimeMs === -1 ? -1 : nowMs + retentionTimeMs,
  };
}
