import { type Consumer, Kafka, logLevel, type Message, type Producer } from 'kafkajs';
import { Figures, type Kind } from './figures.ts';
import { columnMsOf, type Plan, type RoundName } from './plan.ts';

/**
 * One round: a topic, four consumers and a producer. The clients are kafkajs as it comes, with its
 * defaults; the two rounds differ in one configuration of the topic.
 */

/** kafkajs says on standard output what is of no interest here. */
process.env['KAFKAJS_NO_PARTITIONER_WARNING'] = '1';

const sendEveryMs = 10;
const sendMax = 4;
const joinMsMax = 60_000;
const slowKey = 'chat-slow';

/** What a record says to the consumer that handles it. */
interface Job {
  readonly record: number;
  readonly ms: number;
}

export class Round {
  readonly name: RoundName;
  readonly #plan: Plan;
  readonly #kafka: Kafka;
  readonly #topic: string;
  readonly #consumers: Consumer[] = [];
  readonly #partitions = new Map<number, number>();
  readonly #producer: Producer;
  #figures: Figures;
  #startedMs = performance.now();
  #keyNumber = 0;

  constructor(name: RoundName, plan: Plan, broker: string) {
    this.name = name;
    this.#plan = plan;
    this.#topic = `chat-${name}`;
    this.#kafka = new Kafka({ clientId: 'demo', brokers: [broker], logLevel: logLevel.NOTHING });
    this.#producer = this.#kafka.producer();
    this.#figures = this.#newFigures();
  }

  get figures(): Figures {
    return this.#figures;
  }

  /** Brings the figures up to the present. */
  tick(): void {
    this.#figures.tick(this.#nowMs());
  }

  /** Makes the topic, lets the consumers share it, and lets everything run warm. */
  async prepare(): Promise<void> {
    const admin = this.#kafka.admin();
    await admin.connect();
    const configEntries = [{ name: 'delivery.mode', value: this.name }];
    const numPartitions = this.#plan.consumers;
    await admin.createTopics({ topics: [{ topic: this.#topic, numPartitions, configEntries }] });
    await admin.disconnect();
    await this.#producer.connect();
    await Promise.all(Array.from({ length: this.#plan.consumers }, (_, i) => this.#join(i)));
    await until('all consumers have a partition', joinMsMax, () => this.#isShared());
    for (let sent = 0; sent < this.#plan.warmUpRecords; sent += 4) {
      await this.#send(Array.from({ length: 4 }, () => this.#message('quick')));
      await pause(sendEveryMs);
    }
    await this.#drain();
  }

  /** From the start of the clock until everything that was sent is done. */
  async run(): Promise<void> {
    const { marginMs, slowMs, quickPerSecond, sameKeyRecords } = this.#plan;
    this.#figures = this.#newFigures();
    this.#startedMs = performance.now();
    const endMs = marginMs + slowMs + marginMs;
    const special: [number, Kind][] = [[marginMs, 'slow']];
    for (let i = 1; i <= sameKeyRecords; i++) {
      special.push([marginMs + (slowMs * i) / (sameKeyRecords + 1), 'own']);
    }
    for (let quick = 0; this.#nowMs() < endMs; ) {
      while (special.length > 0 && special[0]![0] <= this.#nowMs()) {
        await this.#send([this.#message(special.shift()![1])]);
      }
      const messages: Message[] = [];
      // Where the machine falls behind, it catches up bit by bit: a burst is another story.
      const due = Math.floor((this.#nowMs() * quickPerSecond) / 1000);
      const count = Math.min(due - quick, sendMax);
      for (const end = quick + count; quick < end; quick++) messages.push(this.#message('quick'));
      if (messages.length > 0) await this.#send(messages);
      await pause(sendEveryMs);
    }
    await this.#drain();
    this.tick();
  }

  /** Does not wait for fetches that are still open: they end with the process. */
  leave(): void {
    for (const client of [this.#producer, ...this.#consumers]) {
      client.disconnect().catch(() => undefined);
    }
  }

  async #join(index: number): Promise<void> {
    const consumer = this.#kafka.consumer({ groupId: `demo-${this.name}` });
    this.#consumers.push(consumer);
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      this.#partitions.set(index, payload.memberAssignment[this.#topic]?.length ?? 0);
    });
    await consumer.connect();
    await consumer.subscribe({ topics: [this.#topic], fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ message }) => {
        const { record, ms } = JSON.parse(String(message.value)) as Job;
        this.#figures.begun(record, index, this.#nowMs());
        await pause(ms);
        this.#figures.done(record, index, this.#nowMs());
      },
    });
  }

  #isShared(): boolean {
    const counts = [...this.#partitions.values()];
    return counts.length === this.#plan.consumers && counts.every((count) => count === 1);
  }

  #message(kind: Kind): Message {
    const { keys, quickMs, slowMs } = this.#plan;
    const job: Job = {
      record: this.#figures.sent(kind, this.#nowMs()),
      ms: kind === 'slow' ? slowMs : quickMs,
    };
    if (kind === 'quick') this.#keyNumber = (this.#keyNumber + 1) % keys;
    const key = kind === 'quick' ? `chat-${this.#keyNumber}` : slowKey;
    return { key, value: JSON.stringify(job) };
  }

  async #send(messages: Message[]): Promise<void> {
    await this.#producer.send({ topic: this.#topic, messages });
  }

  #drain(): Promise<void> {
    const msMax = 60_000 + 2 * this.#plan.slowMs;
    return until('all records are done', msMax, () => this.#figures.isDrained);
  }

  #newFigures(): Figures {
    return new Figures(this.#plan.consumers, columnMsOf(this.#plan));
  }

  #nowMs(): number {
    return performance.now() - this.#startedMs;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function until(what: string, msMax: number, isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + msMax;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error(`it takes too long until ${what}`);
    await pause(sendEveryMs);
  }
}
