import assert from 'node:assert/strict';
import test from 'node:test';
import type { Settings } from '../../src/config/settings.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { produceRequest, produceResponse } from '../../src/protocol/schema/00-produce.ts';
import {
  type ListOffsetsRequestInput,
  listOffsetsRequest,
  listOffsetsResponse,
} from '../../src/protocol/schema/02-list-offsets.ts';
import { hollowBatch } from '../replica/large-batches.ts';
import { batchOf, produceTo } from './records.ts';
import { startTestNode, type TestClient, type TestNode, until } from './support.ts';

interface Asked {
  readonly partition: number;
  readonly timestamp: number;
}

function requestOf(asked: readonly Asked[]): ListOffsetsRequestInput {
  const partitions = asked.map(({ partition, timestamp }) => ({
    ...{ partitionIndex: partition, timestamp },
  }));
  return { replicaId: -1, topics: [{ name: 'orders', partitions }] };
}

async function ask(client: TestClient, asked: readonly Asked[]) {
  const request = requestOf(asked);
  const { topics } = await client.ask(listOffsetsRequest, listOffsetsResponse, 7, request);
  return topics[0]!.partitions.map(({ errorCode, offset }) => [errorCode, offset]);
}

/** From now on searches in batches are counted. */
function countSearches(node: TestNode): () => number {
  const { storedBatches } = node.broker;
  const ask = storedBatches.ask.bind(storedBatches);
  let count = 0;
  storedBatches.ask = (...args) => {
    count++;
    return ask(...args);
  };
  return () => count;
}

test('times are looked up in large batches too', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  // Each opens to more than is opened on the event loop; their records are of time 1000.
  for (const records of [batchOf(['a']), hollowBatch(300_000), hollowBatch(200_000)]) {
    assert.equal((await produceTo(client, { topic: 'orders', records })).errorCode, 0);
  }
  assert.deepEqual(await ask(client, [{ partition: 0, timestamp: 1000 }]), [[0, 0]]);
  assert.deepEqual(await ask(client, [{ partition: 0, timestamp: 1001 }]), [[0, -1]]);
  assert.deepEqual(await ask(client, [{ partition: 0, timestamp: -3 }]), [[0, 0]]);
});

test('a partition that is named twice is refused, as in Kafka', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 2);
  const client = await node.connect();
  const twice = [0, 1, 0].map((partition) => ({ partition, timestamp: -1 }));
  const refused = [ErrorCode.INVALID_REQUEST, -1];
  assert.deepEqual(await ask(client, twice), [refused, [ErrorCode.NONE, 0], refused]);
});

test('what has become too large for the setting is an error of its partition', async (t) => {
  const options: { settings?: Partial<Settings> } = {};
  const node = await startTestNode(t, options);
  await node.createTopic('orders', 2);
  const client = await node.connect();
  const records = hollowBatch(3 * 1024 * 1024);
  assert.equal((await produceTo(client, { topic: 'orders', records })).errorCode, 0);
  assert.deepEqual(await ask(client, [{ partition: 0, timestamp: 0 }]), [[0, 0]]);
  options.settings = { 'decompressed.bytes.max': 1024 * 1024 };
  await node.restart();
  const again = await node.connect();
  const both = [0, 1].map((partition) => ({ partition, timestamp: 0 }));
  assert.deepEqual(await ask(again, both), [
    [ErrorCode.CORRUPT_MESSAGE, -1],
    [ErrorCode.NONE, -1],
  ]);
});

test('a large request is answered over several turns, and not for who is gone', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 3000);
  const client = await node.connect();
  const { clock } = node;
  let turns = 0;
  const soon = clock.soon.bind(clock);
  clock.soon = (callback) => {
    turns++;
    soon(callback);
  };
  const all = Array.from({ length: 3000 }, (_, partition) => ({ partition, timestamp: -1 }));
  const found = await ask(client, all);
  assert.deepEqual(found, Array(3000).fill([ErrorCode.NONE, 0]));
  assert.equal(turns, 2);
});

test('a search ends when its client goes', async (t) => {
  const node = await startTestNode(t);
  const count = 2000;
  await node.createTopic('orders', count);
  const client = await node.connect();
  await client.ask(produceRequest, produceResponse, 9, {
    acks: -1,
    timeoutMs: 0,
    topicData: [
      {
        name: 'orders',
        partitionData: Array.from({ length: count }, (_, index) => ({
          ...{ index, records: batchOf(['a']) },
        })),
      },
    ],
  });
  const searches = countSearches(node);
  const gone = await node.connect();
  const asked = Array.from({ length: count }, (_, partition) => ({ partition, timestamp: 0 }));
  gone.send(listOffsetsRequest, 7, requestOf(asked));
  await until(() => searches() > 0, 'the search has begun');
  gone.close();
  let before = -1;
  await until(() => {
    const isOver = searches() === before;
    before = searches();
    return isOver;
  }, 'the search is over');
  assert.ok(searches() < count, `${searches()} of ${count} partitions were searched`);
});
