import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groupUnfinishedMax, roomOf } from '../../../src/groups/keyed/room.ts';
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
