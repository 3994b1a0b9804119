import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DecodeError } from '../../src/protocol/codec-error.ts';
import { Reader } from '../../src/protocol/reader.ts';
import { formatUuid, isUuid, parseUuid, ZERO_UUID } from '../../src/protocol/uuid.ts';
import { Writer } from '../../src/protocol/writer.ts';
import { type PrimitiveVector, readVectors } from './vectors.ts';

const vectors = readVectors<PrimitiveVector>('primitives');
const writer = new Writer();

function readerOf(hex: string): Reader {
  const bytes = Buffer.from(hex, 'hex');
  return new Reader(bytes, 0, bytes.length);
}

for (const kind of ['unsignedVarint', 'varint'] as const) {
  test(`${kind} is read and written as Kafka does`, () => {
    const ofKind = vectors.filter((vector) => vector.kind === kind);
    assert.ok(ofKind.length > 20);
    for (const { hex, value, reads, kafkaError } of ofKind) {
      const reader = readerOf(hex);
      if (kafkaError !== undefined) {
        assert.throws(() => reader[kind](), DecodeError, hex);
        continue;
      }
      const expected = Number(value ?? reads);
      assert.equal(reader[kind](), expected, hex);
      assert.equal(reader.position, reader.end, hex);
      if (value === undefined) continue;
      writer.reset();
      writer[kind](expected);
      assert.equal(Buffer.concat(writer.finish()).toString('hex'), hex);
    }
  });
}

test('a UUID goes between bytes, memory and Kafka text', () => {
  const ofKind = vectors.filter((vector) => vector.kind === 'uuid');
  assert.ok(ofKind.length > 3);
  for (const { hex, text } of ofKind) {
    assert.equal(readerOf(hex).uuid(), hex);
    assert.equal(formatUuid(hex), text);
    assert.equal(parseUuid(text!), hex);
    writer.reset();
    writer.uuid(hex);
    assert.equal(Buffer.concat(writer.finish()).toString('hex'), hex);
  }
});

test('what is no UUID is not taken for one', () => {
  for (const text of ['', 'AAAA', `${'A'.repeat(21)}=`, 'A'.repeat(23), `${'A'.repeat(21)}B`]) {
    assert.equal(parseUuid(text), undefined, text);
  }
  assert.equal(parseUuid('A'.repeat(22)), ZERO_UUID);
  assert.ok(isUuid(ZERO_UUID));
  assert.ok(!isUuid('A'.repeat(32)));
  assert.ok(!isUuid(ZERO_UUID.slice(1)));
});
