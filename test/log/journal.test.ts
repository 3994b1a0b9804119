import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AssertionFailed } from '../../src/core/assert.ts';
import type { FilePort, JournalFile } from '../../src/log/file-port.ts';
import type { Journal } from '../../src/log/journal.ts';
import {
  appendGroups,
  batchEntry,
  extentsOf,
  newDisk,
  openJournal,
  plainEntry,
  readBytes,
} from './support.ts';

/** Counts open files, and can hold reads up. */
function watched(files: FilePort) {
  let openFiles = 0;
  let hold: Promise<void> | undefined;
  const port: FilePort = {
    ...files,
    async open(path, mode) {
      const file: JournalFile = await files.open(path, mode);
      openFiles++;
      let isClosed = false;
      return {
        ...file,
        async read(target, at, bytes, position) {
          await hold;
          assert.ok(!isClosed, `${path} is read after it was closed`);
          return file.read(target, at, bytes, position);
        },
        async close() {
          assert.ok(!isClosed, `${path} is closed twice`);
          isClosed = true;
          openFiles--;
          await file.close();
        },
      };
    },
  };
  return {
    port,
    openFiles: () => openFiles,
    holdReads(until: Promise<void>) {
      hold = until;
    },
  };
}

async function fill(journal: Journal, count: number): Promise<void> {
  for (let i = 1; i <= count; i++) {
    await appendGroups(journal, [[batchEntry(i, [{ partition: 1, baseOffset: i - 1 }])]]);
  }
}

test('a file is rolled before it grows beyond its bound, and holds a large group alone', async () => {
  const disk = newDisk();
  const { journal } = await openJournal(disk.files(), { fileBytesMax: 1000 });
  await appendGroups(journal, [
    [plainEntry(1, Buffer.alloc(700))],
    [plainEntry(2, Buffer.alloc(700))],
    [plainEntry(3, Buffer.alloc(5000))],
    [plainEntry(4, Buffer.alloc(10))],
  ]);
  const files = journal.logFiles.map(({ header, lastIndex }) => [header.firstIndex, lastIndex]);
  assert.deepEqual(files, [
    [1, 1],
    [2, 2],
    [3, 3],
    [4, 4],
  ]);
});

test('a mark behind a large group, after a restart, leaves the group whole', async () => {
  const disk = newDisk();
  const options = { fileBytesMax: 1000, fileBytesMin: 500 };
  const large = plainEntry(1, Buffer.alloc(5000, 7));
  const first = await openJournal(disk.files(), options);
  await appendGroups(first.journal, [[large]]);
  await first.journal.close();
  const second = await openJournal(disk.files(), options);
  assert.equal(second.found.length, 1);
  await second.journal.append([]);
  await second.journal.close();
  const third = await openJournal(disk.files(), options);
  assert.deepEqual(
    third.found.map(({ index, meta }) => [index, meta.length]),
    [[1, 5000]],
  );
});

test('the first file grows with use', async () => {
  const disk = newDisk();
  const options = { fileBytesMax: 64 * 1024, fileBytesMin: 1000 };
  const { journal } = await openJournal(disk.files(), options);
  const sizes: number[] = [];
  for (let i = 1; i <= 60; i++) {
    await appendGroups(journal, [[plainEntry(i, Buffer.alloc(900))]]);
    sizes.push(await journal.logFiles[0]!.file.size());
  }
  assert.deepEqual([...new Set(sizes)], [4000, 16_000, 64_000]);
  await journal.close();
  const again = await openJournal(disk.files(), options);
  assert.equal(again.found.length, 60);
});

test('a file is rolled before it holds more batches than its bound', async () => {
  const disk = newDisk();
  const { journal } = await openJournal(disk.files(), { fileExtentsMax: 10 });
  await fill(journal, 35);
  assert.deepEqual(
    journal.logFiles.map((logFile) => logFile.table?.rows),
    [10, 10, 10, 5],
  );
});

test('extents are seen once they are applied, before and after sealing', async () => {
  const disk = newDisk();
  const { journal } = await openJournal(disk.files(), { fileExtentsMax: 10 });
  const [stored] = await journal.append([batchEntry(1, [{ partition: 1, baseOffset: 0 }])]);
  assert.deepEqual(await extentsOf(journal, 1), []);
  journal.apply(stored!);
  assert.equal((await extentsOf(journal, 1)).length, 1);
  for (let i = 2; i <= 25; i++) {
    await appendGroups(journal, [[batchEntry(i, [{ partition: 1, baseOffset: i - 1 }])]]);
  }
  const before = await extentsOf(journal, 1);
  assert.ok(journal.sealIsDue);
  await journal.seal(15);
  assert.deepEqual(
    journal.logFiles.map((logFile) => logFile.index !== undefined),
    [true, false, false],
    'a file whose last entry is not applied is not sealed',
  );
  await journal.seal(25);
  assert.ok(!journal.sealIsDue);
  assert.deepEqual(await extentsOf(journal, 1), before);
});

