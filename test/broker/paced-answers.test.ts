import assert from 'node:assert/strict';
import test from 'node:test';
import { PacedAnswers } from '../../src/broker/paced-answers.ts';
import { systemClock } from '../../src/core/clock.ts';

/** Turns of the loop come when the test says so. */
class Turns {
  readonly answers: PacedAnswers;
  readonly sent: number[] = [];
  #soon: (() => void)[] = [];

  constructor() {
    this.answers = new PacedAnswers({
      ...systemClock,
      soon: (callback) => void this.#soon.push(callback),
    });
  }

  get pending(): number {
    return this.#soon.length;
  }

  next(): void {
    for (const callback of this.#soon.splice(0)) callback();
  }

  send(from: number, end: number): void {
    const answer = this.answers.paced((value: number) => void this.sent.push(value));
    for (let value = from; value < end; value++) answer(value);
  }
}

const upTo = (end: number) => Array.from({ length: end }, (_, i) => i);

test('few answers go out at once, many over several turns and in order', () => {
  const turns = new Turns();
  turns.send(0, 3);
  assert.deepEqual(turns.sent, upTo(3));
  turns.send(3, 1000);
  assert.deepEqual(turns.sent, upTo(256));
  turns.next();
  assert.deepEqual(turns.sent, upTo(512));
  // These come behind what waits.
  turns.send(1000, 1010);
  while (turns.pending > 0) turns.next();
  assert.deepEqual(turns.sent, upTo(1010));
  assert.equal(turns.pending, 0, 'nothing is left that would run');
  turns.send(1010, 1011);
  assert.deepEqual(turns.sent, upTo(1011));
});

test('what an answer brings about keeps the order too', () => {
  const turns = new Turns();
  let next = 300;
  const answer = turns.answers.paced((value: number) => {
    turns.sent.push(value);
    if (value < 300) follow(next++);
  });
  const follow = turns.answers.paced((value: number) => void turns.sent.push(value));
  for (let value = 0; value < 300; value++) answer(value);
  while (turns.pending > 0) turns.next();
  assert.equal(turns.sent.length, 600);
  const first = turns.sent.filter((value) => value < 300);
  const second = turns.sent.filter((value) => value >= 300);
  assert.deepEqual([...first, ...second], upTo(600));
});
