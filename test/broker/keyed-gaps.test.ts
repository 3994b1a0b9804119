/** Moments without an owner: no member has a lane, or the leader no lease. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { metadataRequest, metadataResponse } from '../../src/protocol/schema/03-metadata.ts';
import {
  offsetFetchRequest,
  offsetFetchResponse,
} from '../../src/protocol/schema/09-offset-fetch.ts';
import { KeyedMember, offsetsOf, send, started, texts } from './keyed-member.ts';

test('what comes between the last member that leaves and one that is joining is delivered', async (t) => {
  const { node, producer, member } = await started(t);
  await send(producer, 'orders', ['a=1']);
  await member.await();
  await member.commitAll();
  const next = await KeyedMember.connect(node, { groupId: 'g', topics: ['orders'] });
  const joining = next.join();
  while ((await member.heartbeat()) !== ErrorCode.REBALANCE_IN_PROGRESS);
  assert.equal(await member.leave(), ErrorCode.NONE);
  await joining;
  await send(producer, 'orders', ['a=2', 'b=1']);
  await next.assign({ [next.memberId]: [0] });
  await next.locate(0);
  assert.deepEqual(texts((await next.await()).records), ['a=2', 'b=1']);
  await send(producer, 'orders', ['a=3']);
  assert.deepEqual(texts((await next.await()).records), ['a=3']);
  await next.commitAll();
  assert.deepEqual(await offsetsOf(producer, 'g', 'orders', [0]), [4]);
});

test('a lane that is asked for while the lease has lapsed for a moment is not out of range', async (t) => {
  const { node, producer, member } = await started(t);
  await send(producer, 'orders', ['a=1', 'b=1']);
  await member.await();
  const { replica } = node.broker;
  // The lease is back as soon as somebody has looked.
  const answers = [false];
  Object.defineProperty(replica, 'mayAnswer', { get: () => answers.shift() ?? true });
  const { errorCode, records } = await member.fetch();
  assert.deepEqual([errorCode, records], [ErrorCode.NOT_LEADER_OR_FOLLOWER, []]);
  assert.equal(answers.length, 0);
  await send(producer, 'orders', ['a=2']);
  assert.deepEqual(texts((await member.await()).records), ['a=2']);
});

test('where a lane begins is told when that is durable, and not if it is lost', async (t) => {
  const { node, member } = await started(t);
  const { replica } = node.broker;
  const value = (done: (outcome: string) => void) => done('not-leader');
  Object.defineProperty(replica, 'afterPlanned', { value });
  const { groupId, memberId, topic } = member;
  const topics = [{ name: topic, partitionIndexes: [0] }];
  const answer = await member.client.ask(offsetFetchRequest, offsetFetchResponse, 9, {
    groups: [{ groupId, memberId, memberEpoch: -1, topics }],
  });
  assert.equal(answer.groups[0]!.errorCode, ErrorCode.NOT_COORDINATOR);
});

test('a member that asks for a lane of another one gets none of its records', async (t) => {
  const { node, producer, member } = await started(t);
  const second = await KeyedMember.connect(node, { groupId: 'g', topics: ['orders'] });
  const joining = second.join();
  while ((await member.heartbeat()) !== ErrorCode.REBALANCE_IN_PROGRESS);
  await member.join();
  await joining;
  await member.assign({ [member.memberId]: [0] });
  await second.sync();
  await member.locate(0);
  await send(producer, 'orders', ['a=1']);
  await second.locate(0);
  assert.deepEqual(texts((await second.fetch()).records), []);
  assert.deepEqual(texts((await member.await()).records), ['a=1']);
  await second.locate(0);
  assert.deepEqual(texts((await second.fetch()).records), []);
});

test('a member that rejoined without a new plan keeps what it is at when a plan takes its lane', async (t) => {
  const { node, producer, member } = await started(t, {}, 2);
  // Only a lane that it has got something from is given up.
  await send(producer, 'orders', ['z=1']);
  await member.await(0);
  await member.commitAll(0);
  const others: KeyedMember[] = [];
  /** A round without the first member; the newcomer leads it. */
  const round = async (lanes: (newcomer: KeyedMember) => Record<string, number[]>) => {
    const newcomer = await KeyedMember.connect(node, { groupId: 'g', topics: ['orders'] });
    const joining = newcomer.join();
    let isOver = false;
    void joining.then(() => {
      isOver = true;
    });
    const rejoining = others.map(async (other) => {
      while ((await other.heartbeat()) !== ErrorCode.REBALANCE_IN_PROGRESS);
      return other.join();
    });
    while (!isOver) {
      node.clock.advance(100);
      await producer.ask(metadataRequest, metadataResponse, 9, { topics: [] });
    }
    const joined = [await joining, ...(await Promise.all(rejoining))];
    const leader = [newcomer, ...others].find(({ memberId }) => memberId === joined[0]!.leader)!;
    await leader.assign(lanes(newcomer));
    for (const one of [newcomer, ...others]) if (one !== leader) await one.sync();
    others.push(newcomer);
  };
  await round((newcomer) => ({ [member.memberId]: [0], [newcomer.memberId]: [1] }));
  // It finds out, and is told the plan that there is: there is no new round.
  assert.equal(await member.heartbeat(), ErrorCode.REBALANCE_IN_PROGRESS);
  await member.join();
  await member.sync();
  await member.locate(0);
  await send(producer, 'orders', ['a=1']);
  assert.deepEqual(texts((await member.await(0)).records), ['a=1']);
  await round((newcomer) => ({ [newcomer.memberId]: [0], [others[0]!.memberId]: [1] }));
  for (const [i, other] of others.entries()) {
    const lane = 1 - i;
    await other.locate(lane);
    assert.deepEqual(texts((await other.fetch(lane)).records), []);
  }
});
