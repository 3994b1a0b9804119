import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { leaveGroupRequest, leaveGroupResponse } from '../../src/protocol/schema/13-leave-group.ts';
import { commit, committed, Member } from './group-client.ts';
import { startTestNode, type TestNode, until } from './support.ts';

/** Members of one group, each on a connection of its own. */
async function members(node: TestNode, count: number, groupId = 'group'): Promise<Member[]> {
  const made: Member[] = [];
  for (let i = 0; i < count; i++) {
    made.push(new Member(await node.connect(`client-${i}`), { groupId }));
  }
  return made;
}

/**
 * Brings members into one generation, each as a client would: it joins, syncs, and joins again
 * whenever it hears of a new round. The leader assigns to each member its own id.
 */
async function rebalance(round: readonly Member[]): Promise<void> {
  const settled = new Set<Member>();
  const isOver = () => {
    const generations = new Set(round.map(({ generationId }) => generationId));
    return settled.size === round.length && generations.size === 1;
  };
  await Promise.all(
    round.map(async (member) => {
      while (!isOver()) {
        settled.delete(member);
        if (!(await joinAndSync(member))) continue;
        settled.add(member);
        await until(
          async () => isOver() || (await member.heartbeat()) !== ErrorCode.NONE,
          'the round ends',
        );
      }
    }),
  );
}

async function joinAndSync(member: Member): Promise<boolean> {
  const { members, leader, memberId } = await member.join();
  const isLeader = leader === memberId;
  const own = members.map((each) => [each.memberId, each.memberId]);
  const { errorCode } = await member.sync(isLeader ? Object.fromEntries(own) : {});
  return errorCode === ErrorCode.NONE;
}

test('members of a group share it out, and go on when one leaves', async (t) => {
  const node = await startTestNode(t);
  const [a, b, c] = await members(node, 3);
  await rebalance([a!, b!, c!]);
  for (const member of [a!, b!, c!]) {
    assert.equal(member.assignment, member.memberId);
    assert.equal(await member.heartbeat(), ErrorCode.NONE);
  }
  assert.equal(await b!.leave(), ErrorCode.NONE);
  assert.equal(await a!.heartbeat(), ErrorCode.REBALANCE_IN_PROGRESS);
  assert.equal(await b!.heartbeat(), ErrorCode.UNKNOWN_MEMBER_ID);
  await rebalance([a!, c!]);
  assert.equal(await a!.heartbeat(), ErrorCode.NONE);
  assert.equal(await c!.heartbeat(), ErrorCode.NONE);
});

test('every version of join, sync, heartbeat and leave', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  for (let version = 0; version <= 9; version++) {
    const member = new Member(client, { groupId: `group-${version}` });
    const joined = await member.join(version);
    assert.equal(joined.leader, member.memberId, `JoinGroup ${version}`);
    assert.equal(joined.protocolName, 'range');
    assert.equal(joined.protocolType, version >= 7 ? 'consumer' : null);
    assert.deepEqual(
      joined.members.map(({ memberId }) => memberId),
      [member.memberId],
    );
    const syncVersion = Math.min(version, 5);
    const synced = await member.sync({ [member.memberId]: 'all' }, syncVersion);
    assert.equal(synced.errorCode, ErrorCode.NONE, `SyncGroup ${syncVersion}`);
    assert.equal(synced.assignment.toString(), 'all');
    assert.equal(await member.heartbeat(Math.min(version, 4)), ErrorCode.NONE);
    const leaveVersion = Math.min(version, 5);
    const { groupId, memberId } = member;
    const leaving = leaveVersion < 3 ? { groupId, memberId } : { groupId, members: [{ memberId }] };
    const leave = () => client.ask(leaveGroupRequest, leaveGroupResponse, leaveVersion, leaving);
    const [left, again] = [await leave(), await leave()];
    assert.equal(left.errorCode, ErrorCode.NONE);
    const { NONE, UNKNOWN_MEMBER_ID } = ErrorCode;
    assert.equal(again.errorCode, leaveVersion < 3 ? UNKNOWN_MEMBER_ID : NONE);
    if (leaveVersion >= 3) assert.equal(again.members[0]!.errorCode, UNKNOWN_MEMBER_ID);
  }
});

