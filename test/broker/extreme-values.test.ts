/** Requests that are legal and extreme: they are answered, soon, and cost nobody else anything. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { fetchRequest, fetchResponse } from '../../src/protocol/schema/01-fetch.ts';
import {
  listOffsetsRequest,
  listOffsetsResponse,
} from '../../src/protocol/schema/02-list-offsets.ts';
import { metadataRequest, metadataResponse } from '../../src/protocol/schema/03-metadata.ts';
import {
  offsetCommitRequest,
  offsetCommitResponse,
} from '../../src/protocol/schema/08-offset-commit.ts';
import {
  offsetFetchRequest,
  offsetFetchResponse,
} from '../../src/protocol/schema/09-offset-fetch.ts';
import { joinGroupRequest, joinGroupResponse } from '../../src/protocol/schema/11-join-group.ts';
import {
  describeGroupsRequest,
  describeGroupsResponse,
} from '../../src/protocol/schema/15-describe-groups.ts';
import {
  createTopicsRequest,
  createTopicsResponse,
} from '../../src/protocol/schema/19-create-topics.ts';
import {
  deleteTopicsRequest,
  deleteTopicsResponse,
} from '../../src/protocol/schema/20-delete-topics.ts';
import {
  deleteRecordsRequest,
  deleteRecordsResponse,
} from '../../src/protocol/schema/21-delete-records.ts';
import {
  describeConfigsRequest,
  describeConfigsResponse,
} from '../../src/protocol/schema/32-describe-configs.ts';
import {
  createPartitionsRequest,
  createPartitionsResponse,
} from '../../src/protocol/schema/37-create-partitions.ts';
import {
  incrementalAlterConfigsRequest,
  incrementalAlterConfigsResponse,
} from '../../src/protocol/schema/44-incremental-alter-configs.ts';
import { ZERO_UUID } from '../../src/protocol/uuid.ts';
import { startWorld } from './bad-input-world.ts';
import { batchOf, fetchFrom, produceTo, recordsOf } from './records.ts';
import { until } from './support.ts';

const int32Max = 2 ** 31 - 1;
const int32Min = -(2 ** 31);
const int64Max = 2n ** 63n - 1n;
const int64Min = -(2n ** 63n);
const mib = 1024 * 1024;

/** The time that `ask` may take; generous, since the machine may be busy. */
async function quickly<T>(what: string, ask: () => Promise<T>): Promise<T> {
  const startMs = performance.now();
  const answer = await ask();
  const elapsedMs = performance.now() - startMs;
  assert.ok(elapsedMs < 5000, `${what} took ${elapsedMs} ms`);
  return answer;
}

test('no number of partitions is made that there is no room for', async (t) => {
  const world = await startWorld(t, { 'max.partitions': 100 });
  const client = await world.node.connect();
  await world.node.createTopic('small');
  const create = (numPartitions: number, replicationFactor = 1) =>
    quickly(`${numPartitions} partitions`, async () => {
      const { topics } = await client.ask(createTopicsRequest, createTopicsResponse, 5, {
        topics: [{ name: 'huge', numPartitions, replicationFactor, assignments: [], configs: [] }],
        timeoutMs: int32Max,
      });
      return topics[0]!.errorCode;
    });
  for (const count of [int32Max, 2 ** 30, 10_001]) {
    assert.equal(await create(count), ErrorCode.POLICY_VIOLATION);
  }
  for (const count of [int32Min, -2, 0, 100, 10_000]) {
    assert.equal(await create(count), ErrorCode.INVALID_PARTITIONS);
  }
  for (const factor of [32_767, -32_768, 0]) {
    assert.equal(await create(1, factor), ErrorCode.INVALID_REPLICATION_FACTOR);
  }
  const grow = async (count: number) => {
    const { results } = await client.ask(createPartitionsRequest, createPartitionsResponse, 3, {
      topics: [{ name: 'small', count, assignments: null }],
      timeoutMs: int32Min,
      validateOnly: false,
    });
    return results[0]!.errorCode;
  };
  assert.equal(await grow(int32Max), ErrorCode.POLICY_VIOLATION);
  for (const count of [int32Min, 0, 1, 101]) {
    assert.equal(await grow(count), ErrorCode.INVALID_PARTITIONS, `${count}`);
  }
  await world.finish();
});

