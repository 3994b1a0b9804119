import { batchIsSound, type Entry, entryHeadBytes, readEntry, writeEntryHead } from './format.ts';

/**
 * Entries one after the other, each as in the journal: with its checksums, which the receiver
 * verifies, since it stores what it gets.
 */
export function encodeEntries(entries: readonly Entry[]): Buffer[] {
  let headBytes = 0;
  for (const entry of entries) headBytes += entryHeadBytes(entry);
  const heads = Buffer.allocUnsafe(headBytes);
  const pieces: Buffer[] = [];
  let [from, at] = [0, 0];
  for (const entry of entries) {
    at = writeEntryHead(heads, at, entry);
    if (entry.batches.length === 0) continue;
    pieces.push(heads.subarray(from, at), ...entry.batches);
    from = at;
  }
  if (at > from) pieces.push(heads.subarray(from, at));
  return pieces;
}

/**
 * `count` entries from `at` to the end of the bytes. Throws a RangeError for anything but whole and
 * sound ones.
 */
export function decodeEntries(bytes: Buffer, at: number, count: number): Entry[] {
  const entries: Entry[] = [];
  for (let i = 0; i < count; i++) {
    const read = readEntry(bytes, at, bytes.length, 0);
    if (read === undefined || !read.entry.batches.every(batchIsSound)) {
      throw new RangeError(`entry ${i} of ${count} is damaged`);
    }
    at = read.end;
    entries.push(read.entry);
  }
  if (at !== bytes.length) throw new RangeError('bytes behind the last entry');
  return entries;
}