test('a new member gets its id first from JoinGroup version 4 on', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect('my client');
  for (let version = 0; version <= 9; version++) {
    const member = new Member(client, { groupId: `group-${version}` });
    const { errorCode, memberId } = await member.askToJoin(version);
    const expected = version < 4 ? ErrorCode.NONE : ErrorCode.MEMBER_ID_REQUIRED;
    assert.equal(errorCode, expected, `version ${version}`);
    assert.match(memberId, /^my client-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-/);
  }
});

test('errors of JoinGroup', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  await new Member(client, { groupId: 'group' }).joinAlone();
  const tooLong = 1_800_001;
  const cases = [
    { changes: { groupId: '' }, error: ErrorCode.INVALID_GROUP_ID },
    { changes: { sessionTimeoutMs: 99 }, error: ErrorCode.INVALID_SESSION_TIMEOUT },
    { changes: { sessionTimeoutMs: tooLong }, error: ErrorCode.INVALID_SESSION_TIMEOUT },
    { changes: { memberId: 'nobody' }, error: ErrorCode.UNKNOWN_MEMBER_ID },
    { changes: { protocolType: 'connect' }, error: ErrorCode.INCONSISTENT_GROUP_PROTOCOL },
    { changes: { protocols: [] }, error: ErrorCode.INCONSISTENT_GROUP_PROTOCOL },
    {
      changes: { protocols: [{ name: 'sticky', metadata: Buffer.alloc(0) }] },
      error: ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    },
  ];
  for (const { changes, error } of cases) {
    for (const version of [0, 6, 7, 9]) {
      const answer = await new Member(client, { groupId: 'group' }).askToJoin(version, changes);
      assert.equal(answer.errorCode, error, `${JSON.stringify(changes)} in version ${version}`);
      assert.equal(answer.protocolName, version < 7 ? '' : null);
    }
  }
});

test('errors of SyncGroup, Heartbeat and LeaveGroup', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const member = new Member(client, { groupId: 'group' });
  await member.joinAlone();
  const syncErrors = [
    { changes: { groupId: '' }, error: ErrorCode.INVALID_GROUP_ID },
    { changes: { memberId: 'nobody' }, error: ErrorCode.UNKNOWN_MEMBER_ID },
    { changes: { generationId: 7 }, error: ErrorCode.ILLEGAL_GENERATION },
    { changes: { protocolName: 'other' }, error: ErrorCode.INCONSISTENT_GROUP_PROTOCOL },
    { changes: { protocolType: null }, error: ErrorCode.INCONSISTENT_GROUP_PROTOCOL },
  ];
  for (const { changes, error } of syncErrors) {
    const { errorCode } = await member.sync({}, 5, changes);
    assert.equal(errorCode, error, JSON.stringify(changes));
  }
  const other = new Member(client, { groupId: 'group' });
  other.memberId = 'nobody';
  assert.equal(await other.heartbeat(), ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(await other.leave(), ErrorCode.UNKNOWN_MEMBER_ID);
  const unnamed = new Member(client, { groupId: '' });
  assert.equal(await unnamed.heartbeat(), ErrorCode.INVALID_GROUP_ID);
  assert.equal(await unnamed.leave(), ErrorCode.INVALID_GROUP_ID);
  member.generationId++;
  assert.equal(await member.heartbeat(), ErrorCode.ILLEGAL_GENERATION);
});

test('a member whose connection closes stays until its session ends', async (t) => {
  const node = await startTestNode(t);
  const [a, b] = await members(node, 2);
  await rebalance([a!, b!]);
  b!.client.close();
  await b!.client.closed;
  assert.equal(await a!.heartbeat(), ErrorCode.NONE);
  b!.client = await node.connect();
  assert.equal(await b!.heartbeat(), ErrorCode.NONE);
  for (let seconds = 0; seconds < 35; seconds++) {
    node.clock.advance(1000);
    if ((await a!.heartbeat()) === ErrorCode.REBALANCE_IN_PROGRESS) break;
  }
  assert.equal(await b!.heartbeat(), ErrorCode.UNKNOWN_MEMBER_ID);
});

test('a JoinGroup that is parked ends with its connection, the member does not', async (t) => {
  const node = await startTestNode(t);
  const [a, b] = await members(node, 2);
  await rebalance([a!, b!]);
  const parked = b!.askToJoin(9, {
    protocols: [{ name: 'range', metadata: Buffer.from('changed') }],
  });
  await until(async () => (await a!.heartbeat()) !== ErrorCode.NONE, 'the round begins');
  b!.client.close();
  await assert.rejects(parked);
  b!.client = await node.connect();
  await rebalance([a!, b!]);
  assert.equal(await b!.heartbeat(), ErrorCode.NONE);
});

