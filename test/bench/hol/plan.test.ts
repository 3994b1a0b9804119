import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isKeyed, partitionsOf } from '../../../bench/hol/arms.ts';
import { idOf, plan, workloadOf } from '../../../bench/hol/plan.ts';
import { expectedMs } from '../../../bench/hol/run.ts';
import { workloadNames } from '../../../bench/hol/workloads.ts';

const minuteMs = 60_000;

test('each run has a name of its own and takes less than ten minutes, all of them ninety', () => {
  const pieces = plan();
  assert.equal(new Set(pieces.map(idOf)).size, pieces.length);
  const times = pieces.map(expectedMs);
  assert.ok(Math.max(...times) < 10 * minuteMs);
  assert.ok(times.reduce((sum, ms) => sum + ms, 0) < 90 * minuteMs);
});

test('kafkajs runs everything, keyed with three seeds, Kafka with one', () => {
  for (const workload of workloadNames) {
    const mine = plan().filter(
      (one) => one.workload === workload && one.client === 'kafkajs' && !one.quick,
    );
    const seedsOf = (arm: string) =>
      [...new Set(mine.filter((one) => one.arm === arm).map(({ seed }) => seed))].length;
    assert.deepEqual(['kafka', 'kafka-4c', 'log', 'keyed'].map(seedsOf), [1, 1, 1, 3]);
  }
});

test('the other clients run W1 and W6, Java with its defaults under both acknowledgements', () => {
  for (const client of ['java-manual', 'java-auto', 'librdkafka']) {
    for (const workload of ['W1', 'W6']) {
      const found = plan().filter((one) => one.client === client && one.workload === workload);
      const arms = new Set(found.map(({ arm }) => arm));
      for (const arm of ['kafka', 'kafka-4c', 'log', 'keyed'] as const) assert.ok(arms.has(arm));
      assert.equal(arms.has('keyed-poll'), client === 'java-auto');
    }
  }
});

test('a minute long record runs at full length once', () => {
  const full = plan().filter(({ workload, scale }) => workload === 'W1' && scale === 1);
  assert.ok(full.some(({ arm }) => isKeyed(arm)));
});

test('a keyed topic has a lane for each consumer, Kafka one partition or four', () => {
  for (const piece of plan()) {
    const workload = workloadOf(piece);
    const partitions = partitionsOf(piece.arm, workload);
    if (isKeyed(piece.arm)) assert.equal(partitions, workload.consumers);
    else {
      assert.equal(partitions, workload.partitions * (piece.arm.endsWith('-4c') ? 4 : 1));
    }
  }
});
