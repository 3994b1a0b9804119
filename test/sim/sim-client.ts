/** Clients of a simulated cluster, as they are written: they look for the leader, and try again. */
import assert from 'node:assert/strict';
import { type ApiTable, encodeRequest } from '../../src/protocol/frame.ts';
import { metadataRequest, metadataResponse } from '../../src/protocol/schema/03-metadata.ts';
import {
  apiVersionsRequest,
  apiVersionsResponse,
} from '../../src/protocol/schema/18-api-versions.ts';
import type { Input, Output } from '../../src/protocol/schema-types.ts';
import { type Asker, decodeAnswer } from '../broker/support.ts';
import type { ClusterWorld } from './cluster-world.ts';
import type { SimConnection } from './sim-broker.ts';

/** The connection ended, or nothing came: the client has to look for the leader anew. */
export class Disconnected extends Error {}

/** A client waits for an answer for so long. */
const answerMsMax = 500;

/** One connection. */
export class SimClient implements Asker {
  readonly #world: ClusterWorld;
  readonly #connection: SimConnection;
  readonly #clientId: string;
  #nextCorrelationId = 1;

  constructor(world: ClusterWorld, connection: SimConnection, clientId: string) {
    this.#world = world;
    this.#connection = connection;
    this.#clientId = clientId;
  }

  get isClosed(): boolean {
    return this.#connection.isClosed;
  }

  /** Whether somebody else led already when the last answer was sent. */
  get wasAnsweredLate(): boolean {
    return this.#connection.wasAnsweredLate;
  }

  async ask<Q extends ApiTable, R extends ApiTable>(
    request: Q,
    response: R,
    version: number,
    value: Input<Q>,
  ): Promise<Output<R>> {
    const correlationId = this.#nextCorrelationId++;
    const pieces = encodeRequest(request, version, correlationId, this.#clientId, value);
    const cancel = this.#world.clock.after(answerMsMax, () => this.close());
    const frame = await this.#connection.ask(correlationId, Buffer.concat(pieces));
    cancel();
    const shown = () => `${this.#clientId} ${request.name} ${inShort(value)}`;
    if (frame === undefined) {
      this.#world.note(() => `${shown()}: disconnected`);
      throw new Disconnected();
    }
    assert.equal(frame.readInt32BE(0), correlationId, 'answers come in the order of requests');
    const answer = decodeAnswer(response, version, frame);
    this.#world.note(() => `${shown()}: ${inShort(answer)}`);
    return answer;
  }

  close(): void {
    this.#connection.close();
  }
}

/** Connects to some node, and says what it is. */
export async function connectTo(
  world: ClusterWorld,
  nodeId: number | undefined,
  clientId: string,
): Promise<SimClient> {
  const up = world.nodes.filter(({ broker }) => broker !== undefined);
  const node =
    nodeId === undefined
      ? up[world.below(up.length)]
      : up.find(({ node }) => node.nodeId === nodeId);
  const connection = node?.broker?.connect();
  if (connection === undefined) throw new Disconnected();
  const client = new SimClient(world, connection, clientId);
  await client.ask(apiVersionsRequest, apiVersionsResponse, 3, {
    clientSoftwareName: 'kafkajs',
    clientSoftwareVersion: '2',
  });
  return client;
}

/** The node that leads all partitions, as any node says. */
export async function leaderOf(world: ClusterWorld, topic: string): Promise<number> {
  const client = await connectTo(world, undefined, 'bootstrap');
  try {
    const { topics } = await client.ask(metadataRequest, metadataResponse, 12, {
      topics: [{ name: topic, topicId: '00'.repeat(16) }],
      allowAutoTopicCreation: false,
    });
    const leaderId = topics[0]?.partitions[0]?.leaderId ?? -1;
    if (leaderId < 0) throw new Disconnected();
    return leaderId;
  } finally {
    client.close();
  }
}

function inShort(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    const isBuffer = typeof part === 'object' && part !== null && 'type' in part && 'data' in part;
    return isBuffer
      ? Buffer.from(part.data as number[])
          .toString('latin1')
          .slice(-20)
      : part;
  });
}
