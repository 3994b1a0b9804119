import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { fetchRequest, fetchResponse } from '../../src/protocol/schema/01-fetch.ts';
import { batchOf, fetchFrom, produceTo, recordsOf } from './records.ts';
import { startTestNode, type TestClient, until } from './support.ts';

async function fill(client: TestClient, topic: string, count: number, partition = 0) {
  for (let i = 0; i < count; i++) {
    await produceTo(client, { topic, partition, records: batchOf([`${partition}-${i}`]) });
  }
}

test('an offset beyond the log or below its start is out of range; its end is not', async (t) => {
  const node = await startTestNode(t);
  const topic = await node.createTopic('orders');
  const client = await node.connect();
  await fill(client, 'orders', 4);
  const [partition] = topic.partitions;
  await node.broker.topics.moveLogStarts([{ partition: partition!, offset: 2, droppedBytes: 0 }]);
  const errorAt = async (offset: number) => {
    const answer = await fetchFrom(client, [{ topic: 'orders', offset }]);
    const { errorCode, highWatermark, logStartOffset } = answer.responses[0]!.partitions[0]!;
    return [errorCode, highWatermark, logStartOffset];
  };
  assert.deepEqual(await errorAt(1), [ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1]);
  assert.deepEqual(await errorAt(2), [ErrorCode.NONE, 4, 2]);
  assert.deepEqual(await errorAt(4), [ErrorCode.NONE, 4, 2]);
  assert.deepEqual(await errorAt(5), [ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1]);
  assert.deepEqual(await errorAt(2 ** 60), [ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1]);
  assert.deepEqual(await errorAt(-1), [ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1]);
});

test('unknown topics and wrong leader epochs are errors of their partition', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  // A second term, so that there is a leader epoch below the present one.
  await node.restart();
  const client = await node.connect();
  const epoch = node.broker.replica.leaderEpoch;
  const errorOf = async (topic: string, leaderEpoch: number) => {
    const answer = await fetchFrom(client, [{ topic, offset: 0, leaderEpoch }]);
    return answer.responses[0]!.partitions[0]!.errorCode;
  };
  assert.equal(await errorOf('nothing', -1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  assert.equal(await errorOf('orders', epoch), ErrorCode.NONE);
  assert.equal(await errorOf('orders', epoch - 1), ErrorCode.FENCED_LEADER_EPOCH);
  assert.equal(await errorOf('orders', epoch + 1), ErrorCode.UNKNOWN_LEADER_EPOCH);
  const byId = await client.ask(fetchRequest, fetchResponse, 13, {
    maxWaitMs: 0,
    minBytes: 1,
    topics: [
      {
        topicId: 'cd'.repeat(16),
        partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 100 }],
      },
    ],
    forgottenTopicsData: [],
  });
  assert.equal(byId.responses[0]?.partitions[0]?.errorCode, ErrorCode.UNKNOWN_TOPIC_ID);
});

test('the first batch is given whole however small the limits, later ones keep to them', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 2);
  const client = await node.connect();
  await fill(client, 'orders', 3, 0);
  await fill(client, 'orders', 3, 1);
  const batchBytes = batchOf(['0-0']).length;
  const countsFor = async (bytesMax: number, maxBytes: number) => {
    const answer = await fetchFrom(
      client,
      [0, 1].map((partition) => ({ topic: 'orders', partition, offset: 0, bytesMax })),
      { maxBytes },
    );
    const partitions = answer.responses.flatMap((topic) => topic.partitions);
    return partitions.map(({ records }) => recordsOf(records).length);
  };
  assert.deepEqual(await countsFor(1, 1), [1, 0]);
  assert.deepEqual(await countsFor(1, 1_000_000), [1, 0]);
  assert.deepEqual(await countsFor(batchBytes * 2, 1_000_000), [2, 2]);
  assert.deepEqual(await countsFor(1_000_000, batchBytes * 4 + 1), [3, 1]);
});

