import { ByteReader, BytesError, ByteWriter } from '../core/bytes.ts';
import { decodeEntries, encodeEntries } from '../log/entry-list.ts';
import type { Entry } from '../log/format.ts';
import type { TermRun } from '../raft/term-log.ts';

/**
 * What a member that fetches a snapshot asks of another one, and what that answers:
 *
 *   request = u8 version | u8 kind | index f64 | at f64
 *   answer  = u8 kind | base index f64 | base term f64 | …
 *   entries = … | u8 isLast | count | entry*        those after `index`, in their order
 *   image   = … | f64 bytes of all | bytes from `at` on
 *   later   = …                                     ask again: there is no such snapshot yet
 */
export const SnapshotPart = { entries: 1, image: 2, later: 3 } as const;
const version = 1;

export interface SnapshotRequest {
  readonly part: typeof SnapshotPart.entries | typeof SnapshotPart.image;
  /** Entries after this one; or of the image, the last entry that it is to cover. */
  readonly index: number;
  /** The place in the snapshot's file. */
  readonly at: number;
}

interface Answer {
  /** The last entry that the snapshot covers. */
  readonly base: TermRun;
}

export interface EntriesAnswer extends Answer {
  readonly part: typeof SnapshotPart.entries;
  readonly entries: readonly Entry[];
  /** Nothing that the snapshot covers comes behind them. */
  readonly isLast: boolean;
}

export interface ImageAnswer extends Answer {
  readonly part: typeof SnapshotPart.image;
  readonly bytesOfAll: number;
  readonly bytes: Buffer;
}

export interface LaterAnswer extends Answer {
  readonly part: typeof SnapshotPart.later;
}

export type SnapshotAnswer = EntriesAnswer | ImageAnswer | LaterAnswer;

export function encodeSnapshotRequest({ part, index, at }: SnapshotRequest): Buffer {
  return new ByteWriter(18).u8(version).u8(part).f64(index).f64(at).finish();
}

/** Throws for anything that is no request. */
export function decodeSnapshotRequest(bytes: Buffer): SnapshotRequest {
  const reader = new ByteReader(bytes);
  if (reader.u8() !== version) throw new BytesError('a request of another version');
  const part = reader.u8();
  if (part !== SnapshotPart.entries && part !== SnapshotPart.image) {
    throw new BytesError(`a request for part ${part}`);
  }
  return { part, index: reader.wholeF64(), at: reader.wholeF64() };
}

export function encodeSnapshotAnswer(answer: SnapshotAnswer): Buffer[] {
  const { part, base } = answer;
  const writer = new ByteWriter(64).u8(part).f64(base.index).f64(base.term);
  if (part === SnapshotPart.entries) {
    writer.u8(answer.isLast ? 1 : 0).uvarint(answer.entries.length);
    return [writer.finish(), ...encodeEntries(answer.entries)];
  }
  if (part === SnapshotPart.later) return [writer.finish()];
  return [writer.f64(answer.bytesOfAll).finish(), answer.bytes];
}

/** Throws for anything that is no whole and sound answer. */
export function decodeSnapshotAnswer(bytes: Buffer): SnapshotAnswer {
  const reader = new ByteReader(bytes);
  const part = reader.u8();
  const base = { index: reader.wholeF64(), term: reader.wholeF64() };
  if (part === SnapshotPart.later) return { part, base };
  if (part === SnapshotPart.entries) {
    const isLast = reader.u8() === 1;
    const count = reader.uvarint();
    return { part, base, isLast, entries: decodeEntries(bytes, at(bytes, reader), count) };
  }
  if (part !== SnapshotPart.image) throw new BytesError(`an answer with part ${part}`);
  const bytesOfAll = reader.wholeF64();
  return { part, base, bytesOfAll, bytes: bytes.subarray(at(bytes, reader)) };
}

function at(bytes: Buffer, reader: ByteReader): number {
  return bytes.length - reader.remaining;
}
