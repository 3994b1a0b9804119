/** What a start makes of the journal's end: torn writes are cut, synced bytes are not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Entry, groupBytes, writeGroupHeader } from '../../src/log/format.ts';
import type { SimDisk } from '../sim/sim-files.ts';
import {
  appendGroups,
  batchEntry,
  folder,
  newDisk,
  openJournal,
  plainEntry,
  stillClock,
} from './support.ts';

const file = `${folder}/00000000000000000000.journal`;

/** Groups of one to three entries: small ones, and one whose batch is not copied but referenced. */
function someGroups(): Entry[][] {
  return [
    [plainEntry(1, Buffer.from('first'))],
    [batchEntry(2, [{ partition: 0, baseOffset: 0 }]), plainEntry(3, Buffer.alloc(0))],
    [batchEntry(4, [{ partition: 0, baseOffset: 1, valueBytes: 5000 }])],
    [
      batchEntry(5, [
        { partition: 0, baseOffset: 2, records: 3 },
        { partition: 7, baseOffset: 0 },
      ]),
    ],
    [
      plainEntry(6, Buffer.from('sixth')),
      plainEntry(7, Buffer.from('7')),
      plainEntry(8, Buffer.alloc(9)),
    ],
    [batchEntry(9, [{ partition: 7, baseOffset: 1 }])],
  ];
}

interface Written {
  readonly disk: SimDisk;
  readonly entries: readonly Entry[];
  readonly starts: readonly number[];
  readonly end: number;
}

async function written(sync: 'always' | 'interval' = 'always'): Promise<Written> {
  const disk = newDisk();
  const groups = someGroups();
  const { journal } = await openJournal(disk.files(), { sync });
  const starts = await appendGroups(journal, groups);
  return { disk, entries: groups.flat(), starts, end: journal.end };
}

function entriesBefore(written: Written, position: number): readonly Entry[] {
  const groups = someGroups();
  const whole = written.starts.filter((_, i) => (written.starts[i + 1] ?? written.end) <= position);
  return groups.slice(0, whole.length).flat();
}

/** Opens, checks what is found, and shows that the journal goes on from there. */
async function expectFound(disk: SimDisk, expected: readonly Entry[], what: string) {
  const { journal, found, cutBytes } = await openJournal(disk.files());
  assert.deepEqual(found, expected, what);
  const next = plainEntry(journal.lastIndex + 1, Buffer.from('next'));
  await journal.append([next]);
  const again = await openJournal(disk.files());
  assert.deepEqual(again.found, [...expected, next], `${what}, then one more`);
  assert.equal(again.cutBytes, 0, what);
  return cutBytes;
}

test('a file that ends at any byte of the last groups', async () => {
  const all = await written();
  for (let end = all.starts[3]!; end <= all.end; end++) {
    const disk = all.disk.clone();
    disk.cut(file, end);
    await expectFound(disk, entriesBefore(all, end), `cut at ${end}`);
  }
});

test('zeros from any byte of the last groups on', async () => {
  const all = await written();
  for (let from = all.starts[4]!; from < all.end; from++) {
    const disk = all.disk.clone();
    const content = disk.content(file);
    disk.overwrite(file, from, Buffer.alloc(all.end - from));
    // Zeros where there were zeros change nothing.
    const changed = content.subarray(from, all.end).some((byte) => byte !== 0);
    const expected = changed ? entriesBefore(all, from) : all.entries;
    const { found } = await openJournal(disk.files());
    const isPadding = found.length > expected.length;
    if (!isPadding) assert.deepEqual(found, expected, `zeros from ${from} on`);
    else assert.deepEqual(found, all.entries.slice(0, found.length));
  }
});

test('any damaged byte of the last group cuts it off, or is padding', async () => {
  const all = await written();
  const start = all.starts.at(-1)!;
  let ignored = 0;
  for (let at = start; at < all.end; at++) {
    const disk = all.disk.clone();
    flip(disk, at);
    const { found, cutBytes } = await openJournal(disk.files());
    if (found.length === all.entries.length) {
      assert.deepEqual(found, all.entries);
      ignored++;
      continue;
    }
    assert.deepEqual(found, entriesBefore(all, start), `byte ${at}`);
    assert.ok(cutBytes > 0);
  }
  assert.ok(ignored < 8, 'only padding may be damaged without a trace');
});

test('any damaged byte before the last sync mark is refused', async () => {
  const all = await written();
  let ignored = 0;
  for (let group = 0; group < all.starts.length - 1; group++) {
    const start = all.starts[group]!;
    const end = all.starts[group + 1]!;
    // Every byte of small groups and of what is around a large batch.
    for (let at = start; at < end; at += at - start > 300 && end - at > 300 ? 37 : 1) {
      const disk = all.disk.clone();
      flip(disk, at);
      try {
        const { found } = await openJournal(disk.files());
        assert.deepEqual(found, all.entries, `byte ${at}`);
        ignored++;
      } catch (error) {
        assertDamage(error, file, start, at);
      }
    }
  }
  assert.ok(ignored < 8 * all.starts.length, 'only padding may be damaged without a trace');
});

test('any damaged byte of a file header is refused', async () => {
  const all = await written();
  for (let at = 0; at < 64; at++) {
    const disk = all.disk.clone();
    flip(disk, at);
    await assert.rejects(openJournal(disk.files()), (error) => assertDamage(error, file, 0, at));
  }
});

