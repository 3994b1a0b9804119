import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openDataMeta } from '../../src/cli/data-meta.ts';
import type { FilePort } from '../../src/log/file-port.ts';
import { nodeFiles } from '../../src/log/node-files.ts';

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'keylane-meta-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('a new folder gets an identity, and keeps it', async (t) => {
  const folder = newFolder(t);
  const made = await openDataMeta(nodeFiles, folder, 7);
  assert.equal(made.version, 1);
  assert.equal(made.nodeId, 7);
  assert.deepEqual(await openDataMeta(nodeFiles, folder, 7), made);
  assert.deepEqual(readdirSync(folder), ['meta.json']);
  assert.notEqual((await openDataMeta(nodeFiles, newFolder(t), 7)).directoryId, made.directoryId);
});

test('it is on disk before it has its name, and its name before the start goes on', async (t) => {
  const calls: string[] = [];
  const noting: FilePort = {
    ...nodeFiles,
    async open(path, mode) {
      const file = await nodeFiles.open(path, mode);
      return {
        ...file,
        async sync() {
          calls.push('sync');
          await file.sync();
        },
      };
    },
    async rename(from, to) {
      calls.push('rename');
      await nodeFiles.rename(from, to);
    },
    async syncFolder(folder) {
      calls.push('syncFolder');
      await nodeFiles.syncFolder(folder);
    },
  };
  await openDataMeta(noting, newFolder(t), 0);
  assert.deepEqual(calls, ['sync', 'rename', 'syncFolder']);
});

test('what a crash left of the first start is made anew', async (t) => {
  const folder = newFolder(t);
  writeFileSync(join(folder, 'meta.json.draft'), '{"version": 1, "no');
  const made = await openDataMeta(nodeFiles, folder, 0);
  assert.deepEqual(await openDataMeta(nodeFiles, folder, 0), made);
});

test('another node id is refused', async (t) => {
  const folder = newFolder(t);
  await openDataMeta(nodeFiles, folder, 1);
  const before = readFileSync(join(folder, 'meta.json'));
  await assert.rejects(openDataMeta(nodeFiles, folder, 2), { code: 'CONFIG_INVALID' });
  assert.deepEqual(readFileSync(join(folder, 'meta.json')), before);
});

test('data without meta.json is refused', async (t) => {
  const folder = newFolder(t);
  mkdirSync(join(folder, 'default'));
  await assert.rejects(openDataMeta(nodeFiles, folder, 0), { code: 'DATA_DIR_UNUSABLE' });
});

test('the data of a newer version is refused as such', async (t) => {
  const folder = newFolder(t);
  writeFileSync(join(folder, 'meta.json'), '{"version": 2, "whatever": true}');
  await assert.rejects(openDataMeta(nodeFiles, folder, 0), { code: 'JOURNAL_VERSION_UNKNOWN' });
});

test('a damaged meta.json is refused, never replaced', async (t) => {
  const id = '"directoryId": "7f1e6e4c-46a5-4a3c-9a0e-0d8a0f6f2b11"';
  const damaged = ['', '{', 'null', '[]', '{}', `{"version": 1, ${id}}`, `{"version": 0, ${id}}`];
  damaged.push('{"version": 1, "nodeId": 0, "directoryId": "../.."}');
  for (const text of damaged) {
    const folder = newFolder(t);
    writeFileSync(join(folder, 'meta.json'), text);
    await assert.rejects(openDataMeta(nodeFiles, folder, 0), { code: 'DATA_DIR_UNUSABLE' });
    assert.equal(readFileSync(join(folder, 'meta.json'), 'utf8'), text);
  }
});
