/**
 * Turns the bytes of a message into values and back, in any version that its table has.
 *
 * Decoding throws `DecodeError` for whatever a peer may send, and nothing else. Encoding throws
 * `EncodeError` when a version cannot carry a value: a bug of this program's.
 */
import { DecodeError, EncodeError } from './codec-error.ts';
import { compiledReader, compiledWriter } from './compiled.ts';
import { Reader } from './reader.ts';
import type { Input, MessageTable, Output } from './schema-types.ts';
import { hasVersion, type Struct } from './table.ts';
import { Writer } from './writer.ts';

export interface DecodeOptions {
  /** An int64 beyond ±2^53 comes out as a bigint instead of the nearest number. */
  readonly lossless?: boolean;
  /** Bytes after the message are left alone, as in what consumers hand to each other. */
  readonly trailing?: boolean;
}

/** Reads the message that fills `[start, end)`. Buffers in it are views on `buffer`. */
export function decode<M extends MessageTable>(
  table: M,
  version: number,
  buffer: Buffer,
  start = 0,
  end = buffer.length,
  options?: DecodeOptions,
): Output<M> {
  if (!hasVersion(table, version)) {
    throw new DecodeError(`${table.name} has no version ${version}`);
  }
  try {
    const reader = new Reader(buffer, start, end, options?.lossless);
    const value = compiledReader(table, version)(reader);
    if (options?.trailing !== true) reader.expectEnd(end);
    return value as Output<M>;
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw new DecodeError(`${table.name} version ${version}: ${error.message}`);
  }
}

const writer = new Writer();

/**
 * Writes a message as a list of pieces: record batches are the caller's own buffers, everything
 * between them is new.
 */
export function encode<M extends MessageTable>(
  table: M,
  version: number,
  value: Input<M>,
): Buffer[] {
  writer.reset();
  encodeInto(writer, table, version, value);
  return writer.finish();
}

/** Appends a message to what the writer holds. */
export function encodeInto<M extends MessageTable>(
  target: Writer,
  table: M,
  version: number,
  value: Input<M>,
): void {
  if (!hasVersion(table, version)) {
    throw new EncodeError(`${table.name} has no version ${version}`);
  }
  try {
    compiledWriter(table, version)(target, value as Struct);
  } catch (error) {
    if (!(error instanceof EncodeError)) throw error;
    throw new EncodeError(`${table.name} version ${version}: ${error.message}`);
  }
}
