import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  type OffsetCommitRequestInput,
  offsetCommitRequest,
  offsetCommitResponse,
} from '../../src/protocol/schema/08-offset-commit.ts';
import { ZERO_UUID } from '../../src/protocol/uuid.ts';
import { commit, committed, Member } from './group-client.ts';
import { startTestNode, type TestClient } from './support.ts';

/** The errors of an answer, as `topic-partition: error`, in its order. */
async function errorsOf(
  client: TestClient,
  version: number,
  request: OffsetCommitRequestInput,
): Promise<string[]> {
  const answer = await client.ask(offsetCommitRequest, offsetCommitResponse, version, request);
  return answer.topics.flatMap(({ name, topicId, partitions }) =>
    partitions.map(
      ({ partitionIndex, errorCode }) =>
        `${version >= 10 ? topicId : name}-${partitionIndex}: ${errorCode}`,
    ),
  );
}

const partition = (partitionIndex: number, committedOffset: number, metadata = '') => ({
  partitionIndex,
  committedOffset,
  committedMetadata: metadata,
});

test('a consumer without a group commits, in every version', async (t) => {
  const node = await startTestNode(t);
  const { id } = await node.createTopic('topic', 3);
  const client = await node.connect();
  for (let version = 0; version <= 10; version++) {
    const groupId = `group-${version}`;
    const topics = [{ name: 'topic', topicId: id, partitions: [partition(2, 7 + version)] }];
    const errors = await errorsOf(client, version, { groupId, memberId: '', topics });
    assert.deepEqual(errors, [`${version >= 10 ? id : 'topic'}-2: ${ErrorCode.NONE}`]);
    assert.deepEqual(await committed(client, groupId), [`topic-2: ${7 + version}`]);
  }
});

test('negative offsets are kept as they are', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('topic', 2);
  const client = await node.connect();
  assert.equal(await commit(client, 'group', 'topic', 0, -1), ErrorCode.NONE);
  assert.equal(await commit(client, 'group', 'topic', 1, -2), ErrorCode.NONE);
  assert.deepEqual(await committed(client, 'group'), ['topic-0: -1', 'topic-1: -2']);
});

test('each partition has its own error, in the order of the request', async (t) => {
  const node = await startTestNode(t, { settings: { 'offset.metadata.max.bytes': 5 } });
  await node.createTopic('topic', 2);
  await node.createTopic('other', 1);
  const client = await node.connect();
  const errors = await errorsOf(client, 9, {
    groupId: 'group',
    memberId: '',
    topics: [
      { name: 'nothing', partitions: [partition(0, 1)] },
      {
        name: 'topic',
        partitions: [partition(2, 1), partition(1, 1, '123456'), partition(-1, 1), partition(0, 1)],
      },
      { name: 'other', partitions: [partition(0, 2 ** 60), partition(0, 5, 'äöü€5')] },
      { name: 'topic', partitions: [partition(0, 3)] },
    ],
  });
  assert.deepEqual(errors, [
    `nothing-0: ${ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}`,
    `topic-2: ${ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}`,
    `topic-1: ${ErrorCode.OFFSET_METADATA_TOO_LARGE}`,
    `topic--1: ${ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}`,
    `topic-0: ${ErrorCode.NONE}`,
    `other-0: ${ErrorCode.INVALID_COMMIT_OFFSET_SIZE}`,
    `other-0: ${ErrorCode.NONE}`,
    `topic-0: ${ErrorCode.NONE}`,
  ]);
  assert.deepEqual(await committed(client, 'group'), ['topic-0: 3', 'other-0: 5']);
});

test('version 10 names topics by id', async (t) => {
  const node = await startTestNode(t);
  const { id } = await node.createTopic('topic');
  const client = await node.connect();
  const unknown = 'ab'.repeat(16);
  const errors = await errorsOf(client, 10, {
    groupId: 'group',
    memberId: '',
    topics: [
      { topicId: unknown, partitions: [partition(0, 1)] },
      { topicId: ZERO_UUID, partitions: [partition(0, 1)] },
      { topicId: id, partitions: [partition(0, 4), partition(1, 4)] },
    ],
  });
  assert.deepEqual(errors, [
    `${unknown}-0: ${ErrorCode.UNKNOWN_TOPIC_ID}`,
    `${ZERO_UUID}-0: ${ErrorCode.UNKNOWN_TOPIC_ID}`,
    `${id}-0: ${ErrorCode.NONE}`,
    `${id}-1: ${ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}`,
  ]);
});

