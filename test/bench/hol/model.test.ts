import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { idealSchedule, partitionSchedule } from '../../../bench/hol/model.ts';
import { murmur2Partition } from '../../../bench/hol/murmur2.ts';
import type { Arrival } from '../../../bench/hol/workloads.ts';
import { seededRandom } from '../../../src/core/random.ts';

function arrival(atMs: number, key: string, serviceMs: number): Arrival {
  return { atMs, key, serviceMs };
}

describe('the ideal', () => {
  test('a slow record delays its own key alone', () => {
    const arrivals = [
      arrival(0, 'slow', 1000),
      arrival(1, 'slow', 5),
      arrival(2, 'other', 5),
      arrival(3, 'slow', 5),
      arrival(4, 'third', 5),
    ];
    const { startMs, endMs } = idealSchedule(arrivals, 2);
    assert.deepEqual([...startMs], [0, 1000, 2, 1005, 7]);
    assert.equal(endMs, 1010);
  });

  test('the oldest ready record comes first', () => {
    const arrivals = ['a', 'a', 'b', 'c'].map((key) => arrival(0, key, 10));
    assert.deepEqual([...idealSchedule(arrivals, 1).startMs], [0, 10, 20, 30]);
    assert.deepEqual([...idealSchedule(arrivals, 2).startMs], [0, 10, 0, 10]);
  });

  test('no server idles beside a ready key, keys are served in order and one at a time', () => {
    const random = seededRandom(7);
    const arrivals: Arrival[] = [];
    for (let atMs = 0; arrivals.length < 400; atMs += random.next() * 3) {
      arrivals.push(arrival(atMs, `k${Math.floor(random.next() * 20)}`, random.next() * 10));
    }
    const consumers = 3;
    const { startMs } = idealSchedule(arrivals, consumers);
    const endMs = arrivals.map(({ serviceMs }, sequence) => startMs[sequence]! + serviceMs);
    const lastOf = new Map<string, number>();
    for (const [sequence, { atMs, key }] of arrivals.entries()) {
      const before = lastOf.get(key);
      const readyMs = Math.max(atMs, before === undefined ? 0 : endMs[before]!);
      const beganMs = startMs[sequence]!;
      assert.ok(beganMs >= readyMs);
      lastOf.set(key, sequence);
      if (beganMs === readyMs) continue;
      // Whoever waited did so because all servers were busy, right up to its start.
      const busy = arrivals.filter((_, i) => startMs[i]! < beganMs && endMs[i]! >= beganMs);
      assert.ok(busy.length >= consumers);
    }
  });
});

describe('partitions', () => {
  test('a slow record delays whatever lies in the partitions of its consumer', () => {
    const keys = Array.from({ length: 20 }, (_, i) => `k${i}`);
    const [same, other] = [0, 1].map((p) => keys.filter((k) => murmur2Partition(k, 2) === p));
    const arrivals = [
      arrival(0, same![0]!, 1000),
      arrival(1, same![1]!, 5),
      arrival(2, other![0]!, 5),
    ];
    const { startMs, endMs } = partitionSchedule(arrivals, 2, 2);
    assert.deepEqual([...startMs], [0, 1000, 2]);
    assert.equal(endMs, 1005);
  });

  test('keys lie where the default partitioners put them', () => {
    // Hashes of UtilsTest.testMurmur2 in Apache Kafka.
    const hashes: readonly [string, number][] = [
      ['21', -973932308],
      ['foobar', -790332482],
      ['a-little-bit-long-string', -985981536],
      ['a-little-bit-longer-string', -1486304829],
      ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
      ['abc', 479470107],
    ];
    for (const [key, hash] of hashes) {
      const positive = hash & 0x7fffffff;
      assert.equal(murmur2Partition(key, 1_000_003), positive % 1_000_003, key);
    }
  });
});
