/** The file port on the real file system. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { isCode } from '../../src/log/file-port.ts';
import { nodeFiles } from '../../src/log/node-files.ts';
import { batchEntry, openJournal } from './support.ts';

function temporaryFolder(t: { after(done: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'keylane-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

test('pieces are written whole and in order, more than one call of writev takes', async (t) => {
  const path = join(temporaryFolder(t), 'file');
  const random = seededRandom(1);
  const pieces = Array.from({ length: 3000 }, () => random.bytes(Math.floor(random.next() * 90)));
  const file = await nodeFiles.open(path, 'create');
  await file.write(pieces, 100);
  await file.sync();
  await file.close();
  assert.deepEqual(readFileSync(path).subarray(100), Buffer.concat(pieces));
});

test('reads, lengths and modes', async (t) => {
  const path = join(temporaryFolder(t), 'file');
  await assert.rejects(nodeFiles.open(path, 'read'), (error) => isCode(error, 'ENOENT'));
  await assert.rejects(nodeFiles.open(path, 'write'), (error) => isCode(error, 'ENOENT'));
  const file = await nodeFiles.open(path, 'create');
  await file.write([Buffer.from('content')], 0);
  await file.truncate(20);
  assert.equal(await file.size(), 20);
  const target = Buffer.alloc(30, 9);
  assert.equal(await file.read(target, 5, 25, 3), 17, 'less only at the end');
  assert.equal(target.toString('latin1', 5, 9), 'tent');
  assert.deepEqual(target.subarray(9, 22), Buffer.alloc(13), 'what is added reads as zeros');
  await file.close();
  const again = await nodeFiles.open(path, 'create');
  assert.equal(await again.size(), 0, 'an existing file is emptied');
  await again.close();
});

test('a folder is removed with all that is in it, or renamed; a file may have two names', async (t) => {
  const root = temporaryFolder(t);
  const at = (path: string) => join(root, path);
  await nodeFiles.removeFolder(at('none/of/these'));
  await nodeFiles.makeFolder(at('a/b'));
  const file = await nodeFiles.open(at('a/b/file'), 'create');
  await file.write([Buffer.from('content')], 0);
  await file.close();
  await nodeFiles.link(at('a/b/file'), at('other'));
  await nodeFiles.rename(at('a'), at('c'));
  assert.deepEqual(await nodeFiles.list(at('c/b')), ['file']);
  await nodeFiles.removeFolder(at('c'));
  assert.deepEqual(readdirSync(root), ['other']);
  assert.equal(readFileSync(at('other'), 'latin1'), 'content');
});

test('folders are made, listed and synced', async (t) => {
  const root = temporaryFolder(t);
  const folder = join(root, 'a/b/c');
  assert.deepEqual(await nodeFiles.list(folder), []);
  await nodeFiles.makeFolder(folder);
  await nodeFiles.makeFolder(folder);
  await nodeFiles.makeFolder(relative(process.cwd(), join(root, 'd/e')));
  assert.deepEqual(readdirSync(root), ['a', 'd']);
  for (const name of ['z', 'y']) await (await nodeFiles.open(join(folder, name), 'create')).close();
  await nodeFiles.rename(join(folder, 'z'), join(folder, 'x'));
  await nodeFiles.syncFolder(folder);
  assert.deepEqual(await nodeFiles.list(folder), ['x', 'y']);
  await nodeFiles.remove(join(folder, 'x'));
  assert.deepEqual(await nodeFiles.list(folder), ['y']);
  assert.ok((await nodeFiles.freeBytes(folder)) > 0);
});

test('a journal on it is found again', async (t) => {
  const folder = join(temporaryFolder(t), 'journal');
  const { journal } = await openJournal(nodeFiles, { folder, fileBytesMax: 4096 });
  const entries = Array.from({ length: 30 }, (_, i) =>
    batchEntry(i + 1, [{ partition: 1, baseOffset: i, valueBytes: i * 300 }]),
  );
  for (const entry of entries) {
    for (const stored of await journal.append([entry])) journal.apply(stored);
  }
  await journal.seal(30);
  await journal.close();
  const again = await openJournal(nodeFiles, { folder, fileBytesMax: 4096 });
  assert.deepEqual(again.found, entries);
  await again.journal.close();
});
