/**
 * A client that keeps asking every node how far things are, whether that leads or not: what it is
 * told must never be older than what anybody had been told before it asked (linearizable reads).
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  listOffsetsRequest,
  listOffsetsResponse,
} from '../../src/protocol/schema/02-list-offsets.ts';
import {
  offsetFetchRequest,
  offsetFetchResponse,
} from '../../src/protocol/schema/09-offset-fetch.ts';
import { connectTo, Disconnected, type SimClient } from './sim-client.ts';
import { topics } from './sim-topics.ts';
import type { WireClients } from './wire-clients.ts';

const allPartitions = Array.from({ length: topics.orders }, (_, partition) => partition);
const endTimestamp = -1;

export class SimReader {
  readonly #clients: WireClients;
  readonly #nodeId: number;

  constructor(clients: WireClients, nodeId: number) {
    this.#clients = clients;
    this.#nodeId = nodeId;
  }

  async run(): Promise<void> {
    while (!this.#clients.isEnding) {
      try {
        const client = await connectTo(this.#clients.world, this.#nodeId, 'reader');
        while (!client.isClosed && !this.#clients.isEnding) {
          await this.#readCommitted(client);
          await this.#readEnds(client);
          await this.#pause();
        }
        client.close();
      } catch (error) {
        if (!(error instanceof Disconnected)) throw error;
        await this.#pause();
      }
    }
  }

  #pause(): Promise<void> {
    return this.#clients.sleep(20 + this.#clients.world.below(30));
  }

  async #readCommitted(client: SimClient): Promise<void> {
    const acked = [...this.#clients.ackedOffset];
    const topic = { name: 'orders', partitionIndexes: allPartitions };
    const answer = await client.ask(offsetFetchRequest, offsetFetchResponse, 9, {
      groups: [{ groupId: 'by-orders', memberId: null, memberEpoch: -1, topics: [topic] }],
    });
    const [group] = answer.groups;
    if (group!.errorCode !== ErrorCode.NONE) return;
    for (const { partitionIndex, committedOffset } of group!.topics[0]!.partitions) {
      this.#judge('committed', partitionIndex, committedOffset, acked[partitionIndex]!);
    }
  }

  async #readEnds(client: SimClient): Promise<void> {
    const acked = [...this.#clients.ackedEnd];
    const answer = await client.ask(listOffsetsRequest, listOffsetsResponse, 7, {
      replicaId: -1,
      isolationLevel: 0,
      topics: [
        {
          name: 'orders',
          partitions: allPartitions.map((partitionIndex) => ({
            partitionIndex,
            currentLeaderEpoch: -1,
            timestamp: endTimestamp,
          })),
        },
      ],
      timeoutMs: 0,
    });
    for (const { partitionIndex, errorCode, offset } of answer.topics[0]!.partitions) {
      if (errorCode !== ErrorCode.NONE) continue;
      this.#judge('the end', partitionIndex, offset, acked[partitionIndex]!);
    }
  }

  #judge(what: string, partition: number, found: number, least: number): void {
    this.#clients.world.counts.reads++;
    // A group that has committed nothing yet is told -1.
    assert.ok(
      found >= least || least === 0,
      `${what} of orders-${partition} read as ${found} after ${least}`,
    );
  }
}
