import assert from 'node:assert/strict';
import test from 'node:test';
import { TrustedClock } from '../../src/replica/trusted-clock.ts';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const year = 365 * 24 * hour;
const settleMs = 10 * minute;

/** Both clocks stand still but for what a test does to them. */
class World {
  readonly events: string[] = [];
  readonly trusted: TrustedClock;
  #monotonicMs = 0;
  #wallMs = 1_700_000_000_000;

  constructor(settle = settleMs) {
    this.trusted = new TrustedClock({
      clock: {
        monotonicMs: () => this.#monotonicMs,
        wallMs: () => this.#wallMs,
        soon: () => undefined,
        after: () => () => undefined,
      },
      settleMs: settle,
      onDistrust: (aheadMs) => this.events.push(`distrust ${aheadMs / second} s`),
      onTrust: () => this.events.push('trust'),
    });
  }

  pass(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
  }

  set(ms: number): void {
    this.#wallMs += ms;
  }
}

/** A step lets time pass (`pass`) or sets the wall clock (`set`), then looks. */
type Step = readonly [what: 'pass' | 'set', ms: number, mayExpire: boolean];

interface Case {
  readonly name: string;
  readonly steps: readonly Step[];
  readonly events: readonly string[];
}

const cases: readonly Case[] = [
  {
    name: 'time that passes on both clocks is believed',
    steps: [
      ['pass', 5 * minute, true],
      ['pass', 30 * 24 * hour, true],
    ],
    events: [],
  },
  {
    name: 'corrections of up to a minute per look are believed and do not add up',
    steps: [
      ['set', minute, true],
      ['set', minute, true],
      ['set', -minute, true],
      ['set', minute, true],
    ],
    events: [],
  },
  {
    name: 'a jump of ten years is not believed, however long the clock runs on from there',
    steps: [
      ['set', 10 * year, false],
      ['pass', 10 * minute, false],
      ['pass', 10 * minute, false],
      ['pass', year, false],
    ],
    events: [`distrust ${(10 * year) / second} s`],
  },
  {
    name: 'a jump back is not believed either',
    steps: [
      ['set', -2 * hour, false],
      ['pass', hour, false],
    ],
    events: [`distrust ${(-2 * hour) / second} s`],
  },
  {
    name: 'a clock that came back is believed when it was right for the settle time',
    steps: [
      ['set', hour, false],
      ['pass', 10 * minute, false],
      ['set', -hour, false],
      ['pass', settleMs - 1, false],
      ['pass', 1, true],
      ['pass', minute, true],
    ],
    events: [`distrust ${hour / second} s`, 'trust'],
  },
  {
    name: 'a clock that leaves again begins to settle anew, and is warned of only once',
    steps: [
      ['set', hour, false],
      ['set', -hour, false],
      ['pass', 9 * minute, false],
      ['set', 2 * hour, false],
      ['set', -2 * hour, false],
      ['pass', 9 * minute, false],
      ['pass', minute, true],
    ],
    events: [`distrust ${hour / second} s`, 'trust'],
  },
  {
    name: 'coming back to within a minute is coming back, and the place is taken from there',
    steps: [
      ['set', hour, false],
      ['set', -hour + 50 * second, false],
      ['pass', settleMs, true],
      ['set', 50 * second, true],
    ],
    events: [`distrust ${hour / second} s`, 'trust'],
  },
  {
    name: 'the next jump is told of again',
    steps: [
      ['set', hour, false],
      ['set', -hour, false],
      ['pass', settleMs, true],
      ['set', -hour, false],
    ],
    events: [`distrust ${hour / second} s`, 'trust', `distrust ${-hour / second} s`],
  },
];

for (const { name, steps, events } of cases) {
  test(name, () => {
    const world = new World();
    for (const [i, [what, ms, mayExpire]] of steps.entries()) {
      world[what](ms);
      assert.equal(world.trusted.mayExpire(), mayExpire, `step ${i}: ${what} ${ms}`);
    }
    assert.deepEqual(world.events, events);
  });
}

test('without a settle time a clock that came back is believed at once', () => {
  const world = new World(0);
  world.set(hour);
  assert.equal(world.trusted.mayExpire(), false);
  world.set(-hour);
  assert.equal(world.trusted.mayExpire(), true);
});

test('an operator may confirm the clock as it is', () => {
  const world = new World();
  world.set(10 * year);
  assert.equal(world.trusted.mayExpire(), false);
  assert.equal(world.trusted.aheadMs, 10 * year);
  world.trusted.confirm();
  assert.equal(world.trusted.mayExpire(), true);
  assert.equal(world.trusted.aheadMs, 0);
  world.pass(year);
  assert.equal(world.trusted.mayExpire(), true);
});
