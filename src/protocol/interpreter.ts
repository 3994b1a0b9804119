/**
 * The reference codec: walks a field table for every message. It is slow and plain; what is
 * compiled from the same table must give the same values and bytes (see compiled.ts).
 */
import { EncodeError } from './codec-error.ts';
import type { Reader } from './reader.ts';
import type { Field, Fields, MessageTable, ScalarType } from './schema-types.ts';
import {
  checkAbsent,
  type Dialect,
  defaultOf,
  dialectOf,
  hasField,
  isCompact,
  isDefault,
  isNullable,
  itemBytesMin,
  readMethod,
  type Struct,
  taggedFields,
  writeMethod,
} from './table.ts';
import type { Writer } from './writer.ts';

export function interpretRead(table: MessageTable, version: number, reader: Reader): Struct {
  return readStruct(table.fields, dialectOf(table, version), reader);
}

export function interpretWrite(
  table: MessageTable,
  version: number,
  value: Struct,
  writer: Writer,
): void {
  writeStruct(table.fields, value, dialectOf(table, version), writer);
}

function readStruct(fields: Fields, dialect: Dialect, reader: Reader): Struct {
  const value: Struct = {};
  for (const [name, field] of Object.entries(fields)) {
    const inPlace = hasField(field, dialect.version) && field.tag === undefined;
    value[name] = inPlace ? readField(field, dialect, reader) : defaultOf(field);
  }
  if (dialect.flexible) readTagged(fields, value, dialect, reader);
  return value;
}

function readTagged(fields: Fields, value: Struct, dialect: Dialect, reader: Reader): void {
  const tagged = taggedFields(fields, dialect);
  for (let count = reader.tagCount(); count > 0; count--) {
    const tag = reader.unsignedVarint();
    const end = reader.tagEnd();
    const known = tagged.find(([, field]) => field.tag === tag);
    if (known === undefined) {
      reader.position = end;
    } else {
      value[known[0]] = readField(known[1], dialect, reader);
      reader.expectEnd(end);
    }
  }
}

function readField(field: Field, dialect: Dialect, reader: Reader): unknown {
  const nullable = isNullable(field, dialect.version);
  if ('items' in field) return readItems(field.items, nullable, dialect, reader);
  if ('struct' in field) {
    if (nullable && !reader.present()) return null;
    return readStruct(field.struct, dialect, reader);
  }
  return readScalar(field.type, isCompact(field, dialect), nullable, reader);
}

function readItems(
  items: ScalarType | Fields,
  nullable: boolean,
  dialect: Dialect,
  reader: Reader,
): unknown[] | null {
  const bytesMin = itemBytesMin(items, dialect);
  const count = readCount(bytesMin, nullable, dialect, reader);
  if (count < 0) return null;
  const values: unknown[] = [];
  for (let index = 0; index < count; index++) {
    values.push(
      typeof items === 'string'
        ? readScalar(items, dialect.flexible, false, reader)
        : readStruct(items, dialect, reader),
    );
  }
  return values;
}

function readCount(bytesMin: number, nullable: boolean, dialect: Dialect, reader: Reader): number {
  if (dialect.flexible) {
    return nullable ? reader.compactCountOrNull(bytesMin) : reader.compactCount(bytesMin);
  }
  return nullable ? reader.countOrNull(bytesMin) : reader.count(bytesMin);
}

function readScalar(
  type: ScalarType,
  compact: boolean,
  nullable: boolean,
  reader: Reader,
): unknown {
  return reader[readMethod(type, compact, nullable)]();
}

function writeStruct(fields: Fields, value: Struct, dialect: Dialect, writer: Writer): void {
  for (const [name, field] of Object.entries(fields)) {
    if (!hasField(field, dialect.version)) {
      checkAbsent(name, field, value[name]);
    } else if (field.tag === undefined) {
      writeField(name, field, value[name], dialect, writer);
    }
  }
  if (dialect.flexible) writeTagged(fields, value, dialect, writer);
}

export function writeTagged(fields: Fields, value: Struct, dialect: Dialect, writer: Writer): void {
  const present = taggedFields(fields, dialect).filter(
    ([name, field]) => !isDefault(field, value[name]),
  );
  writer.unsignedVarint(present.length);
  for (const [name, field] of present) {
    const start = writer.beginTag(field.tag!);
    writeField(name, field, value[name], dialect, writer);
    writer.endTag(start);
  }
}

export function writeField(
  name: string,
  field: Field,
  given: unknown,
  dialect: Dialect,
  writer: Writer,
): void {
  const value = given === undefined ? defaultOf(field) : given;
  const nullable = isNullable(field, dialect.version);
  if (value === null && !nullable) {
    throw new EncodeError(`${name} may not be null`);
  }
  if ('items' in field) {
    writeItems(field.items, value as readonly unknown[] | null, dialect, writer);
  } else if ('struct' in field) {
    if (nullable) writer.present(value !== null);
    if (value !== null) writeStruct(field.struct, value as Struct, dialect, writer);
  } else {
    writeScalar(field.type, value, isCompact(field, dialect), nullable, writer);
  }
}

function writeItems(
  items: ScalarType | Fields,
  values: readonly unknown[] | null,
  dialect: Dialect,
  writer: Writer,
): void {
  if (values === null) {
    if (dialect.flexible) writer.compactNullCount();
    else writer.nullCount();
    return;
  }
  if (dialect.flexible) writer.compactCount(values.length);
  else writer.count(values.length);
  for (const value of values) {
    if (typeof items === 'string') writeScalar(items, value, dialect.flexible, false, writer);
    else writeStruct(items, value as Struct, dialect, writer);
  }
}

function writeScalar(
  type: ScalarType,
  value: unknown,
  compact: boolean,
  nullable: boolean,
  writer: Writer,
): void {
  const method = writeMethod(type, compact, nullable);
  (writer[method] as (this: Writer, value: unknown) => void).call(writer, value);
}
