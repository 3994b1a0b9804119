import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { checkJournal } from '../../src/log/check.ts';
import type { Journal } from '../../src/log/journal.ts';
import { writeSnapshot } from '../../src/log/snapshot-file.ts';
import { StagedJournal } from '../../src/log/staged-journal.ts';
import type { SimDisk } from '../sim/sim-files.ts';
import {
  appendGroups,
  batchEntry,
  extentsOf,
  folder,
  newDisk,
  openJournal,
  plainEntry,
  stillClock,
} from './support.ts';

const staged = 'data.install/journal';
/** Of 900 bytes each, so that two of them fill a file. */
const batch = (index: number) =>
  batchEntry(index, [{ partition: 0, baseOffset: index, valueBytes: 900 }]);
const batches = (...indexes: number[]) => indexes.map(batch);

function open(disk: SimDisk, journal?: Journal): Promise<StagedJournal> {
  const options = {
    ...{ files: disk.files(), folder: staged, clock: stillClock, random: seededRandom(9) },
    ...{ fileBytesMax: 2048, fileExtentsMax: 1000 },
  };
  const kept = () => (journal?.logFiles ?? []).filter(({ index }) => index !== undefined);
  return StagedJournal.open(options, kept, folder);
}

async function journalOf(disk: SimDisk, last: number): Promise<Journal> {
  const { journal } = await openJournal(disk.files(), { fileBytesMax: 2048 });
  const all = Array.from({ length: last }, (_, i) => i + 1);
  await appendGroups(
    journal,
    all.map((index) => batches(index)),
  );
  await journal.seal(last);
  return journal;
}

/** Opened behind a snapshot, as it will be; answers the offsets that it has. */
async function offsetsOf(disk: SimDisk, position: number, index: number): Promise<number[]> {
  const start = { position, index, term: 1 };
  const opened = await openJournal(disk.files(), { folder: staged, start, fileBytesMax: 2048 });
  assert.deepEqual(opened.found, []);
  assert.equal(opened.journal.lastIndex, index);
  await opened.journal.append([plainEntry(index + 1, Buffer.from('goes on'))]);
  const extents = await extentsOf(opened.journal, 0);
  await opened.journal.close();
  return extents.map(({ baseOffset }) => baseOffset);
}

test('entries with gaps between them are there, and the journal goes on behind the snapshot', async () => {
  const disk = newDisk();
  const journal = await open(disk);
  await journal.append(batches(2, 3, 4));
  await journal.append(batches(8, 9, 20));
  assert.equal(journal.lastIndex, 20);
  const position = await journal.finish(25, 1);
  assert.deepEqual(await offsetsOf(disk, position, 25), [2, 3, 4, 8, 9, 20]);
  await writeSnapshot(disk.files(), 'data.install/snapshots', {
    ...{ position, index: 25, term: 1, hardState: Buffer.alloc(0), image: Buffer.from('image') },
  });
  const lines: string[] = [];
  const isSound = await checkJournal({
    ...{ files: disk.files(), folder: 'data.install', entryTypeName: String },
    onLine: (line) => lines.push(line),
  });
  assert.ok(isSound, lines.join('\n'));
  assert.ok(lines.includes('entries 10 to 19 were removed'));
});

test('files that are there already are taken over, and not written again', async () => {
  const disk = newDisk();
  const own = await journalOf(disk, 5);
  const kept = own.logFiles.filter(({ index }) => index !== undefined);
  assert.equal(kept.length, 4);
  const journal = await open(disk, own);
  assert.equal(journal.lastIndex, 4);
  await journal.append(batches(5, 6));
  const position = await journal.finish(6, 1);
  assert.deepEqual(await offsetsOf(disk, position, 6), [1, 2, 3, 4, 5, 6]);
  for (const { path } of kept) {
    assert.deepEqual(disk.content(path), disk.content(path.replace(folder, staged)));
  }
});

test('what is void in a file that is taken over stays void behind a gap', async () => {
  const disk = newDisk();
  const { journal: own } = await openJournal(disk.files(), { fileBytesMax: 8192 });
  const stored = await own.append(batches(1, 2, 3, 4));
  await own.rewind(2, 1);
  for (const entry of stored.slice(0, 2)) own.apply(entry);
  await own.seal(2);
  const journal = await open(disk, own);
  assert.equal(journal.lastIndex, 2);
  await journal.append(batches(9));
  const position = await journal.finish(9, 1);
  // It is made anew from the file.
  disk.drop(`${staged}/index/00000000000000000000.index`);
  assert.deepEqual(await offsetsOf(disk, position, 9), [1, 2, 9]);
});

test('it goes on behind the last whole file after a crash', async () => {
  for (let seed = 0; seed < 50; seed++) {
    const disk = newDisk();
    const own = await journalOf(disk, 5);
    const first = await open(disk, own);
    await first.append(batches(5, 6));
    await first.append(batches(7, 8));
    await first.append(batches(9));
    disk.crash({ keep: seededRandom(seed).next(), tear: 0.5 });
    const second = await open(disk);
    assert.equal(second.lastIndex, 8);
    await second.append(batches(9, 10));
    const position = await second.finish(10, 1);
    disk.crash({ keep: 0, tear: 0 });
    const offsets = Array.from({ length: 10 }, (_, i) => i + 1);
    assert.deepEqual(await offsetsOf(disk, position, 10), offsets);
  }
});

test('files that were taken over only in part are taken over anew', async () => {
  for (let seed = 0; seed < 50; seed++) {
    const disk = newDisk();
    const own = await journalOf(disk, 5);
    let links = 0;
    disk.fault = ({ kind }) => (kind === 'link' && ++links === 3 ? 'EIO' : undefined);
    await assert.rejects(open(disk, own), { code: 'EIO' });
    disk.fault = undefined;
    disk.crash({ keep: seededRandom(seed).next(), tear: 0 });
    const { journal: again } = await openJournal(disk.files(), { fileBytesMax: 2048 });
    await again.seal(5);
    const journal = await open(disk, again);
    assert.equal(journal.lastIndex, 4);
    const position = await journal.finish(4, 1);
    assert.deepEqual(await offsetsOf(disk, position, 4), [1, 2, 3, 4]);
  }
});
