import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ProduceQueues, type ProduceTurn } from '../../src/broker/produce-queue.ts';
import { type Clock, systemClock } from '../../src/core/clock.ts';
import type { LargePart } from '../../src/replica/produce-planner.ts';
import { hollowBatch, toOpen } from '../replica/large-batches.ts';
import { topicSettings } from '../replica/topic-settings.ts';
import { CommandOpener } from './command-opener.ts';

const largePart: LargePart = { ...toOpen(hollowBatch(70_000)), settings: topicSettings };

/** Queues whose requests write down what becomes of them. */
class World {
  readonly opener = new CommandOpener();
  readonly soon: (() => void)[] = [];
  readonly clock: Clock = { ...systemClock, soon: (callback) => void this.soon.push(callback) };
  readonly queues = new ProduceQueues(this.opener, this.clock);
  readonly errors: unknown[] = [];
  readonly happened: string[] = [];

  openQueue() {
    return this.queues.open((error) => this.errors.push(error));
  }

  turn(name: string, { bytes = 10, larges = 0, breaks = false } = {}): ProduceTurn {
    let left = larges;
    return {
      bytes,
      plan: () => {
        if (left > 0) return [largePart];
        if (breaks) throw new Error(name);
        this.happened.push(name);
        return [];
      },
      takeOpened: () => void left--,
      refuse: () => void this.happened.push(`${name} refused`),
    };
  }
}

test('nothing waits while nothing has to be opened', () => {
  const world = new World();
  const queue = world.openQueue();
  queue.take(world.turn('a'));
  queue.take(world.turn('b'));
  assert.deepEqual(world.happened, ['a', 'b']);
});

test('what comes after a large request waits for it, on its connection alone', () => {
  const world = new World();
  const [queue, other] = [world.openQueue(), world.openQueue()];
  queue.take(world.turn('a'));
  queue.take(world.turn('large', { larges: 1 }));
  queue.take(world.turn('b'));
  queue.take(world.turn('large too', { larges: 1 }));
  queue.take(world.turn('c'));
  other.take(world.turn('other'));
  assert.deepEqual(world.happened, ['a', 'other']);
  assert.equal(world.opener.calls.length, 1, 'one request of a connection is opened at a time');
  world.opener.release();
  assert.deepEqual(world.happened, ['a', 'other', 'large', 'b']);
  world.opener.release();
  assert.deepEqual(world.happened.slice(4), ['large too', 'c']);
  queue.take(world.turn('d'));
  assert.equal(world.happened.at(-1), 'd');
});

test('a request may have to be opened more than once', () => {
  const world = new World();
  const queue = world.openQueue();
  queue.take(world.turn('large', { larges: 2 }));
  queue.take(world.turn('a'));
  world.opener.release();
  assert.deepEqual(world.happened, []);
  world.opener.release();
  assert.deepEqual(world.happened, ['large', 'a']);
});

test('much that has waited is planned in several turns of the loop', () => {
  const world = new World();
  const queue = world.openQueue();
  queue.take(world.turn('large', { larges: 1 }));
  for (let i = 0; i < 10; i++) queue.take(world.turn(`${i}`, { bytes: 60_000 }));
  world.opener.release();
  let turns = 1;
  for (let next = world.soon.shift(); next !== undefined; next = world.soon.shift()) {
    // What comes meanwhile is the last.
    if (turns++ === 1) queue.take(world.turn('late'));
    next();
  }
  assert.deepEqual(world.happened, [
    'large',
    ...Array.from({ length: 10 }, (_, i) => `${i}`),
    'late',
  ]);
  assert.equal(turns, 4);
});

test('a stop refuses all that waits', () => {
  const world = new World();
  const queue = world.openQueue();
  queue.take(world.turn('large', { larges: 1 }));
  queue.take(world.turn('a'));
  world.opener.stop();
  assert.deepEqual(world.happened, ['large refused', 'a refused']);
});

test('an error ends the queue: nothing is planned past what is missing', () => {
  const world = new World();
  const opening = world.openQueue();
  opening.take(world.turn('large', { larges: 1 }));
  opening.take(world.turn('a'));
  const failed = new Error('opening');
  world.opener.fail(failed);
  const planning = world.openQueue();
  planning.take(world.turn('planning', { larges: 1, breaks: true }));
  planning.take(world.turn('b'));
  world.opener.release();
  assert.deepEqual(world.errors, [failed, new Error('planning')]);
  assert.deepEqual(world.happened, []);
  assert.equal(world.soon.length, 0);
});

test('what a closed connection has sent is planned, unless too much of it waits', () => {
  const world = new World();
  const bytes = 30 * 1024 * 1024;
  const close = (name: string) => {
    const queue = world.openQueue();
    queue.take(world.turn(`${name} large`, { bytes, larges: 1 }));
    queue.take(world.turn(name));
    queue.onClose();
  };
  for (const name of ['a', 'b', 'c']) close(name);
  assert.equal(world.queues.closedBytes, 2 * (bytes + 10));
  assert.equal(world.opener.calls.length, 2, 'the opening for c is cancelled');
  world.opener.release();
  for (const next of world.soon.splice(0)) next();
  assert.deepEqual(world.happened, ['a large', 'a']);
  close('d');
  while (world.opener.calls.length > 0) world.opener.release();
  for (const next of world.soon.splice(0)) next();
  assert.deepEqual(world.happened, ['a large', 'a', 'b large', 'd large', 'b', 'd']);
  assert.equal(world.queues.closedBytes, 0);
});
