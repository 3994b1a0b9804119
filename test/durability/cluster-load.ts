/** What is produced to a cluster while something goes wrong with it, and what must be there then. */
import assert from 'node:assert/strict';
import { CompressionTypes, type Kafka, type Producer } from 'kafkajs';

/** A cluster, or one of its tenants. */
export interface Cluster {
  client(clientId: string): Kafka;
}

/** Of the topics that are produced to. */
export const partitions = 3;

/** Sends numbers until told to stop; remembers those that were acknowledged. */
export class Load {
  readonly acknowledged = new Set<string>();
  readonly #producer: Producer;
  readonly #topic: string;
  #isStopped = false;
  #next = 0;
  readonly #running: Promise<void>[] = [];
  #onAcknowledged: (() => void) | undefined;

  readonly #pauseMs: number;

  /** `pauseMs`: after each record. */
  constructor(producer: Producer, topic: string, pauseMs = 0) {
    this.#producer = producer;
    this.#topic = topic;
    this.#pauseMs = pauseMs;
    for (let partition = 0; partition < partitions; partition++) {
      this.#running.push(this.#run(partition));
    }
  }

  async #run(partition: number): Promise<void> {
    while (!this.#isStopped) {
      const value = `${partition}-${this.#next++}`;
      await this.#producer.send({
        topic: this.#topic,
        acks: -1,
        compression: CompressionTypes.None,
        messages: [{ partition, key: `k${partition}`, value }],
      });
      this.acknowledged.add(value);
      this.#onAcknowledged?.();
      if (this.#pauseMs === 0) continue;
      // Else as much would be stored as the disk takes.
      await new Promise((resolve) => setTimeout(resolve, this.#pauseMs));
    }
  }

  /** Resolves when so many more were acknowledged. */
  async more(count: number): Promise<void> {
    const end = this.acknowledged.size + count;
    await new Promise<void>((resolve) => {
      this.#onAcknowledged = () => {
        if (this.acknowledged.size >= end) resolve();
      };
    });
    this.#onAcknowledged = undefined;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#running);
  }
}

/** Everything that is in the topic, by partition, in order. */
export async function readAll(
  cluster: Cluster,
  topic: string,
  expected: number,
): Promise<string[][]> {
  const found: string[][] = Array.from({ length: partitions }, () => []);
  // kafkajs ends when its last fetch has come back.
  const groupId = `reader-${topic}`;
  const consumer = cluster.client('reader').consumer({ groupId, maxWaitTimeInMs: 100 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  let count = 0;
  await new Promise<void>((resolve, reject) => {
    consumer
      .run({
        eachMessage: async ({ partition, message }) => {
          found[partition]!.push(message.value!.toString());
          if (++count >= expected) resolve();
        },
      })
      .catch(reject);
  });
  await consumer.disconnect();
  return found;
}

/** Nothing that was acknowledged is lost, nothing is there twice, and all in order. */
export async function check(
  cluster: Cluster,
  topic: string,
  load: { readonly acknowledged: ReadonlySet<string> },
): Promise<void> {
  const found = await readAll(cluster, topic, load.acknowledged.size);
  const all = found.flat();
  assert.equal(new Set(all).size, all.length, 'nothing is there twice');
  const there = new Set(all);
  for (const value of load.acknowledged) assert.ok(there.has(value), `${value} is lost`);
  for (const values of found) {
    const numbers = values
      .map((value) => Number(value.split('-')[1]))
      .filter((number) => number !== 999_999);
    assert.deepEqual(
      numbers,
      [...numbers].sort((a, b) => a - b),
      'in order',
    );
  }
}
