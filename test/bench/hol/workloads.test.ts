import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  makeWorkload,
  recipes,
  type Workload,
  type WorkloadName,
  workloadNames,
} from '../../../bench/hol/workloads.ts';

function make(name: WorkloadName, scale = 0.1, seed = 1, quick = false): Workload {
  return makeWorkload(name, { seed, scale, quick });
}

/** Work that arrives for each second and consumer. */
function loadOf({ arrivals, consumers }: Workload, seconds: number): number {
  return arrivals.reduce((sum, { serviceMs }) => sum + serviceMs, 0) / 1000 / seconds / consumers;
}

function isAbout(value: number, wanted: number, tolerance: number): void {
  assert.ok(Math.abs(value - wanted) <= tolerance * wanted, `${value} is not about ${wanted}`);
}

describe('every workload', () => {
  for (const name of workloadNames) {
    test(`${name} is the same for the same seed, and in order of time`, () => {
      const one = make(name);
      assert.deepEqual(one, make(name));
      assert.notDeepEqual(one.arrivals, make(name, 0.1, 2).arrivals);
      const times = one.arrivals.map(({ atMs }) => atMs);
      assert.deepEqual(
        times,
        [...times].sort((a, b) => a - b),
      );
      assert.ok(one.slowKeys.size > 0);
      assert.ok(one.slowKeys.size < new Set(one.arrivals.map(({ key }) => key)).size);
    });

    test(`${name} made quick arrives alike`, () => {
      const slow = make(name);
      const quick = make(name, 0.1, 1, true);
      assert.deepEqual(quick.slowKeys, slow.slowKeys);
      const longestMs = (one: Workload) => Math.max(...one.arrivals.map((a) => a.serviceMs));
      for (const [sequence, { atMs, key, serviceMs }] of quick.arrivals.entries()) {
        const twin = slow.arrivals[sequence]!;
        assert.deepEqual([atMs, key], [twin.atMs, twin.key]);
        assert.ok(serviceMs <= twin.serviceMs);
      }
      if (!name.startsWith('W4')) assert.ok(longestMs(quick) < longestMs(slow));
    });
  }
});

test('W0 has four slow jobs of a hundred, each with its own key', () => {
  const { arrivals, slowKeys, consumers, partitions } = make('W0');
  assert.deepEqual([arrivals.length, slowKeys.size, consumers, partitions], [100, 4, 5, 10]);
  assert.equal(new Set(arrivals.map(({ key }) => key)).size, 100);
  assert.equal(arrivals.filter(({ serviceMs }) => serviceMs === 10_000).length, 4);
});

test('W1 has one slow record with 48,000 behind it while it lasts', () => {
  const workload = make('W1', 1);
  const slow = workload.arrivals.filter(({ serviceMs }) => serviceMs === 60_000);
  assert.equal(slow.length, 1);
  const { atMs } = slow[0]!;
  const behind = workload.arrivals.filter((one) => one.atMs > atMs && one.atMs <= atMs + 60_000);
  isAbout(behind.length, 48_000, 0.02);
  isAbout(loadOf(workload, 120), 0.56, 0.02);
  // At a tenth the slow record and the run are shorter, the others and their rate are not.
  const scaled = make('W1');
  assert.equal(Math.max(...scaled.arrivals.map((one) => one.serviceMs)), 6000);
  isAbout(scaled.arrivals.length, 9600, 0.05);
});

test('W2 has three kinds of records, and the loads that it says', () => {
  for (const [name, load] of [
    ['W2a', 0.5],
    ['W2b', 0.7],
  ] as const) {
    const workload = make(name, 0.1);
    const share = (ms: number) =>
      workload.arrivals.filter(({ serviceMs }) => Math.abs(serviceMs - ms) < 1e-6).length /
      workload.arrivals.length;
    isAbout(share(20), 0.9, 0.02);
    isAbout(share(500), 0.09, 0.1);
    isAbout(share(6000), 0.01, 0.3);
    isAbout(loadOf(workload, 60), load, 0.15);
  }
});

test('W3 has a heavy tail', () => {
  const workload = make('W3', 1);
  const times = workload.arrivals.map(({ serviceMs }) => serviceMs);
  isAbout(Math.min(...times), 50 / 3, 0.01);
  isAbout(loadOf(workload, 600), 0.7, 0.1);
  assert.ok(Math.max(...times) > 5000);
});

test('W4 has one hot key, its share as the exponent says', () => {
  for (const [name, exponent] of [
    ['W4a', 0.9],
    ['W4b', 1.1],
  ] as const) {
    const workload = make(name, 0.5);
    let sum = 0;
    for (let rank = 1; rank <= 10_000; rank++) sum += rank ** -exponent;
    const [hot] = workload.slowKeys;
    const count = workload.arrivals.filter(({ key }) => key === hot).length;
    isAbout(count / workload.arrivals.length, 1 / sum, 0.1);
    isAbout(loadOf(workload, 60), 0.6, 0.05);
  }
});

test('W5 has slow keys, W6 slow records', () => {
  const fifth = make('W5', 1);
  isAbout(loadOf(fifth, 600), 0.3, 0.1);
  for (const { key, serviceMs } of fifth.arrivals) {
    assert.equal(serviceMs, fifth.slowKeys.has(key) ? 2000 : 5);
  }
  const sixth = make('W6', 1);
  assert.equal(sixth.arrivals.length, 20_000);
  assert.ok(sixth.arrivals.every(({ atMs }) => atMs === 0));
  isAbout(sixth.arrivals.filter(({ serviceMs }) => serviceMs === 2000).length, 200, 0.25);
});

test('what is scaled is said', () => {
  for (const name of workloadNames) assert.notEqual(recipes[name].scales, '');
});
