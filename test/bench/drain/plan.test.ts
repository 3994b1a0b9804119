import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  backlogOf,
  consumersOf,
  goalOf,
  idOf,
  measuredMs,
  plan,
} from '../../../bench/drain/plan.ts';
import { clientNames } from '../../../bench/hol/programs.ts';

test('each client has every load in log and keyed delivery, Java by default under both acks', () => {
  const ids = plan().map(idOf);
  assert.equal(new Set(ids).size, ids.length);
  for (const client of clientNames) {
    const arms = client === 'java-auto' ? ['log', 'keyed', 'keyed-poll'] : ['log', 'keyed'];
    const loads = ['0ms-1000B', '0ms-100B', '1ms-100B', '10ms-100B', '100ms-100B', 'idle'];
    const wanted = loads.flatMap((load) => arms.map((arm) => `${client}-${load}-${arm}`));
    assert.deepEqual(ids.filter((id) => id.startsWith(`${client}-`)).sort(), wanted.sort());
  }
});

test('where handlers work, the backlog lasts for longer than is measured', () => {
  for (const piece of plan()) {
    const { load, client } = piece;
    if (load.kind === 'idle' || load.serviceMs === 0) continue;
    const perMs = consumersOf(load) / load.serviceMs;
    assert.ok(backlogOf(piece) / perMs > measuredMs(client));
  }
});

test('log delivery, an idle group and handlers of 1 ms have no goal', () => {
  for (const piece of plan()) {
    const { load, arm } = piece;
    const hasGoal = arm !== 'log' && load.kind === 'drain' && load.serviceMs !== 1;
    assert.equal(goalOf(piece) !== undefined, hasGoal);
  }
});
