import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ByteReader, ByteWriter } from '../../../src/core/bytes.ts';
import { seededRandom } from '../../../src/core/random.ts';
import { FinishedSet } from '../../../src/state/keyed/finished-set.ts';

/** The same as a set of numbers. */
class Twin {
  low: number;
  readonly above = new Set<number>();

  constructor(low: number) {
    this.low = low;
  }

  addRange(from: number, to: number): void {
    for (let offset = Math.max(from, this.low); offset < to; offset++) this.above.add(offset);
    this.#advance();
  }

  moveLow(low: number): void {
    this.addRange(this.low, low);
  }

  reset(offset: number): void {
    this.low = offset;
    this.above.clear();
  }

  has(offset: number): boolean {
    return offset < this.low || this.above.has(offset);
  }

  #advance(): void {
    while (this.above.delete(this.low)) this.low++;
  }

  /** A set of the same offsets, made in one go. */
  build(): FinishedSet {
    const set = new FinishedSet(this.low);
    for (const offset of this.above) set.addRange(offset, offset + 1);
    return set;
  }
}

function bytesOf(set: FinishedSet): Buffer {
  const writer = new ByteWriter();
  set.write(writer);
  return writer.finish();
}

function compare(set: FinishedSet, twin: Twin, from: number, to: number, seed: number): void {
  const facts = [set.low, set.above];
  assert.deepEqual(facts, [twin.low, twin.above.size], `seed ${seed}`);
  for (let offset = from; offset < to; offset++) {
    if (set.has(offset) !== twin.has(offset)) assert.fail(`seed ${seed}: offset ${offset} differs`);
  }
}

test('a random history gives the same as a set of numbers', () => {
  for (let seed = 1; seed <= 120; seed++) {
    const random = seededRandom(seed);
    const below = (bound: number) => Math.floor(random.next() * bound);
    // Far from zero too: offsets have up to 53 bits.
    const base = seed % 3 === 0 ? 2 ** 44 - 5000 : below(9000);
    const set = new FinishedSet(base);
    const twin = new Twin(base);
    const span = seed % 2 === 0 ? 20_000 : 300;
    for (let step = 0; step < 60; step++) {
      const from = base + below(span) - 20;
      const to = from + below(below(4) === 0 ? 6000 : 40);
      const dice = below(20);
      if (dice === 0) {
        set.moveLow(from);
        twin.moveLow(from);
      } else if (dice === 1 && step % 3 === 0) {
        set.reset(from);
        twin.reset(from);
      } else {
        set.addRange(from, to);
        twin.addRange(from, to);
      }
      const around = step % 10 === 9 ? span : 30;
      compare(set, twin, from - around, to + around, seed);
    }
    const bytes = bytesOf(set);
    assert.ok(bytesOf(twin.build()).equals(bytes), `seed ${seed}: equal sets, other bytes`);
    const above: number[] = [];
    for (const [from, to] of set.ranges()) {
      assert.ok(from > (above.at(-1) ?? 0) + 1, `seed ${seed}: neighbours are one range`);
      for (let offset = from; offset < to; offset++) above.push(offset);
    }
    assert.deepEqual(
      above,
      [...twin.above].sort((a, b) => a - b),
      `seed ${seed}: ranges`,
    );
    const read = FinishedSet.read(new ByteReader(bytes));
    compare(read, twin, base - 30, base + span + 6000, seed);
    assert.ok(bytesOf(read).equals(bytes));
  }
});

test('the first and the last bit of words and chunks are told apart', () => {
  const edges = [31, 32, 33, 63, 64, 4094, 4095, 4096, 4097, 8191, 8192];
  for (const from of edges) {
    for (const to of edges) {
      if (to <= from) continue;
      const set = new FinishedSet(7);
      set.addRange(from, to);
      const near = [from - 1, from, to - 1, to].map((offset) => set.has(offset));
      assert.deepEqual(near, [false, true, true, false], `${from} to ${to}`);
      assert.equal(set.above, to - from);
      set.addRange(7, from);
      assert.deepEqual([set.low, set.above, set.chunkCount], [to, 0, 0], `${from} to ${to}`);
    }
  }
});

test('an empty range and one that is finished already change nothing', () => {
  const set = new FinishedSet(10);
  set.addRange(20, 30);
  const before = bytesOf(set);
  set.addRange(15, 15);
  set.addRange(3, 9);
  set.addRange(22, 28);
  set.addRange(40, 35);
  set.moveLow(4);
  assert.ok(bytesOf(set).equals(before));
});

test('five million finished offsets above a stuck one cost less than a megabyte', () => {
  const set = new FinishedSet(0);
  for (let offset = 1; offset <= 5_000_000; offset += 1000) set.addRange(offset, offset + 1000);
  assert.equal(set.low, 0);
  assert.equal(set.above, 5_000_000);
  assert.ok(set.chunkCount <= Math.ceil(5_000_001 / 4096));
  assert.ok(bytesOf(set).length < 1_000_000);
  set.addRange(0, 1);
  assert.deepEqual([set.low, set.above, set.chunkCount], [5_000_001, 0, 0]);
});

test('a far jump of the low end does not look at what lies between', () => {
  const set = new FinishedSet(0);
  set.addRange(5000, 5001);
  set.addRange(2 ** 50, 2 ** 50 + 3);
  set.moveLow(2 ** 50 - 1);
  assert.deepEqual([set.low, set.above, set.chunkCount], [2 ** 50 - 1, 3, 1]);
  set.addRange(2 ** 50 - 1, 2 ** 50);
  assert.deepEqual([set.low, set.above, set.chunkCount], [2 ** 50 + 3, 0, 0]);
});
