import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReadyQueue } from '../../../src/groups/keyed/ready-queue.ts';
import { none, RecordStore } from '../../../src/groups/keyed/record-store.ts';

const recordsEach = 4;

/** Batches of four records, and a queue of those that are said to be ready. */
class Rig {
  readonly store = new RecordStore();
  readonly #ready = new Set<number>();
  readonly queue = new ReadyQueue(this.store, (ref) => this.#ready.has(ref));

  /** Answers the first record. */
  file(position: number): number {
    const keys = new Array<null>(recordsEach).fill(null);
    const place = { partition: 0, baseOffset: position, offsetCount: recordsEach, position };
    return this.store.first[this.store.add({ ...place, bytes: 1, keys, ends: [] })]!;
  }

  add(...refs: number[]): void {
    for (const ref of refs) {
      this.#ready.add(ref);
      this.queue.add(ref);
    }
  }

  /** Not ready any more, by another way than the queue. */
  drop(...refs: number[]): void {
    for (const ref of refs) this.#ready.delete(ref);
  }

  /** All that is ready, in the order of the queue. */
  drain(): number[] {
    const found: number[] = [];
    for (let ref = this.queue.peek(); ref !== none; ref = this.queue.peek()) {
      found.push(ref);
      this.drop(ref);
    }
    return found;
  }
}

test('the oldest comes first, in whatever order they become ready', () => {
  const rig = new Rig();
  const [a, b, c] = [rig.file(10), rig.file(20), rig.file(30)];
  rig.add(c + 1, a + 3, b + 2, a + 1, c, b);
  assert.deepEqual(rig.drain(), [a + 1, a + 3, b, b + 2, c, c + 1]);
});

test('one that becomes ready again is found again', () => {
  const rig = new Rig();
  const [a, b] = [rig.file(10), rig.file(20)];
  rig.add(a + 2, b);
  assert.equal(rig.queue.peek(), a + 2);
  rig.drop(a + 2);
  assert.equal(rig.queue.peek(), b);
  rig.add(a + 1);
  assert.equal(rig.queue.peek(), a + 1);
  rig.add(a);
  assert.deepEqual(rig.drain(), [a, a + 1, b]);
  rig.add(a + 3);
  assert.deepEqual(rig.drain(), [a + 3]);
});

test('a batch that was let go is passed over, and its number stands for the next one', () => {
  const rig = new Rig();
  const [a, b] = [rig.file(10), rig.file(20)];
  rig.add(a, b);
  rig.drop(a);
  rig.store.free(rig.store.batchOf[a]!);
  const again = rig.file(30);
  assert.equal(rig.store.batchOf[again], rig.store.batchOf[a], 'the number is used again');
  assert.equal(rig.queue.peek(), b);
  rig.add(again + 1);
  assert.deepEqual(rig.drain(), [b, again + 1]);
});

test('an older batch that is loaded again comes before newer ones', () => {
  const rig = new Rig();
  const [a, b] = [rig.file(10), rig.file(20)];
  rig.add(a + 3, b);
  rig.drop(a + 3);
  rig.store.free(rig.store.batchOf[a]!);
  const reloaded = rig.file(10);
  rig.add(reloaded + 1);
  assert.deepEqual(rig.drain(), [reloaded + 1, b]);
});
