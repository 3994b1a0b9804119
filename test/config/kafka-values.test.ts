import assert from 'node:assert/strict';
import test from 'node:test';
import { maxLongText, parseValue, type ValueRule } from '../../src/config/kafka-values.ts';

function parsed(given: string, rule: ValueRule): string {
  const value = parseValue('some.name', given, rule);
  return 'text' in value ? value.text : value.error;
}

const invalid = (value: string, why: string) =>
  `Invalid value ${value} for configuration some.name: ${why}`;

test('numbers are read as Java reads them', () => {
  const long: ValueRule = { type: 'LONG', min: -1 };
  for (const [given, text] of [
    ['5', '5'],
    [' 5 ', '5'],
    ['+5', '5'],
    ['-1', '-1'],
    ['007', '7'],
    [maxLongText, maxLongText],
  ] as const) {
    assert.equal(parsed(given, long), text);
  }
  for (const given of ['', ' ', '1.5', 'soon', '0x10', '1e3', '9223372036854775808', '5 5']) {
    assert.equal(parsed(given, long), invalid(given, 'Not a number of type LONG'));
  }
  assert.equal(parsed('-2', long), invalid('-2', 'Value must be at least -1'));
  assert.equal(parsed('2147483647', { type: 'INT' }), '2147483647');
  assert.equal(
    parsed('2147483648', { type: 'INT' }),
    invalid('2147483648', 'Not a number of type INT'),
  );
  assert.equal(parsed('-2147483648', { type: 'INT' }), '-2147483648');
  assert.equal(
    parsed('11', { type: 'INT', max: 10 }),
    invalid('11', 'Value must be no more than 10'),
  );
});

test('doubles are written as Java writes them', () => {
  const rule: ValueRule = { type: 'DOUBLE', min: 0, max: 1 };
  assert.equal(parsed('.5', rule), '0.5');
  assert.equal(parsed('1', rule), '1.0');
  assert.equal(parsed('2', rule), invalid('2.0', 'Value must be no more than 1'));
  assert.equal(parsed('-1', rule), invalid('-1.0', 'Value must be at least 0'));
  assert.equal(parsed('half', rule), invalid('half', 'Not a number of type DOUBLE'));
});

test('booleans, choices and lists', () => {
  assert.equal(parsed('TRUE', { type: 'BOOLEAN' }), 'true');
  assert.equal(
    parsed('yes', { type: 'BOOLEAN' }),
    invalid('yes', 'Expected value to be either true or false'),
  );
  const choice: ValueRule = { type: 'STRING', values: ['one', 'two'] };
  assert.equal(parsed(' one ', choice), 'one');
  assert.equal(parsed('One', choice), invalid('One', 'String must be one of: one, two'));
  const list: ValueRule = { type: 'LIST', values: ['one', 'two'] };
  assert.equal(parsed('two , one', list), 'two,one');
  assert.equal(parsed('', list), '');
  assert.equal(parsed('one,six', list), invalid('six', 'String must be one of: one, two'));
});
