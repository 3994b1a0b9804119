/** Answers that take more than one turn of the event loop. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { metadataRequest, metadataResponse } from '../../src/protocol/schema/03-metadata.ts';
import {
  offsetFetchRequest,
  offsetFetchResponse,
} from '../../src/protocol/schema/09-offset-fetch.ts';
import {
  describeGroupsRequest,
  describeGroupsResponse,
} from '../../src/protocol/schema/15-describe-groups.ts';
import { listGroupsRequest, listGroupsResponse } from '../../src/protocol/schema/16-list-groups.ts';
import {
  apiVersionsRequest,
  apiVersionsResponse,
} from '../../src/protocol/schema/18-api-versions.ts';
import {
  describeTopicPartitionsRequest,
  describeTopicPartitionsResponse,
} from '../../src/protocol/schema/75-describe-topic-partitions.ts';
import { commit } from './group-client.ts';
import { startTestNode, type TestNode } from './support.ts';

/** Calls back before each later turn that an answer takes; the function tells how many it took. */
function watchTurns(node: TestNode, onTurn: (turn: number) => void = () => undefined) {
  const { clock } = node;
  const soon = clock.soon.bind(clock);
  let turns = 0;
  clock.soon = (callback) => {
    onTurn(turns++);
    soon(callback);
  };
  return () => turns;
}

test('metadata of very many partitions, in the order of the requests', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('wide', 20_000);
  for (let i = 0; i < 20; i++) await node.createTopic(`topic-${i}`, 100);
  const client = await node.connect();
  const turns = watchTurns(node);
  const order: string[] = [];
  const noted = <T>(name: string, answer: Promise<T>): Promise<T> =>
    answer.finally(() => order.push(name));
  const [all, , named] = await Promise.all([
    noted('all', client.ask(metadataRequest, metadataResponse, 12, { topics: null })),
    noted('versions', client.ask(apiVersionsRequest, apiVersionsResponse, 0, {})),
    noted(
      'named',
      client.ask(metadataRequest, metadataResponse, 0, {
        topics: [{ name: 'wide' }, { name: 'nothing' }],
      }),
    ),
  ]);
  assert.deepEqual(order, ['all', 'versions', 'named']);
  assert.ok(turns() > 10, `${turns()} turns`);
  const counts = all.topics.map(({ name, partitions }) => [name, partitions.length]);
  const small = Array.from({ length: 20 }, (_, i) => [`topic-${i}`, 100]);
  assert.deepEqual(counts, [['wide', 20_000], ...small]);
  const [wide, nothing] = named.topics;
  assert.deepEqual([wide?.name, nothing?.name], ['wide', 'nothing']);
  for (const [index, partition] of wide!.partitions.entries()) {
    assert.equal(partition.partitionIndex, index);
    assert.deepEqual(partition.replicaNodes, [node.broker.nodeId]);
  }
});

test('a topic that goes before its turn is not there', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('wide', 20_000);
  const { id } = await node.createTopic('short-lived');
  await node.createTopic('last');
  const client = await node.connect();
  watchTurns(node, (turn) => {
    if (turn === 0) node.broker.replica.state.topics.delete(id);
  });
  const { topics } = await client.ask(metadataRequest, metadataResponse, 12, { topics: null });
  assert.deepEqual(
    topics.map(({ name }) => name),
    ['wide', 'last'],
  );
});

