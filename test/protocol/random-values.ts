/** Random values for field tables. The same seed gives the same values. */
import type { Random } from '../../src/core/random.ts';
import type { Field, Fields, ScalarType } from '../../src/protocol/schema-types.ts';
import { hasField, isNullable, type Struct } from '../../src/protocol/table.ts';

function below(random: Random, limit: number): number {
  return Math.floor(random.next() * limit);
}

function chance(random: Random, percent: number): boolean {
  return below(random, 100) < percent;
}

const characters = ['a', 'Z', '0', '.', 'é', 'ß', '€', '漢', '😀', '\ufffd', '\u0000'];

/**
 * A value of the struct with some fields left out. If `strict`, the version can carry it; if not,
 * it may hold fields of other versions and null where the version has no null.
 */
export function randomStruct(
  fields: Fields,
  version: number,
  random: Random,
  strict: boolean,
): Struct {
  const value: Struct = {};
  for (const [name, field] of Object.entries(fields)) {
    const fits = hasField(field, version);
    // A default of null is no value of a version without null, so there the field is given.
    const mayLack = field.default !== null || isNullable(field, version);
    if (fits ? mayLack && chance(random, 15) : strict || chance(random, 85)) continue;
    value[name] = randomField(field, version, random, strict);
  }
  return value;
}

function randomField(field: Field, version: number, random: Random, strict: boolean): unknown {
  const mayBeNull = isNullable(field, version) || (!strict && chance(random, 5));
  if (mayBeNull && chance(random, 20)) return null;
  if (field.default !== undefined && field.default !== null && chance(random, 15)) {
    return field.default;
  }
  if ('struct' in field) return randomStruct(field.struct, version, random, strict);
  if (!('items' in field)) return randomScalar(field.type, random);
  const { items } = field;
  return Array.from({ length: below(random, 4) }, () =>
    typeof items === 'string'
      ? randomScalar(items, random)
      : randomStruct(items, version, random, strict),
  );
}

function randomInteger(bits: number, random: Random): number {
  const magnitude = 2 ** below(random, bits);
  return chance(random, 50) ? magnitude - 1 : -magnitude;
}

function randomScalar(type: ScalarType, random: Random): unknown {
  switch (type) {
    case 'bool':
      return chance(random, 50);
    case 'int8':
      return randomInteger(8, random);
    case 'int16':
      return randomInteger(16, random);
    case 'uint16':
      return below(random, 0x10000);
    case 'int32':
      return randomInteger(32, random);
    case 'int64':
      return chance(random, 10) ? random.bytes(8).readBigInt64BE() : randomInteger(54, random);
    case 'float64':
      return below(random, 1000) / 8;
    case 'string': {
      const length = chance(random, 5) ? 130 : below(random, 12);
      return Array.from({ length }, () => characters[below(random, characters.length)]).join('');
    }
    case 'uuid':
      return random.bytes(16).toString('hex');
    case 'bytes':
      return random.bytes(below(random, 20));
    case 'records': {
      const count = below(random, 3);
      if (chance(random, 50)) return random.bytes(below(random, 200));
      return Array.from({ length: count }, () => random.bytes(below(random, 50)));
    }
  }
}
