/**
 * The fast codec: for each table and version that is used, one reader and one writer are made of
 * generated JavaScript, once. They call the same primitives as the interpreter in the same order,
 * so they must give the same values and bytes: a test compares both over all vectors.
 *
 * What generated code gains: no walk through the table, a call site of its own for each field, and
 * one object literal for each struct, so that all values of a message have the same shape.
 *
 * Only tables end up in the code, never anything that came over the wire. Where the process
 * forbids code generation, the interpreter does the work.
 */
import { EncodeError } from './codec-error.ts';
import { interpretRead, interpretWrite } from './interpreter.ts';
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

export type ReadMessage = (reader: Reader) => Struct;
export type WriteMessage = (writer: Writer, value: Struct) => void;

type ByVersion<F> = Map<MessageTable, F[]>;
const readers: ByVersion<ReadMessage> = new Map();
const writers: ByVersion<WriteMessage> = new Map();

/** The reader of a version that the table has; made when first asked for. */
export function compiledReader(table: MessageTable, version: number): ReadMessage {
  return readers.get(table)?.[version] ?? keep(readers, table, version, compileRead);
}

/** The writer of a version that the table has; made when first asked for. */
export function compiledWriter(table: MessageTable, version: number): WriteMessage {
  return writers.get(table)?.[version] ?? keep(writers, table, version, compileWrite);
}

function keep<F>(
  kept: ByVersion<F>,
  table: MessageTable,
  version: number,
  compile: (table: MessageTable, version: number) => F,
): F {
  const made = compile(table, version);
  const versions = kept.get(table) ?? [];
  versions[version] = made;
  kept.set(table, versions);
  return made;
}

function compileRead(table: MessageTable, version: number): ReadMessage {
  const source = new Source();
  const entry = readStruct(source, table.fields, dialectOf(table, version));
  const made = source.make(entry) as ReadMessage | undefined;
  return made ?? ((reader) => interpretRead(table, version, reader));
}

function compileWrite(table: MessageTable, version: number): WriteMessage {
  const source = new Source();
  const entry = writeStruct(source, table.fields, dialectOf(table, version));
  const made = source.make(entry) as WriteMessage | undefined;
  return made ?? ((writer, value) => interpretWrite(table, version, value, writer));
}

/** What generated writers call for the cases that are rare. */
const helpers = {
  absent: checkAbsent,
  isDefault,
  refuseNull(name: string): never {
    throw new EncodeError(`${name} may not be null`);
  },
};

/** Collects the functions of one message and the objects that they refer to. */
class Source {
  private readonly functions: string[] = [];
  private readonly constants: unknown[] = [];

  /** The text that stands for an object in the code. */
  constant(value: unknown): string {
    return `constants[${this.constants.push(value) - 1}]`;
  }

  /** Adds a function and returns its name. */
  define(parameters: string, body: readonly string[]): string {
    const name = `f${this.functions.length}`;
    this.functions.push(`function ${name}(${parameters}) {\n${body.join('\n')}\n}`);
    return name;
  }

  /** The function of that name, or undefined where code generation is forbidden. */
  make(entry: string): unknown {
    const code = `'use strict';\n${this.functions.join('\n')}\nreturn ${entry};`;
    try {
      return new Function('constants', 'helpers', code)(this.constants, helpers);
    } catch (error) {
      if (error instanceof EvalError) return undefined;
      throw error;
    }
  }
}

/** An expression that makes a fresh default of the field. */
function defaultText(source: Source, field: Field): string {
  if (field.default !== undefined) return JSON.stringify(field.default);
  if ('items' in field) return '[]';
  if ('struct' in field) {
    const inner = Object.entries(field.struct).map(
      ([name, each]) => `${name}: ${defaultText(source, each)}`,
    );
    return `{ ${inner.join(', ')} }`;
  }
  const value = defaultOf(field);
  return Buffer.isBuffer(value) ? source.constant(value) : JSON.stringify(value);
}

function readStruct(source: Source, fields: Fields, dialect: Dialect): string {
  const body: string[] = [];
  const members: string[] = [];
  for (const [name, field] of Object.entries(fields)) {
    const inPlace = hasField(field, dialect.version) && field.tag === undefined;
    const value = inPlace ? readText(source, field, dialect) : defaultText(source, field);
    body.push(`let ${local(name)} = ${value};`);
    members.push(`${name}: ${local(name)}`);
  }
  if (dialect.flexible) body.push(...readTags(source, fields, dialect));
  body.push(`return { ${members.join(', ')} };`);
  return source.define('r', body);
}

/** Locals have a prefix, because fields may be named like words of the language. */
function local(name: string): string {
  return `_${name}`;
}

