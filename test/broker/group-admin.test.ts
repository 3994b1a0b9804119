import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  describeGroupsRequest,
  describeGroupsResponse,
} from '../../src/protocol/schema/15-describe-groups.ts';
import { listGroupsRequest, listGroupsResponse } from '../../src/protocol/schema/16-list-groups.ts';
import {
  deleteGroupsRequest,
  deleteGroupsResponse,
} from '../../src/protocol/schema/42-delete-groups.ts';
import {
  offsetDeleteRequest,
  offsetDeleteResponse,
} from '../../src/protocol/schema/47-offset-delete.ts';
import { commit, committed, Member, subscription } from './group-client.ts';
import { startTestNode, type TestClient, type TestNode } from './support.ts';

/** One group with a member, one without, and one that only ever committed. */
async function startWithGroups(
  t: TestContext,
): Promise<{ node: TestNode; client: TestClient; member: Member }> {
  const node = await startTestNode(t);
  await node.createTopic('topic', 2);
  await node.createTopic('other');
  const client = await node.connect('my client');
  const member = new Member(client, { groupId: 'stable' });
  await member.joinAlone('my share');
  await member.commit('topic', 0, 1);
  await member.commit('other', 0, 1);
  const gone = new Member(client, { groupId: 'empty' });
  await gone.joinAlone();
  await gone.commit('topic', 0, 2);
  await gone.commit('topic', 1, 2);
  await gone.leave();
  await commit(client, 'simple', 'topic', 0, 3);
  return { node, client, member };
}

test('DescribeGroups in every version', async (t) => {
  const { client, member } = await startWithGroups(t);
  for (let version = 0; version <= 6; version++) {
    const { groups } = await client.ask(describeGroupsRequest, describeGroupsResponse, version, {
      groups: ['stable', 'empty', 'simple', 'nobody'],
    });
    const facts = groups.map((group) => [group.groupId, group.groupState, group.errorCode]);
    const notFound = version >= 6 ? ErrorCode.GROUP_ID_NOT_FOUND : ErrorCode.NONE;
    assert.deepEqual(facts, [
      ['stable', 'Stable', ErrorCode.NONE],
      ['empty', 'Empty', ErrorCode.NONE],
      ['simple', 'Empty', ErrorCode.NONE],
      ['nobody', 'Dead', notFound],
    ]);
    assert.equal(groups[3]!.errorMessage, version >= 6 ? 'Group nobody not found.' : null);
    const [stable, empty, simple] = groups;
    assert.equal(stable!.protocolType, 'consumer');
    assert.equal(stable!.protocolData, 'range');
    assert.deepEqual(stable!.members, [
      {
        memberId: member.memberId,
        groupInstanceId: null,
        clientId: 'my client',
        clientHost: '/127.0.0.1',
        memberMetadata: subscription('topic'),
        memberAssignment: Buffer.from('my share'),
      },
    ]);
    assert.equal(empty!.protocolType, 'consumer');
    assert.equal(simple!.protocolType, '');
    assert.deepEqual(simple!.members, []);
  }
});

test('DescribeGroups tells the allowed operations only to who asks', async (t) => {
  const { client } = await startWithGroups(t);
  const ask = (includeAuthorizedOperations: boolean) =>
    client.ask(describeGroupsRequest, describeGroupsResponse, 6, {
      groups: ['stable', 'nobody'],
      includeAuthorizedOperations,
    });
  const unknown = -(2 ** 31);
  const operationsOf = async (isAsked: boolean) =>
    (await ask(isAsked)).groups.map(({ authorizedOperations }) => authorizedOperations);
  assert.deepEqual(await operationsOf(false), [unknown, unknown]);
  // Read, delete, describe, describe configs, alter configs.
  const all = (1 << 3) | (1 << 6) | (1 << 8) | (1 << 10) | (1 << 11);
  assert.deepEqual(await operationsOf(true), [all, unknown]);
});

test('ListGroups in every version, with filters', async (t) => {
  const { client } = await startWithGroups(t);
  const ask = async (version: number, statesFilter: string[] = [], typesFilter: string[] = []) => {
    const filters = { statesFilter, typesFilter };
    const answer = await client.ask(listGroupsRequest, listGroupsResponse, version, filters);
    assert.equal(answer.errorCode, ErrorCode.NONE);
    return answer.groups
      .map((group) => [group.groupId, group.protocolType, group.groupState, group.groupType])
      .sort();
  };
  for (let version = 0; version <= 5; version++) {
    const type = version >= 5 ? 'classic' : '';
    const state = (name: string) => (version >= 4 ? name : '');
    assert.deepEqual(await ask(version), [
      ['empty', 'consumer', state('Empty'), type],
      ['simple', '', state('Empty'), type],
      ['stable', 'consumer', state('Stable'), type],
    ]);
  }
  const names = async (...filters: [string[], string[]?]) =>
    (await ask(5, ...filters)).map(([groupId]) => groupId);
  assert.deepEqual(await names(['Stable']), ['stable']);
  assert.deepEqual(await names(['stable', 'EMPTY']), ['empty', 'simple', 'stable']);
  assert.deepEqual(await names(['PreparingRebalance']), []);
  assert.deepEqual(await names([], ['classic']), ['empty', 'simple', 'stable']);
  assert.deepEqual(await names([], ['consumer']), []);
});