test('a fetch waits for enough bytes, and for no longer than it said', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const consumer = await node.connect();
  const producer = await node.connect();
  const batchBytes = batchOf(['0-0']).length;
  let isAnswered = false;
  const waiting = fetchFrom(consumer, [{ topic: 'orders', offset: 0 }], {
    maxWaitMs: 60_000,
    minBytes: batchBytes * 2,
  }).then((answer) => {
    isAnswered = true;
    return answer;
  });
  await fill(producer, 'orders', 1);
  assert.equal(isAnswered, false);
  await produceTo(producer, { topic: 'orders', records: batchOf(['0-1']) });
  const answer = await waiting;
  assert.equal(recordsOf(answer.responses[0]?.partitions[0]?.records).length, 2);

  const inVain = fetchFrom(consumer, [{ topic: 'orders', offset: 2 }], { maxWaitMs: 60_000 });
  const parked = () => node.broker.parkedCount === 1;
  await until(parked, 'the fetch is parked');
  node.clock.advance(60_001);
  assert.equal((await inVain).responses[0]?.partitions[0]?.records?.length, 0);
});

test('a fetch that waits is answered when its topic goes, and forgotten with its client', async (t) => {
  const node = await startTestNode(t);
  const topic = await node.createTopic('orders');
  const client = await node.connect();
  const waiting = fetchFrom(client, [{ topic: 'orders', offset: 0 }], { maxWaitMs: 60_000 });
  await until(() => node.broker.parkedCount === 1, 'the fetch is parked');
  await node.broker.topics.delete(topic);
  const answer = await waiting;
  assert.equal(answer.responses[0]?.partitions[0]?.errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  await node.createTopic('others');
  const lost = fetchFrom(client, [{ topic: 'others', offset: 0 }], { maxWaitMs: 60_000 });
  await until(() => node.broker.parkedCount === 1, 'the fetch is parked');
  client.close();
  await assert.rejects(lost);
  await until(() => node.broker.parkedCount === 0, 'nothing is parked');
});

test('READ_COMMITTED has a list of aborted transactions, READ_UNCOMMITTED has none', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders');
  const client = await node.connect();
  const abortedFor = async (isolationLevel: number) => {
    const answer = await fetchFrom(client, [{ topic: 'orders', offset: 0 }], { isolationLevel });
    return answer.responses[0]?.partitions[0]?.abortedTransactions;
  };
  assert.equal(await abortedFor(0), null);
  assert.deepEqual(await abortedFor(1), []);
});

test('old records come from the files when memory holds them no more', async (t) => {
  const node = await startTestNode(t, {
    settings: { 'journal.recent.bytes': 0, 'journal.file.extents.max': 100 },
  });
  await node.createTopic('orders', 2);
  const client = await node.connect();
  // In waves: a group that is written at once goes into one file, however many batches it has.
  for (let wave = 0; wave < 8; wave++) {
    await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        produceTo(client, { topic: 'orders', partition: i % 2, records: batchOf([`v${i}`]) }),
      ),
    );
  }
  await until(() => node.broker.replica.journal.logFiles.length > 3, 'the journal has files');
  for (const partition of [0, 1]) {
    const answer = await fetchFrom(client, [{ topic: 'orders', partition, offset: 0 }]);
    const records = recordsOf(answer.responses[0]?.partitions[0]?.records);
    assert.deepEqual(
      records.map(([offset]) => offset),
      Array.from({ length: 200 }, (_, i) => i),
    );
  }
});

interface SessionRequest {
  readonly sessionId: number;
  readonly sessionEpoch: number;
  readonly partitions?: readonly (readonly [partition: number, offset: number])[];
  readonly forgotten?: readonly number[];
  readonly maxBytes?: number;
}

async function fetchInSession(client: TestClient, request: SessionRequest) {
  const { partitions = [], forgotten = [] } = request;
  const answer = await client.ask(fetchRequest, fetchResponse, 11, {
    maxWaitMs: 0,
    minBytes: 1,
    sessionId: request.sessionId,
    sessionEpoch: request.sessionEpoch,
    maxBytes: request.maxBytes ?? 1_000_000,
    topics:
      partitions.length === 0
        ? []
        : [
            {
              topic: 'orders',
              partitions: partitions.map(([partition, fetchOffset]) => ({
                partition,
                fetchOffset,
                partitionMaxBytes: 1_000_000,
              })),
            },
          ],
    forgottenTopicsData:
      forgotten.length === 0 ? [] : [{ topic: 'orders', partitions: [...forgotten] }],
  });
  const found = answer.responses.flatMap((topic) => topic.partitions);
  return {
    errorCode: answer.errorCode,
    sessionId: answer.sessionId,
    partitions: found.map(({ partitionIndex, records }) => [
      partitionIndex,
      recordsOf(records).length,
    ]),
  };
}

