import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { produceRequest, produceResponse } from '../../src/protocol/schema/00-produce.ts';
import { batchOf, fetchFrom, produceTo, recordsOf } from './records.ts';
import { startTestNode, until } from './support.ts';

const idempotent = (values: readonly string[], baseSequence: number, producerEpoch = 0) =>
  batchOf(values, { producerId: 7, producerEpoch, baseSequence });

test('offsets follow each other over requests, connections and restarts', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 2);
  let client = await node.connect();
  const first = await produceTo(client, { topic: 'orders', records: batchOf(['a', 'b']) });
  assert.deepEqual([first.errorCode, first.baseOffset, first.logStartOffset], [0, 0, 0]);
  const other = await node.connect();
  assert.equal(
    (await produceTo(other, { topic: 'orders', records: batchOf(['c']) })).baseOffset,
    2,
  );
  await node.restart();
  client = await node.connect();
  const third = await produceTo(client, { topic: 'orders', records: batchOf(['d']) });
  assert.equal(third.baseOffset, 3);
  const answer = await fetchFrom(client, [{ topic: 'orders', offset: 0 }]);
  assert.deepEqual(recordsOf(answer.responses[0]?.partitions[0]?.records), [
    [0, 'a'],
    [1, 'b'],
    [2, 'c'],
    [3, 'd'],
  ]);
});

test('requests that are pipelined on one connection are appended in their order', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      produceTo(client, { topic: 'orders', records: idempotent([`v${i}`], i) }),
    ),
  );
  assert.deepEqual(
    answers.map(({ errorCode, baseOffset }) => [errorCode, baseOffset]),
    answers.map((_, i) => [0, i]),
  );
});

test('what is not there is said to be unknown, by name and by id', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  const records = batchOf(['a']);
  const unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
  assert.equal((await produceTo(client, { topic: 'nothing', records })).errorCode, unknown);
  const beyond = await produceTo(client, { topic: 'orders', partition: 1, records });
  assert.equal(beyond.errorCode, unknown);
  const byId = await client.ask(produceRequest, produceResponse, 13, {
    acks: -1,
    timeoutMs: 1000,
    topicData: [{ topicId: 'ab'.repeat(16), partitionData: [{ index: 0, records }] }],
  });
  const [partition] = byId.responses[0]!.partitionResponses;
  assert.equal(partition?.errorCode, ErrorCode.UNKNOWN_TOPIC_ID);
});

test('one bad partition does not keep the others from being stored', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 2);
  const client = await node.connect();
  const damaged = batchOf(['x']);
  damaged[damaged.length - 1]! ^= 1;
  const answer = await client.ask(produceRequest, produceResponse, 9, {
    acks: -1,
    timeoutMs: 1000,
    topicData: [
      {
        name: 'orders',
        partitionData: [
          { index: 0, records: damaged },
          { index: 1, records: batchOf(['fine']) },
          { index: 0, records: null },
        ],
      },
    ],
  });
  assert.deepEqual(
    answer.responses[0]?.partitionResponses.map(({ errorCode }) => errorCode),
    [ErrorCode.CORRUPT_MESSAGE, ErrorCode.NONE, ErrorCode.INVALID_RECORD],
  );
});

test('acks other than -1, 0 and 1 and message sets of old are refused', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  const records = batchOf(['a']);
  const acks = await produceTo(client, { topic: 'orders', records, acks: 2 });
  assert.equal(acks.errorCode, ErrorCode.INVALID_REQUIRED_ACKS);
  for (const version of [0, 1, 2]) {
    const old = await produceTo(client, { topic: 'orders', records, version });
    assert.equal(old.errorCode, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT);
  }
});

test('acks=0 gets no answer, and a closed connection when it is refused', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  const produce = (topic: string, value: string) =>
    client.send(produceRequest, 9, {
      acks: 0,
      timeoutMs: 0,
      topicData: [{ name: topic, partitionData: [{ index: 0, records: batchOf([value]) }] }],
    });
  produce('orders', 'a');
  // The next answer is that of the next request, so nothing was said of the one before.
  assert.equal(
    (await produceTo(client, { topic: 'orders', records: batchOf(['b']) })).baseOffset,
    1,
  );
  produce('nothing', 'c');
  await client.closed;
});

