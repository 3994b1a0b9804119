import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode, encode } from '../../src/protocol/codec.ts';
import { inputOf, messageVectors, outputOf, tablesByName } from './vectors.ts';

const vectors = messageVectors();

test('what Kafka wrote is read as the values that it was made of', () => {
  for (const { table, vector } of vectors) {
    const bytes = Buffer.from(vector.hex, 'hex');
    const value = decode(table, vector.version, bytes, 0, bytes.length, { lossless: true });
    const where = `${vector.name} v${vector.version} ${vector.variant}`;
    assert.deepEqual(value, outputOf(table, vector), where);
  }
});

test('the values of a vector are written as the bytes that Kafka wrote', () => {
  for (const { table, vector } of vectors) {
    if (vector.variant === 'unknownTags') continue;
    const pieces = encode(table, vector.version, inputOf(table, vector));
    const where = `${vector.name} v${vector.version} ${vector.variant}`;
    assert.equal(Buffer.concat(pieces).toString('hex'), vector.hex, where);
  }
});

test('every version of every table has a vector', () => {
  const seen = new Set(vectors.map(({ vector }) => `${vector.name} ${vector.version}`));
  for (const table of tablesByName().values()) {
    for (let version = table.versions[0]; version <= table.versions[1]; version++) {
      assert.ok(seen.has(`${table.name} ${version}`), `${table.name} v${version}`);
    }
  }
});
