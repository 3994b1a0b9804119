/** Groups through the admin client: list, describe, delete. */
import assert from 'node:assert/strict';
import kafkajs from 'kafkajs';
import { rejectsWith, sampleValues, uniqueName } from '../support/context.mjs';
import { check, until } from '../support/harness.mjs';

const { AssignerProtocol } = kafkajs;

/** A running member of a group of its own. */
async function runningMember(t) {
  const topic = await t.topic('admin', 2);
  const groupId = uniqueName('group');
  const consumer = await t.consumer({ groupId });
  let join = null;
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    join = payload;
  });
  await consumer.subscribe({ topics: [topic] });
  await consumer.run({ eachMessage: async () => {} });
  await until('it has joined', () => join !== null);
  return { topic, groupId, consumer, memberId: join.memberId };
}

/** A group that has committed offsets and no members. */
async function emptyGroup(t) {
  const topic = await t.topic('empty');
  const groupId = uniqueName('group');
  await t.send(topic, sampleValues(3));
  await t.readAll(topic, 3, { groupId });
  return { topic, groupId };
}

check('group admin: listGroups', { fast: true }, async (t) => {
  const { groupId } = await runningMember(t);
  const { groupId: emptyId } = await emptyGroup(t);
  const { groups } = await t.admin.listGroups();
  for (const id of [groupId, emptyId]) {
    const found = groups.filter((group) => group.groupId === id);
    assert.deepEqual(found, [{ groupId: id, protocolType: 'consumer' }]);
  }
});

check('group admin: describeGroups of a running group', { fast: true }, async (t) => {
  const { topic, groupId, memberId } = await runningMember(t);
  const { groups } = await t.admin.describeGroups([groupId]);
  assert.equal(groups.length, 1);
  const [{ errorCode, state, protocolType, protocol, members }] = groups;
  assert.deepEqual(
    { errorCode, state, protocolType, protocol },
    { errorCode: 0, state: 'Stable', protocolType: 'consumer', protocol: 'RoundRobinAssigner' },
  );
  assert.equal(members.length, 1);
  const [member] = members;
  assert.equal(member.memberId, memberId);
  assert.equal(member.clientId, 'keylane-compat');
  assert.ok(member.clientHost.length > 0);
  const metadata = AssignerProtocol.MemberMetadata.decode(member.memberMetadata);
  assert.deepEqual(metadata.topics, [topic]);
  const assignment = AssignerProtocol.MemberAssignment.decode(member.memberAssignment);
  assert.deepEqual(assignment.assignment, { [topic]: [0, 1] });
});

check('group admin: describeGroups, several and unknown', { fast: true }, async (t) => {
  const { groupId } = await runningMember(t);
  const { groupId: emptyId } = await emptyGroup(t);
  const unknownId = uniqueName('unknown');
  const { groups } = await t.admin.describeGroups([groupId, emptyId, unknownId]);
  const states = Object.fromEntries(groups.map((group) => [group.groupId, group.state]));
  assert.deepEqual(states, { [groupId]: 'Stable', [emptyId]: 'Empty', [unknownId]: 'Dead' });
});

check('group admin: a consumer describes its own group', {}, async (t) => {
  const { groupId, consumer } = await runningMember(t);
  const description = await consumer.describeGroup();
  assert.equal(description.groupId, groupId);
  assert.equal(description.members.length, 1);
});

check('group admin: deleteGroups', { fast: true }, async (t) => {
  const { topic, groupId } = await emptyGroup(t);
  const deleted = await t.admin.deleteGroups([groupId]);
  assert.deepEqual(
    deleted.map(({ groupId: id, errorCode }) => [id, errorCode]),
    [[groupId, 0]],
  );
  assert.deepEqual(await t.committed(groupId, topic), [-1]);
  const { groups } = await t.admin.listGroups();
  assert.ok(!groups.some((group) => group.groupId === groupId));
});

check('group admin: deleteGroups with members, and unknown', { fast: true }, async (t) => {
  const { groupId } = await runningMember(t);
  await rejectsWith(t.admin.deleteGroups([groupId]), 'NON_EMPTY_GROUP');
  await rejectsWith(t.admin.deleteGroups([uniqueName('unknown')]), 'GROUP_ID_NOT_FOUND');
  const { groups } = await t.admin.describeGroups([groupId]);
  assert.equal(groups[0].state, 'Stable');
});

check('group admin: deleting a topic deletes its committed offsets', {}, async (t) => {
  const { topic, groupId } = await emptyGroup(t);
  await t.admin.deleteTopics({ topics: [topic] });
  await until('the offsets are gone', async () => {
    const committed = await t.admin.fetchOffsets({ groupId });
    return committed.every((entry) => entry.topic !== topic);
  });
});
