/** Fetch versions 0 to 3, whose clients know message sets and no record batches. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { codecs } from '../../src/core/codecs.ts';
import { Compression } from '../../src/core/compression.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { decodeBatches } from '../../src/protocol/records/decode.ts';
import { fetchRequest, fetchResponse } from '../../src/protocol/schema/01-fetch.ts';
import {
  apiVersionsRequest,
  apiVersionsResponse,
} from '../../src/protocol/schema/18-api-versions.ts';
import { hollowBatch } from '../replica/large-batches.ts';
import { batchOf, produceTo, recordsOf } from './records.ts';
import { startTestNode, type TestClient, type TestNode, until } from './support.ts';

const oldVersions = [0, 1, 2, 3];

interface From {
  readonly topic?: string;
  readonly partition?: number;
  readonly offset: number;
  readonly bytesMax?: number;
}

interface Options {
  readonly maxBytes?: number;
  readonly maxWaitMs?: number;
  readonly minBytes?: number;
}

async function fetchOld(
  client: TestClient,
  version: number,
  from: readonly From[],
  { maxBytes = 1024 * 1024, maxWaitMs = 0, minBytes = 1 }: Options = {},
) {
  const answer = await client.ask(fetchRequest, fetchResponse, version, {
    replicaId: -1,
    maxWaitMs,
    minBytes,
    ...(version >= 3 && { maxBytes }),
    topics: from.map(({ topic = 'orders', partition = 0, offset, bytesMax = 1024 * 1024 }) => ({
      topic,
      partitions: [{ partition, fetchOffset: offset, partitionMaxBytes: bytesMax }],
    })),
  });
  return answer.responses.flatMap(({ partitions }) => partitions);
}

async function produceValues(node: TestNode, values: readonly string[], partition = 0) {
  const client = await node.connect();
  const records = batchOf(values);
  const { errorCode } = await produceTo(client, { topic: 'orders', partition, records });
  assert.equal(errorCode, ErrorCode.NONE);
}

test('old versions are advertised, and give messages of their format', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  const { apiKeys } = await client.ask(apiVersionsRequest, apiVersionsResponse, 0, {});
  assert.equal(apiKeys.find(({ apiKey }) => apiKey === 1)?.minVersion, 0);
  for (const compression of Object.values(Compression)) {
    const records = batchOf(['a', 'b'], { compression });
    assert.equal((await produceTo(client, { topic: 'orders', records })).errorCode, 0);
  }
  const expected = Array.from({ length: 10 }, (_, i) => [i, i % 2 === 0 ? 'a' : 'b']);
  for (const version of oldVersions) {
    const [partition] = await fetchOld(client, version, [{ offset: 0 }]);
    assert.deepEqual([partition?.errorCode, partition?.highWatermark], [ErrorCode.NONE, 10]);
    assert.deepEqual(recordsOf(partition?.records), expected);
    const { batches } = decodeBatches(partition!.records!, { codecs, openedBytesMax: 1024 });
    const magic = version < 2 ? 0 : 1;
    for (const batch of batches) {
      const [record] = batch.records;
      assert.deepEqual([batch.magic, record?.timestamp], [magic, magic === 0 ? -1 : 1000]);
    }
    // From the middle of a batch on.
    const [rest] = await fetchOld(client, version, [{ offset: 7 }]);
    assert.deepEqual(recordsOf(rest?.records), expected.slice(7));
  }
});

test('nothing new is nothing, and what is not there is an error', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  await produceValues(node, ['a']);
  const client = await node.connect();
  for (const version of oldVersions) {
    const found = await fetchOld(client, version, [
      { offset: 1 },
      { topic: 'nothing', offset: 0 },
      { topic: 'orders', partition: 7, offset: 0 },
    ]);
    assert.deepEqual(
      found.map(({ errorCode, records }) => [errorCode, records?.length]),
      [
        [ErrorCode.NONE, 0],
        [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0],
        [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0],
      ],
    );
    const [beyond] = await fetchOld(client, version, [{ offset: 2 }]);
    assert.equal(beyond?.errorCode, ErrorCode.OFFSET_OUT_OF_RANGE);
  }
});

test('a consumer gets on by whole messages however little it takes', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const values = Array.from({ length: 20 }, (_, i) => `value ${i} ${'x'.repeat(i * 10)}`);
  await produceValues(node, values);
  const client = await node.connect();
  for (const version of oldVersions) {
    const read: string[] = [];
    for (let offset = 0; offset < values.length; offset = read.length) {
      // Less than the batch, and enough for the largest message.
      const [partition] = await fetchOld(client, version, [{ offset, bytesMax: 300 }]);
      assert.ok(partition!.records!.length <= 300);
      const records = recordsOf(partition?.records);
      assert.equal(records[0]?.[0], offset);
      read.push(...records.map(([, value]) => value));
    }
    assert.deepEqual(read, values);
  }
});

test('a message beyond the limit is cut below version 3, and whole from there on', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 2);
  for (const partition of [0, 1]) await produceValues(node, ['x'.repeat(1000)], partition);
  const client = await node.connect();
  const both = [
    { partition: 0, offset: 0, bytesMax: 100 },
    { partition: 1, offset: 0, bytesMax: 100 },
  ];
  for (const version of [0, 1, 2]) {
    const found = await fetchOld(client, version, both);
    assert.deepEqual(
      found.map(({ records }) => records?.length),
      [100, 100],
    );
    // Nothing whole is in it: so the client sees that the message is too large for it.
    assert.deepEqual(recordsOf(found[0]?.records), []);
  }
  const found = await fetchOld(client, 3, both);
  assert.deepEqual(
    found.map(({ records }) => recordsOf(records).length),
    [1, 0],
  );
  // All of the answer is limited too.
  const [first, second] = await fetchOld(
    client,
    3,
    both.map((from) => ({ ...from, bytesMax: 5000 })),
    {
      maxBytes: 1500,
    },
  );
  assert.deepEqual([recordsOf(first?.records).length, recordsOf(second?.records).length], [1, 0]);
});

test('a large answer is given piece by piece, without messages that seem too large', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 8);
  const value = 'x'.repeat(900_000);
  for (let partition = 0; partition < 8; partition++) await produceValues(node, [value], partition);
  const client = await node.connect();
  for (const version of oldVersions) {
    const open = new Set([0, 1, 2, 3, 4, 5, 6, 7]);
    for (let round = 0; open.size > 0; round++) {
      assert.ok(round < 8, 'it ends');
      const from = [...open].map((partition) => ({ partition, offset: 0 }));
      for (const { partitionIndex, records } of await fetchOld(client, version, from, {
        maxBytes: 50_000_000,
      })) {
        if (records?.length === 0) continue;
        assert.equal(recordsOf(records).length, 1);
        open.delete(partitionIndex);
      }
    }
  }
});

test('an old fetch waits for records', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  for (const [end, version] of oldVersions.entries()) {
    const client = await node.connect();
    const waiting = fetchOld(client, version, [{ offset: end }], { maxWaitMs: 10_000 });
    await produceValues(node, ['new']);
    const [partition] = await waiting;
    assert.deepEqual(recordsOf(partition?.records), [[end, 'new']]);
  }
});

test('stored records that cannot be opened any more are an error of their partition', async (t) => {
  const node = await startTestNode(t, { settings: { 'decompressed.bytes.max': 2 * 1024 * 1024 } });
  await node.createTopic('orders', 2);
  const client = await node.connect();
  const records = batchOf(['x'.repeat(1_500_000)], { compression: Compression.gzip });
  await produceTo(client, { topic: 'orders', records });
  await produceValues(node, ['fine'], 1);
  const limit = { ...node.broker.settings, 'decompressed.bytes.max': 1024 * 1024 };
  t.mock.getter(node.broker, 'settings', () => limit);
  const found = await fetchOld(client, 2, [
    { partition: 0, offset: 0 },
    { partition: 1, offset: 0 },
  ]);
  assert.deepEqual(
    found.map(({ errorCode, records: given }) => [errorCode, recordsOf(given).length]),
    [
      [ErrorCode.CORRUPT_MESSAGE, 0],
      [ErrorCode.NONE, 1],
    ],
  );
});

test('what one answer opens is bounded, and the rest comes with the next ones', async (t) => {
  const mib = 1024 * 1024;
  const node = await startTestNode(t, { settings: { 'decompressed.bytes.max': mib } });
  await node.createTopic('orders', 4);
  const client = await node.connect();
  for (const partition of [0, 1, 2, 3]) {
    const records = hollowBatch(0.4 * mib);
    assert.equal((await produceTo(client, { topic: 'orders', partition, records })).errorCode, 0);
  }
  for (const version of oldVersions) {
    const offsets = [0, 0, 0, 0];
    const rounds: number[][] = [];
    while (offsets.includes(0)) {
      const asked = offsets.map((offset, partition) => ({ partition, offset }));
      const found = await fetchOld(client, version, asked, { maxBytes: 10 * mib });
      const counts = found.map(({ records }) => recordsOf(records).length);
      rounds.push(counts);
      for (const [partition, count] of counts.entries()) offsets[partition]! += count;
    }
    assert.deepEqual(rounds, [
      [1, 1, 0, 0],
      [0, 0, 1, 1],
    ]);
  }
});

test('what is large or compressed is made elsewhere, in the order of the partitions', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 4);
  const client = await node.connect();
  const many = Array.from({ length: 2000 }, (_, i) => `value ${i} ${'x'.repeat(50)}`);
  const batches = [
    batchOf(['small']),
    batchOf(many, { compression: Compression.zstd }),
    batchOf(many),
    batchOf(['packed'], { compression: Compression.gzip }),
  ];
  for (const [partition, records] of batches.entries()) {
    assert.equal((await produceTo(client, { topic: 'orders', partition, records })).errorCode, 0);
  }
  const convert = t.mock.method(node.broker.storedBatches, 'convert');
  const valuesOf = (found: Awaited<ReturnType<typeof fetchOld>>) =>
    found.map(({ records }) => recordsOf(records).map(([, value]) => value));
  for (const version of oldVersions) {
    convert.mock.resetCalls();
    const asked = batches.map((_, partition) => ({ partition, offset: 0 }));
    const found = await fetchOld(client, version, asked, { maxBytes: 10_000_000 });
    assert.deepEqual(valuesOf(found), [['small'], many, many, ['packed']]);
    assert.equal(convert.mock.callCount(), 3);
  }
});

test('while an old fetch is made ready other connections are served', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const [old, other] = [await node.connect(), await node.connect()];
  const records = batchOf(['packed'], { compression: Compression.gzip });
  await produceTo(other, { topic: 'orders', records });
  const { storedBatches } = node.broker;
  const convert = storedBatches.convert.bind(storedBatches);
  let goOn!: () => void;
  const gate = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const held = t.mock.method(
    storedBatches,
    'convert',
    async (...args: Parameters<typeof convert>) => {
      await gate;
      return convert(...args);
    },
  );
  const waiting = fetchOld(old, 2, [{ offset: 0 }]);
  await until(() => held.mock.callCount() === 1, 'it is to be made ready');
  await produceTo(other, { topic: 'orders', records: batchOf(['later']) });
  goOn();
  const [partition] = await waiting;
  assert.deepEqual(recordsOf(partition?.records), [[0, 'packed']]);
});
