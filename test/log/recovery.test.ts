/** Starts of a journal of several files: what may be missing, what is rebuilt, what is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AssertionFailed } from '../../src/core/assert.ts';
import { crc32c } from '../../src/core/crc32c.ts';
import { seededRandom } from '../../src/core/random.ts';
import { EntryReader } from '../../src/log/entry-reader.ts';
import type { Entry } from '../../src/log/format.ts';
import type { RecoveryStart } from '../../src/log/recovery.ts';
import { SimDisk } from '../sim/sim-files.ts';
import {
  appendGroups,
  batchEntry,
  extentsOf,
  newDisk,
  openJournal,
  plainEntry,
  readBytes,
} from './support.ts';

const fileBytesMax = 2048;

interface Sealed {
  readonly disk: SimDisk;
  readonly entries: readonly Entry[];
  /** Paths of the journal files, oldest first. */
  readonly paths: readonly string[];
  readonly indexes: readonly string[];
  /** A snapshot at the beginning of the last file. */
  readonly start: RecoveryStart;
}

/** Thirty batches of two partitions in several files; all but the last are sealed. */
async function sealed(): Promise<Sealed> {
  const disk = newDisk();
  const { journal } = await openJournal(disk.files(), { fileBytesMax });
  const entries = Array.from({ length: 30 }, (_, i) =>
    batchEntry(i + 1, [
      { partition: 3, baseOffset: i, valueBytes: 150 },
      { partition: 5 + (i % 2), baseOffset: Math.floor(i / 2) },
    ]),
  );
  await appendGroups(
    journal,
    entries.map((entry) => [entry]),
  );
  await journal.seal(30);
  const { header } = journal.logFiles.at(-1)!;
  const paths = journal.logFiles.map((logFile) => logFile.path);
  assert.ok(paths.length > 4);
  return {
    disk,
    entries,
    paths,
    indexes: disk.paths().filter((path) => path.endsWith('.index')),
    start: { position: header.basePosition, index: header.firstIndex - 1, term: 1 },
  };
}

/** Index and content. */
function shown(entries: readonly Entry[]): string[] {
  return entries.map(({ index, meta }) => `${index} ${meta}`);
}

/** Every batch is found and reads back as it was appended. */
async function expectAll(disk: SimDisk, all: Sealed, start: RecoveryStart): Promise<void> {
  const { journal, found } = await openJournal(disk.files(), { fileBytesMax, start });
  assert.deepEqual(found, all.entries.slice(start.index));
  for (const partition of [3, 5, 6]) {
    const expected = all.entries.flatMap((entry) =>
      entry.batches.filter((_, i) => entry.partitions[i] === partition),
    );
    const extents = await extentsOf(journal, partition);
    assert.equal(extents.length, expected.length);
    for (let i = 0; i < extents.length; i++) {
      const { position, bytes } = extents[i]!;
      assert.deepEqual(await readBytes(journal, position, bytes), expected[i]);
    }
  }
}

test('sealed files are read by their indexes, from any snapshot on', async () => {
  const all = await sealed();
  await expectAll(all.disk, all, all.start);
  await expectAll(all.disk, all, { position: 0, index: 0, term: 0 });
});

test('a start below the snapshot reads no data', async () => {
  const all = await sealed();
  const files = all.disk.files();
  const read: string[] = [];
  await openJournal(
    {
      ...files,
      async open(path, mode) {
        const file = await files.open(path, mode);
        return {
          ...file,
          read(target, at, bytes, position) {
            if (bytes > 64) read.push(path);
            return file.read(target, at, bytes, position);
          },
        };
      },
    },
    { fileBytesMax, start: all.start },
  );
  const journals = new Set(read.filter((path) => path.endsWith('.journal')));
  assert.deepEqual([...journals], [all.paths.at(-1)]);
});

test('a missing file is refused, with its name, whether it is below the snapshot or not', async () => {
  const all = await sealed();
  for (const start of [all.start, { position: 0, index: 0, term: 0 }]) {
    for (const path of all.paths.slice(0, -1)) {
      const disk = all.disk.clone();
      disk.drop(path);
      await assert.rejects(openJournal(disk.files(), { fileBytesMax, start }), (error) => {
        assert.match(String(error), new RegExp(`${path}: .*missing; lost: all its records`));
        return true;
      });
    }
  }
});

test('a file that is missing with its index is noticed above the snapshot', async () => {
  const all = await sealed();
  const disk = all.disk.clone();
  disk.drop(all.paths[2]!);
  disk.drop(all.indexes[2]!);
  await assert.rejects(openJournal(disk.files(), { fileBytesMax }), /lost: entries \d+ to \d+/);
});

test('the last file is never missing where there is a snapshot', async () => {
  const all = await sealed();
  const disk = all.disk.clone();
  disk.drop(all.paths.at(-1)!);
  const options = { fileBytesMax, start: { ...all.start, position: all.start.position + 200 } };
  await assert.rejects(openJournal(disk.files(), options), { code: 'JOURNAL_DAMAGED' });
  for (const path of [...all.paths.slice(0, -1), ...all.indexes]) disk.drop(path);
  await assert.rejects(openJournal(disk.files(), options), /there is no journal file/);
});

