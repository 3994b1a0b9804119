import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type OffsetDeleteRequest,
  type OffsetDeleteResponseInput,
  offsetDeleteRequest,
  offsetDeleteResponse,
} from '../protocol/schema/47-offset-delete.ts';
import type { Broker } from './broker.ts';
import { coordinatorError } from './coordinator-errors.ts';
import { defineHandler } from './handler.ts';

export const offsetDelete = defineHandler({
  request: offsetDeleteRequest,
  response: offsetDeleteResponse,
  versions: [0, 0],
  handle(request, { broker }, answer) {
    const { groupId } = request;
    const groupError =
      groupId === ''
        ? ErrorCode.INVALID_GROUP_ID
        : broker.groups.run((coordinator) => coordinator.validateOffsetDelete(groupId));
    if (groupError !== ErrorCode.NONE) {
      answer({ errorCode: groupError, throttleTimeMs: 0, topics: [] });
      return;
    }
    const { topics, partitions } = plan(request, broker);
    if (partitions.length === 0) {
      answer({ errorCode: ErrorCode.NONE, throttleTimeMs: 0, topics });
      return;
    }
    // Also what is not there is deleted: a commit of it may be under way.
    broker.offsets.delete({ groupId, partitions }, (outcome) => {
      const errorCode = coordinatorError(outcome);
      const isDone = errorCode === ErrorCode.NONE;
      answer({ errorCode, throttleTimeMs: 0, topics: isDone ? topics : [] });
    });
  },
});

interface Plan {
  readonly topics: OffsetDeleteResponseInput['topics'];
  /** Numbers of the partitions whose offsets are to be deleted. */
  readonly partitions: readonly number[];
}

function plan({ groupId, topics }: OffsetDeleteRequest, broker: Broker): Plan {
  const deleted = new Set<number>();
  const planned = topics.map(({ name, partitions }) => {
    const topic = broker.topics.byName(name);
    const isSubscribed = broker.groups.run((coordinator) =>
      coordinator.isSubscribedToTopic(groupId, name),
    );
    return {
      name,
      partitions: partitions.map(({ partitionIndex }) => {
        const partition = topic?.partitions[partitionIndex];
        if (partition === undefined) {
          return { partitionIndex, errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION };
        }
        if (isSubscribed) {
          return { partitionIndex, errorCode: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC };
        }
        deleted.add(partition);
        return { partitionIndex, errorCode: ErrorCode.NONE };
      }),
    };
  });
  return { topics: planned, partitions: [...deleted] };
}
