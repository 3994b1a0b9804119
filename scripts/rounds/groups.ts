/** Groups of unchanged consumers. */
import type { Consumer, Kafka } from 'kafkajs';
import { Handled } from './handled.ts';
import { JavaProcess } from './java-process.ts';

const handlerMsMax = 6;

/** A group, and what its members handled. */
export interface Group {
  readonly handled: Handled;
  stop(): Promise<void>;
}

export async function kafkajsGroup(kafka: Kafka, topic: string, members: number): Promise<Group> {
  const handled = new Handled('kafkajs');
  const consumers: Consumer[] = [];
  for (let i = 0; i < members; i++) {
    const consumer = kafka.consumer({ groupId: `kafkajs-${topic}`, maxWaitTimeInMs: 500 });
    consumer.on(consumer.events.GROUP_JOIN, () => {
      handled.joins++;
    });
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({
      partitionsConsumedConcurrently: 3,
      eachMessage: async ({ message }) => {
        const [key, number] = [message.key!.toString(), Number(message.value!.toString())];
        handled.begin(key, number);
        await new Promise((resolve) => setTimeout(resolve, Math.random() * handlerMsMax));
        handled.end(key, number);
      },
    });
    consumers.push(consumer);
  }
  const stop = async () => {
    await Promise.all(consumers.map((consumer) => consumer.disconnect()));
  };
  return { handled, stop };
}

export function javaGroup(brokers: readonly string[], topic: string, members: number): Group {
  const handled = new Handled('java');
  const args = ['LoadGroup', brokers.join(','), topic, `java-${topic}`, String(members)];
  const process = new JavaProcess(args, (line) => {
    const [what, key = '', number] = line.split(' ');
    if (what === 'join') handled.joins++;
    else if (what === 'begin') handled.begin(key, Number(number));
    else handled.end(key, Number(number));
  });
  return { handled, stop: () => process.stop() };
}
