import { ErrorCode } from '../protocol/error-codes.ts';
import {
  type ProduceRequest,
  type ProduceResponseInput,
  produceRequest,
  produceResponse,
} from '../protocol/schema/00-produce.ts';
import type { ProduceOutcome, ProducePart } from '../replica/produce-planner.ts';
import type { Topic } from '../state/topics.ts';
import type { Broker } from './broker.ts';
import { defineHandler, type RequestContext } from './handler.ts';

type TopicResponse = ProduceResponseInput['responses'][number];

/** The first version with record batches; earlier ones carry message sets, which are refused. */
const batchesFrom = 3;
const topicIdsFrom = 13;

export const produce = defineHandler({
  request: produceRequest,
  response: produceResponse,
  versions: [0, 13],
  handle(request, context, answer) {
    const { broker } = context;
    if (request.acks < -1 || request.acks > 1) {
      answer(refuseAll(request, ErrorCode.INVALID_REQUIRED_ACKS));
      return;
    }
    if (context.apiVersion < batchesFrom) {
      answer(refuseAll(request, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT));
      return;
    }
    const plan = new ProduceRequestPlan(broker, request, context);
    if (request.acks === 0) {
      // No answer; but a client that is told nothing learns of an error by a closed connection.
      broker.produce.produce(plan.parts, context.apiVersion, (outcomes) => {
        if (plan.isRefused(outcomes)) context.disconnect();
      });
      context.reply.send(null);
      return;
    }
    broker.produce.produce(plan.parts, context.apiVersion, (outcomes) => {
      answer({ responses: plan.responses(outcomes) });
    });
  },
});

/** Which stored partition each part of a request goes to, and the answer in the request's order. */
class ProduceRequestPlan {
  readonly parts: ProducePart[] = [];
  readonly #broker: Broker;
  readonly #request: ProduceRequest;
  /** One per partition of the request: index in `parts`, or the error. */
  readonly #places: ({ readonly part: number } | { readonly error: ErrorCode })[] = [];

  constructor(broker: Broker, request: ProduceRequest, { apiVersion }: RequestContext) {
    this.#broker = broker;
    this.#request = request;
    const byId = apiVersion >= topicIdsFrom;
    for (const { name, topicId, partitionData } of request.topicData) {
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
    const settings = this.#broker.topicSettings(topic);
    this.parts.push({ partition, topicPartition: `${topic.name}-${index}`, settings, records });
    return { part: this.parts.length - 1 };
  }

  /** Is there an error in any of it? */
  isRefused(outcomes: readonly ProduceOutcome[]): boolean {
    return (
      this.#places.some((place) => 'error' in place) ||
      outcomes.some((outcome) => outcome.errorCode !== ErrorCode.NONE)
    );
  }

  responses(outcomes: readonly ProduceOutcome[]): TopicResponse[] {
    const { partitions } = this.#broker.replica.state.topics;
    let place = 0;
    return this.#request.topicData.map(({ name, topicId, partitionData }) => ({
      name,
      topicId,
      partitionResponses: partitionData.map(({ index }) => {
        const at = this.#places[place++]!;
        if ('error' in at) return { index, errorCode: at.error, baseOffset: -1 };
        const outcome = outcomes[at.part]!;
        const { partition } = this.parts[at.part]!;
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
