/**
 * A producer that takes the leader's own word (acks=1). What it is told may be lost with the
 * leader, but nobody may give that word once another node leads: then it is known to be lost.
 */
import assert from 'node:assert/strict';
import { codecs } from '../../src/core/codecs.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import {
  deleteRecordsRequest,
  deleteRecordsResponse,
} from '../../src/protocol/schema/21-delete-records.ts';
import { produceTo } from '../broker/records.ts';
import { Disconnected, type SimClient } from './sim-client.ts';
import type { WireClients } from './wire-clients.ts';

const topic = 'hasty';
/** All that is in the partition. */
const highWatermark = -1;

export class SimHastyProducer {
  readonly #clients: WireClients;
  #values = 0;

  constructor(clients: WireClients) {
    this.#clients = clients;
  }

  async run(): Promise<void> {
    const { world } = this.#clients;
    while (!this.#clients.isEnding) {
      await this.#clients.withLeader(topic, async (client) => {
        while (!client.isClosed && !this.#clients.isEnding) {
          await this.#produce(client);
          if (world.below(20) === 0) await this.#deleteAll(client);
          await this.#clients.sleep(world.below(30));
        }
      });
    }
  }

  async #produce(client: SimClient): Promise<void> {
    const { recordMs, counts } = this.#clients.world;
    const record = { key: null, value: Buffer.from(`w${this.#values++}h`), timestamp: recordMs };
    const records = buildBatch({ records: [record] }, codecs);
    const { errorCode } = await produceTo(client, { topic, records, acks: 1 });
    if (errorCode !== ErrorCode.NONE) throw new Disconnected();
    assert.ok(!client.wasAnsweredLate, `${record.value} is acknowledged while another node leads`);
    counts.acknowledgedAlone++;
  }

  /** Journal files are to die. */
  async #deleteAll(client: SimClient): Promise<void> {
    await client.ask(deleteRecordsRequest, deleteRecordsResponse, 2, {
      topics: [{ name: topic, partitions: [{ partitionIndex: 0, offset: highWatermark }] }],
      timeoutMs: 1000,
    });
  }
}
