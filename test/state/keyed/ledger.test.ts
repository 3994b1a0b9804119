import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AssertionFailed } from '../../../src/core/assert.ts';
import { ByteReader, ByteWriter } from '../../../src/core/bytes.ts';
import { seededRandom } from '../../../src/core/random.ts';
import type { KeyedEffect, Trial } from '../../../src/state/keyed/effects.ts';
import { Ledger } from '../../../src/state/keyed/ledger.ts';
import { RandomEffects } from './random-effects.ts';

const topicId = '00112233445566778899aabbccddeeff';
const partitions = [3, 4, 9];
const offsetMax = 450;

interface TwinRange {
  readonly memberId: string;
  readonly start: number;
  end: number;
  /** Lane number => partition and offset. */
  grants: Map<number, readonly [partition: number, offset: number]>;
}

interface TwinLane {
  isOwned: boolean;
  readonly ranges: TwinRange[];
}

/** The same, one record after the other, and nothing is ever thrown away. */
class Twin {
  readonly lanes = new Map<number, TwinLane>();
  readonly trials = new Map<string, Trial>();
  /** Partition => every offset below `offsetMax` that is finished. */
  readonly finished = new Map<number, Set<number>>();
  readonly #laneBase: number;

  constructor(opened: KeyedEffect & { kind: 'opened' }) {
    this.#laneBase = opened.laneBase;
    for (const partition of partitions) this.finished.set(partition, new Set());
    for (const [partition, offset] of opened.starts) this.#finishUpTo(partition, 0, offset);
  }

  #finishUpTo(partition: number, from: number, to: number): void {
    for (let offset = from; offset < to; offset++) {
      this.finished.get(partition)!.add(offset);
      this.trials.delete(`${partition}:${offset}`);
    }
  }

  endOf(index: number): number {
    return this.lanes.get(index)?.ranges.at(-1)?.end ?? this.#laneBase;
  }

  apply(effect: KeyedEffect): void {
    switch (effect.kind) {
      case 'rangeOpened': {
        const start = this.endOf(effect.lane) + 1;
        const lane = this.lanes.get(effect.lane) ?? { isOwned: false, ranges: [] };
        this.lanes.set(effect.lane, lane);
        lane.isOwned = true;
        lane.ranges.push({ memberId: effect.memberId, start, end: start, grants: new Map() });
        break;
      }
      case 'rangeClosed': {
        const lane = this.lanes.get(effect.lane);
        if (lane !== undefined) lane.isOwned = false;
        break;
      }
      case 'granted':
        this.#grant(effect.lane, effect.runs);
        break;
      case 'finished':
      case 'returned':
        this.#take(effect.lane, effect.from, effect.to, effect.kind === 'finished');
        break;
      case 'skipped':
        this.#finishUpTo(effect.partition, effect.from, effect.to);
        break;
      case 'tried': {
        const key = `${effect.partition}:${effect.offset}`;
        const isFinished = this.finished.get(effect.partition)!.has(effect.offset);
        if (effect.trial === null) this.trials.delete(key);
        else if (!isFinished) this.trials.set(key, effect.trial);
        break;
      }
      case 'reset': {
        const { partition, offset } = effect;
        this.finished.set(partition, new Set());
        for (const key of [...this.trials.keys()]) {
          if (key.startsWith(`${partition}:`)) this.trials.delete(key);
        }
        this.#finishUpTo(partition, 0, offset);
        break;
      }
      default:
        assert.fail(`no effect of a ledger: ${effect.kind}`);
    }
  }

  #grant(index: number, runs: readonly number[]): void {
    const lane = this.lanes.get(index);
    if (lane === undefined || !lane.isOwned) return;
    const range = lane.ranges.at(-1)!;
    for (let i = 0; i < runs.length; i += 3) {
      for (let j = 0; j < runs[i]!; j++) {
        range.grants.set(range.end++, [runs[i + 1]!, runs[i + 2]! + j]);
      }
    }
  }

  #take(index: number, from: number, to: number, isFinished: boolean): void {
    for (const { grants } of this.lanes.get(index)?.ranges ?? []) {
      for (const [n, [partition, offset]] of [...grants]) {
        if (n < from || n >= to) continue;
        grants.delete(n);
        if (isFinished) this.#finishUpTo(partition, offset, offset + 1);
      }
    }
  }
}

function bytesOf(ledger: Ledger): Buffer {
  const writer = new ByteWriter();
  ledger.write(writer);
  return writer.finish();
}

function compareLanes(ledger: Ledger, twin: Twin, note: string): void {
  assert.deepEqual([...ledger.lanes.keys()].sort(), [...twin.lanes.keys()].sort(), note);
  for (const [index, { isOwned, ranges }] of twin.lanes) {
    const lane = ledger.lane(index)!;
    assert.deepEqual([lane.isOwned, lane.end], [isOwned, twin.endOf(index)], note);
    const kept = ranges.filter(({ grants }, i) => grants.size > 0 || i >= ranges.length - 5);
    const found = lane.ranges.map(({ memberId, start, end, grants }) => {
      const single = new Map<number, readonly [number, number]>();
      grants.forEach(0, Number.MAX_SAFE_INTEGER, (n, count, partition, offset) => {
        for (let i = 0; i < count; i++) single.set(n + i, [partition, offset + i]);
      });
      assert.equal(grants.records, single.size);
      return { memberId, start, end, grants: single };
    });
    assert.deepEqual(found, kept, note);
    assert.equal(ledger.present(index), isOwned ? lane.ranges.at(-1) : undefined, note);
  }
}

