import type { Reply } from '../net/answer-queue.ts';
import { decode } from '../protocol/codec.ts';
import { EncodeError } from '../protocol/codec-error.ts';
import type { ApiTable } from '../protocol/frame.ts';
import { encodeResponse } from '../protocol/frame.ts';
import type { Input, Output } from '../protocol/schema-types.ts';
import { encodeInSlices, type LazyInput } from '../protocol/slices.ts';
import type { Broker } from './broker.ts';
import type { ProduceQueue } from './produce-queue.ts';

/** What a handler knows of the client that asks. */
export interface Client {
  readonly connectionId: number;
  /** The client's address. */
  readonly host: string;
  /** The address at which it reached this broker. */
  readonly localAddress: string;
  readonly localPort: number;
  /** ClientSoftwareName of its ApiVersions request, empty if it gave none. */
  readonly softwareName: string;
  /** For how long it had sent nothing before its present request. */
  readonly silentMs: number;
}

export interface RequestContext {
  readonly broker: Broker;
  readonly client: Client;
  readonly clientId: string;
  readonly apiVersion: number;
  readonly reply: Reply;
  /** The Produce requests of this connection. */
  readonly produces: ProduceQueue;
  /** Calls back if the connection goes before the answer; answers a function that takes it back. */
  onClosed(callback: () => void): () => void;
  /** The client says what it is. */
  nameSoftware(name: string): void;
  /** For errors that nobody foresaw, where they cannot be thrown to who called the handler. */
  fail(error: unknown): void;
  /** Ends the connection: how a client without answers (acks=0) learns of an error. */
  disconnect(): void;
}

/** Versions of an API, both ends included. */
export type VersionRange = readonly [min: number, max: number];

/** One API as the dispatcher sees it. */
export interface Handler {
  readonly apiKey: number;
  readonly versions: VersionRange;
  /**
   * The lowest version that ApiVersions tells of, where that is not the lowest served: old
   * librdkafka takes features from it (client-behaviour of librdkafka before 2.11; KAFKA-18659).
   */
  readonly advertisedMin: number;
  /** `frame` is without its size; the body begins at `bodyStart`. */
  serve(frame: Buffer, bodyStart: number, correlationId: number, context: RequestContext): void;
}

export type Answer<R extends ApiTable> = (
  response: Input<R>,
  afterWritten?: (whole: boolean) => void,
) => void;

/** Answers once, over as many turns of the event loop as the lazy lists in it take. */
export type AnswerInSlices<R extends ApiTable> = (response: LazyInput<Input<R>>) => void;

export interface HandlerDefinition<Q extends ApiTable, R extends ApiTable> {
  readonly request: Q;
  readonly response: R;
  readonly versions: VersionRange;
  readonly advertisedMin?: number;
  /** Answers once, now or later; never (with `context.reply.send(null)`) where no answer is due. */
  readonly handle: (
    request: Output<Q>,
    context: RequestContext,
    answer: Answer<R>,
    answerInSlices: AnswerInSlices<R>,
  ) => void;
}

/**
 * Kafka reads a request and does not look at what follows it. librdkafka depends on that: it asks
 * for the metadata of all topics with three bytes too many (2.16, Metadata 13).
 */
const asKafka = { trailing: true } as const;

/** Ties a handler to its tables and versions; ApiVersions and the dispatcher come from these. */
export function defineHandler<Q extends ApiTable, R extends ApiTable>(
  definition: HandlerDefinition<Q, R>,
): Handler {
  const { request, response, versions, handle } = definition;
  return {
    apiKey: request.apiKey,
    versions,
    advertisedMin: definition.advertisedMin ?? versions[0],
    serve(frame, bodyStart, correlationId, context) {
      const { apiVersion, reply } = context;
      const decoded = decode(request, apiVersion, frame, bodyStart, frame.length, asKafka);
      const answer: Answer<R> = (value, afterWritten) => {
        const encode = () => encodeResponse(response, apiVersion, correlationId, value);
        const pieces = orExplain(response, context, encode);
        if (pieces !== undefined) reply.send(pieces, afterWritten);
      };
      handle(decoded, context, answer, (value) => {
        const slices = encodeInSlices(response, apiVersion, correlationId, value);
        // What is long is made only when the answers before it are on their way.
        reply.onTurn(() => runSlices(response, context, slices));
      });
    },
  };
}

/** A slice in each turn, the first one now, until the answer is whole or nobody waits for it. */
function runSlices(
  table: ApiTable,
  context: RequestContext,
  slices: Generator<undefined, Buffer[]>,
): void {
  const { broker, reply } = context;
  let isOver = false;
  const forgetClose = context.onClosed(() => {
    isOver = true;
  });
  const run = (): void => {
    if (isOver) return;
    try {
      const next = orExplain(table, context, () => slices.next());
      if (next !== undefined && next.done !== true) {
        broker.clock.soon(run);
        return;
      }
      if (next !== undefined) reply.send(next.value);
    } catch (error) {
      context.fail(error);
    }
    forgetClose();
  };
  run();
}

/**
 * An answer that its version cannot carry is a bug of this broker, which costs the client its
 * connection and nobody else anything.
 */
function orExplain<T>(
  table: ApiTable,
  { apiVersion, broker, disconnect }: RequestContext,
  encode: () => T,
): T | undefined {
  try {
    return encode();
  } catch (error) {
    if (!(error instanceof EncodeError)) throw error;
    broker.log.error({ err: error, api: table.name, apiVersion }, 'an answer cannot be encoded');
    disconnect();
    return undefined;
  }
}
