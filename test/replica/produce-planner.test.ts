import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codecs } from '../../src/core/codecs.ts';
import { Compression } from '../../src/core/compression.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  readCompressionBits,
  readLeaderEpoch,
  readMaxTimestamp,
  readTimestampType,
} from '../../src/protocol/records/batch-header.ts';
import { type BatchInput, buildBatch } from '../../src/protocol/records/build.ts';
import { decodeBatches } from '../../src/protocol/records/decode.ts';
import type { ProducePart } from '../../src/replica/produce-planner.ts';
import { readBytes } from '../log/support.ts';
import { batchOf, TestMachine, type TestReplica } from './support.ts';
import { topicSettings } from './topic-settings.ts';

async function started(): Promise<{ machine: TestMachine; node: TestReplica }> {
  const machine = new TestMachine();
  const node = await machine.start();
  await node.createTopic();
  return { machine, node };
}

function sequenced(baseSequence: number, more: Partial<BatchInput> = {}, count = 1): Buffer {
  const record = { key: null, value: Buffer.from('v'), timestamp: 1000 };
  const records = Array.from({ length: count }, () => record);
  return buildBatch({ records, producerId: 4, producerEpoch: 0, baseSequence, ...more }, codecs);
}

async function code(node: TestReplica, records: Buffer): Promise<number> {
  return (await node.produce(records)).errorCode;
}

/** The stored bytes of the batch that an offset lies in. */
async function stored(node: TestReplica, offset: number, partition = 0): Promise<Buffer> {
  let found: Promise<Buffer> | undefined;
  const { journal } = node.replica;
  const walk = { partition, start: { offset } };
  const walking = journal.extents.walkLoading(
    walk,
    (_base, _count, _max, _epoch, position, bytes) => {
      found = readBytes(journal, position, bytes);
      return false;
    },
  );
  await node.clock.run(walking);
  return node.clock.run(found!);
}