test('a fetch session tells only what is new (KIP-227)', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 3);
  const client = await node.connect();
  const all = [0, 1, 2].map((partition) => [partition, 0] as const);
  const full = await fetchInSession(client, { sessionId: 0, sessionEpoch: 0, partitions: all });
  const { sessionId } = full;
  assert.notEqual(sessionId, 0);
  assert.deepEqual(full.partitions, [
    [0, 0],
    [1, 0],
    [2, 0],
  ]);
  const quiet = await fetchInSession(client, { sessionId, sessionEpoch: 1 });
  assert.deepEqual(quiet, { errorCode: 0, sessionId, partitions: [] });
  await fill(client, 'orders', 2, 1);
  const news = await fetchInSession(client, { sessionId, sessionEpoch: 2 });
  assert.deepEqual(news.partitions, [[1, 2]]);
  // The position has not moved: the same records again.
  const again = await fetchInSession(client, { sessionId, sessionEpoch: 3 });
  assert.deepEqual(again.partitions, [[1, 2]]);
  const moved = await fetchInSession(client, {
    sessionId,
    sessionEpoch: 4,
    partitions: [[1, 2]],
  });
  assert.deepEqual(moved.partitions, []);
  await fill(client, 'orders', 1, 0);
  await fill(client, 'orders', 1, 2);
  const rest = await fetchInSession(client, { sessionId, sessionEpoch: 5, forgotten: [0] });
  assert.deepEqual(rest.partitions, [[2, 1]]);
});

test('a fetch session is refused by unknown id and wrong epoch, and ends when told so', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 1);
  const client = await node.connect();
  const partitions = [[0, 0]] as const;
  const { sessionId } = await fetchInSession(client, { sessionId: 0, sessionEpoch: 0, partitions });
  const wrong = await fetchInSession(client, { sessionId, sessionEpoch: 5 });
  assert.equal(wrong.errorCode, ErrorCode.INVALID_FETCH_SESSION_EPOCH);
  const last = await fetchInSession(client, { sessionId, sessionEpoch: -1, partitions });
  assert.deepEqual(last, { errorCode: 0, sessionId: 0, partitions: [[0, 0]] });
  const gone = await fetchInSession(client, { sessionId, sessionEpoch: 1 });
  assert.equal(gone.errorCode, ErrorCode.FETCH_SESSION_ID_NOT_FOUND);
});

test('a session goes on over a topic that is deleted and made anew', async (t) => {
  const node = await startTestNode(t);
  const topic = await node.createTopic('orders', 1);
  const client = await node.connect();
  const partitions = [[0, 0]] as const;
  const { sessionId } = await fetchInSession(client, { sessionId: 0, sessionEpoch: 0, partitions });
  await node.broker.topics.delete(topic);
  await node.createTopic('orders', 1);
  await fill(client, 'orders', 1);
  const anew = await fetchInSession(client, { sessionId, sessionEpoch: 1, partitions });
  assert.deepEqual(anew.partitions, [[0, 1]]);
});

test('in a session every partition gets its turn, however little an answer may hold', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('orders', 3);
  const client = await node.connect();
  for (const partition of [0, 1, 2]) await fill(client, 'orders', 3, partition);
  const batchBytes = batchOf(['0-0']).length;
  const maxBytes = batchBytes + 1;
  const positions = [0, 0, 0];
  let partitions: (readonly [number, number])[] = [0, 1, 2].map((index) => [index, 0]);
  let sessionId = 0;
  for (let sessionEpoch = 0; sessionEpoch < 9; sessionEpoch++) {
    const got = await fetchInSession(client, { sessionId, sessionEpoch, partitions, maxBytes });
    sessionId = got.sessionId;
    partitions = [];
    for (const [index, count] of got.partitions) {
      positions[index!]! += count!;
      if (count! > 0) partitions.push([index!, positions[index!]!]);
    }
    assert.ok(Math.max(...positions) - Math.min(...positions) <= 1, 'nobody is left behind');
  }
  assert.deepEqual(positions, [3, 3, 3]);
});