test('removed files leave no trace and are not missed', async () => {
  const all = await sealed();
  const { journal } = await openJournal(all.disk.files(), { fileBytesMax, start: all.start });
  const removed = [journal.logFiles[0]!, journal.logFiles[2]!];
  await journal.remove(removed);
  const paths = all.disk.paths();
  for (const path of [all.paths[0]!, all.paths[2]!, all.indexes[0]!, all.indexes[2]!]) {
    assert.ok(!paths.includes(path));
  }
  const again = await openJournal(all.disk.files(), { fileBytesMax, start: all.start });
  const { basePosition } = journal.logFiles[0]!.header;
  const extents = await extentsOf(again.journal, 3);
  assert.equal(extents[0]!.position > basePosition, true);
  for (const { position, bytes } of extents) {
    assert.equal((await readBytes(again.journal, position, bytes)).length, bytes);
  }
});

test('a removal that a crash cuts short is either not there or finished', async () => {
  const all = await sealed();
  // The index goes first; a file whose removal did not reach the disk is indexed anew.
  const disk = all.disk.clone();
  disk.drop(all.indexes[1]!);
  await expectAll(disk, all, all.start);
  assert.ok(disk.paths().includes(all.indexes[1]!));
});

test('a missing index is made again', async () => {
  const all = await sealed();
  for (const index of all.indexes) {
    const disk = all.disk.clone();
    const before = disk.content(index);
    disk.drop(index);
    await expectAll(disk, all, all.start);
    assert.deepEqual(disk.content(index), before);
  }
});

test('any damaged byte of an index: the index is made again, now or at the next start', async () => {
  const all = await sealed();
  const index = all.indexes[1]!;
  const before = all.disk.content(index);
  let crashed = 0;
  for (let at = 0; at < before.length; at += at > 200 && at < 3900 ? 13 : 1) {
    const disk = all.disk.clone();
    disk.overwrite(index, at, Buffer.from([before[at]! ^ 0x04]));
    try {
      await expectAll(disk, all, all.start);
    } catch (error) {
      assert.ok(error instanceof AssertionFailed, String(error));
      crashed++;
      await expectAll(disk, all, all.start);
    }
  }
  assert.ok(crashed > 0);
});

test('damage in a file whose index is made again is refused', async () => {
  const all = await sealed();
  const disk = all.disk.clone();
  disk.drop(all.indexes[1]!);
  disk.overwrite(all.paths[1]!, 700, Buffer.from([0xff, 0xee]));
  await assert.rejects(openJournal(disk.files(), { fileBytesMax, start: all.start }), (error) => {
    assert.match(String(error), new RegExp(`${all.paths[1]}: damage at position \\d+: .*lost: `));
    return true;
  });
});

test('damage at the end of a file with another one behind it is refused', async () => {
  const all = await sealed();
  const path = all.paths[1]!;
  const content = all.disk.content(path);
  const last = content.findLastIndex((byte) => byte !== 0);
  all.disk.overwrite(path, last - 20, Buffer.alloc(40));
  const opening = openJournal(all.disk.files(), { fileBytesMax });
  await assert.rejects(opening, /synced before; lost: entries \d+ to \d+/);
});

test('the snapshot proves that what is before it was synced', async () => {
  const disk = newDisk();
  const { journal } = await openJournal(disk.files());
  await appendGroups(journal, [
    [plainEntry(1, Buffer.from('a'))],
    [plainEntry(2, Buffer.from('b'))],
  ]);
  const start = { position: journal.end, index: 2, term: 1 };
  disk.cut(journal.logFiles[0]!.path, journal.end - 20);
  await assert.rejects(openJournal(disk.files(), { start }), { code: 'JOURNAL_DAMAGED' });
});

test('versions of files, groups and entries that are not known stop the start', async () => {
  const disk = newDisk();
  const { journal } = await openJournal(disk.files());
  const [start] = await appendGroups(journal, [[plainEntry(1, Buffer.from('a'))]]);
  const path = journal.logFiles[0]!.path;
  for (const [at, bytes] of [
    [0, 64],
    [start!, 48],
  ] as const) {
    const other = disk.clone();
    const header = other.content(path).subarray(at, at + bytes);
    header.writeUInt16LE(2, 4);
    header.writeUInt32LE(crc32c(header.subarray(0, bytes - 4)), bytes - 4);
    other.overwrite(path, at, header);
    await assert.rejects(openJournal(other.files()), (error) => {
      assert.match(String(error), /format version 2, which this version of Keylane does not know/);
      return true;
    });
  }
});

test('temporary files of an interrupted write are removed', async () => {
  const all = await sealed();
  for (const name of ['journal/next.tmp', 'journal/index/00000000000000002048.index.tmp']) {
    all.disk.put(`data/${name}`, Buffer.from('half'));
  }
  await expectAll(all.disk, all, all.start);
  assert.deepEqual(
    all.disk.paths().filter((path) => path.endsWith('.tmp')),
    [],
  );
});

