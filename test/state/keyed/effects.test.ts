import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BytesError } from '../../../src/core/bytes.ts';
import {
  decodeKeyedChange,
  encodeKeyedChange,
  type KeyedChange,
  type KeyedEffect,
} from '../../../src/state/keyed/effects.ts';

/** Plain objects, as decoders make them. */
function object<T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> {
  return fc.record<T>(model, { noNullPrototype: true }) as fc.Arbitrary<T>;
}

type Fields<K extends KeyedEffect['kind']> = Omit<KeyedEffect & { kind: K }, 'kind'>;

function effect<K extends KeyedEffect['kind']>(
  kind: K,
  fields: { [F in keyof Fields<K>]: fc.Arbitrary<Fields<K>[F]> },
): fc.Arbitrary<KeyedEffect> {
  return object(fields).map((values) => ({ kind, ...values }) as unknown as KeyedEffect);
}

const text = fc.string({ unit: 'grapheme', maxLength: 30 });
const number = fc.maxSafeNat();
const timeMs = fc.oneof(number, fc.constant(-1));
const laneNumbers = { lane: number, from: number, to: number };
const trial = object({
  quarters: number,
  limit: number,
  firstMs: timeMs,
  lastMs: timeMs,
  dueMs: timeMs,
  reason: text,
});
const run = fc.tuple(number, number, number);

/** One of each kind: a new kind without one does not compile. */
const effects: Readonly<Record<KeyedEffect['kind'], fc.Arbitrary<KeyedEffect>>> = {
  opened: effect('opened', {
    slot: number,
    laneBase: number,
    starts: fc.array(fc.tuple(number, number), { maxLength: 5 }),
  }),
  closed: effect('closed', {}),
  rangeOpened: effect('rangeOpened', { lane: number, memberId: text }),
  rangeClosed: effect('rangeClosed', { lane: number }),
  granted: effect('granted', {
    lane: number,
    runs: fc.array(run, { maxLength: 5 }).map((runs) => runs.flat()),
  }),
  finished: effect('finished', laneNumbers),
  returned: effect('returned', laneNumbers),
  withdrawn: effect('withdrawn', { lane: number, from: number }),
  skipped: effect('skipped', { partition: number, from: number, to: number }),
  tried: effect('tried', { partition: number, offset: number, trial: fc.option(trial) }),
  reset: effect('reset', { partition: number, offset: number }),
};

const anyChange: fc.Arbitrary<KeyedChange> = object<KeyedChange>({
  groupId: text,
  topicId: fc
    .uint8Array({ minLength: 16, maxLength: 16 })
    .map((id) => Buffer.from(id).toString('hex')),
  effects: fc.array(fc.oneof(...Object.values(effects)), { maxLength: 12 }),
  appendedMs: timeMs,
});

for (const [kind, values] of Object.entries(effects)) {
  test(`${kind} reads back`, () => {
    fc.assert(
      fc.property(values, anyChange, (value, change) => {
        const changed = { ...change, effects: [value, ...change.effects, value] };
        // As a view into a larger buffer, which is what recovery hands over.
        const pad = Buffer.alloc(5, 1);
        const whole = Buffer.concat([pad, encodeKeyedChange(changed), pad]);
        assert.deepEqual(decodeKeyedChange(whole.subarray(5, whole.length - 5)), changed);
      }),
      { seed: 1 },
    );
  });
}

function decodeOrRefuse(bytes: Buffer): void {
  try {
    decodeKeyedChange(bytes);
  } catch (error) {
    if (!(error instanceof BytesError)) throw error;
  }
}

test('malformed bytes are refused, and nothing else happens', () => {
  const spoilt = fc.tuple(anyChange, fc.nat(), fc.integer({ min: 1, max: 255 }));
  fc.assert(
    fc.property(spoilt, fc.uint8Array({ maxLength: 60 }), ([change, at, flip], noise) => {
      const bytes = encodeKeyedChange(change);
      bytes[at % bytes.length]! ^= flip;
      decodeOrRefuse(bytes);
      decodeOrRefuse(Buffer.from(noise));
    }),
    { seed: 2, numRuns: 2000 },
  );
});

test('a change that was cut anywhere, or goes on, is refused', () => {
  fc.assert(
    fc.property(anyChange, (change) => {
      const bytes = encodeKeyedChange(change);
      for (let end = 0; end < bytes.length; end++) {
        assert.throws(() => decodeKeyedChange(bytes.subarray(0, end)), BytesError);
      }
      const longer = Buffer.concat([bytes, Buffer.from([0])]);
      assert.throws(() => decodeKeyedChange(longer), BytesError);
    }),
    { seed: 3 },
  );
});

test('runs come as three numbers each', () => {
  const effects = [{ kind: 'granted', lane: 0, runs: [1, 2] }] as const;
  const bytes = encodeKeyedChange({
    groupId: 'g',
    topicId: '00'.repeat(16),
    effects,
    appendedMs: 0,
  });
  assert.throws(() => decodeKeyedChange(bytes), BytesError);
});
