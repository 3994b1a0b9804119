import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  progressOf,
  rateFrom,
  readStretches,
  secondReaching,
} from '../../../bench/drain/progress.ts';

test('events are read, counted ones too, without a line that is not whole', () => {
  const text = '7 1000 11000 3 0 42\n- 2000 102000 1 500\n- 3000 1';
  assert.deepEqual(readStretches(text), [
    { startMs: 1, endMs: 11, member: 3, count: 1 },
    { startMs: 2, endMs: 102, member: 1, count: 500 },
  ]);
});

test('the clock starts with the first record of the last member', () => {
  const one = (startMs: number, member: number) => ({
    ...{ startMs, endMs: startMs + 100, member, count: 1 },
  });
  const stretches = [one(0, 0), one(500, 0), one(1000, 1), one(1500, 0), one(2950, 1)];
  const { perSecond, joinedLateMs, handlerMs } = progressOf(stretches, 10_000);
  assert.equal(joinedLateMs, 1000);
  // What ended before is left out; the third second is whole, because the last record ends in it.
  assert.deepEqual(perSecond, [2, 0]);
  assert.equal(handlerMs, 100);
});

test('counted records lie evenly in their stretch', () => {
  const stretches = [
    { startMs: 0, endMs: 1500, member: 0, count: 150 },
    { startMs: 1500, endMs: 2500, member: 0, count: 300 },
  ];
  assert.deepEqual(progressOf(stretches, 10_000).perSecond, [100, 200]);
  assert.deepEqual(progressOf(stretches, 1000).perSecond, [100]);
});

test('a rate is that of the seconds after the client settled, or the last one', () => {
  assert.equal(rateFrom([10, 20, 30, 50], 2000), 40);
  assert.equal(rateFrom([10, 20], 5000), 20);
  assert.ok(Number.isNaN(rateFrom([], 0)));
});

test('a rate is reached in the first second that has it', () => {
  assert.equal(secondReaching([10, 20, 30, 20], 20), 1);
  assert.equal(secondReaching([10], 20), undefined);
});
