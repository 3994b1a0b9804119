import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CrashRun, type CrashRunCounts, type CrashRunOptions } from './crash.ts';

/** More seeds, or one: KEYLANE_SIM_SEEDS=10000, KEYLANE_SIM_SEED=17. */
const seedCount = Number(process.env['KEYLANE_SIM_SEEDS'] ?? 100);
const oneSeed = process.env['KEYLANE_SIM_SEED'];

async function runSeeds(
  options: Omit<CrashRunOptions, 'seed'>,
  count: number,
): Promise<CrashRunCounts> {
  const total: Record<string, number> = {};
  const first = oneSeed === undefined ? 1 : Number(oneSeed);
  for (let seed = first; seed < first + (oneSeed === undefined ? count : 1); seed++) {
    let counts: CrashRunCounts;
    try {
      counts = await new CrashRun({ ...options, seed }).run();
    } catch (error) {
      throw new Error(`seed ${seed} failed: ${(error as Error).message}`, { cause: error });
    }
    for (const [name, value] of Object.entries(counts)) total[name] = (total[name] ?? 0) + value;
  }
  return total as unknown as CrashRunCounts;
}

/** A test that cannot fail proves nothing: with a disk that lies, some seed must notice. */
async function firstSeedThatNotices(
  options: Omit<CrashRunOptions, 'seed'>,
  count: number,
): Promise<number | undefined> {
  for (let seed = 1; seed <= count; seed++) {
    try {
      await new CrashRun({ ...options, seed }).run();
    } catch {
      return seed;
    }
  }
  return undefined;
}

test('nothing that was acknowledged is lost in a crash', async (t) => {
  const counts = await runSeeds({}, seedCount);
  t.diagnostic(JSON.stringify(counts));
  if (oneSeed !== undefined) return;
  assert.ok(counts.acknowledged > seedCount * 10);
  assert.ok(counts.duplicates > 0);
  assert.ok(counts.startsCut > 0);
  assert.ok(counts.filesMade > seedCount);
  assert.ok(counts.filesRemoved > 0);
  assert.ok(counts.snapshots > seedCount);
});

test('nothing that was acknowledged is lost when the disk fails and the node restarts', async (t) => {
  const counts = await runSeeds({ faults: true }, seedCount);
  t.diagnostic(JSON.stringify(counts));
  if (oneSeed === undefined) assert.ok(counts.failures > seedCount / 10);
});

test('with sync=interval a crash takes the newest only, and leaves no damage', async (t) => {
  const counts = await runSeeds({ sync: 'interval' }, seedCount / 2);
  t.diagnostic(JSON.stringify(counts));
});

test('nothing that was acknowledged is lost when the disk fills up', async (t) => {
  const counts = await runSeeds({ fills: true }, seedCount / 2);
  t.diagnostic(JSON.stringify(counts));
  if (oneSeed === undefined) assert.ok(counts.refused > seedCount / 2);
});

test('a disk whose sync does nothing is noticed', async () => {
  assert.ok(await firstSeedThatNotices({ lies: 'sync-does-nothing' }, 20));
});

test('an answer before the sync is done is noticed', async () => {
  assert.ok(await firstSeedThatNotices({ lies: 'sync-is-early' }, 50));
});

test('a folder sync that does nothing is noticed', async () => {
  assert.ok(await firstSeedThatNotices({ lies: 'folder-sync-does-nothing' }, 50));
});