test('members live on through a restart of the node and need not join again', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('topic');
  const round = await members(node, 3);
  await rebalance(round);
  assert.equal(await round[0]!.commit('topic', 0, 41), ErrorCode.NONE);
  await node.restart();
  for (const member of round) {
    member.client = await node.connect();
    assert.equal(await member.heartbeat(), ErrorCode.NONE);
    const synced = await member.sync();
    assert.equal(synced.errorCode, ErrorCode.NONE);
    assert.equal(member.assignment, member.memberId);
  }
  assert.equal(await round[1]!.commit('topic', 0, 42), ErrorCode.NONE);
  assert.deepEqual(await committed(round[0]!.client, 'group'), ['topic-0: 42']);
});

test('a member that does not come back after a restart is gone when its session ends', async (t) => {
  const node = await startTestNode(t);
  const [a, b] = await members(node, 2);
  await rebalance([a!, b!]);
  await node.restart();
  a!.client = await node.connect();
  assert.equal(await a!.heartbeat(), ErrorCode.NONE);
  for (let seconds = 0; seconds < 35; seconds++) {
    node.clock.advance(1000);
    if ((await a!.heartbeat()) === ErrorCode.REBALANCE_IN_PROGRESS) break;
  }
  await rebalance([a!]);
  assert.equal(await a!.heartbeat(), ErrorCode.NONE);
});

test('a static member comes back under its instance id, without a round', async (t) => {
  const node = await startTestNode(t);
  const options = { groupId: 'group', groupInstanceId: 'one' };
  const first = new Member(await node.connect(), options);
  await first.joinAlone('mine');
  await node.restart();
  const second = new Member(await node.connect(), options);
  const joined = await second.join();
  assert.equal(joined.generationId, first.generationId);
  assert.notEqual(second.memberId, first.memberId);
  const synced = await second.sync();
  assert.equal(synced.assignment.toString(), 'mine');
  first.client = await node.connect();
  assert.equal(await first.heartbeat(), ErrorCode.FENCED_INSTANCE_ID);
});

test('an admin client removes static members by their instance id alone', async (t) => {
  const node = await startTestNode(t);
  const client = await node.connect();
  const member = new Member(client, { groupId: 'group', groupInstanceId: 'one' });
  await member.joinAlone();
  const answer = await client.ask(leaveGroupRequest, leaveGroupResponse, 4, {
    groupId: 'group',
    members: [
      { memberId: '', groupInstanceId: 'one' },
      { memberId: '', groupInstanceId: 'two' },
    ],
  });
  assert.deepEqual(
    answer.members.map(({ errorCode }) => errorCode),
    [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID],
  );
  assert.equal(await member.heartbeat(), ErrorCode.UNKNOWN_MEMBER_ID);
});

test('commits keep a member alive as heartbeats do', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('topic');
  const client = await node.connect();
  const member = new Member(client, { groupId: 'group', sessionTimeoutMs: 10_000 });
  await member.joinAlone();
  for (let seconds = 0; seconds < 30; seconds++) {
    node.clock.advance(1000);
    if (seconds % 5 === 0) {
      assert.equal(await member.commit('topic', 0, seconds), ErrorCode.NONE);
    }
  }
  assert.equal(await member.heartbeat(), ErrorCode.NONE);
});

test('while members are in a group nobody else commits to it', async (t) => {
  const node = await startTestNode(t);
  await node.createTopic('topic');
  const client = await node.connect();
  const member = new Member(client, { groupId: 'group' });
  await member.joinAlone();
  assert.equal(await commit(client, 'group', 'topic', 0, 1), ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(await member.leave(), ErrorCode.NONE);
  assert.equal(await commit(client, 'group', 'topic', 0, 1), ErrorCode.NONE);
});

test('parked members are told of the stop of the node', async (t) => {
  const node = await startTestNode(t);
  const [a, b] = await members(node, 2);
  await rebalance([a!, b!]);
  const changed = [{ name: 'range', metadata: Buffer.from('changed') }];
  const parked = b!.askToJoin(9, { protocols: changed });
  await until(async () => (await a!.heartbeat()) !== ErrorCode.NONE, 'the round begins');
  node.broker.finishParked();
  assert.equal((await parked).errorCode, ErrorCode.NOT_COORDINATOR);
});
