import { AssertionFailed } from '../core/assert.ts';
import { BrokerError } from '../core/errors.ts';
import type { Reply } from '../net/answer-queue.ts';
import type { Connection, Session } from '../net/connection.ts';
import { ApiKey } from '../protocol/api-keys.ts';
import { DecodeError } from '../protocol/codec-error.ts';
import { decodeRequestHead } from '../protocol/frame.ts';
import { answerUnsupportedApiVersions } from './18-api-versions.ts';
import type { Broker } from './broker.ts';
import { forward, isForwarded } from './forwarding.ts';
import type { Client, Handler, RequestContext } from './handler.ts';
import type { ProduceQueue } from './produce-queue.ts';

/**
 * The requests of one connection: finds the handler of each. What is not a request that this
 * broker knows ends the connection, as with Kafka; only ApiVersions is answered in any version,
 * since it is how clients find out (KIP-511).
 */
export class BrokerSession implements Session {
  readonly #broker: Broker;
  readonly #client: { -readonly [K in keyof Client]: Client[K] };
  readonly #connection: Connection;
  #lastFrameMs: number;
  readonly #onClosed = new Set<() => void>();
  readonly #produces: ProduceQueue;
  /** Requests that wait until the leader of a group in which nothing happened is awake. */
  readonly #asleep: { readonly frame: Buffer; readonly reply: Reply }[] = [];
  #isClosed = false;

  constructor(broker: Broker, connection: Connection) {
    this.#broker = broker;
    this.#connection = connection;
    this.#lastFrameMs = broker.clock.monotonicMs();
    this.#client = {
      connectionId: connection.id,
      host: connection.remoteAddress,
      localAddress: connection.localAddress,
      localPort: connection.localPort,
      softwareName: '',
      silentMs: 0,
    };
    this.#produces = broker.produceQueues.open((error) => {
      this.#fail(error, { apiKey: ApiKey.Produce });
    });
  }

  onFrame(frame: Buffer, reply: Reply): void {
    const { consensus } = this.#broker.replica;
    if (this.#asleep.length === 0 && !consensus.isAsleep) {
      consensus.touch();
      this.#onFrame(frame, reply);
      return;
    }
    this.#asleep.push({ frame, reply });
    if (this.#asleep.length === 1) consensus.awake(() => this.#serveAsleep());
  }

  /** What came while the leader dozed, in its order. */
  #serveAsleep(): void {
    const frames = this.#asleep.splice(0);
    try {
      for (const { frame, reply } of frames) if (!this.#isClosed) this.#onFrame(frame, reply);
    } catch (error) {
      if (!(error instanceof DecodeError)) this.#fail(error, {});
      else this.#connection.close('malformed');
    }
  }

  #onFrame(frame: Buffer, reply: Reply): void {
    const nowMs = this.#broker.clock.monotonicMs();
    this.#client.silentMs = nowMs - this.#lastFrameMs;
    this.#lastFrameMs = nowMs;
    const head = decodeRequestHead(frame, 0, frame.length);
    const { apiKey, apiVersion, correlationId } = head;
    const handler = this.#broker.apis.get(apiKey);
    if (handler === undefined) throw new DecodeError(`API ${apiKey} is not known`);
    const [min, max] = handler.versions;
    if (apiVersion < min || apiVersion > max) {
      if (apiKey === ApiKey.ApiVersions) {
        reply.send(answerUnsupportedApiVersions(correlationId));
        return;
      }
      throw new DecodeError(`API ${apiKey} has no version ${apiVersion}`);
    }
    const onClosed = this.#onClosed;
    const connection = this.#connection;
    const context: RequestContext = {
      broker: this.#broker,
      client: this.#client,
      clientId: head.clientId,
      apiVersion,
      reply: this.#broker.nodes.isCluster ? this.#whileLeading(reply) : reply,
      produces: this.#produces,
      onClosed(callback) {
        onClosed.add(callback);
        return () => onClosed.delete(callback);
      },
      fail: (error) => this.#fail(error, { apiKey, apiVersion }),
      nameSoftware: (name) => {
        this.#client.softwareName = name;
      },
      disconnect: () => connection.close('denied'),
    };
    const serve = (): void => {
      this.#serve(handler, frame, head.bodyStart, correlationId, context);
    };
    if (!this.#broker.nodes.isCluster) serve();
    else if (!isForwarded(apiKey) || this.#broker.replica.mayAnswer) serve();
    else forward(frame, apiKey, context, serve).catch((error: unknown) => context.fail(error));
  }

  /**
   * What was asked of a leader is not answered by one that may lead no longer: the process may have
   * been stopped for a while. The client learns by the end of its connection.
   */
  #whileLeading(reply: Reply): Reply {
    const { replica } = this.#broker;
    if (!replica.mayAnswer) return reply;
    return {
      send: (pieces, afterWritten) => {
        if (replica.mayAnswer) {
          reply.send(pieces, afterWritten);
          return;
        }
        this.#connection.close('denied');
        afterWritten?.(false);
      },
      onTurn: (callback) => reply.onTurn(callback),
    };
  }

  /**
   * A handler that throws has a bug that this request found: it costs the client its connection,
   * not everybody the broker. A broken invariant or a failed disk does end the process.
   */
  #serve(
    handler: Handler,
    frame: Buffer,
    bodyStart: number,
    correlationId: number,
    context: RequestContext,
  ): void {
    try {
      handler.serve(frame, bodyStart, correlationId, context);
    } catch (error) {
      if (isOurs(error) || error instanceof DecodeError) throw error;
      this.#onUnforeseen(error, { apiKey: handler.apiKey, apiVersion: context.apiVersion });
    }
  }

  #fail(error: unknown, request: { apiKey?: number; apiVersion?: number }): void {
    if (isOurs(error)) this.#broker.fatal(error);
    else this.#onUnforeseen(error, request);
  }

  #onUnforeseen(error: unknown, request: { apiKey?: number; apiVersion?: number }): void {
    this.#broker.log.error({ err: error, ...request }, 'a request could not be handled');
    this.#connection.close('malformed');
  }

  onClose(): void {
    this.#isClosed = true;
    for (const callback of this.#onClosed) callback();
    this.#onClosed.clear();
    this.#produces.onClose();
  }
}

/** Errors after which nothing may go on. */
function isOurs(error: unknown): boolean {
  return error instanceof AssertionFailed || error instanceof BrokerError;
}
