/**
 * Brokers killed with -9 at random moments under load. The page cache survives that, so it says
 * little about syncs (test/sim does), but everything about recovery, answers and duplicates.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { type Random, seededRandom } from '../../src/core/random.ts';
import type { HostPort } from '../../src/net/listeners.ts';
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
import {
  initProducerIdRequest,
  initProducerIdResponse,
} from '../../src/protocol/schema/22-init-producer-id.ts';
import { batchOf, fetchFrom, produceTo, recordsOf } from '../broker/records.ts';
import { TestClient } from '../broker/support.ts';
import { BrokerProcess } from './process.ts';

const rounds = Number(process.env['ROUNDS'] ?? 30);
const seed = Number(process.env['SEED'] ?? 1);
const producerCount = 4;
const partitionCount = 3;
const topic = 'durable';

/** Where the broker is now; clients come back to it after each kill. */
interface Target {
  address: HostPort;
  /** The load ends once what is under way is done. */
  isOver: boolean;
  /** The test has failed: nobody waits for the broker any more. */
  isAbandoned: boolean;
  onAcknowledged: () => void;
}

/** Goes on with a new connection after each failure, until what it was asked for is done. */
class StubbornClient {
  readonly #target: Target;
  #client: TestClient | undefined;

  constructor(target: Target) {
    this.#target = target;
  }

  async do<T>(step: (client: TestClient) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        this.#client ??= await TestClient.connect(this.#target.address);
        return await step(this.#client);
      } catch (error) {
        if (error instanceof assert.AssertionError || this.#target.isAbandoned) throw error;
        // The broker was killed: the next connection finds it again.
        this.#client?.close();
        this.#client = undefined;
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  close(): void {
    this.#client?.close();
  }
}

/** An idempotent producer that sends each batch until it is acknowledged. Answers what was. */
async function produceLoad(target: Target, name: string): Promise<string[][]> {
  const acknowledged: string[][] = Array.from({ length: partitionCount }, () => []);
  const stubborn = new StubbornClient(target);
  const { producerId } = await stubborn.do((client) =>
    client.ask(initProducerIdRequest, initProducerIdResponse, 4, {
      transactionalId: null,
      transactionTimeoutMs: 0,
    }),
  );
  const sequences = new Array<number>(partitionCount).fill(0);
  for (let n = 0; !target.isOver; n++) {
    const partition = n % partitionCount;
    const values = [`${name}-${n}-a`, `${name}-${n}-b`];
    const baseSequence = sequences[partition]!;
    await stubborn.do(async (client) => {
      const records = batchOf(values, { producerId, producerEpoch: 0, baseSequence });
      const { errorCode } = await produceTo(client, { topic, partition, records });
      if (errorCode !== ErrorCode.NONE) throw new Error(`error ${errorCode}`);
    });
    sequences[partition] = baseSequence + values.length;
    acknowledged[partition]!.push(...values);
    target.onAcknowledged();
  }
  stubborn.close();
  return acknowledged;
}

/** Commits ever greater offsets, and checks that none that was acknowledged is ever gone. */
async function commitLoad(target: Target): Promise<number> {
  const stubborn = new StubbornClient(target);
  let committed = -1;
  while (!target.isOver) {
    const next = committed + 1;
    await stubborn.do(async (client) => {
      const found = await fetchCommitted(client);
      assert.ok(found >= committed, `committed offset ${committed} moved back to ${found}`);
      const answer = await client.ask(offsetCommitRequest, offsetCommitResponse, 8, {
        groupId: 'durable-group',
        topics: [
          {
            name: topic,
            partitions: [
              { partitionIndex: 0, committedOffset: next, committedMetadata: `at ${next}` },
            ],
          },
        ],
      });
      const errorCode = answer.topics[0]!.partitions[0]!.errorCode;
      if (errorCode !== ErrorCode.NONE) throw new Error(`error ${errorCode}`);
    });
    committed = next;
  }
  stubborn.close();
  return committed;
}

async function fetchCommitted(client: TestClient): Promise<number> {
  const answer = await client.ask(offsetFetchRequest, offsetFetchResponse, 7, {
    groupId: 'durable-group',
    topics: [{ name: topic, partitionIndexes: [0] }],
  });
  return answer.topics[0]!.partitions[0]!.committedOffset;
}

async function readAll(client: TestClient, partition: number): Promise<[number, string][]> {
  const all: [number, string][] = [];
  for (;;) {
    const answer = await fetchFrom(client, [{ topic, partition, offset: all.length }]);
    const records = recordsOf(answer.responses[0]?.partitions[0]?.records);
    if (records.length === 0) return all;
    all.push(...records);
  }
}

/** Lets the load run for a random while, by the number of batches that were acknowledged. */
function someWork(target: Target, random: Random): Promise<void> {
  return new Promise((resolve) => {
    let left = 1 + Math.floor(random.next() * 400);
    target.onAcknowledged = () => {
      if (--left === 0) resolve();
    };
  });
}

test(`nothing acknowledged is lost over ${rounds} kills under load`, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keylane-kill-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const settings = {
    'journal.file.bytes': 1024 * 1024,
    'journal.snapshot.bytes': 256 * 1024,
    'journal.file.extents.max': 1000,
    'num.partitions': partitionCount,
    'disk.low.water.bytes': 0,
  };
  const random = seededRandom(seed);
  let broker = await BrokerProcess.start(folder, settings);
  const target: Target = {
    address: broker.address,
    isOver: false,
    isAbandoned: false,
    onAcknowledged: () => undefined,
  };
  t.after(async () => {
    target.isOver = true;
    target.isAbandoned = true;
    await broker.kill();
  });
  const first = new StubbornClient(target);
  await first.do((client) =>
    client.ask(metadataRequest, metadataResponse, 4, { topics: [{ name: topic }] }),
  );
  first.close();
  const producing = Array.from({ length: producerCount }, (_, i) => produceLoad(target, `p${i}`));
  const committing = commitLoad(target);
  for (let round = 0; round < rounds; round++) {
    await someWork(target, random);
    await broker.kill();
    broker = await BrokerProcess.start(folder, settings);
    target.address = broker.address;
  }
  target.isOver = true;
  const acknowledged = await Promise.all(producing);
  const committed = await committing;

  const client = await TestClient.connect(broker.address);
  assert.ok((await fetchCommitted(client)) >= committed);
  let total = 0;
  for (let partition = 0; partition < partitionCount; partition++) {
    const stored = await readAll(client, partition);
    assert.deepEqual(
      stored.map(([offset]) => offset),
      stored.map((_, i) => i),
      'offsets are contiguous',
    );
    for (let i = 0; i < producerCount; i++) {
      const of = stored.map(([, value]) => value).filter((value) => value.startsWith(`p${i}-`));
      assert.deepEqual(of, acknowledged[i]![partition], 'each acknowledged record, once, in order');
      total += of.length;
    }
  }
  client.close();
  t.diagnostic(`${rounds} kills, ${total} acknowledged records, ${committed} commits`);
  assert.ok(total > rounds, 'there was load');
  assert.equal(await broker.terminate(), 0);
});
