import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { RecentBytes } from '../../src/log/recent-bytes.ts';

test('recent bytes are those that were added last, within the bound', () => {
  for (let seed = 1; seed <= 30; seed++) {
    const random = seededRandom(seed);
    const below = (bound: number) => Math.floor(random.next() * bound);
    const bytesMax = 500 + below(5000);
    const recent = new RecentBytes(bytesMax);
    let pieces: { position: number; piece: Buffer }[] = [];
    let position = 64;
    for (let i = 0; i < 3000; i++) {
      const piece = Buffer.alloc(1 + below(200), i);
      recent.add(position, piece);
      pieces.push({ position, piece });
      // File headers and padding leave gaps.
      position += piece.length + (random.next() < 0.05 ? below(64) : 0);
      let held = pieces.reduce((sum, other) => sum + other.piece.length, 0);
      while (held > bytesMax) held -= pieces.shift()!.piece.length;
      if (random.next() < 0.01) {
        const from = pieces[below(pieces.length)]!.position;
        recent.truncate(from);
        pieces = pieces.filter((other) => other.position < from);
      }
      assert.equal(
        recent.bytes,
        pieces.reduce((sum, other) => sum + other.piece.length, 0),
      );
      const asked = Math.max(0, position - below(2 * bytesMax));
      const bytes = 1 + below(100);
      const holder = pieces.find(
        (other) => other.position <= asked && asked + bytes <= other.position + other.piece.length,
      );
      const at = holder === undefined ? 0 : asked - holder.position;
      assert.deepEqual(recent.read(asked, bytes), holder?.piece.subarray(at, at + bytes));
    }
  }
});

test('a piece beyond the bound is held alone', () => {
  const recent = new RecentBytes(100);
  recent.add(0, Buffer.alloc(10));
  recent.add(10, Buffer.alloc(1000, 7));
  assert.equal(recent.read(0, 1), undefined);
  assert.equal(recent.read(500, 10)?.[0], 7);
});
