/** A group of unchanged kafkajs consumers in keyed delivery, and what it must never see. */
import type { Consumer, Kafka } from 'kafkajs';

const handlerMsMax = 6;

export class KeyedGroup {
  readonly #consumers: Consumer[] = [];
  /** Numbers of each key that were handled to the end, in order. */
  readonly #handled = new Map<string, number[]>();
  readonly #inHandler = new Set<string>();
  readonly faults: string[] = [];
  handled = 0;
  handledAgain = 0;
  joins = 0;

  static async start(kafka: Kafka, topic: string, members: number): Promise<KeyedGroup> {
    const group = new KeyedGroup();
    for (let i = 0; i < members; i++) {
      const consumer = kafka.consumer({ groupId: `by-${topic}`, maxWaitTimeInMs: 500 });
      consumer.on(consumer.events.GROUP_JOIN, () => {
        group.joins++;
      });
      await consumer.connect();
      await consumer.subscribe({ topic, fromBeginning: true });
      await consumer.run({
        partitionsConsumedConcurrently: 3,
        eachMessage: async ({ message }) => {
          await group.#handle(message.key!.toString(), Number(message.value!.toString()));
        },
      });
      group.#consumers.push(consumer);
    }
    return group;
  }

  async #handle(key: string, number: number): Promise<void> {
    if (this.#inHandler.has(key)) this.faults.push(`${key}=${number} while another is in work`);
    this.#inHandler.add(key);
    const done = this.#handled.get(key) ?? [];
    this.#handled.set(key, done);
    const last = done.at(-1) ?? -1;
    if (number > last + 1) this.faults.push(`${key}=${number} after ${last}`);
    if (number <= last) this.handledAgain++;
    await new Promise((resolve) => setTimeout(resolve, Math.random() * handlerMsMax));
    if (number === last + 1) done.push(number);
    this.handled++;
    this.#inHandler.delete(key);
  }

  /** Whether the numbers of each key were handled up to these. */
  hasAll(sent: ReadonlyMap<string, number>): boolean {
    return [...sent].every(([key, count]) => (this.#handled.get(key)?.length ?? 0) >= count);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#consumers.map((consumer) => consumer.disconnect()));
  }
}
