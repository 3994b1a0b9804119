import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partitionSchedule, type Schedule } from '../../../bench/hol/model.ts';
import { type Arrival, makeWorkload, type WorkloadName } from '../../../bench/hol/workloads.ts';
import { seededRandom } from '../../../src/core/random.ts';
import { commitOnlySchedule } from './commit-only.ts';

const commitEveryMs = 5000;
const seeds = [1, 2, 3, 4, 5, 6];

/** As in bench/hol: light work of other keys comes before. */
function withWarmUp(arrivals: readonly Arrival[], seed: number): Arrival[] {
  const random = seededRandom(seed);
  const warmUp = Array.from({ length: 12_000 }, (_, i) => ({
    atMs: i * 1.25,
    key: `warm-${Math.floor(random.next() * 1000)}`,
    serviceMs: 5,
  }));
  return [...warmUp, ...arrivals.map((arrival) => ({ ...arrival, atMs: 15_500 + arrival.atMs }))];
}

/** The bystanders' p99 and the end, each as a ratio to that of Kafka's partitions; over all seeds. */
function besidePartitions(name: WorkloadName, scale: number) {
  const sums = { p99: [0, 0], end: [0, 0] };
  for (const seed of seeds) {
    const workload = makeWorkload(name, { seed, scale, quick: false });
    const { consumers, partitions, slowKeys } = workload;
    const arrivals = withWarmUp(workload.arrivals, seed);
    const p99 = ({ startMs }: Schedule): number => {
      const waits = arrivals
        .map(({ atMs, key }, i) => ({ key, waitMs: startMs[i]! - atMs }))
        .filter(({ key }) => !key.startsWith('warm-') && !slowKeys.has(key))
        .map(({ waitMs }) => waitMs)
        .sort((a, b) => a - b);
      return waits[Math.floor(0.99 * waits.length)]!;
    };
    const schedules = [
      commitOnlySchedule(arrivals, consumers, commitEveryMs),
      partitionSchedule(arrivals, consumers, partitions),
    ];
    for (const [i, schedule] of schedules.entries()) {
      sums.p99[i]! += p99(schedule);
      sums.end[i]! += schedule.endMs - 15_500;
    }
  }
  return { p99: sums.p99[0]! / sums.p99[1]!, end: sums.end[0]! / sums.end[1]! };
}

test('beside one slow record, consumers that only commit wait no longer than with partitions', () => {
  const { p99, end } = besidePartitions('W1', 0.1);
  assert.ok(p99 < 1.02, `p99 ${p99}`);
  assert.ok(end < 1.02, `end ${end}`);
});

test('consumers that only commit drain a backlog with slow records sooner than partitions', () => {
  const { p99, end } = besidePartitions('W6', 0.5);
  assert.ok(p99 < 0.95, `p99 ${p99}`);
  assert.ok(end < 0.95, `end ${end}`);
});
