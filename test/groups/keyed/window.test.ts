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

/** Of a member that proves nothing: commits every five seconds, and what its window is after each. */
function sizesAfter(
  commits: readonly (readonly [finished: number, left: number, wasFull: boolean])[],
  demand: { readyRecords: number; members: number },
) {
  const window = new Window(earlyTraits, undefined);
  const full = { ...demand, heldRecords: 0 };
  return commits.map(([finished, left, wasFull], i) => {
    window.onCommit(finished, left, wasFull, full, 5000 * (i + 1));
    return window.size(full);
  });
}

test('a window that only commits tell of follows what its member finishes', () => {
  const few = { readyRecords: 0, members: 8 };
  // The first commit may come at any time after the first record.
  assert.deepEqual(sizesAfter([[1, 200, false]], few), [256]);
  // Behind with its work: so many it can do. With time left it can do more.
  assert.deepEqual(
    sizesAfter(
      [
        [1, 0, false],
        [100, 20, false],
      ],
      few,
    ),
    [256, 125],
  );
  assert.deepEqual(
    sizesAfter(
      [
        [1, 0, false],
        [100, 0, false],
      ],
      few,
    ),
    [256, 400],
  );
  assert.deepEqual(
    sizesAfter(
      [
        [1, 0, false],
        [10, 0, false],
      ],
      few,
    ),
    [256, 256],
  );
  // One that is alone has nobody to leave anything to.
  const alone = { readyRecords: 1000, members: 1 };
  assert.deepEqual(
    sizesAfter(
      [
        [1, 0, false],
        [4, 20, false],
      ],
      alone,
    ),
    [256, 256],
  );
});

test('of a backlog each takes half of its part, but no less than it will finish', () => {
  const backlog = { readyRecords: 8000, members: 8 };
  const leisurely = [1, 0, false] as const;
  assert.deepEqual(sizesAfter([leisurely, [500, 0, false]], backlog).at(-1), 625);
  assert.deepEqual(sizesAfter([leisurely, [50, 10, false]], backlog).at(-1), 63);
  assert.deepEqual(sizesAfter([leisurely, [300, 0, false]], backlog).at(-1), 500);
});

test('what is queued in a client of which only commits tell is guessed from its last ones', () => {
  const demand = { readyRecords: 0, heldRecords: 0, members: 8 };
  const window = new Window(earlyTraits, undefined);
  assert.equal(window.queuedOf(100, 0), 100);
  window.onCommit(1, 0, false, demand, 5000);
  window.onCommit(500, 0, false, demand, 10_000);
  assert.equal(window.queuedOf(100, 10_000), 100);
  assert.equal(window.queuedOf(100, 10_500), 50);
  assert.equal(window.queuedOf(100, 12_000), 0);
  // No commit where one was due: it is held up.
  assert.equal(window.queuedOf(100, 17_000), 100);
});