test('entries that others take the places of are void, after a restart too', async () => {
  const disk = new SimDisk({ random: seededRandom(1) });
  const first = await openJournal(disk.files());
  await first.journal.append([1, 2, 3, 4].map((index) => plainEntry(index, Buffer.from('old'))));
  await first.journal.rewind(2, 1);
  assert.equal(first.journal.lastIndex, 2);
  const fresh = [3, 4, 5].map((index) => ({ ...plainEntry(index, Buffer.from('new')), term: 2 }));
  await first.journal.append(fresh);
  await first.journal.close();
  const second = await openJournal(disk.files());
  assert.deepEqual(shown(second.found), ['1 old', '2 old', '3 new', '4 new', '5 new']);
  assert.equal(second.journal.lastIndex, 5);
  const reader = new EntryReader(second.journal);
  const read = [...(await reader.read(2, 1))!, ...(await reader.read(3, 1000))!];
  assert.deepEqual(shown(read), ['2 old', '3 new', '4 new', '5 new']);
  await second.journal.close();
});

test('what was made void stays void when nothing has taken its place yet', async () => {
  const disk = new SimDisk({ random: seededRandom(1) });
  const first = await openJournal(disk.files());
  await first.journal.append([1, 2, 3].map((index) => plainEntry(index, Buffer.from('old'))));
  await first.journal.rewind(1, 1);
  await first.journal.close();
  const second = await openJournal(disk.files());
  assert.deepEqual(
    second.found.map(({ index }) => index),
    [1],
  );
  await second.journal.close();
});

test('a snapshot may have been taken in the midst of what was void by then', async () => {
  const disk = new SimDisk({ random: seededRandom(1) });
  const first = await openJournal(disk.files());
  const old = (...indexes: number[]) =>
    indexes.map((index) => plainEntry(index, Buffer.from('old')));
  const [, , position] = await appendGroups(first.journal, [old(1, 2), old(3), old(4, 5)]);
  await first.journal.rewind(2, 1);
  await first.journal.append([{ ...plainEntry(3, Buffer.from('new')), term: 2 }]);
  await first.journal.close();
  const start = { position: position!, index: 2, term: 1 };
  const second = await openJournal(disk.files(), { start });
  assert.deepEqual(shown(second.found), ['3 new']);
  await second.journal.close();
});

test('a file that had nothing but void entries may be gone, and an index before it, too', async () => {
  const disk = newDisk();
  const first = await openJournal(disk.files(), { fileBytesMax });
  const big = (index: number, term: number) => {
    return { ...plainEntry(index, Buffer.alloc(700, index)), term };
  };
  await appendGroups(
    first.journal,
    [1, 2, 3, 4, 5].map((index) => [big(index, 1)]),
  );
  const count = first.journal.logFiles.length;
  assert.ok(count > 1);
  const { lastIndex } = first.journal.logFiles[0]!;
  // The next file begins in the midst of the first one: all that is between them is void.
  await first.journal.rewind(lastIndex - 1, 1);
  await appendGroups(first.journal, [[big(lastIndex, 2)], [big(lastIndex + 1, 2)]]);
  await first.journal.seal(lastIndex + 1);
  const { header } = first.journal.logFiles[count]!;
  await first.journal.remove(first.journal.logFiles.slice(1, count));
  await first.journal.close();
  for (const path of disk.paths()) if (path.endsWith('.index')) disk.drop(path);
  const start = { position: header.basePosition, index: lastIndex - 1, term: 1 };
  const second = await openJournal(disk.files(), { fileBytesMax, start });
  assert.deepEqual(
    second.found.map(({ index, term }) => [index, term]),
    [
      [lastIndex, 2],
      [lastIndex + 1, 2],
    ],
  );
  await second.journal.close();
});

test('entries that a later file makes void are read no more, whatever file is between', async () => {
  const disk = newDisk();
  const first = await openJournal(disk.files());
  const entries = (term: number, ...indexes: number[]) =>
    indexes.map((index) => ({ ...plainEntry(index, Buffer.from(`of ${term}`)), term }));
  await first.journal.append(entries(1, 1, 2, 3, 4, 5));
  // Each begins a file: the first of them stays empty.
  await first.journal.rewind(4, 1);
  await first.journal.rewind(2, 1);
  await first.journal.append(entries(2, 3, 4));
  await first.journal.seal(4);
  const { header } = first.journal.logFiles.at(-1)!;
  await first.journal.close();
  const start = { position: header.basePosition, index: 2, term: 1 };
  const second = await openJournal(disk.files(), { start });
  const reader = new EntryReader(second.journal);
  const read = [...(await reader.read(1, 1000))!, ...(await reader.read(3, 1000))!];
  assert.deepEqual(shown(read), ['1 of 1', '2 of 1', '3 of 2', '4 of 2']);
  await second.journal.close();
});