test('an error of the group is the error of every partition that exists', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('topic');
  const client = await node.connect();
  const member = new Member(client, { groupId: 'group' });
  await member.joinAlone();
  const { memberId, generationId } = member;
  const cases = [
    { who: {}, error: ErrorCode.UNKNOWN_MEMBER_ID },
    {
      who: { memberId: 'nobody', generationIdOrMemberEpoch: 1 },
      error: ErrorCode.UNKNOWN_MEMBER_ID,
    },
    {
      who: { memberId, generationIdOrMemberEpoch: generationId + 1 },
      error: ErrorCode.ILLEGAL_GENERATION,
    },
    { who: { memberId, generationIdOrMemberEpoch: generationId }, error: ErrorCode.NONE },
  ];
  for (const { who, error } of cases) {
    const errors = await errorsOf(client, 9, {
      groupId: 'group',
      memberId: '',
      topics: [
        { name: 'topic', partitions: [partition(0, 1), partition(9, 1)] },
        { name: 'nothing', partitions: [partition(0, 1)] },
      ],
      ...who,
    });
    assert.deepEqual(errors, [
      `topic-0: ${error}`,
      `topic-9: ${ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}`,
      `nothing-0: ${ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}`,
    ]);
  }
});

test('a generation of a group that is not known is illegal, or from version 9 on unknown', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('topic');
  const client = await node.connect();
  const request = {
    groupId: 'group',
    generationIdOrMemberEpoch: 1,
    memberId: 'member',
    topics: [{ name: 'topic', partitions: [partition(0, 1)] }],
  };
  assert.deepEqual(await errorsOf(client, 8, request), [
    `topic-0: ${ErrorCode.ILLEGAL_GENERATION}`,
  ]);
  assert.deepEqual(await errorsOf(client, 9, request), [
    `topic-0: ${ErrorCode.GROUP_ID_NOT_FOUND}`,
  ]);
});

test('the empty group may be committed to, as of old', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('topic');
  const client = await node.connect();
  assert.equal(await commit(client, '', 'topic', 0, 5), ErrorCode.NONE);
  assert.deepEqual(await committed(client, ''), ['topic-0: 5']);
});

test('times of a commit: its own in version 1, retention in versions 2 to 4', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('topic');
  const client = await node.connect();
  const send = (groupId: string, version: number, changes: object, commitTimestamp?: number) =>
    errorsOf(client, version, {
      groupId,
      memberId: '',
      topics: [
        {
          name: 'topic',
          partitions: [
            { ...partition(0, 1), ...(commitTimestamp === undefined ? {} : { commitTimestamp }) },
          ],
        },
      ],
      ...changes,
    });
  const before = node.clock.wallMs();
  await send('own time', 1, {}, 12_345);
  await send('no time', 1, {});
  await send('retention', 4, { retentionTimeMs: 60_000 });
  await send('default', 4, {});
  const after = node.clock.wallMs();
  const { offsets } = node.broker.replica.state;
  const stored = (groupId: string) => [...offsets.of(groupId)!.values()][0]!;
  assert.equal(stored('own time').commitMs, 12_345);
  for (const groupId of ['no time', 'retention', 'default']) {
    const { commitMs } = stored(groupId);
    assert.ok(before <= commitMs && commitMs <= after, groupId);
  }
  const { commitMs, expireMs } = stored('retention');
  assert.equal(expireMs, commitMs + 60_000);
  assert.equal(stored('default').expireMs, -1);
});

test('leader epoch and metadata come back', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('topic');
  const client = await node.connect();
  await errorsOf(client, 6, {
    groupId: 'group',
    memberId: '',
    topics: [
      { name: 'topic', partitions: [{ ...partition(0, 1, 'note'), committedLeaderEpoch: 3 }] },
    ],
  });
  const stored = node.broker.replica.state.offsets.of('group')!.values().next().value!;
  assert.equal(stored.leaderEpoch, 3);
  assert.equal(stored.metadata, 'note');
});

test('commits are answered in the order of a connection and survive a restart', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('topic', 2);
  const client = await node.connect();
  const answers = Array.from({ length: 100 }, (_, i) => commit(client, 'g', 'topic', i % 2, i));
  assert.deepEqual(new Set(await Promise.all(answers)), new Set([ErrorCode.NONE]));
  await node.restart();
  const again = await node.connect();
  assert.deepEqual(await committed(again, 'g'), ['topic-0: 98', 'topic-1: 99']);
  assert.equal(await commit(again, 'g', 'topic', 0, 200), ErrorCode.NONE);
});
