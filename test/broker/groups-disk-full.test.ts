import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  deleteGroupsRequest,
  deleteGroupsResponse,
} from '../../src/protocol/schema/42-delete-groups.ts';
import {
  offsetDeleteRequest,
  offsetDeleteResponse,
} from '../../src/protocol/schema/47-offset-delete.ts';
import { FillableDisk } from './fillable-disk.ts';
import { commit, committed, Member } from './group-client.ts';
import { startTestNode } from './support.ts';

const { COORDINATOR_NOT_AVAILABLE, NONE } = ErrorCode;

test('on a full disk groups ask for patience, and go on when there is room again', async (t) => {
  const disk = new FillableDisk();
  const node = await startTestNode(t, { files: disk.files });
  await node.createTopic('topic');
  const client = await node.connect();
  const deleteGroup = async (groupId: string) => {
    const request = { groupsNames: [groupId] };
    const answer = await client.ask(deleteGroupsRequest, deleteGroupsResponse, 2, request);
    return answer.results[0]!.errorCode;
  };
  const deleteOffset = async (groupId: string) => {
    const topics = [{ name: 'topic', partitions: [{ partitionIndex: 0 }] }];
    const request = { groupId, topics };
    const answer = await client.ask(offsetDeleteRequest, offsetDeleteResponse, 0, request);
    return [answer.errorCode, answer.topics.length];
  };
  const member = new Member(client, { groupId: 'members' });
  await member.joinAlone();
  for (const groupId of ['kept', 'deleted']) {
    assert.equal(await commit(client, groupId, 'topic', 0, 1), NONE);
  }

  disk.isFull = true;
  assert.equal(await commit(client, 'kept', 'topic', 0, 2), COORDINATOR_NOT_AVAILABLE);
  assert.equal(await member.commit('topic', 0, 2), COORDINATOR_NOT_AVAILABLE);
  assert.equal(await deleteGroup('deleted'), COORDINATOR_NOT_AVAILABLE);
  assert.deepEqual(await deleteOffset('kept'), [COORDINATOR_NOT_AVAILABLE, 0]);
  assert.equal(await member.heartbeat(), NONE);
  await member.join();
  const synced = await member.sync({ [member.memberId]: 'new' });
  assert.equal(synced.errorCode, COORDINATOR_NOT_AVAILABLE);
  assert.deepEqual(await committed(client, 'kept'), ['topic-0: 1']);
  assert.deepEqual(await committed(client, 'deleted'), ['topic-0: 1']);

  disk.isFull = false;
  await member.joinAlone('newer');
  assert.equal(await commit(client, 'kept', 'topic', 0, 3), NONE);
  assert.equal(await member.commit('topic', 0, 4), NONE);
  assert.equal(await deleteGroup('deleted'), NONE);
  await node.restart();
  member.client = await node.connect();
  assert.equal(await member.heartbeat(), NONE);
  await member.sync();
  assert.equal(member.assignment, 'newer');
  assert.deepEqual(await committed(member.client, 'kept'), ['topic-0: 3']);
  assert.deepEqual(await committed(member.client, 'members'), ['topic-0: 4']);
  assert.deepEqual(await committed(member.client, 'deleted'), []);
});
