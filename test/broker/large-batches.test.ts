import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Logger, silentLogger } from '../../src/core/logger.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import type { BatchInput } from '../../src/protocol/records/build.ts';
import { produceRequest, produceResponse } from '../../src/protocol/schema/00-produce.ts';
import { ConfigResource } from '../../src/state/commands.ts';
import { denseBatch, hollowBatch } from '../replica/large-batches.ts';
import { CommandOpener } from './command-opener.ts';
import { batchOf, fetchFrom, produceTo } from './records.ts';
import { startTestNode, TestClient, type TestNode, until } from './support.ts';

const large = (more: Partial<BatchInput> = {}) => hollowBatch(100_000, more);

const sequenced = (baseSequence: number): Partial<BatchInput> => ({
  ...{ producerId: 7, producerEpoch: 0, baseSequence },
});

const endOf = (node: TestNode, partition = 0): number =>
  node.broker.replica.state.topics.partitions.end(partition);

function sendWithoutAnswer(client: TestClient, topic: string, records: Buffer): void {
  client.send(produceRequest, 9, {
    acks: 0,
    timeoutMs: 0,
    topicData: [{ name: topic, partitionData: [{ index: 0, records }] }],
  });
}

test('sequences of large and small batches on one connection keep their order', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  const count = 30;
  const send = (i: number) => {
    const records =
      i % 3 === 0
        ? large(sequenced(i))
        : i % 3 === 1
          ? batchOf([`v${i}`], sequenced(i))
          : denseBatch(90_000, sequenced(i));
    return produceTo(client, { topic: 'orders', records });
  };
  const answers = await Promise.all(Array.from({ length: count }, (_, i) => send(i)));
  const expected = Array.from({ length: count }, (_, i) => [ErrorCode.NONE, i]);
  assert.deepEqual(
    answers.map(({ errorCode, baseOffset }) => [errorCode, baseOffset]),
    expected,
  );
  // The same once more: the last five are known.
  const again = await Promise.all([25, 26, 27, 28, 29].map(send));
  assert.deepEqual(
    again.map(({ errorCode, baseOffset }) => [errorCode, baseOffset]),
    expected.slice(-5),
  );
  assert.equal(endOf(node), count);
});

test('what follows a large batch waits for it, and other connections do not', async (t) => {
  const opener = new CommandOpener();
  const node = await startTestNode(t, { opener });
  await node.createTopic('orders', 2);
  const client = await node.connect();
  const first = produceTo(client, { topic: 'orders', records: large(sequenced(0)) });
  const second = produceTo(client, { topic: 'orders', records: batchOf(['b'], sequenced(1)) });
  const repeated = produceTo(client, { topic: 'orders', records: batchOf(['b'], sequenced(1)) });
  await until(() => opener.calls.length === 1, 'the first is to be opened');
  const other = await node.connect();
  const early = await produceTo(other, { topic: 'orders', records: batchOf(['early']) });
  assert.equal(early.baseOffset, 0);
  assert.equal(endOf(node), 1);
  opener.release();
  const answers = await Promise.all([first, second, repeated]);
  assert.deepEqual(
    answers.map(({ errorCode, baseOffset }) => [errorCode, baseOffset]),
    [1, 2, 2].map((offset) => [ErrorCode.NONE, offset]),
  );
});

test('acks=0 keeps its order too, and outlives its connection', async (t) => {
  const opener = new CommandOpener();
  const node = await startTestNode(t, { opener });
  await node.createTopic('orders');
  const client = await node.connect();
  sendWithoutAnswer(client, 'orders', large(sequenced(0)));
  sendWithoutAnswer(client, 'orders', batchOf(['b'], sequenced(1)));
  sendWithoutAnswer(client, 'orders', large(sequenced(2)));
  // Its answer comes after the requests before it were taken.
  const last = produceTo(client, { topic: 'orders', records: batchOf(['d'], sequenced(3)) });
  await until(() => opener.calls.length === 1, 'the first is to be opened');
  opener.release();
  await until(() => opener.calls.length === 1, 'the third is to be opened');
  client.close();
  await assert.rejects(last);
  opener.release();
  await until(() => endOf(node) === 4, 'all of them are stored');
  assert.equal(node.broker.produceQueues.closedBytes, 0);
});

test('acks=0 with a bomb closes the connection', async (t) => {
  const node = await startTestNode(t, { settings: { 'decompressed.bytes.max': 1_000_000 } });
  await node.createTopic('orders');
  const client = await node.connect();
  sendWithoutAnswer(client, 'orders', hollowBatch(2_000_000));
  await client.closed;
  assert.equal(endOf(node), 0);
});