test('a batch that is applied after its file was sealed is a broken invariant', async () => {
  const disk = newDisk();
  const { journal } = await openJournal(disk.files(), { fileExtentsMax: 1 });
  const [first] = await journal.append([batchEntry(1, [{ partition: 1, baseOffset: 0 }])]);
  journal.apply(first!);
  await fillOne(journal, 2);
  await journal.seal(2);
  assert.throws(() => journal.apply(first!), AssertionFailed);
});

async function fillOne(journal: Journal, index: number): Promise<void> {
  const entry = batchEntry(index, [{ partition: 1, baseOffset: index - 1 }]);
  await appendGroups(journal, [[entry]]);
}

test('without space for an index the extents stay in memory until there is', async () => {
  const disk = newDisk();
  const { journal, fatal } = await openJournal(disk.files(), { fileExtentsMax: 10 });
  await fill(journal, 25);
  disk.quotaBytes = disk.usedBytes + 1000;
  await journal.seal(25);
  assert.ok(journal.sealIsDue);
  assert.equal((await extentsOf(journal, 1)).length, 25);
  assert.deepEqual(
    disk.paths().filter((path) => path.includes('index')),
    [],
  );
  disk.quotaBytes = Number.POSITIVE_INFINITY;
  await journal.seal(25);
  assert.ok(!journal.sealIsDue);
  assert.deepEqual(fatal, []);
});

test('an append without space leaves no trace, and the next one takes its place', async () => {
  const disk = newDisk();
  const { journal, fatal } = await openJournal(disk.files());
  await appendGroups(journal, [[plainEntry(1, Buffer.from('first'))]]);
  const { end } = journal;
  const before = disk.content(journal.logFiles[0]!.path);
  disk.quotaBytes = disk.usedBytes + 1024;
  await assert.rejects(journal.append([plainEntry(2, Buffer.alloc(5000, 7))]), {
    code: 'DISK_FULL',
  });
  assert.equal(journal.end, end);
  assert.deepEqual(disk.content(journal.logFiles[0]!.path), before);
  await journal.append([plainEntry(2, Buffer.from('second'))]);
  const { found } = await openJournal(disk.files());
  assert.deepEqual(found, [
    plainEntry(1, Buffer.from('first')),
    plainEntry(2, Buffer.from('second')),
  ]);
  assert.deepEqual(fatal, []);
});

test('without space for a new file the append is refused, and works later', async () => {
  const disk = newDisk();
  const options = { fileBytesMax: 1000, mayPreallocate: () => false };
  const { journal } = await openJournal(disk.files(), options);
  await appendGroups(journal, [[plainEntry(1, Buffer.alloc(900))]]);
  disk.quotaBytes = disk.usedBytes;
  const entry = plainEntry(2, Buffer.alloc(300));
  await assert.rejects(journal.append([entry]), { code: 'DISK_FULL' });
  disk.quotaBytes = Number.POSITIVE_INFINITY;
  await journal.append([entry]);
  assert.equal(journal.logFiles.length, 2);
  assert.equal((await openJournal(disk.files())).found.length, 2);
});

test('a file that is removed while it is read stays open for the reader', async () => {
  const disk = newDisk();
  const files = watched(disk.files());
  const { journal } = await openJournal(files.port, { fileExtentsMax: 5, recentBytesMax: 1 });
  await fill(journal, 20);
  await journal.seal(20);
  const [extent] = await extentsOf(journal, 1);
  const before = files.openFiles();
  let letGo = () => {};
  files.holdReads(
    new Promise((resolve) => {
      letGo = resolve;
    }),
  );
  const reading = readBytes(journal, extent!.position, extent!.bytes);
  await journal.remove([journal.logFiles[0]!]);
  assert.equal(journal.fileAt(extent!.position), undefined);
  assert.equal(files.openFiles(), before - 1, 'its index is closed, the file is not');
  letGo();
  assert.equal((await reading).length, extent!.bytes);
  assert.equal(files.openFiles(), before - 2);
});

test('a reader that finishes during the removal does not close the file twice', async () => {
  const disk = newDisk();
  const files = watched(disk.files());
  const { journal } = await openJournal(files.port, { fileExtentsMax: 5, recentBytesMax: 1 });
  await fill(journal, 20);
  await journal.seal(20);
  const [extent] = await extentsOf(journal, 1);
  const reading = readBytes(journal, extent!.position, extent!.bytes);
  await Promise.all([journal.remove([journal.logFiles[0]!]), reading]);
  assert.equal(journal.logFiles.length, 3);
});

test('the file that is written to is never removed', async () => {
  const { journal } = await openJournal(newDisk().files());
  await assert.rejects(journal.remove([journal.logFiles[0]!]), AssertionFailed);
});

test('close closes every file once', async () => {
  const disk = newDisk();
  const files = watched(disk.files());
  const { journal } = await openJournal(files.port, { fileExtentsMax: 5, recentBytesMax: 1 });
  await fill(journal, 20);
  await journal.seal(20);
  await journal.close();
  assert.equal(files.openFiles(), 0);
});
