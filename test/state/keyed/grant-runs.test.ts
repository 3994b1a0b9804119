import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ByteReader, ByteWriter } from '../../../src/core/bytes.ts';
import { seededRandom } from '../../../src/core/random.ts';
import { type GrantRun, GrantRuns } from '../../../src/state/keyed/grant-runs.ts';

/** One grant of one record. */
interface Grant {
  readonly n: number;
  readonly partition: number;
  readonly offset: number;
}

function runsOf(runs: GrantRuns, from = 0, to = Number.MAX_SAFE_INTEGER): GrantRun[] {
  const found: GrantRun[] = [];
  runs.forEach(from, to, (n, count, partition, offset) => {
    found.push({ n, count, partition, offset });
  });
  return found;
}

function merged(grants: readonly Grant[]): GrantRun[] {
  const runs: { n: number; count: number; partition: number; offset: number }[] = [];
  for (const { n, partition, offset } of grants) {
    const last = runs.at(-1);
    const isNext =
      last?.partition === partition &&
      last.n + last.count === n &&
      last.offset + last.count === offset;
    if (isNext) last.count++;
    else runs.push({ n, count: 1, partition, offset });
  }
  return runs;
}

function bytesOf(runs: GrantRuns): Buffer {
  const writer = new ByteWriter();
  runs.write(writer);
  return writer.finish();
}

function compare(runs: GrantRuns, grants: readonly Grant[], seed: number): void {
  const expected = merged(grants);
  assert.deepEqual(runsOf(runs), expected, `seed ${seed}`);
  assert.equal(runs.records, grants.length);
  assert.equal(runs.length, expected.length);
  assert.equal(runs.firstN, grants[0]?.n ?? Number.POSITIVE_INFINITY);
}

test('a random history gives the same as a list of single grants', () => {
  for (let seed = 1; seed <= 150; seed++) {
    const random = seededRandom(seed);
    const below = (bound: number) => Math.floor(random.next() * bound);
    const runs = new GrantRuns();
    let grants: Grant[] = [];
    let end = 1 + below(2 ** 40);
    for (let step = 0; step < 250; step++) {
      if (below(3) > 0) {
        const last = grants.at(-1);
        const goesOn = last !== undefined && below(2) === 0;
        const partition = goesOn ? last.partition : below(3);
        const offset = goesOn ? last.offset + 1 : below(1000);
        const count = below(6);
        runs.push(end, count, partition, offset);
        for (let i = 0; i < count; i++) grants.push({ n: end + i, partition, offset: offset + i });
        end += count;
        if (below(20) === 0) end++;
      } else {
        const first = grants[0]?.n ?? end;
        const from = below(2) === 0 ? first - 1 : first + below(end - first + 5);
        const to = from + below(below(5) === 0 ? 400 : 30);
        const isIn = ({ n }: Grant) => n >= from && n < to;
        const removed: GrantRun[] = [];
        assert.deepEqual(runsOf(runs, from, to), merged(grants.filter(isIn)), `seed ${seed}`);
        runs.remove(from, to, (n, count, p, offset) => {
          removed.push({ n, count, partition: p, offset });
        });
        assert.deepEqual(removed, merged(grants.filter(isIn)), `seed ${seed}`);
        grants = grants.filter((grant) => !isIn(grant));
      }
      compare(runs, grants, seed);
    }
    const bytes = bytesOf(runs);
    const read = GrantRuns.read(new ByteReader(bytes));
    compare(read, grants, seed);
    assert.ok(bytesOf(read).equals(bytes));
  }
});

test('neighbours become one run, whatever was pushed in between is none', () => {
  const runs = new GrantRuns();
  runs.push(1, 2, 0, 10);
  runs.push(3, 0, 5, 99);
  runs.push(3, 4, 0, 12);
  runs.push(7, 1, 1, 16);
  runs.push(9, 1, 1, 17);
  assert.deepEqual(
    runsOf(runs).map(({ n, count }) => [n, count]),
    [
      [1, 6],
      [7, 1],
      [9, 1],
    ],
  );
});

test('nothing lies in an empty range, nor in one that ends before it begins', () => {
  const runs = new GrantRuns();
  runs.push(10, 10, 0, 0);
  const none = () => assert.fail('no grant is there');
  runs.forEach(15, 15, none);
  runs.remove(15, 15, none);
  runs.remove(18, 12, none);
  assert.deepEqual([runs.length, runs.records], [1, 10]);
});

test('a range that is finished one by one stays small', () => {
  const runs = new GrantRuns();
  for (let n = 0; n < 100_000; n++) {
    runs.push(n, 1, 0, n * 2);
    if (n >= 10) runs.remove(n - 10, n - 9, () => undefined);
  }
  assert.deepEqual([runs.length, runs.records, runs.firstN], [10, 10, 99_990]);
});