test('a producer goes on at its next sequence, and not elsewhere', async () => {
  const { node } = await started();
  assert.equal(await code(node, sequenced(0, {}, 3)), ErrorCode.NONE);
  assert.equal(await code(node, sequenced(3)), ErrorCode.NONE);
  assert.equal(await code(node, sequenced(5)), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal(await code(node, sequenced(2)), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal(await code(node, sequenced(4)), ErrorCode.NONE);
});

test('a producer that is not known here may begin anywhere', async () => {
  const { node } = await started();
  assert.equal(await code(node, sequenced(700)), ErrorCode.NONE);
  assert.equal(await code(node, sequenced(701)), ErrorCode.NONE);
});

test('sequences go on at 0 after 2^31 - 1', async () => {
  const { node } = await started();
  assert.equal(await code(node, sequenced(0x7ffffffe, {}, 2)), ErrorCode.NONE);
  assert.equal(await code(node, sequenced(0)), ErrorCode.NONE);
  assert.equal(await code(node, sequenced(1)), ErrorCode.NONE);
});

test('a batch whose sequences wrap around is recognized when it is repeated', async () => {
  const { node } = await started();
  assert.equal((await node.produce(sequenced(0x7fffffff, {}, 3))).baseOffset, 0);
  assert.equal((await node.produce(sequenced(0x7fffffff, {}, 3))).baseOffset, 0);
  assert.equal((await node.produce(sequenced(2))).baseOffset, 3);
});

test('an older epoch is fenced, a newer one begins at 0', async () => {
  const { node } = await started();
  assert.equal(await code(node, sequenced(0, { producerEpoch: 3 })), ErrorCode.NONE);
  assert.equal(
    await code(node, sequenced(1, { producerEpoch: 2 })),
    ErrorCode.INVALID_PRODUCER_EPOCH,
  );
  assert.equal(
    await code(node, sequenced(1, { producerEpoch: 4 })),
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
  );
  assert.equal(await code(node, sequenced(0, { producerEpoch: 4 })), ErrorCode.NONE);
});

test('the last five batches are recognized, older ones are out of order', async () => {
  const { node } = await started();
  for (let i = 0; i < 6; i++) assert.equal((await node.produce(sequenced(i))).baseOffset, i);
  for (let i = 1; i < 6; i++) assert.equal((await node.produce(sequenced(i))).baseOffset, i);
  assert.equal(await code(node, sequenced(0)), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal(node.end(), 6);
});

test('many requests of one producer in flight get their offsets in order', async () => {
  const { node } = await started();
  const answers = Array.from({ length: 20 }, (_, i) => node.produceLater(sequenced(i)));
  await node.clock.settle();
  assert.deepEqual(
    answers.map(([outcome]) => outcome?.baseOffset),
    Array.from({ length: 20 }, (_, i) => i),
  );
});

test('one request for several partitions is one entry, answered together', async () => {
  const { node } = await started();
  const before = node.replica.state.appliedIndex;
  const parts: ProducePart[] = [0, 1, 2, 1].map((partition) => ({
    partition,
    topicPartition: `orders-${partition}`,
    settings: topicSettings,
    records: batchOf(10),
  }));
  const damaged = batchOf(10);
  damaged[70]! ^= 1;
  parts.push({ ...parts[0]!, records: damaged });
  const answers: { errorCode: number; baseOffset: number }[] = [];
  node.planner.produce(parts, 11, (outcomes) => answers.push(...outcomes));
  await node.clock.settle();
  assert.deepEqual(
    answers.map(({ errorCode, baseOffset }) => [errorCode, baseOffset]),
    [
      [ErrorCode.NONE, 0],
      [ErrorCode.NONE, 0],
      [ErrorCode.NONE, 0],
      [ErrorCode.NONE, 1],
      [ErrorCode.CORRUPT_MESSAGE, -1],
    ],
  );
  assert.equal(node.replica.state.appliedIndex, before + 1);
});

test('a request of which nothing is stored is answered at once', async () => {
  const { node } = await started();
  const answers = node.produceLater(Buffer.alloc(0));
  assert.equal(answers.length, 1);
  assert.notEqual(answers[0]!.errorCode, ErrorCode.NONE);
});

test('a batch is stored as it came, but for offset and leader epoch', async () => {
  const { machine, node } = await started();
  machine.crash();
  const again = await machine.start();
  await again.produce(batchOf(10));
  const sent = batchOf(50);
  const { baseOffset } = await again.produce(Buffer.from(sent));
  const found = await stored(again, baseOffset);
  assert.deepEqual(found.subarray(16), sent.subarray(16));
  assert.equal(readLeaderEpoch(found, 0), 1);
  assert.equal(node.replica.leaderEpoch, 0);
});

test('LogAppendTime sets the broker’s time and says so', async () => {
  const { node } = await started();
  const settings = { ...topicSettings, timestampType: 'LogAppendTime' } as const;
  const answers: { logAppendTimeMs: number }[] = [];
  const part = { partition: 0, topicPartition: 'orders-0', settings, records: batchOf(10) };
  node.planner.produce([part], 11, (outcomes) => answers.push(...outcomes));
  await node.clock.settle();
  const nowMs = node.clock.wallMs();
  assert.equal(answers[0]?.logAppendTimeMs, nowMs);
  const found = await stored(node, 0);
  assert.deepEqual(
    [readTimestampType(found, 0), readMaxTimestamp(found, 0)],
    ['LogAppendTime', nowMs],
  );
  assert.equal(node.replica.state.topics.partitions.maxTimestamp(0), nowMs);
});

test('compression.type is applied to what comes in another one', async () => {
  const { node } = await started();
  const settings = { ...topicSettings, compressionType: 'gzip' } as const;
  const part = { partition: 0, topicPartition: 'orders-0', settings, records: batchOf(500) };
  node.planner.produce([part], 11, () => undefined);
  await node.clock.settle();
  const found = await stored(node, 0);
  assert.equal(readCompressionBits(found, 0), Compression.gzip);
  const { batches } = decodeBatches(found, { codecs, openedBytesMax: 10_000 });
  assert.deepEqual(batches[0]?.records[0]?.value, Buffer.alloc(500, 1));
});
