import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  deleteRecordsRequest,
  deleteRecordsResponse,
} from '../../src/protocol/schema/21-delete-records.ts';
import { batchOf, fetchFrom, produceTo, recordsOf } from './records.ts';
import { startTestNode, type TestClient, type TestNode } from './support.ts';

async function deleteBelow(client: TestClient, topic: string, offset: number, version = 2) {
  const answer = await client.ask(deleteRecordsRequest, deleteRecordsResponse, version, {
    topics: [{ name: topic, partitions: [{ partitionIndex: 0, offset }] }],
    timeoutMs: 1000,
  });
  const { lowWatermark, errorCode } = answer.topics[0]!.partitions[0]!;
  return [lowWatermark, errorCode];
}

/** Three batches of two records each. */
async function fill(node: TestNode, client: TestClient, topic: string): Promise<number> {
  const { partitions } = await node.createTopic(topic);
  for (const values of [
    ['a', 'b'],
    ['c', 'd'],
    ['e', 'f'],
  ]) {
    await produceTo(client, { topic, records: batchOf(values) });
  }
  return partitions[0]!;
}

test('the log starts at the offset, also in the middle of a batch', async (t) => {
  const node = await startTestNode(t);
  let client = await node.connect();
  const partition = await fill(node, client, 'orders');
  const bytes = () => node.broker.replica.state.topics.partitions.bytes(partition);
  const before = bytes();
  assert.deepEqual(await deleteBelow(client, 'orders', 3, 0), [3, ErrorCode.NONE]);
  // Only whole batches are counted as gone.
  assert.equal(bytes(), (before / 3) * 2);
  const read = await fetchFrom(client, [{ topic: 'orders', offset: 3 }]);
  const found = recordsOf(read.responses[0]?.partitions[0]?.records);
  assert.deepEqual(
    found.filter(([offset]) => offset >= 3).map(([, value]) => value),
    ['d', 'e', 'f'],
  );
  const below = await fetchFrom(client, [{ topic: 'orders', offset: 2 }]);
  assert.equal(below.responses[0]?.partitions[0]?.errorCode, ErrorCode.OFFSET_OUT_OF_RANGE);
  await node.restart();
  client = await node.connect();
  assert.equal(node.broker.replica.state.topics.partitions.logStart(partition), 3);
  // The rest of the batch goes with the next deletion.
  assert.deepEqual(await deleteBelow(client, 'orders', 4), [4, ErrorCode.NONE]);
  assert.equal(bytes(), before / 3);
});

test('-1 is the end, and deletes everything', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const partition = await fill(node, client, 'orders');
  assert.deepEqual(await deleteBelow(client, 'orders', -1), [6, ErrorCode.NONE]);
  assert.equal(node.broker.replica.state.topics.partitions.bytes(partition), 0);
  const { baseOffset } = await produceTo(client, { topic: 'orders', records: batchOf(['g']) });
  assert.equal(baseOffset, 6);
});

test('an offset below the start changes nothing', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await fill(node, client, 'orders');
  await deleteBelow(client, 'orders', 4);
  assert.deepEqual(await deleteBelow(client, 'orders', 2), [4, ErrorCode.NONE]);
  assert.deepEqual(await deleteBelow(client, 'orders', 0), [4, ErrorCode.NONE]);
});

test('what cannot be deleted', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await fill(node, client, 'orders');
  const outOfRange = [-1, ErrorCode.OFFSET_OUT_OF_RANGE];
  assert.deepEqual(await deleteBelow(client, 'orders', 7), outOfRange);
  assert.deepEqual(await deleteBelow(client, 'orders', -2), outOfRange);
  const unknown = [-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION];
  assert.deepEqual(await deleteBelow(client, 'nothing', 0), unknown);
});

test('deletions that overlap count each byte once', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const partition = await fill(node, client, 'orders');
  const { partitions } = node.broker.replica.state.topics;
  const before = partitions.bytes(partition);
  const others = await Promise.all([node.connect(), node.connect()]);
  await Promise.all([
    deleteBelow(client, 'orders', 2),
    deleteBelow(others[0]!, 'orders', 4),
    deleteBelow(others[1]!, 'orders', 4),
  ]);
  assert.equal(partitions.logStart(partition), 4);
  assert.equal(partitions.bytes(partition), before / 3);
});