test('all offsets of a group that has very many', async (t) => {
  const node = await startTestNode(t);
  const { partitions } = await node.createTopic('topic', 30_000);
  const client = await node.connect();
  await commit(client, 'group', 'topic', 29_999, 7);
  const { offsets } = node.broker.replica.state;
  const one = offsets.get('group', partitions[29_999]!)!;
  const rest = partitions.slice(0, -1).map((partition, i) => [partition, { ...one, offset: i }]);
  offsets.commit({ groupId: 'group', offsets: rest } as never);
  const turns = watchTurns(node);
  const old = await client.ask(offsetFetchRequest, offsetFetchResponse, 7, {
    groupId: 'group',
    topics: null,
  });
  const { groups } = await client.ask(offsetFetchRequest, offsetFetchResponse, 8, {
    groups: [
      { groupId: 'group', topics: null },
      {
        groupId: 'group',
        topics: [{ name: 'topic', partitionIndexes: partitions.map((_, i) => i) }],
      },
    ],
  });
  assert.ok(turns() > 20, `${turns()} turns`);
  const answers = [old.topics, groups[0]!.topics, groups[1]!.topics];
  for (const topics of answers) {
    assert.deepEqual(
      topics.map(({ name }) => name),
      ['topic'],
    );
    const byIndex = new Map(
      topics[0]!.partitions.map((each) => [each.partitionIndex, each.committedOffset]),
    );
    assert.equal(byIndex.size, 30_000);
    for (let i = 0; i < 30_000; i++) assert.equal(byIndex.get(i), i === 29_999 ? 7 : i);
  }
});

test('very many groups are listed and described over several turns', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const names = Array.from({ length: 5000 }, (_, i) => `group-${i}`);
  const now = node.broker.groups.now();
  node.broker.groups.run((coordinator) => {
    for (const name of names) coordinator.restoreOffsetsHolder(name, now);
  });
  let isForgotten = false;
  const turns = watchTurns(node, () => {
    if (isForgotten) return;
    isForgotten = node.broker.groups.run((coordinator) => coordinator.forget('group-4000', now));
  });
  const listed = await client.ask(listGroupsRequest, listGroupsResponse, 5, {});
  assert.ok(turns() >= 4, `${turns()} turns`);
  assert.deepEqual(
    listed.groups.map(({ groupId }) => groupId),
    names.filter((name) => name !== 'group-4000'),
  );
  const none = await client.ask(listGroupsRequest, listGroupsResponse, 5, {
    statesFilter: ['Stable'],
  });
  assert.deepEqual(none.groups, []);
  const described = await client.ask(describeGroupsRequest, describeGroupsResponse, 5, {
    groups: names,
  });
  assert.equal(described.groups.length, 5000);
  const dead = described.groups.filter(({ groupState }) => groupState === 'Dead');
  assert.deepEqual(
    dead.map(({ groupId }) => groupId),
    ['group-4000'],
  );
});

test('a page of very many topics is found over several turns', async (t) => {
  const node = await startTestNode(t);
  const { topics: state } = node.broker.replica.state;
  const count = 25_000;
  const names = Array.from(
    { length: count },
    (_, i) => `topic-${String(count - i).padStart(5, '0')}`,
  );
  for (const [i, name] of names.entries()) {
    const topicId = i.toString(16).padStart(32, '0');
    const created = { name, topicId, firstPartition: i, partitionCount: 1, configs: new Map() };
    state.create(created);
  }
  const client = await node.connect();
  const sorted = [...names].sort();
  const gone = sorted[2]!;
  const turns = watchTurns(node, (turn) => {
    if (turn === 1) state.delete(state.byName(gone)!.id);
  });
  const page = await client.ask(
    describeTopicPartitionsRequest,
    describeTopicPartitionsResponse,
    0,
    {
      topics: [],
      responsePartitionLimit: 1500,
      cursor: null,
    },
  );
  assert.ok(turns() >= 2, `${turns()} turns`);
  const expected = sorted.filter((name) => name !== gone);
  assert.deepEqual(
    page.topics.map(({ name }) => name),
    expected.slice(0, 1500),
  );
  assert.deepEqual(page.nextCursor, { topicName: expected[1500], partitionIndex: 0 });
});

test('an answer that nobody waits for any more is not finished', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('wide', 60_000);
  const client = await node.connect();
  const turns = watchTurns(node, (turn) => {
    if (turn === 0) client.close();
  });
  client.send(metadataRequest, 12, { topics: null });
  await client.closed;
  for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(turns() > 0 && turns() < 15, `${turns()} turns`);
});
