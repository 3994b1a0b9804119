/**
 * Answers that are too long to be made in one turn of the event loop: their long lists are given
 * as iterables, and the answer is written slice by slice while the items are made. The bytes are
 * those that `encodeResponse` writes for the same items.
 */
import { assert } from '../core/assert.ts';
import { compiledWriter } from './compiled.ts';
import { type ApiTable, responseHeaderVersion } from './frame.ts';
import { writeField, writeTagged } from './interpreter.ts';
import type { Fields, Input, MessageTable } from './schema-types.ts';
import { checkAbsent, type Dialect, dialectOf, hasField, type Struct } from './table.ts';
import { Writer } from './writer.ts';

/** Where an item is undefined nothing is written: a place to pause, for who skips many. */
export class Lazy<T> {
  readonly items: Iterable<T | undefined>;

  constructor(items: Iterable<T | undefined>) {
    this.items = items;
  }
}

/** Each item is made when the one before is written; undefined leaves it out. */
export function lazyMap<S, T>(
  source: Iterable<S>,
  make: (from: S, index: number) => T | undefined,
): Lazy<T> {
  return new Lazy(mapped(source, make));
}

function* mapped<S, T>(
  source: Iterable<S>,
  make: (from: S, index: number) => T,
): Generator<T, void> {
  let index = 0;
  for (const from of source) yield make(from, index++);
}

/** A message in which any list of structs may be lazy, but for those in its tagged fields. */
export type LazyInput<T> = T extends string | number | bigint | boolean | Uint8Array | null
  ? T
  : T extends readonly (infer I)[]
    ? T | Lazy<LazyInput<I>>
    : { readonly [K in keyof T]: LazyInput<T[K]> };

/** About this much is written in one slice: less than a millisecond. */
const sliceBytes = 64 * 1024;

/**
 * Writes a whole response, size and header included. Yields where a turn may end; what it returns
 * are pieces for one vectored write.
 */
export function* encodeInSlices<M extends ApiTable>(
  table: M,
  apiVersion: number,
  correlationId: number,
  value: LazyInput<Input<M>>,
): Generator<undefined, Buffer[]> {
  const slices = new Slices(table, apiVersion);
  const { writer } = slices;
  writer.beginFrame();
  writer.int32(correlationId);
  if (responseHeaderVersion(table.apiKey, apiVersion) === 1) writer.unsignedVarint(0);
  yield* slices.struct(table.fields, value as Struct);
  return slices.finish();
}

class Slices {
  readonly writer = new Writer();
  readonly #table: MessageTable;
  readonly #version: number;
  readonly #dialect: Dialect;
  readonly #pieces: Buffer[] = [];

  constructor(table: MessageTable, version: number) {
    this.#table = table;
    this.#version = version;
    this.#dialect = dialectOf(table, version);
  }

  *struct(fields: Fields, value: Struct): Generator<undefined, void> {
    const dialect = this.#dialect;
    for (const [name, field] of Object.entries(fields)) {
      const given = value[name];
      if (!hasField(field, dialect.version)) checkAbsent(name, field, given);
      else if (given instanceof Lazy) {
        assert('items' in field && typeof field.items !== 'string', 'only lists can be lazy');
        yield* this.#list(field.items, given);
      } else if (field.tag === undefined) writeField(name, field, given, dialect, this.writer);
    }
    if (dialect.flexible) writeTagged(fields, value, dialect, this.writer);
  }

  *#list(fields: Fields, { items }: Lazy<unknown>): Generator<undefined, void> {
    const { writer } = this;
    // The count is known in the end; until then its piece is empty.
    this.#cut();
    const countAt = this.#pieces.push(Buffer.alloc(0)) - 1;
    let count = 0;
    const write = compiledWriter(tableOf(fields, this.#table), this.#version);
    for (const item of items) {
      if (item !== undefined) {
        count++;
        if (hasLazy(item as Struct)) yield* this.struct(fields, item as Struct);
        else write(writer, item as Struct);
      }
      if (item !== undefined && writer.length < sliceBytes) continue;
      this.#cut();
      yield undefined;
    }
    this.#cut();
    if (this.#dialect.flexible) writer.compactCount(count);
    else writer.count(count);
    this.#pieces[countAt] = Buffer.concat(writer.finish());
    writer.reset();
  }

  /** All pieces; the size of the frame stands in the first of them. */
  finish(): Buffer[] {
    this.#cut();
    let bytes = 0;
    for (const piece of this.#pieces) bytes += piece.length;
    this.#pieces[0]!.writeInt32BE(bytes - 4, 0);
    return this.#pieces;
  }

  #cut(): void {
    if (this.writer.length === 0) return;
    this.#pieces.push(...this.writer.finish());
    this.writer.reset();
  }
}

function hasLazy(value: Struct): boolean {
  for (const name in value) if (value[name] instanceof Lazy) return true;
  return false;
}

const tables = new WeakMap<Fields, MessageTable>();

/** An item of a list is written as a message of its fields would be. */
function tableOf(fields: Fields, { name, versions, flexibleFrom }: MessageTable): MessageTable {
  const known = tables.get(fields);
  if (known !== undefined) return known;
  const made = { name, versions, flexibleFrom, fields };
  tables.set(fields, made);
  return made;
}
