import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settingNames } from '../../src/config/broker-configs.ts';
import { environmentName, nearest, typingErrors } from '../../src/config/names.ts';

test('each setting has a variable of its own', () => {
  const variables = settingNames.map(environmentName);
  assert.equal(new Set(variables).size, settingNames.length);
  for (const variable of variables) assert.match(variable, /^KEYLANE_[A-Z0-9_]+$/);
});

test('names of settings are lower case words with dots between them', () => {
  for (const name of settingNames) assert.match(name, /^[a-z]+(\.[a-z]+)*$/);
});

test('typing errors are counted', () => {
  const cases: readonly [string, string, number][] = [
    ['', '', 0],
    ['abc', 'abc', 0],
    ['abc', '', 3],
    ['', 'abc', 3],
    ['abc', 'abd', 1],
    ['abc', 'ab', 1],
    ['abc', 'xabc', 1],
    ['abcd', 'acbd', 1],
    ['kitten', 'sitting', 3],
    ['ca', 'abc', 3],
  ];
  for (const [a, b, errors] of cases) {
    assert.equal(typingErrors(a, b), errors, `${a} ${b}`);
    assert.equal(typingErrors(b, a), errors, `${b} ${a}`);
  }
});

test('the nearest candidate is found, and none where all are far', () => {
  const candidates = ['num.partitions', 'max.partitions', 'log.level'];
  assert.equal(nearest('num.partition', candidates), 'num.partitions');
  assert.equal(nearest('max.partitions', candidates), 'max.partitions');
  assert.equal(nearest('level', candidates), undefined);
  assert.equal(nearest('x', ['a', 'b']), undefined);
  assert.equal(nearest('n'.repeat(100_000), candidates), undefined);
});
