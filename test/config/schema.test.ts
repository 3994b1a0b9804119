import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv } from 'ajv';
import { allowedWords, settingsSchema, wrongValues } from '../../src/config/schema.ts';
import type { Setting } from '../../src/config/setting.ts';
import { settingsTable, withDefaults } from '../../src/config/settings.ts';
import { parseHostPort } from '../../src/net/listeners.ts';

const settings = Object.entries<Setting>(settingsTable);

test('the schema is a valid schema, in strict mode too', () => {
  const ajv = new Ajv({ strict: true });
  assert.equal(ajv.validateSchema(settingsSchema), true);
  assert.equal(ajv.validate(settingsSchema, withDefaults()), true);
});

test('all defaults are allowed', () => {
  assert.deepEqual(wrongValues(withDefaults()), []);
});

test('each bound is allowed, and what lies beyond is not', () => {
  for (const [name, setting] of settings) {
    if (setting.type !== 'integer') continue;
    for (const value of [setting.min, setting.max]) {
      assert.deepEqual(wrongValues({ [name]: value }), [], name);
    }
    for (const value of [setting.min - 1, setting.max + 1, setting.min + 0.5, '1', null]) {
      assert.deepEqual(wrongValues({ [name]: value }), [{ name, kind: 'not allowed' }]);
    }
  }
});

test('each value of a list is allowed, and no other', () => {
  for (const [name, setting] of settings) {
    if (setting.type !== 'string' || setting.values === undefined) continue;
    for (const value of setting.values) assert.deepEqual(wrongValues({ [name]: value }), []);
    assert.equal(wrongValues({ [name]: `${setting.default} ` }).length, 1);
  }
});

test('every setting is explained in words', () => {
  for (const [name, setting] of settings) {
    assert(setting.doc.length > 10, name);
    assert(allowedWords(setting).length > 3, name);
  }
});

test('the schema takes the addresses that the listener takes', () => {
  const hosts = ['', 'localhost', '127.0.0.1', '[::1]', '[::]', '::1', '[]', '[a]', 'a b', 'a[b]'];
  const ports = ['', '0', '1', '00001', '000001', '9092', '60000', '65535', '65536', '65540'];
  const morePorts = ['65600', '66000', '70000', '99999', '100000', '-1', 'x', '1 '];
  for (const host of hosts) {
    for (const port of [...ports, ...morePorts]) {
      for (const text of [`${host}:${port}`, `${host}${port}`, ` ${host}:${port}`]) {
        assert.equal(wrongValues({ listen: text }).length === 0, canParse(text), `"${text}"`);
      }
    }
  }
  assert.equal(wrongValues({ advertise: '' }).length, 0);
  assert.equal(wrongValues({ listen: '' }).length, 1);
  assert.equal(wrongValues({ data: '' }).length, 1);
});

function canParse(text: string): boolean {
  try {
    parseHostPort(text);
    return true;
  } catch {
    return false;
  }
}
