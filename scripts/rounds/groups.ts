/** Groups of unchanged consumers. */
import type { Consumer, Kafka } from 'kafkajs';
import { Handled } from './handled.ts';
import { JavaProcess } from './java-process.ts';

const handlerMsMax = 6;

/** A group, and what its members handled. */
export interface Group {
  readonly handled: Handled;
  /** Whether it has to go on whatever happens. */
  readonly isSteady: boolean;
  stop(): Promise<void>;
}

/** With the client's defaults; a consumer that gives up is started anew, as applications do. */
export async function kafkajsGroup(kafka: Kafka, topic: string, members: number): Promise<Group> {
  const handled = new Handled('kafkajs');
  const consumers = new Set<Consumer>();
  let isStopping = false;
  const startOne = async (): Promise<void> => {
    const consumer = kafka.consumer({ groupId: `kafkajs-${topic}`, maxWaitTimeInMs: 500 });
    consumers.add(consumer);
    const { GROUP_JOIN, CRASH } = consumer.events;
    consumer.on(GROUP_JOIN, () => {
      handled.joins++;
    });
    consumer.on(CRASH, ({ payload }) => {
      if (payload.restart || isStopping) return;
      handled.crashes++;
      consumers.delete(consumer);
      startOne().catch(() => undefined);
    });
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ message }) => {
        const [key, number] = [message.key!.toString(), Number(message.value!.toString())];
        handled.begin(key, number);
        await new Promise((resolve) => setTimeout(resolve, Math.random() * handlerMsMax));
        handled.end(key, number);
      },
    });
  };
  for (let i = 0; i < members; i++) await startOne();
  const stop = async () => {
    isStopping = true;
    await Promise.all([...consumers].map((consumer) => consumer.disconnect()));
  };
  // When the coordinator moves again and again kafkajs may stand still (FINDINGS.md).
  return { handled, isSteady: false, stop };
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
  return { handled, isSteady: true, stop: () => process.stop() };
}
