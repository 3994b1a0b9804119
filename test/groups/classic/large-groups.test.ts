import assert from 'node:assert/strict';
import { test } from 'node:test';
import { classicDefaults } from '../../../src/groups/classic/context.ts';
import { ClassicCoordinator } from '../../../src/groups/classic/coordinator.ts';
import type { Now } from '../../../src/groups/deadlines.ts';
import type { GroupImage } from '../../../src/groups/group-image.ts';
import { subscription } from './subscription.ts';

const at = (monotonicMs: number): Now => ({ monotonicMs, wallMs: monotonicMs });

function imageWith(memberCount: number): GroupImage {
  const members = Array.from({ length: memberCount }, (_, i) => ({
    memberId: `m${i}`,
    groupInstanceId: null,
    clientId: 'c',
    clientHost: '/127.0.0.1',
    rebalanceTimeoutMs: 60_000,
    sessionTimeoutMs: 10_000,
    protocols: [{ name: 'range', metadata: subscription(['t']) }],
    assignment: Buffer.from(`a${i}`),
  }));
  return {
    protocolType: 'consumer',
    generationId: 3,
    protocolName: 'range',
    leaderId: memberCount === 0 ? null : 'm0',
    stateTimestampMs: 0,
    members,
  };
}

function newCoordinator(writes: (GroupImage | null)[]): ClassicCoordinator {
  return new ClassicCoordinator(classicDefaults, {
    uuid: () => 'u',
    persist: (_, image, done) => {
      writes.push(image);
      done(true, at(0));
    },
  });
}

test('when thousands of sessions end at once, each turn expels a bounded number', () => {
  const writes: (GroupImage | null)[] = [];
  const coordinator = newCoordinator(writes);
  coordinator.restore('g', imageWith(5_000), at(0));
  let turns = 0;
  let left = 5_000;
  while (coordinator.nextDeadlineMs() <= 10_000) {
    coordinator.expire(at(10_000));
    const now = coordinator.describe('g', 5).members.length;
    assert.ok(left - now <= 1_000);
    left = now;
    turns++;
  }
  assert.equal(turns, 5);
  assert.equal(coordinator.describe('g', 5).groupState, 'Empty');
  assert.deepEqual(
    writes.map((image) => image?.members.length),
    [0],
    'one write for all of them',
  );
});

test('heartbeats keep the members of many groups, however many timers come up at once', () => {
  const coordinator = newCoordinator([]);
  const groupIds = Array.from({ length: 1_000 }, (_, i) => `g${i}`);
  for (const groupId of groupIds) coordinator.restore(groupId, imageWith(3), at(0));
  for (let nowMs = 3_000; nowMs <= 60_000; nowMs += 3_000) {
    for (const groupId of groupIds) {
      for (const memberId of ['m0', 'm1', 'm2']) {
        const request = { groupId, memberId, generationId: 3, groupInstanceId: null };
        assert.equal(coordinator.heartbeat(request, at(nowMs)), 0);
      }
    }
    while (coordinator.nextDeadlineMs() <= nowMs) coordinator.expire(at(nowMs));
  }
  for (const groupId of groupIds) {
    assert.equal(coordinator.describe(groupId, 5).groupState, 'Stable');
  }
});
