import assert from 'node:assert/strict';
import test from 'node:test';
import { silentLogger } from '../../src/core/logger.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  offsetCommitRequest,
  offsetCommitResponse,
} from '../../src/protocol/schema/08-offset-commit.ts';
import { listGroupsRequest, listGroupsResponse } from '../../src/protocol/schema/16-list-groups.ts';
import { commit, committed, Member } from './group-client.ts';
import { startTestNode, type TestClient, type TestNode, until } from './support.ts';

const minute = 60_000;
const day = 24 * 60 * minute;
const settings = {
  'offsets.retention.minutes': 60,
  'offsets.retention.check.interval.ms': 10 * minute,
  'group.max.session.timeout.ms': 10 * day,
  'connections.max.idle.ms': 10_000 * day,
};

/** Lets time pass, check by check: each is over before the next begins. */
async function pass(node: TestNode, ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 10 * minute) {
    node.clock.advance(10 * minute);
    await node.broker.replica.settled();
    // A look at nothing takes some turns of the loop, and the next one is set after it.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
}

async function groupIds(client: TestClient): Promise<string[]> {
  const { groups } = await client.ask(listGroupsRequest, listGroupsResponse, 5, {});
  return groups.map(({ groupId }) => groupId).sort();
}

test('offsets without members expire after the retention time, and their groups with them', async (t) => {
  const node = await startTestNode(t, { settings });
  await node.createTopic('topic', 2);
  const client = await node.connect();
  await commit(client, 'old', 'topic', 0, 1);
  await pass(node, 30 * minute);
  await commit(client, 'old', 'topic', 1, 2);
  await commit(client, 'new', 'topic', 0, 3);
  await pass(node, 30 * minute);
  assert.deepEqual(await committed(client, 'old'), ['topic-1: 2']);
  assert.deepEqual(await groupIds(client), ['new', 'old']);
  await commit(client, 'new', 'topic', 0, 4);
  await pass(node, 30 * minute);
  assert.deepEqual(await committed(client, 'old'), []);
  assert.deepEqual(await committed(client, 'new'), ['topic-0: 4']);
  assert.deepEqual(await groupIds(client), ['new']);
  await node.restart();
  const again = await node.connect();
  assert.deepEqual(await groupIds(again), ['new']);
});

test('offsets of members stay; without members they count from when the last one left', async (t) => {
  const node = await startTestNode(t, { settings });
  await node.createTopic('topic');
  await node.createTopic('other');
  const client = await node.connect();
  const member = new Member(client, { groupId: 'group', sessionTimeoutMs: 9 * day });
  await member.joinAlone();
  await member.commit('topic', 0, 1);
  await member.commit('other', 0, 2);
  await pass(node, 120 * minute);
  // Nobody in the group subscribes to the other topic.
  assert.deepEqual(await committed(client, 'group'), ['topic-0: 1']);
  assert.equal(await member.leave(), ErrorCode.NONE);
  await pass(node, 50 * minute);
  assert.deepEqual(await committed(client, 'group'), ['topic-0: 1']);
  await node.restart();
  const again = await node.connect();
  await pass(node, 20 * minute);
  assert.deepEqual(await committed(again, 'group'), []);
  assert.deepEqual(await groupIds(again), []);
});

test('a retention time of its own counts from the commit', async (t) => {
  const node = await startTestNode(t, { settings });
  await node.createTopic('topic');
  const client = await node.connect();
  for (const [groupId, retentionTimeMs] of [
    ['short', 15 * minute],
    ['long', 150 * minute],
  ] as const) {
    await client.ask(offsetCommitRequest, offsetCommitResponse, 4, {
      groupId,
      memberId: '',
      retentionTimeMs,
      topics: [
        {
          name: 'topic',
          partitions: [{ partitionIndex: 0, committedOffset: 1, committedMetadata: null }],
        },
      ],
    });
  }
  await pass(node, 20 * minute);
  assert.deepEqual(await groupIds(client), ['long']);
  await pass(node, 100 * minute);
  assert.deepEqual(await groupIds(client), ['long']);
  await pass(node, 40 * minute);
  assert.deepEqual(await groupIds(client), []);
});

test('a group without members and offsets is forgotten at the next look', async (t) => {
  const node = await startTestNode(t, { settings });
  const topic = await node.createTopic('topic');
  const client = await node.connect();
  const member = new Member(client, { groupId: 'left' });
  await member.joinAlone();
  await member.leave();
  await commit(client, 'topic is gone', 'topic', 0, 1);
  const waiting = new Member(client, { groupId: 'joining', sessionTimeoutMs: day });
  await waiting.askToJoin();
  await node.broker.topics.delete(topic);
  assert.deepEqual(await groupIds(client), ['joining', 'left', 'topic is gone']);
  await pass(node, 10 * minute);
  assert.deepEqual(await groupIds(client), ['joining']);
  assert.equal((await waiting.askToJoin()).errorCode, ErrorCode.NONE);
});

test('many offsets expire in many entries, while others are served', async (t) => {
  const node = await startTestNode(t, { settings });
  const partitionCount = 12_000;
  await node.createTopic('topic', partitionCount);
  const client = await node.connect();
  const partitions = Array.from({ length: partitionCount }, (_, partitionIndex) => ({
    partitionIndex,
    committedOffset: 1,
    committedMetadata: null,
  }));
  const topics = [{ name: 'topic', partitions }];
  await commit(client, 'large', 'topic', 0, 1, { topics });
  for (let i = 0; i < 50; i++) await commit(client, `small-${i}`, 'topic', i, 1);
  const entriesBefore = node.broker.replica.state.appliedIndex;
  await pass(node, 70 * minute);
  await until(async () => (await groupIds(client)).length === 0, 'all groups are gone');
  assert.deepEqual(await committed(client, 'large'), []);
  const entries = node.broker.replica.state.appliedIndex - entriesBefore;
  assert.ok(entries >= 50 + partitionCount / 1000, `${entries} entries`);
});

test('a commit that is under way when its offset would expire is kept', async (t) => {
  const node = await startTestNode(t, { settings });
  await node.createTopic('topic');
  const client = await node.connect();
  await commit(client, 'group', 'topic', 0, 1);
  await pass(node, 50 * minute);
  client.send(offsetCommitRequest, 9, {
    groupId: 'group',
    memberId: '',
    topics: [
      {
        name: 'topic',
        partitions: [{ partitionIndex: 0, committedOffset: 2, committedMetadata: null }],
      },
    ],
  });
  await until(() => node.broker.offsets.isCommitting('group'), 'the commit is under way');
  await pass(node, 10 * minute);
  assert.deepEqual(await committed(client, 'group'), ['topic-0: 2']);
});

test('while the wall clock is not believed nothing expires', async (t) => {
  const warnings: string[] = [];
  const warn = (_: object, message: string) => warnings.push(message);
  const log = { ...silentLogger, warn, info: warn };
  const node = await startTestNode(t, { settings: { ...settings, 'clock.settle.ms': 0 }, log });
  await node.createTopic('topic');
  const client = await node.connect();
  await commit(client, 'group', 'topic', 0, 1);
  node.clock.jumpWall(3650 * day);
  await pass(node, 60 * minute);
  assert.deepEqual(await committed(client, 'group'), ['topic-0: 1']);
  assert.deepEqual(warnings, ['the clock was set: nothing expires until it is right again']);
  node.clock.jumpWall(-3650 * day);
  await pass(node, 10 * minute);
  assert.deepEqual(await committed(client, 'group'), []);
  assert.deepEqual(warnings.slice(1), [
    'the clock is right again: expiry goes on',
    'offsets expired',
  ]);
});