function compare(ledger: Ledger, twin: Twin, note: string): void {
  compareLanes(ledger, twin, note);
  const byKey = (trials: ReadonlyMap<string, Trial>) =>
    [...trials].sort(([a], [b]) => (a < b ? -1 : 1));
  assert.deepEqual(byKey(ledger.trials), byKey(twin.trials), note);
  for (const partition of partitions) {
    const set = ledger.finished(partition);
    const expected = twin.finished.get(partition)!;
    for (let offset = 0; offset < offsetMax; offset++) {
      if (set.has(offset) !== expected.has(offset)) {
        assert.fail(`${note}: partition ${partition}, offset ${offset}`);
      }
    }
    assert.equal(set.low + set.above, expected.size, note);
  }
}

test('a random history gives the same as one that is kept record by record', () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = new RandomEffects(seededRandom(seed), partitions);
    const opened = random.opened(7, 1000);
    let ledger = Ledger.open('g', topicId, opened);
    const twin = new Twin(opened);
    for (let step = 0; step < 200; step++) {
      const effect = random.next(ledger);
      ledger.apply(effect);
      twin.apply(effect);
      const note = `seed ${seed}, step ${step}, ${effect.kind}`;
      if (step % 4 === 0) compare(ledger, twin, note);
      if (step % 50 !== 49) continue;
      // From its image it goes on as if nothing had been.
      const bytes = bytesOf(ledger);
      ledger = Ledger.read(new ByteReader(bytes));
      assert.ok(bytesOf(ledger).equals(bytes), note);
      compare(ledger, twin, note);
    }
    assert.deepEqual([ledger.groupId, ledger.topicId, ledger.slot], ['g', topicId, 7]);
  }
});

function opened(): Ledger {
  const starts = [[0, 5]] as const;
  return Ledger.open('g', topicId, { kind: 'opened', slot: 1, laneBase: 40, starts });
}

function applyAll(ledger: Ledger, effects: readonly KeyedEffect[]): void {
  for (const effect of effects) ledger.apply(effect);
}

test('a new owner begins one above the end, and the lane end is above all lanes', () => {
  const ledger = opened();
  assert.equal(ledger.laneEnd, 40);
  ledger.apply({ kind: 'rangeOpened', lane: 2, memberId: 'a' });
  assert.equal(ledger.present(2)!.start, 41);
  applyAll(ledger, [
    { kind: 'granted', lane: 2, runs: [3, 0, 5] },
    { kind: 'rangeClosed', lane: 2 },
    { kind: 'granted', lane: 2, runs: [1, 0, 8] },
    { kind: 'rangeOpened', lane: 2, memberId: 'b' },
  ]);
  const { start, memberId } = ledger.present(2)!;
  assert.deepEqual([start, memberId, ledger.laneEnd], [45, 'b', 45]);
  assert.deepEqual(
    ledger.lane(2)!.ranges.map(({ end }) => end),
    [44, 45],
  );
});

test('only a commit or a reset marks the group as one that finished something', () => {
  const ledger = opened();
  applyAll(ledger, [
    { kind: 'rangeOpened', lane: 0, memberId: 'a' },
    { kind: 'granted', lane: 0, runs: [3, 0, 5] },
    { kind: 'returned', lane: 0, from: 41, to: 42 },
    { kind: 'skipped', partition: 0, from: 0, to: 6 },
    { kind: 'finished', lane: 0, from: 41, to: 42 },
  ]);
  assert.equal(ledger.hasFinished, false);
  ledger.apply({ kind: 'finished', lane: 0, from: 40, to: 43 });
  assert.equal(ledger.hasFinished, true);
  assert.equal(ledger.finished(0).low, 7);
  const other = opened();
  other.apply({ kind: 'reset', partition: 0, offset: 0 });
  assert.equal(other.hasFinished, true);
});

test('looking at a partition does not change the image', () => {
  const ledger = opened();
  const before = bytesOf(ledger);
  assert.equal(ledger.finished(77).low, 0);
  assert.ok(bytesOf(ledger).equals(before));
  ledger.finished(77).addRange(0, 1);
  assert.ok(!bytesOf(ledger).equals(before));
});

test('the order in which lanes and trials came to be does not show in the image', () => {
  const trial = { quarters: 4, limit: 0, firstMs: 1, lastMs: 2, dueMs: 3, reason: 'left' };
  const effects: readonly KeyedEffect[] = [
    { kind: 'rangeOpened', lane: 10, memberId: 'a' },
    { kind: 'rangeOpened', lane: 9, memberId: 'b' },
    { kind: 'tried', partition: 0, offset: 30, trial },
    { kind: 'tried', partition: 0, offset: 6, trial },
    { kind: 'skipped', partition: 2, from: 0, to: 1 },
    { kind: 'skipped', partition: 1, from: 3, to: 4 },
  ];
  const forwards = opened();
  applyAll(forwards, effects);
  const backwards = opened();
  applyAll(backwards, effects.toReversed());
  assert.ok(bytesOf(forwards).equals(bytesOf(backwards)));
});

test('a ledger does not open or close itself', () => {
  const ledger = opened();
  assert.throws(() => ledger.apply({ kind: 'closed' }), AssertionFailed);
});