test('a mark makes the last group safe: damage in it is then refused', async () => {
  const disk = newDisk();
  const { journal } = await openJournal(disk.files());
  const [start] = await appendGroups(journal, [[plainEntry(1, Buffer.from('only'))]]);
  assert.ok(journal.markIsDue);
  await journal.append([]);
  assert.ok(!journal.markIsDue, 'a mark needs no mark');
  flip(disk, start! + 60);
  await assert.rejects(openJournal(disk.files()), (error) => assertDamage(error, file, start!));
});

test('zeroed sectors: before the last mark refused, after it cut', async () => {
  const all = await written();
  for (let at = 0; at < all.end; at += 512) {
    const disk = all.disk.clone();
    disk.overwrite(file, at, Buffer.alloc(512));
    const firstHit = all.starts.find((_, i) => (all.starts[i + 1] ?? all.end) > at)!;
    // The last mark is in the last group's header: where that is gone too, nothing proves a sync.
    if (at > 0 && at + 512 > all.starts.at(-1)!) {
      await expectFound(disk, entriesBefore(all, firstHit), `sector at ${at}`);
    } else await assert.rejects(openJournal(disk.files()), { code: 'JOURNAL_DAMAGED' });
  }
});

test('a good group behind a torn one does not come back, now or later', async () => {
  const all = await written('interval');
  for (let torn = 1; torn < all.starts.length - 1; torn++) {
    const disk = all.disk.clone();
    flip(disk, all.starts[torn]! + 50);
    const cut = await expectFound(disk, entriesBefore(all, all.starts[torn]!), `group ${torn}`);
    assert.ok(cut > 0);
  }
});

test('bytes from before a cut are zeros before anything new is written', async () => {
  const all = await written('interval');
  flip(all.disk, all.starts[1]! + 50);
  const { journal } = await openJournal(all.disk.files());
  const rest = all.disk.content(file).subarray(journal.end);
  assert.ok(rest.every((byte) => byte === 0));
});

test('a record that looks like a group header proves nothing', async () => {
  for (const salt of ['wrong', 'right'] as const) {
    const disk = newDisk();
    const { journal } = await openJournal(disk.files());
    const [first] = await appendGroups(journal, [[plainEntry(1, Buffer.from('first'))]]);
    const start = journal.end;
    // The whole value is filled with headers, each right for its own place.
    const valueBytes = 2000;
    const build = (value: Buffer) => batchEntry(2, [{ partition: 0, baseOffset: 0, value }]);
    const [plain] = await journal.append([build(Buffer.alloc(valueBytes, 1))]);
    const valueAt = plain!.positions[0]! + plain!.batches[0]!.indexOf(Buffer.alloc(100, 1));
    const value = Buffer.alloc(valueBytes);
    const fileSalt = journal.logFiles[0]!.header.salt;
    const lead = (8 - (valueAt % 8)) % 8;
    for (let at = lead; at + 48 <= valueBytes; at += 48) {
      writeGroupHeader(value, at, {
        position: valueAt + at,
        syncedPosition: valueAt + at,
        entryCount: 0,
        bodyBytes: 0,
        writtenMs: 0,
        salt: salt === 'right' ? fileSalt : (fileSalt ^ 1) >>> 0,
      });
    }
    disk.overwrite(file, start, Buffer.alloc(journal.end - start));
    const again = (await openJournal(disk.files())).journal;
    await again.append([build(value)]);
    flip(disk, start + 50);
    const opening = openJournal(disk.files());
    // With the file's own salt they would be believed: that is what the salt is for.
    if (salt === 'right') await assert.rejects(opening, { code: 'JOURNAL_DAMAGED' });
    else assert.deepEqual((await opening).found, [plainEntry(1, Buffer.from('first'))]);
    assert.ok(first! < start);
  }
});

test('what no mark covers is written again before it counts', async () => {
  const all = await written();
  const writes: { position: number; bytes: number }[] = [];
  const files = all.disk.files();
  const { journal, found } = await openJournal({
    ...files,
    async open(path, mode) {
      const opened = await files.open(path, mode);
      return {
        ...opened,
        write(pieces, position) {
          writes.push({ position, bytes: Buffer.concat(pieces).length });
          return opened.write(pieces, position);
        },
      };
    },
  });
  assert.deepEqual(found, all.entries);
  const last = all.starts.at(-1)!;
  assert.deepEqual(writes, [{ position: last, bytes: all.end - last }]);
  assert.equal(journal.end, all.end);
});

test('an idle journal writes one mark and then rests', async () => {
  const disk = newDisk();
  const { journal } = await openJournal(disk.files());
  await journal.append([plainEntry(1, Buffer.from('x'))]);
  assert.ok(journal.markIsDue);
  const before = journal.end;
  await journal.append([]);
  assert.equal(journal.end, before + groupBytes(0));
  assert.ok(!journal.markIsDue);
  assert.equal(stillClock.monotonicMs(), 0);
});

function flip(disk: SimDisk, at: number): void {
  const byte = disk.content(file)[at]!;
  disk.overwrite(file, at, Buffer.from([byte ^ 0x10]));
}

function assertDamage(error: unknown, path: string, position: number, at = position): boolean {
  assert.ok(error instanceof Error && 'code' in error && 'fields' in error, String(error));
  assert.equal(error.code, 'JOURNAL_DAMAGED', `byte ${at}`);
  assert.deepEqual(error.fields, { file: path, position }, `byte ${at}`);
  if (position > 0) assert.match(error.message, /lost: /);
  return true;
}
