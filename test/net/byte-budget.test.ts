import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BudgetWaiter, ByteBudget, readBytesMax } from '../../src/net/byte-budget.ts';

class Waiter implements BudgetWaiter {
  busy: boolean;
  readonly #name: string;
  readonly #woken: string[];

  constructor(name: string, busy: boolean, woken: string[]) {
    this.#name = name;
    this.busy = busy;
    this.#woken = woken;
  }

  wake(): void {
    this.#woken.push(this.#name);
  }
}

function exhausted(): { budget: ByteBudget; woken: string[] } {
  const budget = new ByteBudget(10 * readBytesMax, 1000);
  budget.add(10 * readBytesMax);
  return { budget, woken: [] };
}

test('everyone is admitted while there is room', () => {
  const { budget, woken } = exhausted();
  budget.add(-1);
  assert(budget.admits(new Waiter('a', true, woken), false));
  assert.equal(budget.waitingCount, 0);
});

test('waiters are woken in order of coming, as many as there is room for', () => {
  const { budget, woken } = exhausted();
  for (const name of ['a', 'b', 'c', 'd']) {
    assert(!budget.admits(new Waiter(name, true, woken), false));
  }
  budget.wakeWaiters();
  assert.equal(woken.join(), '');
  budget.add(-2 * readBytesMax);
  budget.wakeWaiters();
  assert.equal(woken.join(), 'a,b');
  budget.wakeWaiters();
  assert.equal(woken.join(), 'a,b,c,d');
  assert.equal(budget.waitingCount, 0);
});

test('nobody overtakes those who wait', () => {
  const { budget, woken } = exhausted();
  const a = new Waiter('a', true, woken);
  const b = new Waiter('b', true, woken);
  assert(!budget.admits(a, false));
  budget.add(-readBytesMax);
  assert(!budget.admits(b, false), 'there is room, but it is for a');
  budget.wakeWaiters();
  assert.equal(woken.join(), 'a');
  assert(budget.admits(a, true));
});

test('one idle connection at a time goes on in spite of the bound', () => {
  const { budget, woken } = exhausted();
  const busy = new Waiter('busy', true, woken);
  const first = new Waiter('first', false, woken);
  const second = new Waiter('second', false, woken);
  for (const waiter of [busy, first, second]) assert(!budget.admits(waiter, false));
  budget.wakeWaiters();
  budget.wakeWaiters();
  assert.equal(woken.join(), 'first', 'not the busy one, whose answers make room by themselves');
  assert(budget.admits(first, true));
  assert(budget.admits(first, false), 'it stays the elder');
  assert(!budget.admits(second, false));
  budget.onDispatched(first, 500);
  first.busy = true;
  assert(!budget.admits(first, false), 'its next frame waits like others');
  budget.wakeWaiters();
  assert.equal(woken.join(), 'first,second');
  budget.forget(second);
  assert.equal(budget.waitingCount, 2);
});

test('no elder is chosen while elders have too much unanswered', () => {
  const { budget, woken } = exhausted();
  const first = new Waiter('first', false, woken);
  const second = new Waiter('second', false, woken);
  assert(!budget.admits(first, false));
  budget.wakeWaiters();
  budget.onDispatched(first, 1000);
  assert(!budget.admits(second, false));
  budget.wakeWaiters();
  assert.equal(woken.join(), 'first');
  budget.onAnswered(first);
  budget.onAnswered(first);
  budget.wakeWaiters();
  assert.equal(woken.join(), 'first,second');
});

test('a waiter that is gone is not woken', () => {
  const { budget, woken } = exhausted();
  const a = new Waiter('a', true, woken);
  assert(!budget.admits(a, false));
  assert(!budget.admits(new Waiter('b', true, woken), false));
  budget.forget(a);
  budget.add(-10 * readBytesMax);
  budget.wakeWaiters();
  assert.equal(woken.join(), 'b');
});
