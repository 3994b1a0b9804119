import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type ProduceRequest,
  type ProduceResponseInput,
  produceRequest,
  produceResponse,
} from '../protocol/schema/00-produce.ts';
import type { OpenedBatch } from '../replica/open-batch.ts';
import type {
  LargePart,
  OpenedPart,
  ProduceOutcome,
  ProducePart,
} from '../replica/produce-planner.ts';
import type { Topic } from '../state/topics.ts';
import { type Answer, defineHandler, type RequestContext } from './handler.ts';
import type { ProduceTurn } from './produce-queue.ts';

type TopicResponse = ProduceResponseInput['responses'][number];

/** The first version with record batches; earlier ones carry message sets, which are refused. */
const batchesFrom = 3;
const topicIdsFrom = 13;
const leaderFrom = 10;

export const produce = defineHandler({
  request: produceRequest,
  response: produceResponse,
  versions: [0, 13],
  handle(request, context, answer) {
    if (request.acks < -1 || request.acks > 1) {
      answer(refuseAll(request, ErrorCode.INVALID_REQUIRED_ACKS));
      return;
    }
    if (context.apiVersion < batchesFrom) {
      answer(refuseAll(request, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT));
      return;
    }
    context.produces.take(new ProduceRequestTurn(request, context, answer));
  },
});

/** Which stored partition each part of a request goes to, and the answer in the request's order. */
class ProduceRequestTurn implements ProduceTurn {
  readonly #request: ProduceRequest;
  readonly #context: RequestContext;
  readonly #answer: Answer<typeof produceResponse>;
  #parts: ProducePart[] = [];
  /** One per partition of the request: index in `#parts`, or the error. */
  #places: ({ readonly part: number } | { readonly error: ErrorCode })[] = [];
  #opened: Map<Buffer, OpenedPart> | undefined;
  /** So many nodes must have it, by the topic that asks for most. */
  #replicas = 1;

  constructor(
    request: ProduceRequest,
    context: RequestContext,
    answer: Answer<typeof produceResponse>,
  ) {
    this.#request = request;
    this.#context = context;
    this.#answer = answer;
  }

  get bytes(): number {
    let bytes = 0;
    for (const { partitionData } of this.#request.topicData) {
      for (const { records } of partitionData) bytes += records?.length ?? 0;
    }
    return bytes;
  }

  /** Topics are looked up anew each time: they may be gone, or have other settings. */
  plan(): readonly LargePart[] {
    const { broker, apiVersion, reply } = this.#context;
    const { isLeader, mayAnswer } = broker.replica;
    // Without a lease it may lack what another leader has stored, and find sequences out of order.
    if (!isLeader || !mayAnswer) {
      this.refuse();
      return [];
    }
    this.#findParts();
    const finish = (outcomes: readonly ProduceOutcome[]): void => this.#finish(outcomes);
    const large = broker.produce.produce(this.#parts, apiVersion, finish, this.#opened);
    if (large.length === 0 && this.#request.acks === 0) reply.send(null);
    return large;
  }

  takeOpened(large: readonly LargePart[], opened: readonly OpenedBatch[]): void {
    this.#opened ??= new Map();
    for (const [index, { records, settings }] of large.entries()) {
      this.#opened.set(records, { settings, opened: opened[index]! });
    }
  }

  refuse(): void {
    if (this.#request.acks !== 0) {
      this.#answer(this.#withLeader(refuseAll(this.#request, ErrorCode.NOT_LEADER_OR_FOLLOWER)));
      return;
    }
    this.#context.reply.send(null);
    this.#context.disconnect();
  }

  #finish(outcomes: readonly ProduceOutcome[]): void {
    if (this.#request.acks !== 0) {
      const respond = () => {
        this.#answer(this.#withLeader({ responses: this.#responses(outcomes) }));
      };
      const isPlaced = outcomes.some(({ errorCode }) => errorCode === ErrorCode.NONE);
      if (this.#replicas <= 1 || !isPlaced) respond();
      else this.#awaitReplicas(outcomes, respond);
    }
    // No answer; but a client that is told nothing learns of an error by a closed connection.
    else if (this.#isRefused(outcomes)) this.#context.disconnect();
  }

  /** What is committed may be on too few nodes yet (`min.insync.replicas`). */
  #awaitReplicas(outcomes: readonly ProduceOutcome[], respond: () => void): void {
    const { nodes } = this.#context.broker;
    nodes.awaitReplicas(this.#replicas, this.#request.timeoutMs, (areThere) => {
      for (const outcome of areThere ? [] : outcomes) {
        if (outcome.errorCode !== ErrorCode.NONE) continue;
        outcome.errorCode = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND;
        outcome.message =
          'Messages are written to the log, but to fewer in-sync replicas than required.';
      }
      respond();
    });
  }

  /** Who is told that this node does not lead is told who does (KIP-951). */
  #withLeader(response: ProduceResponseInput): ProduceResponseInput {
    const { broker, apiVersion, client } = this.#context;
    const isWrong = ({ errorCode }: { errorCode: number }) =>
      errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER;
    if (apiVersion < leaderFrom) return response;
    if (!response.responses.some(({ partitionResponses }) => partitionResponses.some(isWrong))) {
      return response;
    }
    const currentLeader = broker.nodes.leader;
    return {
      responses: response.responses.map((topic) => ({
        ...topic,
        partitionResponses: topic.partitionResponses.map((partition) =>
          isWrong(partition) ? { ...partition, currentLeader } : partition,
        ),
      })),
      nodeEndpoints: broker.nodes.leaderEndpoints(client),
    };
  }

