import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { Deadlines, type Now, Timer } from '../../src/groups/deadlines.ts';

const at = (monotonicMs: number): Now => ({ monotonicMs, wallMs: 0 });

test('a timer fires once, when its time has come, with the time of the call', () => {
  const deadlines = new Deadlines();
  const fired: number[] = [];
  const timer = new Timer((now) => fired.push(now.monotonicMs));
  assert.equal(deadlines.nextMs(), Number.POSITIVE_INFINITY);
  deadlines.schedule(timer, 100);
  assert.equal(deadlines.nextMs(), 100);
  assert.equal(deadlines.expire(at(99), 10), 0);
  assert.equal(deadlines.expire(at(105), 10), 1);
  assert.equal(deadlines.expire(at(200), 10), 0);
  assert.deepEqual(fired, [105]);
  assert.equal(timer.isScheduled, false);
});

test('a timer can be moved both ways and cancelled', () => {
  const deadlines = new Deadlines();
  const timer = new Timer(() => {});
  deadlines.schedule(timer, 100);
  deadlines.schedule(timer, 300);
  assert.equal(deadlines.nextMs(), 300);
  deadlines.schedule(timer, 50);
  assert.equal(deadlines.nextMs(), 50);
  deadlines.cancel(timer);
  deadlines.cancel(timer);
  assert.equal(deadlines.nextMs(), Number.POSITIVE_INFINITY);
  assert.equal(deadlines.size, 0);
});

test('one call fires no more than it may, the rest is due at once', () => {
  const deadlines = new Deadlines();
  for (let i = 0; i < 5; i++) deadlines.schedule(new Timer(() => {}), i);
  assert.equal(deadlines.expire(at(10), 2), 2);
  assert.equal(deadlines.nextMs(), 2);
  assert.equal(deadlines.expire(at(10), 10), 3);
});

test('a timer that schedules itself into the past does not hang the loop', () => {
  const deadlines = new Deadlines();
  const timer: Timer = new Timer((now) => deadlines.schedule(timer, now.monotonicMs));
  deadlines.schedule(timer, 1);
  assert.equal(deadlines.expire(at(1), 7), 7);
});

test('one look and one turn sort in a bounded number of moved timers', () => {
  const deadlines = new Deadlines();
  const fired: number[] = [];
  const timers = Array.from({ length: 1_000 }, (_, id) => new Timer(() => fired.push(id)));
  for (const timer of timers) deadlines.schedule(timer, 100);
  for (const timer of timers) deadlines.schedule(timer, 300);
  assert.equal(deadlines.nextMs(), 100, 'some of them are still sorted by their former time');
  let turns = 0;
  while (deadlines.nextMs() <= 200) {
    assert.ok(deadlines.expire(at(200), 100) <= 100);
    turns++;
  }
  assert.ok(turns > 3 && turns <= 10, `${turns} turns`);
  assert.equal(deadlines.nextMs(), 300);
  assert.deepEqual(fired, []);
});

test('a timer that comes up seconds late waits for what lies unread', () => {
  const deadlines = new Deadlines();
  const fired: number[] = [];
  const timer = new Timer((now) => fired.push(now.monotonicMs));
  deadlines.schedule(timer, 100);
  deadlines.expire(at(60_000), 10);
  assert.deepEqual(fired, []);
  assert.equal(deadlines.nextMs(), 61_000);
  deadlines.expire(at(61_000), 10);
  assert.deepEqual(fired, [61_000]);
});

test('random schedules agree with a sorted list', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = seededRandom(seed);
    const below = (max: number): number => Math.floor(random.next() * max);
    const deadlines = new Deadlines();
    const expected = new Map<number, number>();
    const fired: number[] = [];
    const timers = Array.from({ length: 40 }, (_, id) => new Timer(() => fired.push(id)));
    let nowMs = 0;
    for (let step = 0; step < 400; step++) {
      const id = below(timers.length);
      const choice = below(4);
      if (choice < 2) {
        const deadlineMs = nowMs + 1 + below(100);
        deadlines.schedule(timers[id]!, deadlineMs);
        expected.set(id, deadlineMs);
      } else if (choice === 2) {
        deadlines.cancel(timers[id]!);
        expected.delete(id);
      } else {
        nowMs += below(20);
        fired.length = 0;
        deadlines.expire(at(nowMs), Number.POSITIVE_INFINITY);
        const due = [...expected].filter(([, ms]) => ms <= nowMs);
        const order = fired.map((one) => expected.get(one)!);
        assert.deepEqual(
          order,
          due.map(([, ms]) => ms).sort((a, b) => a - b),
        );
        for (const [one] of due) expected.delete(one);
      }
      const earliest = Math.min(Number.POSITIVE_INFINITY, ...expected.values());
      assert.equal(deadlines.nextMs(), earliest);
      assert.equal(deadlines.size, expected.size);
    }
  }
});