function readTags(source: Source, fields: Fields, dialect: Dialect): string[] {
  const tagged = taggedFields(fields, dialect);
  if (tagged.length === 0) return ['r.skipTags();'];
  const cases = tagged.map(
    ([name, field]) =>
      `case ${field.tag}: ${local(name)} = ${readText(source, field, dialect)}; break;`,
  );
  return [
    'for (let count = r.tagCount(); count > 0; count--) {',
    'const tag = r.unsignedVarint();',
    'const end = r.tagEnd();',
    `switch (tag) {\n${cases.join('\n')}\ndefault: r.position = end;\n}`,
    'r.expectEnd(end);',
    '}',
  ];
}

/** An expression that reads the field. */
function readText(source: Source, field: Field, dialect: Dialect): string {
  const nullable = isNullable(field, dialect.version);
  if ('items' in field) return `${readItems(source, field.items, nullable, dialect)}(r)`;
  if ('struct' in field) {
    const text = `${readStruct(source, field.struct, dialect)}(r)`;
    return nullable ? `r.present() ? ${text} : null` : text;
  }
  return `r.${readMethod(field.type, isCompact(field, dialect), nullable)}()`;
}

function readItems(
  source: Source,
  items: ScalarType | Fields,
  nullable: boolean,
  dialect: Dialect,
): string {
  const item =
    typeof items === 'string'
      ? `r.${readMethod(items, dialect.flexible, false)}()`
      : `${readStruct(source, items, dialect)}(r)`;
  const method = `${dialect.flexible ? 'compactCount' : 'count'}${nullable ? 'OrNull' : ''}`;
  return source.define('r', [
    `const count = r.${method}(${itemBytesMin(items, dialect)});`,
    `if (count <= 0) return ${nullable ? 'count < 0 ? null : []' : '[]'};`,
    // Most lists have one element. An array that grows from none starts with room for seventeen.
    `const values = [${item}];`,
    `for (let index = 1; index < count; index++) values.push(${item});`,
    'return values;',
  ]);
}

function writeStruct(source: Source, fields: Fields, dialect: Dialect): string {
  const body: string[] = [];
  for (const [name, field] of Object.entries(fields)) {
    if (hasField(field, dialect.version)) {
      if (field.tag === undefined) body.push(...writeField(source, name, field, dialect));
    } else if (field.ignorable !== true) {
      const facts = `"${name}", ${source.constant(field)}, v.${name}`;
      body.push(`if (v.${name} !== undefined) helpers.absent(${facts});`);
    }
  }
  if (dialect.flexible) body.push(...writeTags(source, fields, dialect));
  return source.define('w, v', body);
}

function writeTags(source: Source, fields: Fields, dialect: Dialect): string[] {
  const tagged = taggedFields(fields, dialect);
  if (tagged.length === 0) return ['w.unsignedVarint(0);'];
  const conditions = tagged.map(([name, field]) => {
    const facts = `${source.constant(field)}, v.${name}`;
    return `const has_${name} = v.${name} !== undefined && !helpers.isDefault(${facts});`;
  });
  const count = tagged.map(([name]) => `(has_${name} ? 1 : 0)`).join(' + ');
  const parts = tagged.map(([name, field]) =>
    [
      `if (has_${name}) {`,
      `const start = w.beginTag(${field.tag});`,
      ...writeField(source, name, field, dialect),
      'w.endTag(start);',
      '}',
    ].join('\n'),
  );
  return [...conditions, `w.unsignedVarint(${count});`, ...parts];
}

/** Statements that write the field of `v`. */
function writeField(source: Source, name: string, field: Field, dialect: Dialect): string[] {
  const value = local(name);
  const nullable = isNullable(field, dialect.version);
  const take = [
    `let ${value} = v.${name};`,
    `if (${value} === undefined) ${value} = ${defaultText(source, field)};`,
  ];
  if ('items' in field || 'struct' in field) {
    const write =
      'items' in field
        ? writeItems(source, field.items, value, dialect)
        : [
            ...(nullable ? ['w.present(true);'] : []),
            `${writeStruct(source, field.struct, dialect)}(w, ${value});`,
          ];
    const whenNull = nullable ? writeNull(field, dialect) : `helpers.refuseNull("${name}");`;
    return [...take, `if (${value} === null) ${whenNull}\nelse {`, ...write, '}'];
  }
  const method = writeMethod(field.type, isCompact(field, dialect), nullable);
  return [...take, `w.${method}(${value});`];
}

function writeNull(field: Field, dialect: Dialect): string {
  if ('struct' in field) return 'w.present(false);';
  return dialect.flexible ? 'w.compactNullCount();' : 'w.nullCount();';
}

function writeItems(
  source: Source,
  items: ScalarType | Fields,
  value: string,
  dialect: Dialect,
): string[] {
  const item = `${value}[index]`;
  const write =
    typeof items === 'string'
      ? `w.${writeMethod(items, dialect.flexible, false)}(${item});`
      : `${writeStruct(source, items, dialect)}(w, ${item});`;
  return [
    `w.${dialect.flexible ? 'compactCount' : 'count'}(${value}.length);`,
    `for (let index = 0; index < ${value}.length; index++) ${write}`,
  ];
}
