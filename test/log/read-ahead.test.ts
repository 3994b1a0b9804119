import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BufferPool } from '../../src/log/buffer-pool.ts';
import { type AheadBatch, ReadAhead } from '../../src/log/read-ahead.ts';

/** Batches at these positions, in one buffer; `ahead` holds it for each of them. */
function batchesAt(pool: BufferPool, positions: readonly number[]): AheadBatch[] {
  const buffer = pool.take(1);
  const batches = positions.map((position) => {
    buffer.hold();
    return { position, buffer, piece: buffer.bytes.subarray(0, 1) };
  });
  buffer.letGo();
  return batches;
}

test('a reader is sequential when it begins where it ended', () => {
  const ahead = new ReadAhead(4);
  assert.equal(ahead.follow(1, 0, 10), false);
  assert.equal(ahead.follow(1, 10, 20), true);
  assert.equal(ahead.follow(2, 20, 30), false);
  assert.equal(ahead.follow(1, 5, 15), false);
  assert.equal(ahead.follow(1, 20, 30), true);
  assert.equal(ahead.follow(1, 15, 25), true, 'two readers of a partition');
});

test('a batch is taken once, and not before it is read', async () => {
  const pool = new BufferPool(10, 2);
  const ahead = new ReadAhead(2);
  const added = ahead.add(batchesAt(pool, [5, 6]), 1, Promise.resolve());
  assert.equal(ahead.take(5), undefined);
  assert.equal(ahead.pending([7]), undefined);
  assert.notEqual(ahead.pending([7, 6]), undefined);
  await added;
  assert.equal(ahead.pending([7, 6]), undefined);
  assert.equal(ahead.room, 1);
  const taken = [ahead.take(5), ahead.take(6)];
  assert.equal(ahead.take(5), undefined);
  assert.equal(ahead.room, 2);
  assert.equal(pool.freeCount, 1);
  for (const batch of taken) batch!.buffer.letGo();
  assert.equal(pool.freeCount, 2);
});

test('what failed is forgotten', async () => {
  const pool = new BufferPool(10, 1);
  const ahead = new ReadAhead(1);
  await assert.rejects(ahead.add(batchesAt(pool, [5, 6]), 1, Promise.reject(new Error('no'))));
  assert.equal(ahead.has(5), false);
  assert.equal(ahead.room, 1);
  assert.equal(pool.freeCount, 1);
});

test('what waits for its reader makes room only when nobody comes', async () => {
  const pool = new BufferPool(10, 1);
  const ahead = new ReadAhead(1);
  await ahead.add(batchesAt(pool, [5, 6]), 1, Promise.resolve());
  ahead.take(5)!.buffer.letGo();
  let asked = 0;
  while (ahead.room === 0) {
    ahead.dropForgotten();
    asked++;
  }
  assert.ok(asked > 10 && asked < 1000);
  assert.equal(ahead.has(6), false);
  assert.equal(pool.freeCount, 1);
});
