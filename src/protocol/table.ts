/** What a field table means in one version: which fields, null or not, defaults, least sizes. */
import { EncodeError } from './codec-error.ts';
import type { Field, Fields, MessageTable, ScalarType } from './schema-types.ts';
import { ZERO_UUID } from './uuid.ts';

/** A decoded message or struct, before its type is known. */
export type Struct = Record<string, unknown>;

const EMPTY = Buffer.alloc(0);

const zeroOfType: Readonly<Record<ScalarType, unknown>> = {
  bool: false,
  int8: 0,
  int16: 0,
  uint16: 0,
  int32: 0,
  int64: 0,
  float64: 0,
  string: '',
  uuid: ZERO_UUID,
  bytes: EMPTY,
  records: EMPTY,
};

const bytesMinOfType: Readonly<Record<ScalarType, number>> = {
  bool: 1,
  int8: 1,
  int16: 2,
  uint16: 2,
  int32: 4,
  int64: 8,
  float64: 8,
  string: 2,
  uuid: 16,
  bytes: 4,
  records: 4,
};

/** What stands for the table in one version while reading or writing. */
export interface Dialect {
  readonly version: number;
  readonly flexible: boolean;
}

export function dialectOf(table: MessageTable, version: number): Dialect {
  const { flexibleFrom } = table;
  return { version, flexible: flexibleFrom !== null && version >= flexibleFrom };
}

export function hasVersion(table: MessageTable, version: number): boolean {
  return Number.isInteger(version) && version >= table.versions[0] && version <= table.versions[1];
}

export function hasField(field: Field, version: number): boolean {
  return version >= (field.since ?? 0) && version <= (field.until ?? Number.POSITIVE_INFINITY);
}

export function isNullable(field: Field, version: number): boolean {
  const { nullable } = field;
  return nullable === true || (nullable !== undefined && version >= nullable);
}

/** Whether the field's length has the compact form. */
export function isCompact(field: Field, dialect: Dialect): boolean {
  return dialect.flexible && field.flexible !== false;
}

/** A fresh default: arrays and structs in it may be changed by who receives it. */
export function defaultOf(field: Field): unknown {
  if (field.default !== undefined) return field.default;
  if ('items' in field) return [];
  if ('struct' in field) return defaultsOf(field.struct);
  // Kafka starts every records field as null, where null can be written at all.
  return field.type === 'records' && field.nullable !== undefined ? null : zeroOfType[field.type];
}

export function defaultsOf(fields: Fields): Struct {
  const value: Struct = {};
  for (const [name, field] of Object.entries(fields)) value[name] = defaultOf(field);
  return value;
}

/** Whether leaving the value out loses nothing. */
export function isDefault(field: Field, value: unknown): boolean {
  if (value === undefined) return true;
  const expected = defaultOf(field);
  if (value === null || expected === null) return value === expected;
  if ('items' in field) return (value as readonly unknown[]).length === 0;
  if ('struct' in field) {
    const struct = value as Struct;
    return Object.entries(field.struct).every(([name, inner]) => isDefault(inner, struct[name]));
  }
  if (typeof value === 'bigint') return value === saturated(expected as number);
  if (value instanceof Uint8Array) return value.length === 0;
  if (Array.isArray(value)) return value.every((part: Buffer) => part.length === 0);
  return value === expected;
}

/** The int64 that is written for a number: 2^63 stands for the largest. */
function saturated(value: number): bigint {
  return value === 2 ** 63 ? 0x7fffffffffffffffn : BigInt(value);
}

/** Refuses a value that the version has no place for, unless it may be dropped. */
export function checkAbsent(name: string, field: Field, value: unknown): void {
  if (field.ignorable === true || isDefault(field, value)) return;
  throw new EncodeError(`there is no place for ${name}`);
}

/** The fewest bytes that the field takes in place; nothing if it lies in the tagged section. */
export function fieldBytesMin(field: Field, dialect: Dialect): number {
  if (!hasField(field, dialect.version) || field.tag !== undefined) return 0;
  const compact = isCompact(field, dialect);
  if ('items' in field) return compact ? 1 : 4;
  if ('struct' in field) {
    return isNullable(field, dialect.version) ? 1 : structBytesMin(field.struct, dialect);
  }
  return scalarBytesMin(field.type, compact);
}

function scalarBytesMin(type: ScalarType, compact: boolean): number {
  const hasLength = type === 'string' || type === 'bytes' || type === 'records';
  return compact && hasLength ? 1 : bytesMinOfType[type];
}

/** At least one, so that a count of elements is always bounded by the bytes that remain. */
export function structBytesMin(fields: Fields, dialect: Dialect): number {
  let bytes = dialect.flexible ? 1 : 0;
  for (const field of Object.values(fields)) bytes += fieldBytesMin(field, dialect);
  return Math.max(bytes, 1);
}

export function itemBytesMin(items: ScalarType | Fields, dialect: Dialect): number {
  return typeof items === 'string'
    ? scalarBytesMin(items, dialect.flexible)
    : structBytesMin(items, dialect);
}

/** Whether any field of the version lies in the tagged section. */
export function taggedFields(fields: Fields, dialect: Dialect): [string, Field][] {
  return Object.entries(fields)
    .filter(([, field]) => field.tag !== undefined && hasField(field, dialect.version))
    .sort(([, left], [, right]) => left.tag! - right.tag!);
}

type Lengthened<T extends string> = T | `compact${Capitalize<T>}`;
type Fixed = Exclude<ScalarType, 'string' | 'bytes' | 'records'>;
type ReadMethod = Fixed | Lengthened<`${'string' | 'bytes'}${'' | 'OrNull'}`>;
type WriteMethod = ReadMethod | Lengthened<`records${'' | 'OrNull'}`>;

/** The method of a writer for a scalar in this form. */
export function writeMethod(type: ScalarType, compact: boolean, nullable: boolean): WriteMethod {
  switch (type) {
    case 'string':
      if (compact) return nullable ? 'compactStringOrNull' : 'compactString';
      return nullable ? 'stringOrNull' : 'string';
    case 'bytes':
      if (compact) return nullable ? 'compactBytesOrNull' : 'compactBytes';
      return nullable ? 'bytesOrNull' : 'bytes';
    case 'records':
      if (compact) return nullable ? 'compactRecordsOrNull' : 'compactRecords';
      return nullable ? 'recordsOrNull' : 'records';
    default:
      return type;
  }
}

/** The method of a reader. Records lie on the wire as bytes do; only a writer tells them apart. */
export function readMethod(type: ScalarType, compact: boolean, nullable: boolean): ReadMethod {
  return writeMethod(type === 'records' ? 'bytes' : type, compact, nullable) as ReadMethod;
}