test('topics that are made by their mention are bounded too', async (t) => {
  const world = await startWorld(t, { 'max.partitions': 50 });
  const client = await world.node.connect();
  const { topics } = await client.ask(metadataRequest, metadataResponse, 9, {
    topics: Array.from({ length: 1000 }, (_, i) => ({ name: `auto-${i}` })),
    allowAutoTopicCreation: true,
  });
  const made = topics.filter(({ errorCode }) => errorCode === ErrorCode.NONE);
  // One partition is the good client's.
  assert.equal(made.length, 49);
  assert.equal(topics.length, 1000);
  assert.equal(world.node.broker.topics.partitionCount, 50);
  await world.finish();
});

test('metadata of 100,000 topics that are not there, of one again and again, of none', async (t) => {
  const world = await startWorld(t, { 'auto.create.topics.enable': false });
  await world.node.createTopic('wide', 1000);
  const client = await world.node.connect();
  const ask = (version: number, names: readonly string[]) =>
    quickly(`${names.length} topics`, async () => {
      const topics = names.map((name) => ({ name }));
      return (await client.ask(metadataRequest, metadataResponse, version, { topics })).topics;
    });
  for (const version of [1, 13]) {
    const unknown = Array.from({ length: 100_000 }, (_, i) => `topic-${i}`);
    const found = await ask(version, unknown);
    assert.deepEqual(
      [found.length, found.at(-1)?.errorCode],
      [100_000, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    );
    const repeated = await ask(version, Array<string>(100_000).fill('wide'));
    assert.deepEqual([repeated.length, repeated[0]?.partitions.length], [1, 1000]);
    const empty = await ask(version, ['']);
    assert.equal(empty[0]?.errorCode, ErrorCode.INVALID_TOPIC_EXCEPTION);
  }
  await world.finish();
});

test('fetch takes sizes and times at their limits', async (t) => {
  const world = await startWorld(t);
  await world.node.createTopic('orders', 2);
  const client = await world.node.connect();
  await produceTo(client, { topic: 'orders', records: batchOf(['a']) });
  await produceTo(client, { topic: 'orders', records: batchOf(['b']) });
  for (const bytesMax of [int32Max, 1, 0, -1, int32Min]) {
    for (const maxBytes of [int32Max, 1, 0, -1, int32Min]) {
      for (const maxWaitMs of [0, -1, int32Min]) {
        const { responses } = await fetchFrom(client, [{ topic: 'orders', offset: 0, bytesMax }], {
          maxBytes,
          maxWaitMs,
          minBytes: int32Max,
        });
        // At least one batch, so that a consumer gets on with any limits (KIP-74).
        const records = recordsOf(responses[0]?.partitions[0]?.records);
        const isRoomy = bytesMax === int32Max && maxBytes === int32Max;
        assert.equal(records.length, isRoomy ? 2 : 1, `${bytesMax} ${maxBytes}`);
      }
    }
  }
  for (const minBytes of [0, -1, int32Min]) {
    const answer = await fetchFrom(client, [{ topic: 'orders', offset: 2 }], {
      minBytes,
      maxWaitMs: int32Max,
    });
    assert.equal(answer.responses[0]?.partitions[0]?.errorCode, ErrorCode.NONE);
  }
  await world.finish();
});

test('a fetch that would wait for weeks waits, and ends with its connection', async (t) => {
  const world = await startWorld(t);
  await world.node.createTopic('orders');
  const client = await world.node.connect();
  const waiting = fetchFrom(client, [{ topic: 'orders', offset: 0 }], {
    maxWaitMs: int32Max,
    minBytes: int32Max,
  });
  const { broker } = world.node;
  await until(() => broker.parkedCount > 0, 'the fetch is parked');
  client.close();
  await assert.rejects(waiting, /connection closed/);
  await until(() => broker.parkedCount === 0, 'nothing is parked any more');
  await world.finish();
});

test('offsets and partitions at the limits of their types are errors', async (t) => {
  const world = await startWorld(t);
  await world.node.createTopic('orders');
  const client = await world.node.connect();
  const offsets = [int64Max, int64Min, 2n ** 53n, -1n, 1n];
  for (const fetchOffset of offsets) {
    const { responses } = await client.ask(fetchRequest, fetchResponse, 11, {
      maxWaitMs: 0,
      minBytes: 0,
      maxBytes: mib,
      topics: [
        { topic: 'orders', partitions: [{ partition: 0, fetchOffset, partitionMaxBytes: mib }] },
      ],
      forgottenTopicsData: [],
    });
    const [partition] = responses[0]!.partitions;
    assert.equal(partition?.errorCode, ErrorCode.OFFSET_OUT_OF_RANGE, `${fetchOffset}`);
    const deleted = await client.ask(deleteRecordsRequest, deleteRecordsResponse, 2, {
      topics: [
        {
          name: 'orders',
          partitions: [{ partitionIndex: 0, offset: fetchOffset === -1n ? -2n : fetchOffset }],
        },
      ],
      timeoutMs: -1,
    });
    assert.equal(deleted.topics[0]?.partitions[0]?.errorCode, ErrorCode.OFFSET_OUT_OF_RANGE);
  }
  for (const partitionIndex of [int32Max, int32Min, -1, 1]) {
    const fetched = await fetchFrom(client, [
      { topic: 'orders', partition: partitionIndex, offset: 0 },
    ]);
    const unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    assert.equal(fetched.responses[0]?.partitions[0]?.errorCode, unknown);
    const to = { topic: 'orders', partition: partitionIndex, records: batchOf(['a']) };
    assert.equal((await produceTo(client, to)).errorCode, unknown);
    const committed = await commit(client, partitionIndex, 1);
    assert.equal(committed, unknown);
  }
  for (const offset of [int64Max, int64Min, 2n ** 53n, -(2n ** 53n)]) {
    assert.equal(await commit(client, 0, offset), ErrorCode.INVALID_COMMIT_OFFSET_SIZE);
  }
  for (const offset of [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, -1, -2]) {
    assert.equal(await commit(client, 0, offset), ErrorCode.NONE);
    const { topics } = await client.ask(offsetFetchRequest, offsetFetchResponse, 5, {
      groupId: 'group',
      topics: [{ name: 'orders', partitionIndexes: [0] }],
    });
    assert.equal(topics[0]?.partitions[0]?.committedOffset, offset);
  }
  await world.finish();
});

async function commit(
  client: Parameters<typeof produceTo>[0],
  partitionIndex: number,
  committedOffset: number | bigint,
): Promise<number> {
  const { topics } = await client.ask(offsetCommitRequest, offsetCommitResponse, 4, {
    groupId: 'group',
    retentionTimeMs: int64Max,
    topics: [
      {
        name: 'orders',
        partitions: [{ partitionIndex, committedOffset, committedMetadata: null }],
      },
    ],
  });
  return topics[0]!.partitions[0]!.errorCode;
}

test('timestamps at the limits of their type find an offset or none', async (t) => {
  const world = await startWorld(t);
  await world.node.createTopic('orders');
  const client = await world.node.connect();
  await produceTo(client, { topic: 'orders', records: batchOf(['a']) });
  for (const [timestamp, errorCode, offset] of [
    [int64Max, ErrorCode.NONE, -1],
    [0n, ErrorCode.NONE, 0],
    [int64Min, ErrorCode.UNSUPPORTED_VERSION, -1],
    [-100n, ErrorCode.UNSUPPORTED_VERSION, -1],
  ] as const) {
    const { topics } = await client.ask(listOffsetsRequest, listOffsetsResponse, 7, {
      replicaId: -1,
      topics: [{ name: 'orders', partitions: [{ partitionIndex: 0, timestamp }] }],
    });
    const [partition] = topics[0]!.partitions;
    assert.deepEqual([partition?.errorCode, partition?.offset], [errorCode, offset]);
  }
  await world.finish();
});

test('what is named again and again is described once', async (t) => {
  const world = await startWorld(t);
  const client = await world.node.connect();
  const many = 20_000;
  const configs = await quickly('configurations', () =>
    client.ask(describeConfigsRequest, describeConfigsResponse, 4, {
      resources: Array.from({ length: many }, () => ({
        resourceType: 4,
        resourceName: '0',
        configurationKeys: null,
      })),
      includeSynonyms: true,
      includeDocumentation: true,
    }),
  );
  assert.equal(configs.results.length, 1);
  const described = await quickly('groups', () =>
    client.ask(describeGroupsRequest, describeGroupsResponse, 5, {
      groups: Array<string>(many).fill('group'),
    }),
  );
  assert.equal(described.groups.length, 1);
  const offsets = await quickly('offsets', () =>
    client.ask(offsetFetchRequest, offsetFetchResponse, 8, {
      groups: Array.from({ length: many }, () => ({ groupId: 'group', topics: null })),
    }),
  );
  assert.equal(offsets.groups.length, 1);
  const altered = await quickly('changes', () =>
    client.ask(incrementalAlterConfigsRequest, incrementalAlterConfigsResponse, 1, {
      resources: Array.from({ length: many }, () => ({
        resourceType: 2,
        resourceName: 'good-topic',
        configs: [],
      })),
      validateOnly: false,
    }),
  );
  assert.ok(altered.responses.every(({ errorCode }) => errorCode === ErrorCode.INVALID_REQUEST));
  await world.finish();
});

test('many things at once: topics to delete, offsets to find, records to delete', async (t) => {
  const world = await startWorld(t);
  const client = await world.node.connect();
  await world.node.createTopic('orders');
  await produceTo(client, { topic: 'orders', records: batchOf(['a', 'b', 'c']) });
  const names = Array.from({ length: 5000 }, (_, i) => `topic-${i}`);
  const created = await quickly('creation', () =>
    client.ask(createTopicsRequest, createTopicsResponse, 4, {
      topics: names.map((name) => ({
        name,
        numPartitions: 1,
        replicationFactor: 1,
        assignments: [],
        configs: [],
      })),
      timeoutMs: 0,
    }),
  );
  assert.ok(created.topics.every(({ errorCode }) => errorCode === ErrorCode.NONE));
  const deleted = await quickly('deletion', () =>
    client.ask(deleteTopicsRequest, deleteTopicsResponse, 5, { topicNames: names, timeoutMs: 0 }),
  );
  assert.ok(deleted.responses.every(({ errorCode }) => errorCode === ErrorCode.NONE));
  const found = await quickly('offsets', () =>
    client.ask(listOffsetsRequest, listOffsetsResponse, 5, {
      replicaId: -1,
      topics: [
        {
          name: 'orders',
          partitions: Array.from({ length: 2000 }, () => ({ partitionIndex: 0, timestamp: 1000 })),
        },
      ],
    }),
  );
  const { INVALID_REQUEST } = ErrorCode;
  assert.ok(found.topics[0]?.partitions.every(({ errorCode }) => errorCode === INVALID_REQUEST));
  const emptied = await quickly('records', () =>
    client.ask(deleteRecordsRequest, deleteRecordsResponse, 2, {
      topics: [
        {
          name: 'orders',
          partitions: Array.from({ length: 50_000 }, (_, i) => ({
            partitionIndex: 0,
            offset: i % 3,
          })),
        },
      ],
      timeoutMs: 0,
    }),
  );
  assert.ok(emptied.topics[0]?.partitions.every(({ lowWatermark }) => lowWatermark === 1));
  await world.finish();
});

test('a member may bring thousands of protocols and megabytes of metadata', async (t) => {
  const world = await startWorld(t);
  const client = await world.node.connect();
  const join = (groupId: string, protocols: { name: string; metadata: Buffer }[]) =>
    quickly(groupId, () =>
      client.ask(joinGroupRequest, joinGroupResponse, 3, {
        groupId,
        sessionTimeoutMs: 10_000,
        rebalanceTimeoutMs: int32Min,
        memberId: '',
        protocolType: 'consumer',
        protocols,
      }),
    );
  const metadata = Buffer.alloc(8);
  const many = Array.from({ length: 10_000 }, (_, i) => ({ name: `p${i}`, metadata }));
  const first = await join('many', many);
  assert.deepEqual([first.errorCode, first.protocolName], [ErrorCode.NONE, 'p0']);
  const same = await join(
    'same',
    [...many, ...many].map((each) => ({ ...each, name: 'same' })),
  );
  assert.deepEqual([same.errorCode, same.protocolName], [ErrorCode.NONE, 'same']);
  const large = await join('large', [{ name: 'range', metadata: Buffer.alloc(20 * mib) }]);
  assert.equal(large.members[0]?.metadata.length, 20 * mib);
  await world.finish();
});

test('when sessions have too many partitions the oldest has to go, or there is no new one', async (t) => {
  const world = await startWorld(t);
  const client = await world.node.connect();
  const { broker, clock } = world.node;
  const large = broker.fetchSessions.create(false, 1, clock.monotonicMs())!;
  const topic = large.partitions.topicNumber({ name: 'x', id: ZERO_UUID });
  for (let i = 0; i <= 1_000_000; i++) large.partitions.add(topic, i, -1);
  const open = (sessionId = 0, sessionEpoch = 0) =>
    fetchFrom(client, [{ topic: 'good-topic', offset: 0 }], { sessionId, sessionEpoch });
  assert.equal((await open()).sessionId, 0);
  const added = await open(large.id, 1);
  assert.equal(added.errorCode, ErrorCode.FETCH_SESSION_ID_NOT_FOUND);
  const { sessionId } = await open();
  assert.notEqual(sessionId, 0);
  await world.finish();
});
