/** What a check gets: clients that are closed after it, unique names, and topics that are there. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import kafkajs from 'kafkajs';
import { until } from './harness.mjs';

const { Kafka, Partitioners, logLevel } = kafkajs;

const runId = randomBytes(4).toString('hex');
let names = 0;

/** Unique for this run, so that suites can be repeated on one broker. */
export function uniqueName(label) {
  names++;
  return `kafkajs-${runId}-${label}-${names}`;
}

/** The error type names of a kafkajs error: its own, or those of the errors that it gathers. */
export function errorTypes(error) {
  if (Array.isArray(error.errors)) return error.errors.flatMap(errorTypes);
  if (Array.isArray(error.groups)) return error.groups.map(({ error: cause }) => cause.type);
  if (Array.isArray(error.partitions))
    return error.partitions.map(({ error: cause }) => cause.type);
  if (error.type !== undefined) return [error.type];
  return error.cause instanceof Error ? errorTypes(error.cause) : [error.name];
}

/** Asserts that `promise` is rejected with exactly these Kafka error types. */
export async function rejectsWith(promise, ...types) {
  let thrown;
  await promise.catch((error) => {
    thrown = error;
  });
  assert.ok(thrown instanceof Error, `expected ${types}, but the call succeeded`);
  assert.deepEqual(errorTypes(thrown), types, thrown.stack);
  return thrown;
}

/** What Kafka answers, for some milliseconds, about a topic that was just created. */
const youngTopicTypes = new Set([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_FOR_PARTITION',
]);

/** Repeats `call` while a new topic is not served yet; kafkajs does not, see FINDINGS.md. */
export async function untilServed(call) {
  const { value } = await until('the topic is served', async () => {
    try {
      return { value: await call() };
    } catch (error) {
      if (errorTypes(error).every((type) => youngTopicTypes.has(type))) return null;
      throw error;
    }
  });
  return value;
}

export class Suite {
  constructor(bootstrap) {
    this.bootstrap = bootstrap;
    this.kafka = this.client('keylane-compat');
    this.admin = this.kafka.admin();
    this.topics = new Set();
  }

  client(clientId) {
    return new Kafka({
      clientId,
      brokers: [this.bootstrap],
      logLevel: process.env.DEBUG === '1' ? logLevel.DEBUG : logLevel.NOTHING,
      retry: { initialRetryTime: 50, retries: 8 },
    });
  }

  async open() {
    await this.admin.connect();
    await this.waitForCoordinators();
  }

  /**
   * Kafka makes the topic behind its coordinators when the first group asks, which takes seconds. A
   * kafkajs consumer that meets that crashes and restarts; no check is about this. The groups are
   * many, so that each partition of that topic is asked for.
   */
  async waitForCoordinators() {
    const groupIds = Array.from({ length: 100 }, () => uniqueName('nobody'));
    await until(
      'all coordinators answer',
      async () => {
        const { groups } = await this.admin.describeGroups(groupIds).catch(() => ({ groups: [] }));
        return groups.length > 0 && groups.every(({ errorCode }) => errorCode === 0);
      },
      { timeoutMs: 60_000 },
    );
  }

  /** Leaves nothing of ours on the broker but groups, which expire by themselves. */
  async close() {
    const present = new Set(await this.admin.listTopics());
    const topics = [...this.topics].filter((topic) => present.has(topic));
    if (topics.length > 0) await this.admin.deleteTopics({ topics });
    await this.admin.disconnect();
  }
}

export class Context {
  constructor(suite, onClose) {
    this.suite = suite;
    this.kafka = suite.kafka;
    this.onClose = onClose;
    this.admin = suite.kafka.admin();
  }

  /**
   * An admin client of its own for each check: kafkajs asks for all topics that a client has ever
   * named, and fails when one of them is gone or is just being created.
   */
  async open() {
    this.onClose('admin', () => this.admin.disconnect());
    await this.admin.connect();
    return this;
  }

  /** An admin client that nobody takes for a member of a group: it has a client.id of its own. */
  async strangerAdmin() {
    const admin = this.suite.client('keylane-compat-stranger').admin();
    this.onClose('admin', () => admin.disconnect());
    await admin.connect();
    return admin;
  }

