import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { offsetCommitRequest } from '../../src/protocol/schema/08-offset-commit.ts';
import {
  type OffsetFetchRequestInput,
  type OffsetFetchResponse,
  offsetFetchRequest,
  offsetFetchResponse,
} from '../../src/protocol/schema/09-offset-fetch.ts';
import { ZERO_UUID } from '../../src/protocol/uuid.ts';
import { commit, Member } from './group-client.ts';
import { startTestNode, type TestClient, type TestNode } from './support.ts';

type AnyTopic = OffsetFetchResponse['groups'][number]['topics'][number];

function ask(
  client: TestClient,
  version: number,
  request: OffsetFetchRequestInput,
): Promise<OffsetFetchResponse> {
  return client.ask(offsetFetchRequest, offsetFetchResponse, version, request);
}

/** The part of an answer that is about one group, whatever the version. */
function topicsOf(answer: OffsetFetchResponse, version: number): AnyTopic[] {
  if (version >= 8) return answer.groups[0]!.topics;
  return answer.topics.map((topic) => ({ ...topic, topicId: ZERO_UUID }));
}

function lines(topics: readonly AnyTopic[]): string[] {
  return topics.flatMap(({ name, topicId, partitions }) =>
    partitions.map((each) => {
      const topic = name === '' ? topicId : name;
      const { partitionIndex, committedOffset, committedLeaderEpoch, metadata, errorCode } = each;
      const facts = [committedOffset, committedLeaderEpoch, `"${metadata}"`, errorCode];
      return `${topic}-${partitionIndex}: ${facts.join(' ')}`;
    }),
  );
}

async function startWithOffsets(t: TestContext): Promise<{ node: TestNode; id: string }> {
  const node = await startTestNode(t);
  const { id } = await node.createTopic('topic', 3);
  await node.createTopic('other');
  const client = await node.connect();
  const committedMetadata = 'note';
  await commit(client, 'group', 'topic', 0, 0, {
    topics: [
      {
        name: 'topic',
        partitions: [
          { partitionIndex: 2, committedOffset: 22, committedLeaderEpoch: 4, committedMetadata },
          { partitionIndex: 0, committedOffset: 20, committedMetadata: null },
        ],
      },
      {
        name: 'other',
        partitions: [{ partitionIndex: 0, committedOffset: -2, committedMetadata: '' }],
      },
    ],
  });
  return { node, id };
}

test('what is committed comes back in every version, in the order of the request', async (t) => {
  const { node, id } = await startWithOffsets(t);
  const client = await node.connect();
  for (let version = 0; version <= 10; version++) {
    const asked = [
      { name: 'other', partitionIndexes: [0, 5] },
      { name: 'topic', topicId: id, partitionIndexes: [2, 1, 0, 2] },
    ];
    const byId = version >= 10;
    const topics = byId ? asked.slice(1) : asked;
    const request =
      version >= 8 ? { groups: [{ groupId: 'group', topics }] } : { groupId: 'group', topics };
    const answer = await ask(client, version, request);
    const epoch = version >= 5 ? 4 : -1;
    const name = byId ? id : 'topic';
    const expected = [
      'other-0: -2 -1 "" 0',
      'other-5: -1 -1 "" 0',
      `${name}-2: 22 ${epoch} "note" 0`,
      `${name}-1: -1 -1 "" 0`,
      `${name}-0: 20 -1 "" 0`,
      `${name}-2: 22 ${epoch} "note" 0`,
    ];
    assert.deepEqual(
      lines(topicsOf(answer, version)),
      byId ? expected.slice(2) : expected,
      `version ${version}`,
    );
  }
});

test('from version 2 on null asks for everything that the group committed', async (t) => {
  const { node, id } = await startWithOffsets(t);
  const other = node.broker.topics.byName('other')!.id;
  const client = await node.connect();
  for (let version = 2; version <= 10; version++) {
    const request =
      version >= 8
        ? { groups: [{ groupId: 'group', topics: null }] }
        : { groupId: 'group', topics: null };
    const answer = await ask(client, version, request);
    const found = lines(topicsOf(answer, version)).map((line) => line.split(' ', 2).join(' '));
    const [topic, second] = version >= 10 ? [id, other] : ['topic', 'other'];
    assert.deepEqual(found.sort(), [`${topic}-2: 22`, `${topic}-0: 20`, `${second}-0: -2`].sort());
  }
});

