/**
 * Versions that Kafka 4 dropped (KIP-896) and old clients still send; here what is special about
 * them. Fetch has a file of its own, and the tests of each API go through all of its versions.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { codecs } from '../../src/core/codecs.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import {
  listOffsetsRequest,
  listOffsetsResponse,
} from '../../src/protocol/schema/02-list-offsets.ts';
import {
  offsetCommitRequest,
  offsetCommitResponse,
} from '../../src/protocol/schema/08-offset-commit.ts';
import {
  offsetFetchRequest,
  offsetFetchResponse,
} from '../../src/protocol/schema/09-offset-fetch.ts';
import {
  apiVersionsRequest,
  apiVersionsResponse,
} from '../../src/protocol/schema/18-api-versions.ts';
import {
  createTopicsRequest,
  createTopicsResponse,
} from '../../src/protocol/schema/19-create-topics.ts';
import {
  deleteTopicsRequest,
  deleteTopicsResponse,
} from '../../src/protocol/schema/20-delete-topics.ts';
import {
  offsetForLeaderEpochRequest,
  offsetForLeaderEpochResponse,
} from '../../src/protocol/schema/23-offset-for-leader-epoch.ts';
import { Member } from './group-client.ts';
import { batchOf, produceTo } from './records.ts';
import { startTestNode, type TestClient, until } from './support.ts';

test('old librdkafka finds every version that it looks for', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const { apiKeys } = await client.ask(apiVersionsRequest, apiVersionsResponse, 0, {});
  const ranges = new Map(
    apiKeys.map(({ apiKey, minVersion, maxVersion }) => [apiKey, [minVersion, maxVersion]]),
  );
  // API, and the versions that a feature wants (rdkafka_feature.c before 2.11).
  for (const [apiKey, from, to] of [
    [0, 1, 3],
    [0, 7, 7],
    [1, 1, 4],
    [1, 10, 10],
    [2, 1, 1],
    [8, 1, 2],
    [9, 1, 1],
    [10, 0, 0],
    [11, 0, 0],
    [12, 0, 0],
    [13, 0, 0],
    [14, 0, 0],
    [18, 0, 0],
    [22, 0, 0],
  ] as const) {
    const [min, max] = ranges.get(apiKey)!;
    assert.ok(min! <= from && to <= max!, `API ${apiKey} ${from}..${to}`);
  }
});

async function listOld(
  client: TestClient,
  timestamp: number,
  maxNumOffsets: number,
  topic = 'orders',
) {
  const { topics } = await client.ask(listOffsetsRequest, listOffsetsResponse, 0, {
    replicaId: -1,
    topics: [{ name: topic, partitions: [{ partitionIndex: 0, timestamp, maxNumOffsets }] }],
  });
  const { errorCode, oldStyleOffsets } = topics[0]!.partitions[0]!;
  return errorCode === ErrorCode.NONE ? oldStyleOffsets : errorCode;
}

test('ListOffsets 0 gives the newest offsets that are asked for, newest first', async (t) => {
  const node = await startTestNode(t);
  const topic = await node.createTopic('orders');
  const client = await node.connect();
  const [latest, earliest] = [-1, -2];
  assert.deepEqual(await listOld(client, latest, 2), [0], 'of an empty partition there is one');
  for (let i = 0; i < 5; i++) {
    const records = [{ key: null, value: Buffer.from('x'), timestamp: 1000 + i * 100 }];
    const produced = await produceTo(client, {
      topic: 'orders',
      records: buildBatch({ records }, codecs),
    });
    assert.equal(produced.baseOffset, i);
  }
  await node.broker.logStarts.moveTo(new Map([[topic.partitions[0]!, 1]]));
  assert.deepEqual(await listOld(client, latest, 1), [5]);
  assert.deepEqual(await listOld(client, latest, 10), [5, 1]);
  assert.deepEqual(await listOld(client, earliest, 1), [1]);
  assert.deepEqual(await listOld(client, earliest, 10), [1]);
  assert.deepEqual(await listOld(client, 1201, 2), [3, 1]);
  assert.deepEqual(await listOld(client, 1201, 1), [3]);
  assert.deepEqual(await listOld(client, 0, 2), [1]);
  assert.deepEqual(await listOld(client, 5000, 2), [5, 1], 'later than all records');
  for (const count of [0, -1, -(2 ** 31)])
    assert.deepEqual(await listOld(client, latest, count), []);
  const unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
  assert.equal(await listOld(client, latest, 1, 'nothing'), unknown);
  assert.equal(await listOld(client, -3, 1), ErrorCode.UNSUPPORTED_VERSION);
});

test('OffsetForLeaderEpoch 0 and 1 answer without knowing the epoch of the client', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  await produceTo(client, { topic: 'orders', records: batchOf(['a', 'b']) });
  const epoch = node.broker.replica.leaderEpoch;
  const ask = async (version: number, leaderEpoch: number) => {
    const request = { topics: [{ topic: 'orders', partitions: [{ partition: 0, leaderEpoch }] }] };
    const { topics } = await client.ask(
      offsetForLeaderEpochRequest,
      offsetForLeaderEpochResponse,
      version,
      request,
    );
    const { errorCode, endOffset, leaderEpoch: found } = topics[0]!.partitions[0]!;
    return [errorCode, endOffset, found];
  };
  assert.deepEqual(await ask(0, epoch), [ErrorCode.NONE, 2, -1]);
  assert.deepEqual(await ask(1, epoch), [ErrorCode.NONE, 2, epoch]);
  for (const version of [0, 1]) {
    assert.deepEqual(await ask(version, epoch + 1), [ErrorCode.NONE, -1, -1]);
    assert.deepEqual(await ask(version, -1), [ErrorCode.NONE, -1, -1]);
  }
});

test('a consumer of 0.8 commits and fetches offsets without a group', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 2);
  const client = await node.connect();
  const partitions = [
    { partitionIndex: 0, committedOffset: 3, committedMetadata: 'm' },
    { partitionIndex: 9, committedOffset: 4, committedMetadata: '' },
  ];
  const committed = await client.ask(offsetCommitRequest, offsetCommitResponse, 0, {
    groupId: 'old',
    topics: [{ name: 'orders', partitions }],
  });
  assert.deepEqual(
    committed.topics[0]?.partitions.map(({ errorCode }) => errorCode),
    [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
  );
  const found = await client.ask(offsetFetchRequest, offsetFetchResponse, 0, {
    groupId: 'old',
    topics: [{ name: 'orders', partitionIndexes: [0, 1] }],
  });
  assert.deepEqual(
    found.topics[0]?.partitions.map(({ committedOffset, metadata }) => [committedOffset, metadata]),
    [
      [3, 'm'],
      [-1, ''],
    ],
  );
});

test('members of version 0 have their session timeout for a rebalance', async (t) => {
  const node = await startTestNode(t);
  const group = { groupId: 'group', sessionTimeoutMs: 5000, rebalanceTimeoutMs: 60_000 };
  const slow = new Member(await node.connect(), group);
  const other = new Member(await node.connect(), group);
  const joined = await slow.join(0);
  assert.deepEqual([joined.leader, joined.protocolName], [slow.memberId, 'range']);
  await slow.sync({ [slow.memberId]: 'all' }, 0);
  assert.equal(slow.assignment, 'all');
  const joining = other.join(0);
  await until(async () => (await slow.heartbeat(0)) !== ErrorCode.NONE, 'the round begins');
  assert.equal(await slow.heartbeat(0), ErrorCode.REBALANCE_IN_PROGRESS);
  // It does not come back; after five seconds the round ends without it.
  node.clock.advance(4000);
  assert.equal(await slow.heartbeat(0), ErrorCode.REBALANCE_IN_PROGRESS);
  node.clock.advance(1500);
  const { leader } = await joining;
  assert.equal(leader, other.memberId);
  assert.equal(await slow.heartbeat(0), ErrorCode.UNKNOWN_MEMBER_ID);
});

test('topics are made and deleted, and errors told, before there were messages', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const create = async (version: number, name: string, numPartitions: number) => {
    const topic = { name, numPartitions, replicationFactor: 1, assignments: [], configs: [] };
    const { topics } = await client.ask(createTopicsRequest, createTopicsResponse, version, {
      topics: [topic],
      timeoutMs: 1000,
    });
    return [topics[0]?.errorCode, topics[0]?.errorMessage];
  };
  // What version 0 has no field for is absent, whatever is wrong.
  assert.deepEqual(await create(0, 'orders', 2), [ErrorCode.NONE, '']);
  assert.deepEqual(await create(0, 'orders', 2), [ErrorCode.TOPIC_ALREADY_EXISTS, '']);
  assert.deepEqual(await create(0, 'a b', 2), [ErrorCode.INVALID_TOPIC_EXCEPTION, '']);
  const [errorCode, message] = await create(1, 'more', 0);
  assert.equal(errorCode, ErrorCode.INVALID_PARTITIONS);
  assert.match(String(message), /non-positive/);
  const remove = async () => {
    const request = { topicNames: ['orders'], timeoutMs: 1000 };
    const { responses } = await client.ask(deleteTopicsRequest, deleteTopicsResponse, 0, request);
    return responses.map((response) => [response.name, response.errorCode]);
  };
  assert.deepEqual(await remove(), [['orders', ErrorCode.NONE]]);
  assert.deepEqual(await remove(), [['orders', ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]]);
});
