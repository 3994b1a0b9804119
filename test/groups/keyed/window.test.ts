import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Window } from '../../../src/groups/keyed/window.ts';
import { earlyTraits } from './clients.ts';

test('a window that only commits tell of has no bound of its own', () => {
  const window = new Window(earlyTraits, undefined);
  const demand = { readyRecords: 100_000_000, heldRecords: 0, members: 1 };
  const sizes = [window.size(demand)];
  for (let nowMs = 5000; nowMs <= 20_000; nowMs += 5000) {
    window.onCommit(sizes.at(-1)!, 0, true, demand, nowMs);
    sizes.push(window.size(demand));
  }
  // Every five seconds: with a million, no member would ever handle more than 200,000 a second.
  assert.deepEqual(sizes, [256, 1024, 16_384, 262_144, 4_194_304]);
});
