import assert from 'node:assert/strict';
import test from 'node:test';
import { padToPage, pageBytes } from '../../src/log/journal-file.ts';

const fileBytes = 16 * pageBytes;

function padded(end: number): number {
  const pieces = [Buffer.from('group')];
  return padToPage(pieces, end, fileBytes)
    .slice(pieces.length)
    .reduce((sum, piece) => {
      assert.ok(piece.every((byte) => byte === 0));
      return sum + piece.length;
    }, 0);
}

test('a group is written with zeros up to the end of its last page', () => {
  assert.equal(padded(pageBytes + 8), pageBytes - 8);
  assert.equal(padded(2 * pageBytes - 8), 8);
  assert.equal(padded(2 * pageBytes), 0);
});

test('the file does not grow by them', () => {
  const pieces = [Buffer.from('group')];
  assert.equal(padToPage(pieces, fileBytes - 8, fileBytes - 4)[1]?.length, 4);
  assert.equal(padToPage(pieces, fileBytes, fileBytes), pieces);
  assert.equal(padToPage(pieces, fileBytes + 100, fileBytes), pieces);
});
