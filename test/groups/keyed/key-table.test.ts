import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyTable } from '../../../src/groups/keyed/key-table.ts';
import { none } from '../../../src/groups/keyed/record-store.ts';

const names = [
  ...['', 'a', '\0', 'a\0', '\0a', 'abcd', 'abcde', '\u00ff\u00ff', 'x'.repeat(16)],
  ...['x'.repeat(17), `${'x'.repeat(17)}y`, '\u2205', '\u0005', '\u0105'],
];

test('a key is its exact bytes, whatever its length', () => {
  const keys = new KeyTable(7);
  const taken = names.map((name) => keys.take(name));
  assert.equal(new Set(taken).size, names.length);
  assert.deepEqual(
    names.map((name) => keys.take(name)),
    taken,
  );
  assert.deepEqual(
    taken.map((key) => keys.name(key)),
    names,
  );
  assert.equal(keys.find('b'), undefined);
});

test('keys that come and go are found, and those that are gone are not', () => {
  const keys = new KeyTable(-1_234_567);
  const known = new Map<string, number>();
  let state = 1;
  const below = (n: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) % n;
  };
  for (let step = 0; step < 50_000; step++) {
    const name = `${'long '.repeat(below(8))}${below(3000)}`;
    const key = known.get(name);
    if (key === undefined) {
      assert.equal(keys.find(name), undefined);
      known.set(name, keys.take(name));
    } else if (below(3) === 0) {
      keys.forget(key);
      known.delete(name);
    } else assert.equal(keys.take(name), key);
  }
  assert.equal(keys.size, known.size);
  for (const [name, key] of known) assert.equal(keys.find(name), key);
  assert.ok(keys.rows < 24_000, 'rows are used again');
});

test('what is said of one key says nothing of others, nor of the next one in its place', () => {
  const keys = new KeyTable(0);
  const columns = ['holder', 'inHand', 'pending', 'nextPending', 'nextBatch', 'tail'] as const;
  const all = [...columns, 'lastMember', 'kept', 'pause', 'spilled'] as const;
  const [a, b] = [keys.take('a'), keys.take('b')];
  const fresh = all.map((column) => keys[column][b]);
  for (const [i, column] of all.entries()) keys[column][a] = 100 + i;
  assert.deepEqual(
    all.map((column) => keys[column][b]),
    fresh,
  );
  assert.deepEqual(
    all.map((column) => keys[column][a]),
    all.map((_, i) => 100 + i),
  );
  assert.equal(keys.name(a), 'a');
  keys.forget(a);
  const c = keys.take('c');
  assert.equal(c, a);
  assert.deepEqual(
    all.map((column) => keys[column][c]),
    fresh,
  );
  assert.equal(keys.holder[c], none);
});
