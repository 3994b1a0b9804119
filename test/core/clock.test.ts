import assert from 'node:assert/strict';
import test from 'node:test';
import { systemClock } from '../../src/core/clock.ts';

test('timers run once after their delay, also after months, and can be taken back', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const dayMs = 86_400_000;
  const ran: string[] = [];
  systemClock.after(10, () => ran.push('soon'));
  systemClock.after(60 * dayMs, () => ran.push('late'));
  const cancel = systemClock.after(61 * dayMs, () => ran.push('never'));
  const longestMs = 2 ** 31 - 1;
  t.mock.timers.tick(10);
  assert.deepEqual(ran, ['soon']);
  t.mock.timers.tick(longestMs - 10);
  t.mock.timers.tick(longestMs);
  t.mock.timers.tick(60 * dayMs - 2 * longestMs - 1);
  assert.deepEqual(ran, ['soon']);
  t.mock.timers.tick(1);
  assert.deepEqual(ran, ['soon', 'late']);
  cancel();
  t.mock.timers.tick(10 * dayMs);
  assert.deepEqual(ran, ['soon', 'late']);
});