test('an empty list asks for nothing', async (t) => {
  const { node } = await startWithOffsets(t);
  const client = await node.connect();
  for (let version = 0; version <= 10; version++) {
    const request =
      version >= 8
        ? { groups: [{ groupId: 'group', topics: [] }] }
        : { groupId: 'group', topics: [] };
    assert.deepEqual(topicsOf(await ask(client, version, request), version), []);
  }
});

test('unknown groups and topics have no offsets, and that is no error', async (t) => {
  const { node } = await startWithOffsets(t);
  const client = await node.connect();
  const topics = [{ name: 'nothing', partitionIndexes: [0] }];
  const answer = await ask(client, 8, {
    groups: [
      { groupId: 'nobody', topics: [{ name: 'topic', partitionIndexes: [0] }] },
      { groupId: 'group', topics },
      { groupId: 'nobody', topics: null },
      { groupId: '', topics: null },
    ],
  });
  assert.deepEqual(
    answer.groups.map(({ groupId, errorCode, topics }) => [groupId, errorCode, lines(topics)]),
    [
      ['nobody', ErrorCode.NONE, ['topic-0: -1 -1 "" 0']],
      ['group', ErrorCode.NONE, ['nothing-0: -1 -1 "" 0']],
      ['nobody', ErrorCode.NONE, []],
      ['', ErrorCode.NONE, []],
    ],
  );
});

test('unknown topic ids are errors of their partitions', async (t) => {
  const { node, id } = await startWithOffsets(t);
  const client = await node.connect();
  const unknown = 'cd'.repeat(16);
  const answer = await ask(client, 10, {
    groups: [
      {
        groupId: 'group',
        topics: [
          { topicId: unknown, partitionIndexes: [0, 1] },
          { topicId: id, partitionIndexes: [0] },
        ],
      },
    ],
  });
  assert.deepEqual(lines(answer.groups[0]!.topics), [
    `${unknown}-0: -1 -1 "" ${ErrorCode.UNKNOWN_TOPIC_ID}`,
    `${unknown}-1: -1 -1 "" ${ErrorCode.UNKNOWN_TOPIC_ID}`,
    `${id}-0: 20 -1 "" 0`,
  ]);
});

test('offsets of a deleted topic are gone, also for a new topic of its name', async (t) => {
  const { node } = await startWithOffsets(t);
  const { topics } = node.broker;
  await topics.delete(topics.byName('topic')!);
  await node.createTopic('topic', 3);
  const client = await node.connect();
  const groups = [{ groupId: 'group', topics: null }];
  const answer = await ask(client, 8, { groups });
  assert.deepEqual(lines(answer.groups[0]!.topics), ['other-0: -2 -1 "" 0']);
});

test('who wants stable offsets gets those of commits that are under way', async (t) => {
  const { node } = await startWithOffsets(t);
  const [committer, client] = [await node.connect(), await node.connect()];
  const topics = [{ name: 'topic', partitionIndexes: [1] }];
  const request = { requireStable: true, groups: [{ groupId: 'group', topics }] };
  for (let round = 0; round < 20; round++) {
    committer.send(offsetCommitRequest, 9, {
      groupId: 'group',
      memberId: '',
      topics: [
        {
          name: 'topic',
          partitions: [{ partitionIndex: 1, committedOffset: round, committedMetadata: null }],
        },
      ],
    });
    while (!node.broker.offsets.isCommitting('group')) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    const answer = await ask(client, 8, request);
    assert.equal(answer.groups[0]!.topics[0]!.partitions[0]!.committedOffset, round);
  }
});

test('a member fetches what it committed', async (t) => {
  const { node } = await startWithOffsets(t);
  const client = await node.connect();
  const member = new Member(client, { groupId: 'members' });
  await member.joinAlone();
  assert.equal(await member.commit('topic', 1, 5), ErrorCode.NONE);
  const { groupId, memberId } = member;
  const topics = [{ name: 'topic', partitionIndexes: [1] }];
  const groups = [{ groupId, memberId, memberEpoch: -1, topics }];
  const answer = await ask(client, 9, { groups });
  assert.deepEqual(lines(answer.groups[0]!.topics), ['topic-1: 5 -1 "" 0']);
});
