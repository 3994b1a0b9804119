/**
 * What others notice of bad input: a client that produces, fetches and commits all the time on
 * connections of its own and checks every answer, and a log in which the broker's bugs stand.
 */
import assert from 'node:assert/strict';
import type { Logger } from '../../src/core/logger.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { metadataRequest, metadataResponse } from '../../src/protocol/schema/03-metadata.ts';
import {
  offsetCommitRequest,
  offsetCommitResponse,
} from '../../src/protocol/schema/08-offset-commit.ts';
import {
  offsetFetchRequest,
  offsetFetchResponse,
} from '../../src/protocol/schema/09-offset-fetch.ts';
import { batchOf, fetchFrom, produceTo, recordsOf } from './records.ts';
import type { TestClient, TestNode } from './support.ts';

/** Nobody else names what begins so. */
export const goodPrefix = 'good-';
const topic = `${goodPrefix}topic`;
const groupId = `${goodPrefix}group`;

export class GoodClient {
  readonly #producer: TestClient;
  readonly #consumer: TestClient;
  readonly #running: Promise<void>;
  #stopping = false;
  #rounds = 0;

  static async start(node: TestNode): Promise<GoodClient> {
    // What it needs is set on the topic, whatever others set for the whole broker.
    await node.createTopic(topic, 1, {
      'max.message.bytes': '1000000',
      'compression.type': 'producer',
      'message.timestamp.type': 'CreateTime',
      'message.timestamp.before.max.ms': '9223372036854775807',
      'retention.ms': '-1',
    });
    return new GoodClient(await node.connect('good'), await node.connect('good'));
  }

  constructor(producer: TestClient, consumer: TestClient) {
    this.#producer = producer;
    this.#consumer = consumer;
    this.#running = this.#run();
    // It is looked at in `stop`; until then it is nobody's unhandled rejection.
    this.#running.catch(() => undefined);
  }

  get rounds(): number {
    return this.#rounds;
  }

  /** Ends after a whole round that began after this call. Fails if anything was not as it must. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#running;
    assert.ok(this.#rounds > 0);
  }

  async #run(): Promise<void> {
    let isLast = false;
    while (!isLast) {
      isLast = this.#stopping;
      await this.#round(this.#rounds);
      this.#rounds++;
    }
  }

  async #round(round: number): Promise<void> {
    const value = `value ${round}`;
    const produced = await produceTo(this.#producer, { topic, records: batchOf([value]) });
    assert.deepEqual([produced.errorCode, produced.baseOffset], [ErrorCode.NONE, round]);
    const fetched = await fetchFrom(this.#consumer, [{ topic, offset: round }], {
      maxWaitMs: 10_000,
    });
    const [partition] = fetched.responses[0]!.partitions;
    assert.equal(partition?.errorCode, ErrorCode.NONE);
    assert.deepEqual(recordsOf(partition.records), [[round, value]]);
    await this.#commit(round + 1);
    const { topics } = await this.#producer.ask(metadataRequest, metadataResponse, 9, {
      topics: [{ name: topic }],
    });
    assert.deepEqual([topics.length, topics[0]?.partitions.length], [1, 1]);
  }

  async #commit(offset: number): Promise<void> {
    const committed = await this.#consumer.ask(offsetCommitRequest, offsetCommitResponse, 7, {
      groupId,
      topics: [
        {
          name: topic,
          partitions: [{ partitionIndex: 0, committedOffset: offset, committedMetadata: null }],
        },
      ],
    });
    assert.equal(committed.topics[0]?.partitions[0]?.errorCode, ErrorCode.NONE);
    const found = await this.#producer.ask(offsetFetchRequest, offsetFetchResponse, 5, {
      groupId,
      topics: [{ name: topic, partitionIndexes: [0] }],
    });
    assert.equal(found.topics[0]?.partitions[0]?.committedOffset, offset);
  }
}

/** Keeps the errors: whatever a client sends, there may be none. */
export class ErrorLog implements Logger {
  readonly errors: string[] = [];

  debug(): void {}
  info(): void {}
  warn(): void {}

  error(fields: object, message: string): void {
    const { err, ...rest } = fields as { err?: Error };
    this.errors.push(`${message} ${JSON.stringify(rest)} ${err?.stack ?? ''}`);
  }
}
