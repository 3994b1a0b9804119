import assert from 'node:assert/strict';
import test from 'node:test';
import { noTotals, RaftWorld, type Totals } from './world.ts';

const seeds = Array.from({ length: 300 }, (_, seed) => seed);
const steps = 2000;
const stepsToSettle = 4000;

test('random clusters: one leader in a term, one log, nothing lost, no stale reads', () => {
  const totals: Totals = { ...noTotals };
  for (const seed of seeds) {
    try {
      const world = new RaftWorld(seed);
      for (let i = 0; i < steps; i++) {
        world.step();
        if (i % 200 === 0) world.checkLogs();
      }
      world.heal();
      for (let i = 0; i < stepsToSettle && !world.isSettled; i++) world.step();
      assert.ok(world.isSettled, 'once all is well, all comes to be the same everywhere');
      world.checkLogs();
      for (const key of Object.keys(totals) as (keyof Totals)[]) totals[key] += world.totals[key];
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
  for (const [what, count] of Object.entries(totals)) assert.ok(count > 0, `there were ${what}`);
});