test('DeleteGroups in every version', async (t) => {
  for (let version = 0; version <= 2; version++) {
    const { node, client } = await startWithGroups(t);
    const groupsNames = ['stable', 'simple', 'nobody', 'empty', 'simple'];
    const { results } = await client.ask(deleteGroupsRequest, deleteGroupsResponse, version, {
      groupsNames,
    });
    assert.deepEqual(
      results.map(({ groupId, errorCode }) => [groupId, errorCode]),
      [
        ['stable', ErrorCode.NON_EMPTY_GROUP],
        ['simple', ErrorCode.NONE],
        ['nobody', ErrorCode.GROUP_ID_NOT_FOUND],
        ['empty', ErrorCode.NONE],
      ],
    );
    assert.deepEqual(await committed(client, 'simple'), []);
    await node.restart();
    const again = await node.connect();
    const listed = await again.ask(listGroupsRequest, listGroupsResponse, 5, {});
    assert.deepEqual(
      listed.groups.map(({ groupId }) => groupId),
      ['stable'],
    );
    assert.deepEqual(await committed(again, 'empty'), []);
    assert.deepEqual(await committed(again, 'stable'), ['topic-0: 1', 'other-0: 1']);
  }
});

test('DeleteGroups of nothing answers nothing', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const { results } = await client.ask(deleteGroupsRequest, deleteGroupsResponse, 2, {
    groupsNames: [],
  });
  assert.deepEqual(results, []);
});

async function deleteOffsets(
  client: TestClient,
  groupId: string,
  topics: readonly (readonly [name: string, partitions: readonly number[]])[],
): Promise<{ errorCode: number; lines: string[] }> {
  const answer = await client.ask(offsetDeleteRequest, offsetDeleteResponse, 0, {
    groupId,
    topics: topics.map(([name, partitions]) => ({
      name,
      partitions: partitions.map((partitionIndex) => ({ partitionIndex })),
    })),
  });
  const lines = answer.topics.flatMap(({ name, partitions }) =>
    partitions.map(({ partitionIndex, errorCode }) => `${name}-${partitionIndex}: ${errorCode}`),
  );
  return { errorCode: answer.errorCode, lines };
}

test('OffsetDelete deletes what no member subscribes to', async (t) => {
  const { client } = await startWithGroups(t);
  const answer = await deleteOffsets(client, 'stable', [
    ['topic', [0, 5]],
    ['nothing', [0]],
    ['other', [0, 0]],
  ]);
  assert.deepEqual(answer, {
    errorCode: ErrorCode.NONE,
    lines: [
      `topic-0: ${ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}`,
      `topic-5: ${ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}`,
      `nothing-0: ${ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}`,
      `other-0: ${ErrorCode.NONE}`,
      `other-0: ${ErrorCode.NONE}`,
    ],
  });
  assert.deepEqual(await committed(client, 'stable'), ['topic-0: 1']);
});

test('OffsetDelete of groups without members, with what is not there', async (t) => {
  const { node, client } = await startWithGroups(t);
  const answer = await deleteOffsets(client, 'empty', [['topic', [1]]]);
  assert.deepEqual(answer, { errorCode: ErrorCode.NONE, lines: ['topic-1: 0'] });
  assert.deepEqual(await deleteOffsets(client, 'empty', [['topic', [1]]]), answer);
  await deleteOffsets(client, 'simple', [['topic', [0]]]);
  await node.restart();
  const again = await node.connect();
  assert.deepEqual(await committed(again, 'empty'), ['topic-0: 2']);
  assert.deepEqual(await committed(again, 'simple'), []);
});

test('errors of a whole OffsetDelete', async (t) => {
  const { client } = await startWithGroups(t);
  const connect = new Member(client, { groupId: 'connect', protocolType: 'connect' });
  await connect.joinAlone();
  const cases = [
    ['', ErrorCode.INVALID_GROUP_ID],
    ['nobody', ErrorCode.GROUP_ID_NOT_FOUND],
    ['connect', ErrorCode.NON_EMPTY_GROUP],
  ] as const;
  for (const [groupId, errorCode] of cases) {
    const answer = await deleteOffsets(client, groupId, [['topic', [0]]]);
    assert.deepEqual(answer, { errorCode, lines: [] }, groupId);
  }
  assert.deepEqual(await deleteOffsets(client, 'simple', []), {
    errorCode: ErrorCode.NONE,
    lines: [],
  });
});