  #findParts(): void {
    const { broker, apiVersion } = this.#context;
    this.#parts = [];
    this.#places = [];
    const byId = apiVersion >= topicIdsFrom;
    for (const { name, topicId, partitionData } of this.#request.topicData) {
      const topic = byId ? broker.topics.byId(topicId) : broker.topics.byName(name);
      for (const { index, records } of partitionData) {
        this.#places.push(this.#place(topic, byId, index, records));
      }
    }
  }

  #place(topic: Topic | undefined, byId: boolean, index: number, records: Buffer | null) {
    const partition = topic?.partitions[index];
    if (topic === undefined || partition === undefined) {
      const isUnknownId = byId && topic === undefined;
      return {
        error: isUnknownId ? ErrorCode.UNKNOWN_TOPIC_ID : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      };
    }
    const { broker } = this.#context;
    const settings = broker.topicSettings(topic);
    if (this.#request.acks === -1 && settings.minInsyncReplicas > 1) {
      this.#replicas = Math.max(this.#replicas, settings.minInsyncReplicas);
      if (broker.nodes.inSyncIds.length < settings.minInsyncReplicas) {
        return { error: ErrorCode.NOT_ENOUGH_REPLICAS };
      }
    }
    this.#parts.push({ partition, topicPartition: `${topic.name}-${index}`, settings, records });
    return { part: this.#parts.length - 1 };
  }

  /** Is there an error in any of it? */
  #isRefused(outcomes: readonly ProduceOutcome[]): boolean {
    return (
      this.#places.some((place) => 'error' in place) ||
      outcomes.some((outcome) => outcome.errorCode !== ErrorCode.NONE)
    );
  }

  #responses(outcomes: readonly ProduceOutcome[]): TopicResponse[] {
    const { partitions } = this.#context.broker.replica.state.topics;
    let place = 0;
    return this.#request.topicData.map(({ name, topicId, partitionData }) => ({
      name,
      topicId,
      partitionResponses: partitionData.map(({ index }) => {
        const at = this.#places[place++]!;
        if ('error' in at) return { index, errorCode: at.error, baseOffset: -1 };
        const outcome = outcomes[at.part]!;
        const { partition } = this.#parts[at.part]!;
        const isKnown = outcome.errorCode === ErrorCode.NONE && partitions.exists(partition);
        return {
          index,
          errorCode: outcome.errorCode,
          baseOffset: outcome.baseOffset,
          logAppendTimeMs: outcome.logAppendTimeMs,
          logStartOffset: isKnown ? partitions.logStart(partition) : -1,
          recordErrors: outcome.recordErrors.map(({ batchIndex, message }) => ({
            batchIndex,
            batchIndexErrorMessage: message,
          })),
          errorMessage: outcome.message,
        };
      }),
    }));
  }
}

function refuseAll(request: ProduceRequest, errorCode: ErrorCode): ProduceResponseInput {
  return {
    responses: request.topicData.map(({ name, topicId, partitionData }) => ({
      name,
      topicId,
      partitionResponses: partitionData.map(({ index }) => ({ index, errorCode, baseOffset: -1 })),
    })),
  };
}