  /** A name for a topic that the check makes by itself; it is deleted after the run. */
  topicName(label, prefix = '') {
    const topic = `${prefix}${uniqueName(label)}`;
    this.suite.topics.add(topic);
    return topic;
  }

  /** Creates a topic and waits until all its partitions answer. */
  async topic(label, partitions = 1, config = {}, prefix = '') {
    const topic = this.topicName(label, prefix);
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
    await this.admin.createTopics({
      waitForLeaders: false,
      topics: [{ topic, numPartitions: partitions, replicationFactor: 1, configEntries }],
    });
    await this.waitForPartitions(topic, partitions);
    return topic;
  }

  /**
   * Kafka publishes a new partition before its leader serves it. Until then Produce and ListOffsets
   * answer with an error, on which kafkajs sends the whole request again and so doubles records of
   * the other partitions; see FINDINGS.md.
   */
  async waitForPartitions(topic, partitions) {
    await until(`${topic} has ${partitions} partitions`, async () => {
      const { topics } = await untilServed(() =>
        this.admin.fetchTopicMetadata({ topics: [topic] }),
      );
      const [{ partitions: found }] = topics;
      return found.length === partitions && found.every(({ leader }) => leader >= 0);
    });
    await until(`the partitions of ${topic} answer`, async () => {
      const offsets = await this.listedOffsets(topic);
      return offsets.length === partitions;
    });
  }

  /** The offsets of those partitions that answer; kafkajs stumbles over the others. */
  async listedOffsets(topic) {
    try {
      return await untilServed(() => this.admin.fetchTopicOffsets(topic));
    } catch (error) {
      if (error instanceof TypeError) return [];
      throw error;
    }
  }

  async producer(options = {}) {
    const producer = this.kafka.producer({
      createPartitioner: Partitioners.DefaultPartitioner,
      ...options,
    });
    this.onClose('producer', () => producer.disconnect());
    await producer.connect();
    return producer;
  }

  /** A connected consumer; short waits, so that it stops quickly. */
  async consumer(options = {}) {
    const consumer = this.kafka.consumer({
      groupId: uniqueName('group'),
      maxWaitTimeInMs: 100,
      heartbeatInterval: 300,
      sessionTimeout: 20_000,
      ...options,
    });
    this.onClose('consumer', () => consumer.disconnect());
    await consumer.connect();
    return consumer;
  }

  /** Sends `values` to one partition and returns the produce results. */
  async send(topic, values, { partition = 0, ...options } = {}) {
    const producer = await this.producer();
    return producer.send({
      topic,
      messages: values.map((value) => ({ value, partition })),
      ...options,
    });
  }

  /**
   * Everything that is in the topics now, as `{ topic, partition, message }`, by a group of its
   * own.
   */
  async readAll(topics, count, options = {}) {
    const consumer = await this.consumer(options);
    await consumer.subscribe({ topics: [topics].flat(), fromBeginning: true });
    const received = [];
    await consumer.run({
      eachMessage: async ({ topic, partition, message }) => {
        received.push({ topic, partition, message });
      },
    });
    await until(`${count} records arrived`, () => received.length >= count);
    await consumer.stop();
    assert.equal(received.length, count);
    return received;
  }

  /** The end offset of each partition, as numbers, in partition order. */
  async endOffsets(topic) {
    const offsets = await untilServed(() => this.admin.fetchTopicOffsets(topic));
    return offsets.sort((a, b) => a.partition - b.partition).map(({ high }) => Number(high));
  }

  /** The committed offset of each partition, as numbers (-1: none), in partition order. */
  async committed(groupId, topic) {
    const [{ partitions }] = await this.admin.fetchOffsets({ groupId, topics: [topic] });
    return partitions.sort((a, b) => a.partition - b.partition).map(({ offset }) => Number(offset));
  }
}

/**
 * Resolves with the payload of the next event of a consumer. Call it before what causes the event.
 */
export function nextEvent(consumer, eventName) {
  return new Promise((resolve) => {
    const remove = consumer.on(eventName, ({ payload }) => {
      remove();
      resolve(payload);
    });
  });
}

/** `count` values that compress well and can be told apart. */
export function sampleValues(count, label = 'value') {
  return Array.from({ length: count }, (_, index) => `${label}-${index}-${'abc'.repeat(20)}`);
}

export function texts(records) {
  return records.map(({ message }) => message.value.toString());
}
