import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32c } from '../../src/core/crc32c.ts';
import { seededRandom } from '../../src/core/random.ts';
import { checkJournal } from '../../src/log/check.ts';
import { writeSnapshot } from '../../src/log/snapshot-file.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import type { SimDisk } from '../sim/sim-files.ts';
import { appendGroups, batchEntry, newDisk, openJournal, plainEntry } from './support.ts';

const names = new Map<number, string>(
  Object.entries(EntryType).map(([name, type]) => [type, name]),
);

async function check(disk: SimDisk): Promise<{ isSound: boolean; text: string }> {
  const lines: string[] = [];
  const before = disk.paths().map((path) => disk.content(path));
  const isSound = await checkJournal({
    files: disk.files(),
    folder: 'data',
    entryTypeName: (type) => names.get(type) ?? `type ${type}`,
    onLine: (line) => lines.push(line),
  });
  assert.deepEqual(
    disk.paths().map((path) => disk.content(path)),
    before,
    'a check changes nothing',
  );
  const text = lines.join('\n');
  assert.equal(isSound, !text.includes('damage: '), text);
  return { isSound, text };
}

/** Several sealed files, a snapshot in the last one, and a few entries after it. */
async function filled(sync: 'always' | 'interval' = 'always') {
  const disk = newDisk();
  const { journal } = await openJournal(disk.files(), { fileBytesMax: 2048, sync });
  for (let i = 1; i <= 30; i++) {
    const places = [
      { partition: i % 3, baseOffset: Math.floor(i / 3) * 2, records: 2, valueBytes: 100 },
    ];
    await appendGroups(journal, [[batchEntry(i, places)]]);
  }
  await appendGroups(journal, [[plainEntry(31, Buffer.from('a'))]]);
  await journal.seal(31);
  await journal.flush();
  const snapshot = { position: journal.end, index: 31, term: 1 };
  const more = { hardState: Buffer.alloc(9), image: Buffer.alloc(100) };
  await writeSnapshot(disk.files(), 'data/snapshots', { ...snapshot, ...more });
  await appendGroups(journal, [
    [plainEntry(32, Buffer.from('b'))],
    [plainEntry(33, Buffer.from('c'))],
  ]);
  return { disk, journal, snapshot, last: journal.logFiles.at(-1)!.path };
}

test('a sound folder is described', async () => {
  const { disk } = await filled();
  const { isSound, text } = await check(disk);
  assert.ok(isSound);
  assert.match(
    text,
    /00000000000000000000\.journal: positions 0 to \d+, entries 1 to \d+, terms 1/,
  );
  assert.match(text, /entries by type: batches 30, groupStored 3/);
  assert.match(text, /60 records of 3 partitions in \d+ bytes of batches/);
  assert.match(text, /snapshot: entry 31, term 1, position \d+, 100 bytes/);
  assert.match(text, /last sync mark at position \d+, \d+ bytes behind it\nok$/);
  assert.doesNotMatch(text, /warning/);
});

test('an empty folder is sound', async () => {
  assert.ok((await check(newDisk())).isSound);
});

test('damage below the snapshot, where no start looks, is found with its position', async () => {
  const { disk, journal } = await filled();
  const { path } = journal.logFiles[1]!;
  disk.overwrite(path, 700, Buffer.from([1, 2, 3]));
  const { text } = await check(disk);
  assert.match(text, /damage: .*journal: position \d+: \d+ bytes are not sound/);
  assert.match(text, /not ok: damage in \d places$/);
});

test('a torn tail is no damage', async () => {
  const { disk, last, journal } = await filled();
  const end = journal.end - journal.logFiles.at(-1)!.header.basePosition;
  disk.overwrite(last, end - 20, Buffer.from('torn'));
  const { isSound, text } = await check(disk);
  assert.ok(isSound);
  assert.match(text, /a torn tail of \d+ bytes, which a start cuts off/);
});

test('files and indexes that are missing or damaged', async () => {
  const { disk, journal, last } = await filled();
  const { path } = journal.logFiles[2]!;
  const index = disk.paths().filter((other) => other.endsWith('.index'))[2]!;
  const without = (...paths: string[]): SimDisk => {
    const other = disk.clone();
    for (const each of paths) other.drop(each);
    return other;
  };
  assert.match((await check(without(path))).text, /damage: .*the file of \d+\.index is missing/);
  const removed = await check(without(path, index));
  assert.ok(removed.isSound, 'as if it had been removed');
  assert.match(removed.text, /entries \d+ to \d+ were removed/);
  const unindexed = await check(without(index));
  assert.ok(unindexed.isSound);
  assert.match(unindexed.text, /warning: .*has no sound index/);
  assert.match((await check(without(last))).text, /damage: .*what was synced here is gone/);
  const damagedIndex = disk.clone();
  damagedIndex.overwrite(index, 100, Buffer.from([9, 9]));
  assert.match((await check(damagedIndex)).text, /warning: .*remove it, and a start makes it anew/);
  const badHeader = disk.clone();
  badHeader.overwrite(path, 20, Buffer.from([7]));
  assert.match((await check(badHeader)).text, /damage: .*the header at position 0 is damaged/);
});

test('snapshots that are damaged', async () => {
  const { disk, snapshot } = await filled();
  const [only] = disk.paths().filter((path) => path.endsWith('.snapshot'));
  const damaged = disk.clone();
  damaged.overwrite(only!, 70, Buffer.from('damage'));
  assert.match((await check(damaged)).text, /damage: .*no snapshot is sound/);
  const more = { hardState: Buffer.alloc(9), image: Buffer.alloc(50) };
  await writeSnapshot(damaged.files(), 'data/snapshots', { ...snapshot, index: 32, ...more });
  assert.match((await check(damaged)).text, /warning: .*is damaged; another one is used/);
});

test('a file of an unknown version is said to be one', async () => {
  const { disk, journal } = await filled();
  const header = disk.content(journal.logFiles[0]!.path).subarray(0, 64);
  header.writeUInt16LE(9, 4);
  header.writeUInt32LE(crc32c(header.subarray(0, 60)), 60);
  disk.overwrite(journal.logFiles[0]!.path, 0, header);
  assert.match((await check(disk)).text, /damage: .*format version 9/);
});

test('what a start refuses is damage, and what it takes is not', async () => {
  for (const sync of ['always', 'interval'] as const) {
    const { disk, journal, snapshot } = await filled(sync);
    const random = seededRandom(4);
    for (let i = 0; i < 150; i++) {
      const other = disk.clone();
      const fromEnd = Math.floor(random.next() * 4);
      const logFile = journal.logFiles.at(-1 - Math.min(fromEnd, 1))!;
      const at = Math.floor(random.next() * (logFile.end - logFile.header.basePosition));
      const old = other.content(logFile.path)[at]!;
      other.overwrite(logFile.path, at, Buffer.from([old ^ (1 + Math.floor(random.next() * 255))]));
      const { isSound, text } = await check(other);
      // Without a snapshot a start reads everything; with one it would not see older damage.
      const start = random.next() < 0.5 ? snapshot : { position: 0, index: 0, term: 0 };
      const opened = await openJournal(other.files(), { fileBytesMax: 2048, start }).then(
        () => true,
        () => false,
      );
      if (start.position === 0 && !opened) assert.ok(!isSound, text);
      if (isSound) assert.ok(opened, text);
    }
  }
});
