import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { seededRandom } from '../../src/core/random.ts';
import { EncodeError } from '../../src/protocol/codec-error.ts';
import { compiledReader, compiledWriter } from '../../src/protocol/compiled.ts';
import { interpretRead, interpretWrite } from '../../src/protocol/interpreter.ts';
import { Reader } from '../../src/protocol/reader.ts';
import type { MessageTable } from '../../src/protocol/schema-types.ts';
import type { Struct } from '../../src/protocol/table.ts';
import { Writer } from '../../src/protocol/writer.ts';
import { randomStruct } from './random-values.ts';
import { inputOf, messageVectors, outputOf, tablesByName } from './vectors.ts';

const writer = new Writer();

function written(write: (writer: Writer) => void): string {
  writer.reset();
  write(writer);
  return Buffer.concat(writer.finish()).toString('hex');
}

function readerOf(hex: string): Reader {
  const bytes = Buffer.from(hex, 'hex');
  return new Reader(bytes, 0, bytes.length, true);
}

test('the interpreter reads and writes what Kafka wrote', () => {
  for (const { table, vector } of messageVectors()) {
    const where = `${vector.name} v${vector.version} ${vector.variant}`;
    const reader = readerOf(vector.hex);
    const value = interpretRead(table, vector.version, reader);
    assert.deepEqual(value, outputOf(table, vector), where);
    assert.equal(reader.position, reader.end, where);
    if (vector.variant === 'unknownTags') continue;
    const input = inputOf(table, vector) as unknown as Struct;
    const hex = written((target) => interpretWrite(table, vector.version, input, target));
    assert.equal(hex, vector.hex, where);
  }
});

/** The bytes, or the complaint, of writing a value that the version may not be able to carry. */
function outcome(write: (writer: Writer) => void): string {
  try {
    return written(write);
  } catch (error) {
    if (!(error instanceof EncodeError)) throw error;
    return 'refused';
  }
}

function compare(table: MessageTable, version: number, value: Struct): string {
  const where = `${table.name} v${version}`;
  const expected = outcome((target) => interpretWrite(table, version, value, target));
  const actual = outcome((target) => compiledWriter(table, version)(target, value));
  assert.equal(actual, expected, where);
  if (expected !== 'refused') {
    assert.deepEqual(
      compiledReader(table, version)(readerOf(expected)),
      interpretRead(table, version, readerOf(expected)),
      where,
    );
  }
  return expected;
}

test('compiled code and interpreter agree on random values', () => {
  const random = seededRandom(20240607);
  let accepted = 0;
  let refused = 0;
  for (const table of tablesByName().values()) {
    for (let version = table.versions[0]; version <= table.versions[1]; version++) {
      for (let round = 0; round < 6; round++) {
        // Half of the values have fields of other versions too, or null where none may be.
        const strict = round % 2 === 0;
        const value = randomStruct(table.fields, version, random, strict);
        const isRefused = compare(table, version, value) === 'refused';
        assert.ok(!(isRefused && strict), `${table.name} v${version} refused its own value`);
        if (isRefused) refused++;
        else accepted++;
      }
    }
  }
  assert.ok(accepted > 500 && refused > 100, `${accepted} accepted, ${refused} refused`);
});

test('where code may not be generated, the interpreter does the work', () => {
  const file = fileURLToPath(new URL('./codec.test.js', import.meta.url));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const flag = '--disallow-code-generation-from-strings';
  const run = spawnSync(process.execPath, [flag, file], { env, encoding: 'utf8' });
  assert.equal(run.status, 0, run.stdout);
  assert.match(run.stdout, /pass 3/);
});