test('a batch that comes again is answered as the first time and stored once', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  const send = (sequence: number, epoch = 0) =>
    produceTo(client, { topic: 'orders', records: idempotent(['v'], sequence, epoch) });
  for (let sequence = 0; sequence < 6; sequence++) await send(sequence);
  // The last five batches are known; what is older is out of order.
  for (let sequence = 1; sequence < 6; sequence++) {
    const again = await send(sequence);
    assert.deepEqual([again.errorCode, again.baseOffset], [ErrorCode.NONE, sequence]);
  }
  assert.equal((await send(0)).errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal((await send(7)).errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  // A new epoch begins at 0, and the old one is fenced.
  assert.equal((await send(3, 1)).errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal((await send(0, 1)).errorCode, ErrorCode.NONE);
  assert.equal((await send(6, 0)).errorCode, ErrorCode.INVALID_PRODUCER_EPOCH);
  assert.equal(node.broker.replica.state.topics.partitions.end(0), 7);
});

test('a duplicate is known while the first is still on its way to the disk', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  const records = () => idempotent(['v'], 0);
  const answers = await Promise.all([
    produceTo(client, { topic: 'orders', records: records() }),
    produceTo(client, { topic: 'orders', records: records() }),
  ]);
  assert.deepEqual(
    answers.map(({ errorCode, baseOffset }) => [errorCode, baseOffset]),
    [
      [0, 0],
      [0, 0],
    ],
  );
  assert.equal(node.broker.replica.state.topics.partitions.end(0), 1);
});

test('producer state survives a restart', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  let client = await node.connect();
  await produceTo(client, { topic: 'orders', records: idempotent(['a', 'b'], 0) });
  await node.restart();
  client = await node.connect();
  const again = await produceTo(client, { topic: 'orders', records: idempotent(['a', 'b'], 0) });
  assert.deepEqual([again.errorCode, again.baseOffset], [ErrorCode.NONE, 0]);
  const next = await produceTo(client, { topic: 'orders', records: idempotent(['c'], 2) });
  assert.deepEqual([next.errorCode, next.baseOffset], [ErrorCode.NONE, 2]);
});

test('LogAppendTime is the time of the broker, told to producer and consumer', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 1, { 'message.timestamp.type': 'LogAppendTime' });
  const client = await node.connect();
  const beforeMs = node.clock.wallMs();
  const answer = await produceTo(client, { topic: 'orders', records: batchOf(['a']) });
  assert.ok(answer.logAppendTimeMs >= beforeMs);
  const fetched = await fetchFrom(client, [{ topic: 'orders', offset: 0 }]);
  assert.deepEqual(recordsOf(fetched.responses[0]?.partitions[0]?.records), [[0, 'a']]);
});

test('compression.type of a topic decides how batches are stored', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  for (const type of ['gzip', 'snappy', 'lz4', 'zstd', 'uncompressed'] as const) {
    await node.createTopic(type, 1, { 'compression.type': type });
    await produceTo(client, { topic: type, records: batchOf(['a', 'b'], { compression: 1 }) });
    const fetched = await fetchFrom(client, [{ topic: type, offset: 0 }]);
    const records = fetched.responses[0]!.partitions[0]!.records!;
    const codec = { uncompressed: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 }[type];
    assert.equal(records.readInt16BE(21) & 7, codec);
    assert.deepEqual(recordsOf(records), [
      [0, 'a'],
      [1, 'b'],
    ]);
  }
});

test('a topic that is deleted takes no more records', async (t) => {
  const node = await startTestNode(t);
  const topic = await node.createTopic('orders');
  const client = await node.connect();
  const deleted = node.broker.topics.delete(topic);
  const late = await produceTo(client, { topic: 'orders', records: batchOf(['late']) });
  assert.equal(late.errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  await deleted;
  await until(() => node.broker.topics.byName('orders') === undefined, 'the topic is gone');
});

test('min.insync.replicas: with fewer nodes acks=all is refused, and acks=1 is not', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('safe', 1, { 'min.insync.replicas': '2' });
  const client = await node.connect();
  const all = await produceTo(client, { topic: 'safe', records: batchOf(['a']) });
  assert.equal(all.errorCode, ErrorCode.NOT_ENOUGH_REPLICAS);
  const one = await produceTo(client, { topic: 'safe', records: batchOf(['a']), acks: 1 });
  assert.deepEqual([one.errorCode, one.baseOffset], [ErrorCode.NONE, 0]);
});

test('a leader without a lease judges no sequence: it may lack what another one has stored', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  Object.defineProperty(node.broker.replica, 'mayAnswer', { get: () => false });
  const gap = await produceTo(client, { topic: 'orders', records: idempotent(['a'], 5) });
  assert.equal(gap.errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
});
