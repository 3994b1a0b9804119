/** The simulated disk is only worth what it can do to a journal. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { SimDisk } from './sim-files.ts';

const nothing = { keep: 0, tear: 0 };

function newDisk(seed = 1): SimDisk {
  return new SimDisk({ random: seededRandom(seed) });
}

async function withFile(content: string): Promise<SimDisk> {
  const disk = newDisk();
  disk.put('f/file', Buffer.from(content));
  return disk;
}

test('what was synced survives a crash, what was not is lost', async () => {
  const disk = await withFile('old');
  const file = await disk.files().open('f/file', 'write');
  await file.write([Buffer.from('new')], 0);
  await file.sync();
  await file.write([Buffer.from('newer, and longer')], 0);
  disk.crash(nothing);
  assert.equal(disk.content('f/file').toString(), 'new');
});

test('the end of a process alone loses nothing', async () => {
  const disk = await withFile('old');
  const file = await disk.files().open('f/file', 'write');
  await file.write([Buffer.from('new')], 0);
  disk.kill();
  assert.equal(disk.content('f/file').toString(), 'new');
});

test('sectors, lengths and entries survive in any subset', async () => {
  const outcomes = new Set<string>();
  for (let seed = 1; seed <= 200; seed++) {
    const disk = newDisk(seed);
    disk.put('f/file', Buffer.alloc(1024, 'o'));
    const files = disk.files();
    const file = await files.open('f/file', 'write');
    await file.write([Buffer.alloc(1536, 'n')], 0);
    await files.rename('f/file', 'f/renamed');
    disk.crash({ keep: 0.5, tear: 0 });
    const [path] = disk.paths();
    const content = disk.content(path!);
    const sectors = [0, 512].map((at) => String.fromCharCode(content[at]!)).join('');
    outcomes.add(`${path} ${content.length} ${sectors}`);
  }
  // Two names, two lengths, and each of two sectors old or new.
  assert.equal(outcomes.size, 16);
});

test('a sector may be torn', async () => {
  const seen = new Set<number>();
  for (let seed = 1; seed <= 50; seed++) {
    const disk = newDisk(seed);
    disk.put('f/file', Buffer.alloc(512, 'o'));
    const file = await disk.files().open('f/file', 'write');
    await file.write([Buffer.alloc(512, 'n')], 0);
    disk.crash({ keep: 1, tear: 1 });
    seen.add(disk.content('f/file').lastIndexOf('n'));
  }
  assert.ok(seen.size > 20);
});

test('a created file needs its folder synced, and its content synced', async () => {
  const disk = newDisk();
  const files = disk.files();
  for (const name of ['neither', 'content', 'folder', 'both']) {
    const file = await files.open(`${name}/file`, 'create');
    await file.write([Buffer.from('content')], 0);
    if (name === 'content' || name === 'both') await file.sync();
    if (name === 'folder' || name === 'both') await files.syncFolder(name);
  }
  disk.crash(nothing);
  assert.deepEqual(disk.paths(), ['both/file', 'folder/file']);
  assert.equal(disk.content('both/file').toString(), 'content');
  assert.equal(disk.content('folder/file').length, 0);
});

test('after a failed sync nothing writes the lost pages again', async () => {
  let lost = 0;
  for (let seed = 1; seed <= 20; seed++) {
    const disk = newDisk(seed);
    disk.put('f/file', Buffer.alloc(512, 'o'));
    const file = await disk.files().open('f/file', 'write');
    await file.write([Buffer.alloc(512, 'n')], 0);
    disk.fault = (call) => (call.kind === 'sync' ? 'EIO' : undefined);
    await assert.rejects(file.sync(), { code: 'EIO' });
    disk.fault = undefined;
    assert.equal(disk.content('f/file')[0], 'n'.charCodeAt(0), 'it still reads as written');
    await file.sync();
    disk.crash(nothing);
    if (disk.content('f/file')[0] === 'o'.charCodeAt(0)) lost++;
  }
  assert.ok(lost > 0 && lost < 20);
});

test('a full disk takes whole sectors up to its end', async () => {
  const disk = await withFile('x'.repeat(512));
  disk.quotaBytes = disk.usedBytes + 1024;
  const files = disk.files();
  assert.equal(await files.freeBytes('f'), 1024);
  const file = await files.open('f/file', 'write');
  await assert.rejects(file.write([Buffer.alloc(3000, 'y')], 100), { code: 'ENOSPC' });
  assert.equal(disk.content('f/file').length, 1536);
  await file.write([Buffer.alloc(1536, 'z')], 0);
  await file.truncate(512);
  assert.equal(await files.freeBytes('f'), 1024, 'what is cut is free again');
});

test('lengths without content take no space', async () => {
  const disk = newDisk();
  disk.quotaBytes = 1000;
  const file = await disk.files().open('f/file', 'create');
  await file.truncate(1_000_000);
  assert.equal(disk.usedBytes, 0);
  assert.equal(disk.content('f/file').length, 1_000_000);
});

test('calls of an ended process never complete, half of a write may have', async () => {
  const lengths = new Set<number>();
  for (let seed = 1; seed <= 20; seed++) {
    const pending: (() => void)[] = [];
    const disk = new SimDisk({
      random: seededRandom(seed),
      defer: (complete) => pending.push(complete),
    });
    disk.put('f/file', Buffer.alloc(0));
    const opened = disk.files().open('f/file', 'write');
    pending.shift()!();
    let settled = false;
    void (await opened).write([Buffer.alloc(5000, 1)], 0).finally(() => {
      settled = true;
    });
    disk.kill();
    pending.shift()!();
    await new Promise(setImmediate);
    assert.ok(!settled);
    lengths.add(disk.content('f/file').length);
  }
  assert.ok(lengths.size > 10);
});
