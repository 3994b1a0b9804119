/** Groups through the admin client: list, describe, coordinators, delete, removal of members. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { FindCoordinatorKeyTypes } from '@platformatic/kafka';
import { check, until } from '../../kafkajs/support/harness.mjs';
import { collect, rejectsWith, sampleValues, uniqueName } from '../support/context.mjs';

/** A running member of a group of its own. */
async function runningMember(t) {
  const topic = await t.topic('admin', 2);
  const consumer = t.consumer();
  await collect(consumer, topic, []);
  return { topic, groupId: consumer.groupId, consumer };
}

/** A group that has committed offsets and no members. */
async function emptyGroup(t) {
  const topic = await t.topic('empty');
  const groupId = uniqueName('group');
  await t.send(topic, sampleValues(3));
  const consumer = t.consumer({ groupId });
  const stream = await collect(consumer, topic, []);
  await once(stream, 'autocommit');
  await consumer.close(true);
  return { topic, groupId };
}

check('group admin: listGroups', { fast: true }, async (t) => {
  const { groupId } = await runningMember(t);
  const { groupId: emptyId } = await emptyGroup(t);
  const groups = await t.admin.listGroups();
  assert.equal(groups.get(groupId).state, 'Stable');
  assert.equal(groups.get(groupId).protocolType, 'consumer');
  assert.equal(groups.get(groupId).groupType, 'classic');
  assert.equal(groups.get(emptyId).state, 'Empty');
});

check('group admin: listGroups by state and type', { fast: true }, async (t) => {
  const { groupId } = await runningMember(t);
  const { groupId: emptyId } = await emptyGroup(t);
  const stable = await t.admin.listGroups({ states: ['Stable'] });
  assert.ok(stable.has(groupId) && !stable.has(emptyId));
  const empty = await t.admin.listGroups({ states: ['Empty'] });
  assert.ok(!empty.has(groupId) && empty.has(emptyId));
  const classic = await t.admin.listGroups({ types: ['classic'] });
  assert.ok(classic.has(groupId));
  const other = await t.admin.listGroups({ types: ['consumer'] });
  assert.ok(!other.has(groupId));
});

check('group admin: describeGroups', { fast: true }, async (t) => {
  const { topic, groupId, consumer } = await runningMember(t);
  const groups = await t.admin.describeGroups({ groups: [groupId] });
  const { state, protocolType, protocol, members } = groups.get(groupId);
  assert.deepEqual([state, protocolType, protocol], ['Stable', 'consumer', 'roundrobin']);
  assert.deepEqual([...members.keys()], [consumer.memberId]);
  const member = members.get(consumer.memberId);
  assert.equal(member.clientId, 'keylane-compat');
  assert.equal(member.groupInstanceId, null);
  assert.ok(member.clientHost.length > 0);
  assert.deepEqual(member.metadata.topics, [topic]);
  assert.deepEqual(member.assignments.get(topic).partitions, [0, 1]);
});

check('group admin: describeGroups of an empty and an unknown group', {}, async (t) => {
  const { groupId } = await emptyGroup(t);
  const unknownId = uniqueName('unknown');
  const groups = await t.admin.describeGroups({ groups: [groupId, unknownId] });
  assert.equal(groups.get(groupId).state, 'Empty');
  assert.equal(groups.get(groupId).members.size, 0);
  assert.equal(groups.get(unknownId).state, 'Dead');
});

check('group admin: findCoordinator', { fast: true }, async (t) => {
  const { brokers } = await t.admin.metadata({ topics: [] });
  const keys = [uniqueName('group'), uniqueName('group')];
  const found = await t.admin.findCoordinator({ keyType: FindCoordinatorKeyTypes.GROUP, keys });
  assert.deepEqual(found.map(({ key }) => key).sort(), [...keys].sort());
  for (const { nodeId, host, port } of found) {
    assert.equal(brokers.get(nodeId).host, host);
    assert.equal(brokers.get(nodeId).port, port);
  }
});

check('group admin: deleteGroups', { fast: true }, async (t) => {
  const { topic, groupId } = await emptyGroup(t);
  await t.admin.deleteGroups({ groups: [groupId] });
  assert.ok(!(await t.admin.listGroups()).has(groupId));
  assert.deepEqual(await t.committed(groupId, topic, 1), [-1n]);
});

check('group admin: deleteGroups with members, and unknown', { fast: true }, async (t) => {
  const { groupId } = await runningMember(t);
  const admin = t.newAdmin({ retries: 0 });
  await rejectsWith(admin.deleteGroups({ groups: [groupId] }), 'NON_EMPTY_GROUP');
  const unknown = admin.deleteGroups({ groups: [uniqueName('unknown')] });
  await rejectsWith(unknown, 'GROUP_ID_NOT_FOUND');
});

check('group admin: removeMembersFromConsumerGroup', {}, async (t) => {
  const { groupId, consumer } = await runningMember(t);
  const { memberId } = consumer;
  const rejoined = once(consumer, 'consumer:group:join');
  await t.admin.removeMembersFromConsumerGroup({ groupId, members: [{ memberId }] });
  // The client notices with its next heartbeat and joins as a new member.
  const [join] = await rejoined;
  assert.notEqual(join.memberId, memberId);
  await until('only the new member is there', async () => {
    const groups = await t.admin.describeGroups({ groups: [groupId] });
    return [...groups.get(groupId).members.keys()].join() === join.memberId;
  });
});
