/**
 * What the checks of keyed delivery share: numbered records per key, a group whose members report
 * every record that they begin and end, and the sentinel that watches over them.
 */
import { setTimeout as delay } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { uniqueName } from './context.mjs';
import { until } from './harness.mjs';
import { Sentinel } from './sentinel.mjs';

const { Kafka, Partitioners, logLevel } = kafkajs;

/** A topic in keyed delivery: the broker was started with `--keyed 'keyed-*'`. */
export function keyedTopic(t, label, partitions = 6, config = {}) {
  return t.topic(label, partitions, config, 'keyed-');
}

/** `count` key names. */
export function keyNames(count, label = 'key') {
  return Array.from({ length: count }, (_, index) => `${label}-${index}`);
}

/** Sends the records `from` to `to` (exclusive) of every key, round by round. */
export async function sendNumbered(producer, topic, keys, from, to) {
  for (let number = from; number < to; number++) {
    const messages = keys.map((key) => ({ key, value: String(number) }));
    await producer.send({ topic, messages });
  }
}

export class KeyedMember {
  constructor(name, consumer, group) {
    this.name = name;
    this.consumer = consumer;
    this.group = group;
    this.joins = 0;
    this.crashes = 0;
    this.handled = 0;
    /** When each record was begun, for the longest pause. */
    this.beginTimes = [];
    consumer.on(consumer.events.GROUP_JOIN, () => {
      this.joins++;
    });
    consumer.on(consumer.events.CRASH, () => {
      this.crashes++;
    });
  }

  async run({ handle = async () => {}, ...options }) {
    const work = async (message, context) => {
      const { sentinel } = this.group;
      const key = message.key?.toString() ?? `null-${message.value}`;
      const number = message.key === null ? 0 : Number(message.value);
      sentinel.begin(this.name, key, number);
      this.beginTimes.push(performance.now());
      try {
        await handle({ key, number, message, member: this, ...context });
      } catch (error) {
        sentinel.inWork.delete(key);
        throw error;
      }
      sentinel.end(key, number);
      this.handled++;
    };
    const { byBatch = false, ...runOptions } = options;
    const eachMessage = ({ message, ...context }) => work(message, context);
    const eachBatch = async ({ batch, resolveOffset, heartbeat, isRunning, isStale }) => {
      for (const message of batch.messages) {
        if (!isRunning() || isStale()) break;
        await work(message, { heartbeat });
        resolveOffset(message.offset);
        await heartbeat();
      }
    };
    const handler = byBatch ? { eachBatch, eachBatchAutoResolve: false } : { eachMessage };
    await this.consumer.subscribe({ topics: [this.group.topic], fromBeginning: true });
    await this.consumer.run({ ...handler, ...runOptions });
    await until(`${this.name} has joined`, () => this.joins > 0);
    return this;
  }

  leave() {
    return this.consumer.disconnect();
  }

  /** The longest time between two records that this member began. */
  longestPauseMs() {
    const gaps = this.beginTimes.map(
      (time, index) => time - this.beginTimes[Math.max(0, index - 1)],
    );
    return Math.max(0, ...gaps);
  }
}

export class KeyedGroup {
  constructor(t, topic) {
    this.t = t;
    this.topic = topic;
    this.groupId = uniqueName('keyed-group');
    this.sentinel = new Sentinel();
    this.members = [];
    this.stranger = undefined;
  }

  async join({ consumer = {}, ...options } = {}) {
    const client = await this.t.consumer({ groupId: this.groupId, ...consumer });
    const member = new KeyedMember(`member ${this.members.length + 1}`, client, this);
    this.members.push(member);
    return member.run(options);
  }

  async joinSeveral(count, options) {
    for (let index = 0; index < count; index++) await this.join(options);
  }

  /**
   * What an admin tool computes: the end of each partition minus what is committed. The client has
   * a name of its own, because OffsetFetch before version 9 does not say who asks, and one with the
   * client.id and address of a member is answered as that member; see FINDINGS.md.
   */
  async lag() {
    this.stranger ??= await this.t.strangerAdmin();
    const { groupId, topic } = this;
    const ends = await this.stranger.fetchTopicOffsets(topic);
    const [{ partitions }] = await this.stranger.fetchOffsets({ groupId, topics: [topic] });
    const committed = new Map(partitions.map(({ partition, offset }) => [partition, offset]));
    // As kafka-consumer-groups: a partition without an offset has no lag of its own to show.
    return ends.reduce((sum, { partition, high }) => {
      const offset = Number(committed.get(partition));
      return offset < 0 ? sum : sum + Number(high) - offset;
    }, 0);
  }

  async finished(options) {
    let lag;
    const isFinished = async () => {
      lag = await this.lag();
      return lag === 0;
    };
    await until('all is finished', isFinished, options).catch(() => {
      const { handled, repeated } = this.sentinel;
      throw new Error(`timed out: lag ${lag}, ${handled} handled, ${repeated} of them again`);
    });
  }
}

/** Sends one record of each key every `everyMs`, until stopped; then resolves with their number. */
export function flow(producer, topic, keys, everyMs, from = 0) {
  let isFlowing = true;
  let number = from;
  const done = (async () => {
    while (isFlowing) {
      await sendNumbered(producer, topic, keys, number, number + 1);
      number++;
      await delay(everyMs);
    }
    return number * keys.length;
  })();
  return {
    async stop() {
      isFlowing = false;
      return done;
    },
  };
}

/** A client of its own on another broker, for the checks that start one. */
export function clientOf(address) {
  return new Kafka({
    clientId: 'keylane-compat',
    brokers: [address],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, retries: 20, maxRetryTime: 500 },
  });
}

export const keyPartitioner = Partitioners.DefaultPartitioner;
