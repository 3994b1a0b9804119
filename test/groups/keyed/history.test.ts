import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DispatcherSettings } from '../../../src/groups/keyed/dispatcher.ts';
import type { Rng } from './clients.ts';
import { World } from './world.ts';

/** How many histories; more for a long search: `KEYLANE_HISTORIES=100000 node --test …`. */
const histories = Number(process.env['KEYLANE_HISTORIES'] ?? 300);
const firstSeed = Number(process.env['KEYLANE_HISTORY_SEED'] ?? 1);
const stepsMax = 150;

function rngOf(seed: number): Rng {
  let state = seed | 0;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
  return { below: (n) => next() % n, chance: (p) => next() < p * 2 ** 32 };
}

function settingsOf(rng: Rng): DispatcherSettings {
  const windows = [1, 2, 5, 100, undefined];
  return {
    finishesProven: rng.chance(0.3),
    window: windows[rng.below(windows.length)],
    unfinishedMax: rng.chance(0.2) ? 10 : 1_000_000,
    neverRejects: false,
    attemptsMax: rng.below(4),
    retryBackoffMs: rng.below(2) * 500,
    retryBackoffMsMax: 2000,
    halts: false,
  };
}

/** One history, and then all that is left is handled. Throws with the step at which it went wrong. */
function live(seed: number): World {
  const rng = rngOf(seed);
  const world = new World(rng, settingsOf(rng));
  let step = 0;
  try {
    for (; step < stepsMax; step++) world.step();
    world.drain();
  } catch (error) {
    const message = (error as Error).message.replaceAll('\n', ' ');
    throw new Error(`seed ${seed}, step ${step}, ${world.lastAction}: ${message}`, {
      cause: error,
    });
  }
  return world;
}

describe('keyed delivery, random histories', () => {
  it('a member takes up again no more than its suspects allow beside them', () => {
    for (const seed of [3_001_370, 4_017_334]) live(seed);
  });

  it(`keeps its invariants in ${histories} histories from seed ${firstSeed} on`, () => {
    let [checks, deliveries, deadLetters, ahead, aheadAtCommit, again] = [0, 0, 0, 0, 0, 0];
    for (let seed = firstSeed; seed < firstSeed + histories; seed++) {
      const world = live(seed);
      checks += world.checks;
      deadLetters += world.deadLetters;
      ahead += world.aheadCount;
      aheadAtCommit += world.aheadAtCommitCount;
      again += world.committedAgain;
      for (const record of world.records) deliveries += record.deliveries;
    }
    assert.ok(checks > 0 && deliveries > 0 && ahead > 0 && aheadAtCommit > 0);
    process.stdout.write(
      `# ${checks} checks, ${deliveries} deliveries, ${deadLetters} dead, ${ahead} and ${aheadAtCommit} ahead, ${again} again\n`,
    );
  });
});
