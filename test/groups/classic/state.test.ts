import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AssertionFailed } from '../../../src/core/assert.ts';
import { assertTransition, ClassicState, canRebalance } from '../../../src/groups/classic/state.ts';

const legal = new Set([
  'Empty>PreparingRebalance',
  'Empty>Dead',
  'PreparingRebalance>CompletingRebalance',
  'PreparingRebalance>Empty',
  'PreparingRebalance>Dead',
  'CompletingRebalance>Stable',
  'CompletingRebalance>PreparingRebalance',
  'CompletingRebalance>Dead',
  'Stable>PreparingRebalance',
  'Stable>Dead',
]);

test('only the documented transitions are legal', () => {
  for (const from of Object.values(ClassicState)) {
    for (const to of Object.values(ClassicState)) {
      if (legal.has(`${from}>${to}`)) assertTransition(from, to);
      else assert.throws(() => assertTransition(from, to), AssertionFailed, `${from}>${to}`);
    }
    assert.equal(canRebalance(from), legal.has(`${from}>PreparingRebalance`));
  }
});
