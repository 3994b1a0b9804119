import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { type ClusterCounts, ClusterWorld, type ClusterWorldOptions } from './cluster-world.ts';

/** More seeds, or one: KEYLANE_SIM_SEEDS=10000, KEYLANE_SIM_SEED=17; KEYLANE_SIM_STEPS=2000. */
const seedCount = Number(process.env['KEYLANE_SIM_SEEDS'] ?? 30);
const firstSeed = Number(process.env['KEYLANE_SIM_SEED'] ?? 1);
const steps = Number(process.env['KEYLANE_SIM_STEPS'] ?? 1000);

async function runSeeds(options: ClusterWorldOptions, count: number): Promise<ClusterCounts> {
  const total: Record<string, number> = {};
  for (let seed = firstSeed; seed < firstSeed + count; seed++) {
    const world = new ClusterWorld(seededRandom(seed), options);
    try {
      await world.run(steps);
    } catch (error) {
      throw new Error(`seed ${seed} failed: ${(error as Error).message}`, { cause: error });
    }
    for (const [name, value] of Object.entries(world.counts)) {
      total[name] = (total[name] ?? 0) + value;
    }
  }
  return total as unknown as ClusterCounts;
}

test('three nodes keep every promise through crashes, partitions and changes', async (t) => {
  const counts = await runSeeds({ nodes: 3, clients: 'direct' }, seedCount);
  t.diagnostic(JSON.stringify(counts));
  assert.ok(counts.acknowledged > seedCount && counts.elections > seedCount);
});

test('members of groups get all records in order, each key by one of them at a time', async (t) => {
  const counts = await runSeeds({ nodes: 3, clients: 'wire' }, seedCount);
  t.diagnostic(JSON.stringify(counts));
  assert.ok(counts.handled > seedCount && counts.handledByKey > seedCount);
  assert.ok(counts.handledAgain > 0 && counts.joins > seedCount && counts.keyedChecks > 0);
});

test('the same seed is the same run', async () => {
  const runs: ClusterCounts[] = [];
  for (let i = 0; i < 2; i++) {
    const world = new ClusterWorld(seededRandom(firstSeed), { nodes: 5 });
    await world.run(steps);
    runs.push(world.counts);
  }
  assert.deepEqual(runs[0], runs[1]);
});

test('a disk that loses what it said was synced is noticed', async () => {
  const noticed: number[] = [];
  for (let seed = 1; seed <= 20; seed++) {
    const world = new ClusterWorld(seededRandom(seed), { nodes: 3, lies: 'sync-does-nothing' });
    // A start that refuses the journal, or a promise that is broken.
    await world.run(steps).catch(() => noticed.push(seed));
  }
  assert.ok(noticed.length > 10, `noticed by seeds ${noticed}`);
});
