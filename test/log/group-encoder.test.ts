import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Random, seededRandom } from '../../src/core/random.ts';
import {
  batchIsSound,
  type Entry,
  groupBytes,
  groupHeaderBytes,
  readEntry,
  readGroupHeader,
  type StoredEntry,
} from '../../src/log/format.ts';
import { encodeGroup, entryBytesBound } from '../../src/log/group-encoder.ts';
import { batchEntry, plainEntry } from './support.ts';

function randomEntry(random: Random, index: number): Entry {
  const below = (bound: number) => Math.floor(random.next() * bound);
  if (random.next() < 0.4) return plainEntry(index, random.bytes(below(300)));
  const sizes = [0, 100, 4000, 4096, 9000];
  const places = Array.from({ length: 1 + below(80) }, () => ({
    partition: below(2 ** 32),
    baseOffset: below(1000),
    valueBytes: sizes[below(random.next() < 0.1 ? sizes.length : 2)]!,
  }));
  return { ...batchEntry(index, places), tenant: below(5), term: 2 ** 40, version: 3 };
}

function withoutPositions({ positions: _, ...entry }: StoredEntry): Entry {
  return entry;
}

test('what is laid out reads back, and each batch lies within one piece', () => {
  for (let seed = 1; seed <= 120; seed++) {
    const random = seededRandom(seed);
    const count = Math.floor(random.next() * 6);
    const entries = Array.from({ length: count }, (_, i) => randomEntry(random, 2 ** 33 + i));
    const place = {
      position: 2 ** 35 + seed * 8,
      syncedPosition: 2 ** 35,
      writtenMs: 1_700_000_000_000,
      salt: 0xdeadbeef,
    };
    const group = encodeGroup(entries, place);
    const bytes = Buffer.concat(group.pieces);
    assert.equal(bytes.length, group.bytes);
    const header = readGroupHeader(bytes, 0, place.position, place.salt);
    assert.ok(header !== undefined);
    assert.equal(header.entryCount, count);
    assert.equal(header.syncedPosition, place.syncedPosition);
    assert.equal(groupBytes(header.bodyBytes), bytes.length);
    let at = groupHeaderBytes;
    const end = groupHeaderBytes + header.bodyBytes;
    for (let i = 0; i < count; i++) {
      const read = readEntry(bytes, at, end, place.position + at);
      assert.ok(read !== undefined);
      assert.deepEqual(withoutPositions(read.entry), entries[i]);
      assert.deepEqual(read.entry.positions, group.entries[i]!.positions);
      assert.deepEqual(withoutPositions(group.entries[i]!), entries[i]);
      assert.ok(read.entry.batches.every(batchIsSound));
      const bound = entryBytesBound(entries[i]!.meta.length, entries[i]!.batches);
      assert.ok(read.end - at <= bound);
      at = read.end;
    }
    assert.equal(at, end);
    expectWholeBatches(group.pieces, place.position, group.entries);
  }
});

/** Recent reads rely on it. */
function expectWholeBatches(
  pieces: readonly Buffer[],
  position: number,
  entries: readonly StoredEntry[],
): void {
  const starts: number[] = [];
  for (const piece of pieces) {
    starts.push(position);
    position += piece.length;
  }
  for (const entry of entries) {
    for (let i = 0; i < entry.batches.length; i++) {
      const at = entry.positions[i]!;
      const number = starts.findLastIndex((start) => start <= at);
      const inPiece = at - starts[number]!;
      const stored = pieces[number]!.subarray(inPiece, inPiece + entry.batches[i]!.length);
      assert.deepEqual(stored, entry.batches[i]);
    }
  }
}

test('a header counts only at its own place and in its own file', () => {
  const place = { position: 800, syncedPosition: 64, writtenMs: 0, salt: 5 };
  const bytes = Buffer.concat(encodeGroup([plainEntry(1, Buffer.from('x'))], place).pieces);
  assert.ok(readGroupHeader(bytes, 0, 800, 5) !== undefined);
  assert.equal(readGroupHeader(bytes, 0, 808, 5), undefined);
  assert.equal(readGroupHeader(bytes, 0, 800, 6), undefined);
  assert.equal(readGroupHeader(bytes.subarray(0, 47), 0, 800, 5), undefined);
});

test('no length in a damaged entry leads a reader astray', () => {
  const place = { position: 64, syncedPosition: 64, writtenMs: 0, salt: 5 };
  const entry = batchEntry(1, [
    { partition: 1, baseOffset: 0 },
    { partition: 2, baseOffset: 0 },
  ]);
  const bytes = Buffer.concat(encodeGroup([entry], place).pieces);
  for (const at of [0, 16, 20, 44, 52]) {
    for (const value of [0, 1, 0x7fffffff, 0xffffffff]) {
      const damaged = Buffer.from(bytes);
      damaged.writeUInt32LE(value, groupHeaderBytes + at);
      assert.equal(readEntry(damaged, groupHeaderBytes, bytes.length, 112), undefined);
    }
  }
});