test('bombs are refused in every codec, and the connection goes on', async (t) => {
  const node = await startTestNode(t, { settings: { 'decompressed.bytes.max': 1_000_000 } });
  await node.createTopic('orders');
  const client = await node.connect();
  for (const compression of [1, 2, 3, 4] as const) {
    const records = hollowBatch(2_000_000, { compression });
    const { errorCode, errorMessage } = await produceTo(client, { topic: 'orders', records });
    assert.equal(errorCode, ErrorCode.MESSAGE_TOO_LARGE);
    assert.match(errorMessage ?? '', /decompress to too much/);
  }
  assert.equal((await produceTo(client, { topic: 'orders', records: large() })).baseOffset, 0);
});

test('a request mixes what is opened elsewhere with what is not', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 4, { 'compression.type': 'zstd' });
  const client = await node.connect();
  const damaged = large();
  damaged[damaged.length - 1]! ^= 1;
  const batches = [
    large(),
    batchOf(['plain']),
    damaged,
    denseBatch(90_000, { compression: 4 }),
    null,
  ];
  const answer = await client.ask(produceRequest, produceResponse, 9, {
    acks: -1,
    timeoutMs: 1000,
    topicData: [
      { name: 'orders', partitionData: batches.map((records, index) => ({ index, records })) },
    ],
  });
  assert.deepEqual(
    answer.responses[0]?.partitionResponses.map(({ errorCode }) => errorCode),
    [
      ...[ErrorCode.NONE, ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.NONE],
      ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ],
  );
  const from = [0, 1, 3].map((partition) => ({ topic: 'orders', partition, offset: 0 }));
  const fetched = await fetchFrom(client, from);
  for (const { records } of fetched.responses[0]!.partitions) {
    assert.equal(records!.readInt16BE(21) & 7, 4);
  }
});

test('a topic that goes while a batch for it is opened takes it no more', async (t) => {
  const opener = new CommandOpener();
  const node = await startTestNode(t, { opener });
  const topic = await node.createTopic('orders');
  const client = await node.connect();
  const late = produceTo(client, { topic: 'orders', records: large() });
  await until(() => opener.calls.length === 1, 'the batch is to be opened');
  await node.broker.topics.delete(topic);
  opener.release();
  assert.equal((await late).errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
});

test('settings that change while a batch is opened are those that count', async (t) => {
  const opener = new CommandOpener();
  const node = await startTestNode(t, { opener });
  const topic = await node.createTopic('orders');
  const client = await node.connect();
  const answer = produceTo(client, { topic: 'orders', records: large() });
  await until(() => opener.calls.length === 1, 'the batch is to be opened');
  await node.broker.topics.setConfigs(
    ConfigResource.topic,
    topic.id,
    new Map([['compression.type', 'lz4']]),
  );
  opener.release();
  assert.equal(opener.calls.length, 1, 'it is to be opened again');
  opener.release();
  assert.equal((await answer).errorCode, ErrorCode.NONE);
  assert.equal(opener.count, 2);
  const fetched = await fetchFrom(client, [{ topic: 'orders', offset: 0 }]);
  assert.equal(fetched.responses[0]!.partitions[0]!.records!.readInt16BE(21) & 7, 3);
});

test('a bug in opening costs the client its connection, and nobody else anything', async (t) => {
  const opener = new CommandOpener();
  const errors: unknown[] = [];
  const log: Logger = { ...silentLogger, error: (fields) => void errors.push(fields) };
  const node = await startTestNode(t, { opener, log });
  await node.createTopic('orders');
  const client = await node.connect();
  const answers = [large(), batchOf(['behind'])].map((records) =>
    assert.rejects(produceTo(client, { topic: 'orders', records })),
  );
  await until(() => opener.calls.length === 1, 'the batch is to be opened');
  opener.fail(new TypeError('bug'));
  await Promise.all([client.closed, ...answers]);
  assert.equal(errors.length, 1);
  const other = await node.connect();
  const sound = await produceTo(other, { topic: 'orders', records: batchOf(['a']) });
  assert.equal(sound.baseOffset, 0);
});

test('a stop waits for batches that are being opened', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  // A client that the node of the test does not close.
  const client = await TestClient.connect(node.address);
  const answers = [0, 1, 2].map((i) =>
    produceTo(client, { topic: 'orders', records: large(sequenced(i)) }),
  );
  const first = await answers[0]!;
  assert.equal(first.baseOffset, 0);
  await node.stop();
  for (const answer of answers) assert.equal((await answer).errorCode, ErrorCode.NONE);
});

test('a stop does not wait for ever, and stores nothing any more', async (t) => {
  const opener = new CommandOpener();
  const node = await startTestNode(t, { opener });
  await node.createTopic('orders');
  const client = await node.connect();
  sendWithoutAnswer(client, 'orders', large());
  const lost = assert.rejects(produceTo(client, { topic: 'orders', records: batchOf(['a']) }));
  await until(() => opener.calls.length === 1, 'the batch is to be opened');
  const stopping = node.stop();
  node.clock.advance(5000);
  await stopping;
  await lost;
  assert.equal(opener.calls.length, 0);
  await node.start();
  assert.equal(endOf(node), 0);
});
