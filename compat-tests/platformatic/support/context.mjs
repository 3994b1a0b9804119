/** What a check gets: clients that are closed after it, unique names, and topics that are there. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  Admin,
  Consumer,
  findErrorBy,
  ListOffsetTimestamps,
  MessagesStreamFallbackModes,
  MessagesStreamModes,
  Producer,
  stringDeserializers,
  stringSerializers,
} from '@platformatic/kafka';
import { until } from '../../kafkajs/support/harness.mjs';

const runId = randomBytes(4).toString('hex');
let names = 0;

/** Unique for this run, so that suites can be repeated on one broker. */
export function uniqueName(label) {
  names++;
  return `platformatic-${runId}-${label}-${names}`;
}

/** Asserts that `promise` is rejected with an error that has this Kafka error name in it. */
export async function rejectsWith(promise, apiId) {
  let thrown = null;
  await promise.catch((error) => {
    thrown = error;
  });
  assert.ok(thrown instanceof Error, `expected ${apiId}, but the call succeeded`);
  assert.ok(findErrorBy(thrown, 'apiId', apiId), `expected ${apiId}: ${thrown.stack}`);
}

/** `count` values that compress well and can be told apart. */
export function sampleValues(count, label = 'value') {
  return Array.from({ length: count }, (_, index) => `${label}-${index}-${'abc'.repeat(20)}`);
}

export function valuesOf(messages) {
  return messages.map(({ value }) => value);
}

export class Suite {
  constructor(bootstrap) {
    this.options = {
      clientId: 'keylane-compat',
      bootstrapBrokers: [bootstrap],
      // A new topic is not served at once by Kafka; the client retries what it is told then.
      retries: 20,
      retryDelay: 50,
      strict: true,
    };
    this.topics = new Set();
  }

  /** Leaves nothing of ours on the broker but groups, which expire by themselves. */
  async close() {
    const admin = new Admin(this.options);
    const present = new Set(await admin.listTopics());
    const topics = [...this.topics].filter((topic) => present.has(topic));
    if (topics.length > 0) await admin.deleteTopics({ topics });
    await admin.close();
  }
}

export class Context {
  constructor(suite, onClose) {
    this.suite = suite;
    this.onClose = onClose;
    this.faults = [];
    // Registered first, so it runs last: error events of clients fail the check.
    onClose('error events', async () => {
      if (this.faults.length > 0) throw this.faults[0];
    });
    this.admin = this.newAdmin();
  }

  /**
   * Error events of consumers. A heartbeat that is due while its consumer closes reports
   * that the connections are closed; that is no fault.
   */
  watch(emitter) {
    emitter.on('error', (error) => {
      if (!findErrorBy(error, 'closed', true)) this.faults.push(error);
    });
    return emitter;
  }

  newAdmin(options = {}) {
    const admin = new Admin({ ...this.suite.options, ...options });
    this.onClose('admin', () => admin.close());
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
    const configs = Object.entries(config).map(([name, value]) => ({ name, value }));
    await this.admin.createTopics({ topics: [topic], partitions, replicas: 1, configs });
    await this.waitForPartitions(topic, partitions);
    return topic;
  }

  /**
   * Kafka publishes a new partition before its leader serves it; the client retries until it does.
   */
  async waitForPartitions(topic, partitions) {
    await until(`${topic} has ${partitions} partitions`, async () => {
      const offsets = await this.offsets(topic, partitions, ListOffsetTimestamps.LATEST).catch(
        () => [],
      );
      return offsets.length === partitions;
    });
  }

  /** What ListOffsets says for a special or real timestamp, in partition order. */
  async offsets(topic, partitions, timestamp) {
    const requests = Array.from({ length: partitions }, (_, partitionIndex) => ({
      partitionIndex,
      timestamp,
    }));
    const [{ partitions: found }] = await this.admin.listOffsets({
      topics: [{ name: topic, partitions: requests }],
    });
    found.sort((a, b) => a.partitionIndex - b.partitionIndex);
    return found.map(({ offset }) => offset);
  }

  endOffsets(topic, partitions) {
    return this.offsets(topic, partitions, ListOffsetTimestamps.LATEST);
  }

  producer(options = {}) {
    const producer = new Producer({
      ...this.suite.options,
      serializers: stringSerializers,
      ...options,
    });
    this.onClose('producer', () => producer.close(true));
    return producer;
  }

  /** Short waits, so that it stops quickly. */
  consumer(options = {}) {
    const consumer = new Consumer({
      ...this.suite.options,
      groupId: uniqueName('group'),
      deserializers: stringDeserializers,
      maxWaitTime: 100,
      heartbeatInterval: 300,
      sessionTimeout: 20_000,
      rebalanceTimeout: 20_000,
      ...options,
    });
    this.onClose('consumer', () => consumer.close(true));
    return this.watch(consumer);
  }

  /** Sends `values` to one partition of a topic. */
  async send(topic, values, { partition = 0, ...options } = {}) {
    const producer = this.producer();
    const messages = values.map((value) => ({ topic, value, partition }));
    const result = await producer.send({ messages, ...options });
    await producer.close();
    return result;
  }

  /** Everything that is in the topics now, by a group of its own. */
  async readAll(topics, count, { consumer: consumerOptions = {}, ...options } = {}) {
    const consumer = this.consumer(consumerOptions);
    const received = [];
    await collect(consumer, topics, received, {
      mode: MessagesStreamModes.EARLIEST,
      ...options,
    });
    await until(`${count} records arrived`, () => received.length >= count);
    await consumer.close(true);
    assert.equal(received.length, count);
    return received;
  }

  /** The committed offset of each partition (-1: none), in partition order. */
  async committed(groupId, topic, partitions) {
    const consumer = this.consumer({ groupId });
    const indexes = Array.from({ length: partitions }, (_, index) => index);
    const offsets = await consumer.listCommittedOffsets({
      topics: [{ topic, partitions: indexes }],
    });
    await consumer.close(true);
    return offsets.get(topic);
  }
}

/** Consumes into `received`; resolves with the stream once the group has been joined. */
export async function collect(consumer, topics, received, options = {}) {
  const stream = await consumer.consume({
    topics: [topics].flat(),
    mode: MessagesStreamModes.COMMITTED,
    fallbackMode: MessagesStreamFallbackModes.EARLIEST,
    ...options,
  });
  stream.on('data', (message) => received.push(message));
  return stream;
}
