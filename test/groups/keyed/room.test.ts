import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  grantRoom,
  groupUnfinishedMax,
  isStocked,
  roomOf,
} from '../../../src/groups/keyed/room.ts';
import type { Waiter } from '../../../src/groups/keyed/waiters.ts';
import { promptTraits } from './clients.ts';
import { at, keyedSettings, newDispatcher } from './support.ts';

test('a group that never commits gets no more than it may have in all', () => {
  const dispatcher = newDispatcher({ ...keyedSettings, unfinishedMax: 10 * groupUnfinishedMax });
  const traits = promptTraits;
  const member = dispatcher.addMember({ id: 'm', traits, leaseMs: 1e9, sessionMs: 1e9 });
  dispatcher.openRange(0, 'm', at(0));
  assert.equal(roomOf(dispatcher, member, at(0)), keyedSettings.window);
  dispatcher.board.granted = groupUnfinishedMax - 3;
  assert.equal(roomOf(dispatcher, member, at(0)), 3);
  dispatcher.board.granted = groupUnfinishedMax;
  assert.equal(roomOf(dispatcher, member, at(0)), 0);
});

/** Four members with a lane each, and records of as many keys; windows follow the members' speed. */
function fourMembers(records: number, traits = promptTraits) {
  const dispatcher = newDispatcher({ ...keyedSettings, window: undefined });
  for (let lane = 0; lane < 4; lane++) {
    const id = `m${lane}`;
    dispatcher.addMember({ id, traits, leaseMs: 1e9, sessionMs: 1e9 });
    dispatcher.openRange(lane, id, at(0));
  }
  const file = (baseOffset: number, count: number) => {
    const keys = Array.from({ length: count }, (_, i) => `k${baseOffset + i}`);
    const ends = keys.map((_, i) => 10 * (i + 1));
    const batch = { partition: 0, baseOffset, position: baseOffset, keys, ends };
    dispatcher.filing.file({ ...batch, bytes: 10 * count, offsetCount: count }, at(0));
  };
  const fetchOf = (lane: number): Waiter => {
    const range = dispatcher.presentRange(lane)!;
    return { member: range.member, ranges: [range], bytesMax: 1e6, laneBytesMax: 1e6 };
  };
  file(0, records);
  return { dispatcher, file, fetchOf };
}

test('what is ready is shared with fetches that wait for it, not with those of busy members', () => {
  const { dispatcher, fetchOf } = fourMembers(8);
  const room = (lane: number) => grantRoom(dispatcher, fetchOf(lane).member, at(0));
  assert.equal(room(0), 4, 'twice its part');
  for (const lane of [0, 1, 2, 3]) dispatcher.waiters.park(fetchOf(lane));
  assert.equal(room(0), 2, 'one of four that have nothing');
  for (const lane of [1, 2, 3]) fetchOf(lane).member.inHand = 1;
  assert.equal(room(0), 4, 'the only one that has nothing');
});

test('a member that commits all it has before it asks for more gets nothing beside that', () => {
  /** It handles one record after the other; what may it get beside the next one? */
  const roomBesideOne = (steps: readonly ('commits' | 'only asks')[], traits = promptTraits) => {
    const { dispatcher, file, fetchOf } = fourMembers(1, traits);
    const { member } = fetchOf(0);
    for (const [i, step] of steps.entries()) {
      dispatcher.grant(fetchOf(0), at(i));
      const range = dispatcher.presentRange(0)!;
      if (step === 'commits') dispatcher.commit('m0', new Map([[0, range.end]]), at(i));
      else dispatcher.prove(member, [range], at(i));
      file(i + 1, 1);
    }
    dispatcher.grant(fetchOf(0), at(steps.length));
    assert.equal(member.inHand, 1);
    file(steps.length + 1, 400);
    return roomOf(dispatcher, member, at(steps.length));
  };
  assert.ok(roomBesideOne([]) > 0);
  assert.ok(roomBesideOne(['commits', 'commits']) > 0);
  assert.equal(roomBesideOne(['commits', 'commits', 'commits']), 0);
  assert.ok(roomBesideOne(['commits', 'commits', 'commits', 'only asks']) > 0);
  // With a queue of its own it has something in hand after each commit, and would be kept short.
  const queueing = { ...promptTraits, fetchesInBackground: true };
  assert.ok(roomBesideOne(['commits', 'commits', 'commits'], queueing) > 1);
});

test('what waits of keys that a member holds is in stock for it alone, and while it goes on', () => {
  const dispatcher = newDispatcher({ ...keyedSettings, window: 10 });
  const join = (lane: number) => {
    const id = `m${lane}`;
    dispatcher.addMember({ id, traits: promptTraits, leaseMs: 1e9, sessionMs: 1e9 });
    dispatcher.openRange(lane, id, at(0));
  };
  const ends = Array.from({ length: 40 }, (_, i) => 10 * (i + 1));
  const keys = ends.map((_, i) => `k${i % 2}`);
  const batch = { partition: 0, baseOffset: 0, position: 0, offsetCount: 40, bytes: 400 };
  dispatcher.filing.file({ ...batch, keys, ends }, at(0));
  const stock = (nowMs: number) => {
    let records = 0;
    while (isStocked(dispatcher, records + 1, at(nowMs))) records++;
    return records;
  };
  join(0);
  assert.equal(stock(0), 40, 'all of it is ready');
  const range = dispatcher.presentRange(0)!;
  const { member } = range;
  dispatcher.grant({ member, ranges: [range], bytesMax: 1e6, laneBytesMax: 1e6 }, at(0));
  assert.equal(member.inHand, 10);
  assert.equal(stock(0), 30, 'it will get the rest after a commit');
  assert.equal(stock(1000), 0, 'its window is full, and has been for long');
  dispatcher.commit('m0', new Map([[0, range.start + 5]]), at(1000));
  assert.equal(stock(1000), 30, 'it goes on');
  join(1);
  assert.equal(stock(1000), 0, 'there is nothing for the other one');
});
