import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../../src/core/random.ts';
import type { Dispatcher } from '../../../src/groups/keyed/dispatcher.ts';
import { areBooksRight, figuresOf, oldestLease } from '../../../src/groups/keyed/figures.ts';
import { KeyPause } from '../../../src/groups/keyed/key-table.ts';
import { none, RecordState } from '../../../src/groups/keyed/record-store.ts';
import type { Rng } from './clients.ts';
import { World } from './world.ts';

const settings = {
  finishesProven: false,
  window: undefined,
  unfinishedMax: 2_000_000,
  neverRejects: false,
  attemptsMax: 5,
  retryBackoffMs: 1000,
  retryBackoffMsMax: 60_000,
  halts: false,
};

function rngOf(seed: number): Rng {
  const random = seededRandom(seed);
  const below = (n: number): number => Math.floor(random.next() * n);
  return { below, chance: (p) => random.next() < p };
}

/** Records by state, counted one by one. */
function statesOf({ board: { store } }: Dispatcher): Map<number, number> {
  const states = new Map<number, number>();
  for (const state of store.state) states.set(state, (states.get(state) ?? 0) + 1);
  return states;
}

test('whatever happens, each loaded record is in one figure, and the books are right', () => {
  const seen = { held: 0, waiting: 0, pinned: 0, leases: 0, redelivered: 0 };
  for (let seed = 1; seed <= 20; seed++) {
    const world = new World(rngOf(seed), { ...settings, halts: seed % 4 === 0 });
    for (let step = 0; step < 150; step++) {
      world.step();
      const { dispatcher } = world;
      const figures = figuresOf(dispatcher);
      const states = statesOf(dispatcher);
      const waiting = Object.values(figures.waiting).reduce((sum, count) => sum + count);
      const pending =
        (states.get(RecordState.pending) ?? 0) + (states.get(RecordState.parked) ?? 0);
      const { readyRecords } = dispatcher.board;
      const parts = readyRecords + figures.held + waiting + figures.heldByWaiting;
      // Of keys that are held or wait, none are left in the log without being counted.
      const { keys } = dispatcher.board;
      let spilled = 0;
      for (const key of keys.all()) {
        const isCounted = keys.holder[key] !== none || keys.pause[key] !== KeyPause.none;
        if (isCounted) spilled += keys.spilled[key]!;
      }
      assert.equal(parts, pending + spilled, `seed ${seed}, step ${step}`);
      const granted = states.get(RecordState.granted) ?? 0;
      assert.equal(dispatcher.board.granted, granted, `seed ${seed}, step ${step}`);
      assert.ok(areBooksRight(dispatcher), `seed ${seed}, step ${step}`);
      assert.ok(figures.heldByPinned <= figures.held && figures.pinnedKeys <= figures.leasedKeys);
      const lease = oldestLease(dispatcher, world.now);
      assert.equal(lease === undefined, figures.inHand === 0);
      if (lease !== undefined) {
        assert.ok(lease.member.inHand > 0);
        seen.leases++;
      }
      seen.held += figures.held;
      seen.waiting += waiting;
      seen.pinned += figures.pinnedKeys;
      seen.redelivered = Math.max(seen.redelivered, dispatcher.counters.redelivered);
    }
  }
  for (const [what, count] of Object.entries(seen)) assert.ok(count > 0, what);
});

test('a count that went astray is found', () => {
  const world = new World(rngOf(7), settings);
  const busy = () => [...world.dispatcher.members.values()].find(({ inHand }) => inHand > 0);
  while (busy() === undefined) world.step();
  assert.ok(areBooksRight(world.dispatcher));
  busy()!.inHand--;
  assert.ok(!areBooksRight(world.dispatcher));
});
