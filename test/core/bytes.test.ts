import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ByteReader, BytesError, ByteWriter } from '../../src/core/bytes.ts';

type Item =
  | { readonly kind: 'u8' | 'u32' | 'f64' | 'uvarint'; readonly value: number }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'nullableString'; readonly value: string | null }
  | { readonly kind: 'bytes'; readonly value: Buffer };

const text = fc.string({ unit: 'grapheme', maxLength: 200 });
const item: fc.Arbitrary<Item> = fc.oneof(
  fc.record({ kind: fc.constant('u8' as const), value: fc.integer({ min: 0, max: 255 }) }),
  fc.record({ kind: fc.constant('u32' as const), value: fc.integer({ min: 0, max: 2 ** 32 - 1 }) }),
  fc.record({ kind: fc.constant('f64' as const), value: fc.double({ noNaN: true }) }),
  fc.record({ kind: fc.constant('uvarint' as const), value: fc.maxSafeNat() }),
  fc.record({ kind: fc.constant('string' as const), value: text }),
  fc.record({ kind: fc.constant('nullableString' as const), value: fc.option(text) }),
  fc.record({
    kind: fc.constant('bytes' as const),
    value: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  }),
);

function write(writer: ByteWriter, { kind, value }: Item): void {
  if (kind === 'string') writer.string(value);
  else if (kind === 'nullableString') writer.nullableString(value);
  else if (kind === 'bytes') writer.bytes(value);
  else writer[kind](value);
}

test('what is written reads back', () => {
  fc.assert(
    fc.property(fc.array(item, { maxLength: 30 }), fc.nat(20), (items, bytesInitial) => {
      const writer = new ByteWriter(1 + bytesInitial);
      for (const each of items) write(writer, each);
      const length = writer.length;
      const bytes = writer.finish();
      assert.equal(bytes.length, length);
      // Not at the beginning of its buffer, and with more behind it.
      const padded = Buffer.concat([Buffer.alloc(3, 9), bytes, Buffer.alloc(3, 9)]);
      const reader = new ByteReader(padded, 3, 3 + length);
      for (const { kind, value } of items) assert.deepEqual(reader[kind](), value);
      reader.end();
    }),
    { seed: 1 },
  );
});

test('input that is cut short throws, and nothing else', () => {
  fc.assert(
    fc.property(fc.array(item, { minLength: 1, maxLength: 8 }), fc.nat(), (items, cut) => {
      const writer = new ByteWriter();
      for (const each of items) write(writer, each);
      const bytes = writer.finish();
      const reader = new ByteReader(bytes.subarray(0, cut % bytes.length));
      assert.throws(() => {
        for (const { kind } of items) reader[kind]();
      }, BytesError);
    }),
    { seed: 2 },
  );
});

test('any bytes read as something or throw a BytesError', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      for (const kind of ['uvarint', 'string', 'nullableString', 'bytes', 'count'] as const) {
        try {
          const value = new ByteReader(Buffer.from(bytes))[kind]();
          if (typeof value === 'number') assert.ok(Number.isSafeInteger(value) && value >= 0);
        } catch (error) {
          assert.ok(error instanceof BytesError, String(error));
        }
      }
    }),
    { seed: 3, numRuns: 500 },
  );
});

test('what is left over is noticed', () => {
  assert.throws(() => new ByteReader(Buffer.alloc(2)).end(), BytesError);
});
