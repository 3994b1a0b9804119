import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32c } from '../../src/core/crc32c.ts';
import { keepNewestSnapshot, readSnapshot, writeSnapshot } from '../../src/log/snapshot-file.ts';
import type { SimDisk } from '../sim/sim-files.ts';
import { newDisk } from './support.ts';

const folder = 'data/snapshots';

function snapshotAt(index: number) {
  return {
    position: index * 100,
    index,
    term: 3,
    hardState: Buffer.from(`vote ${index}`),
    image: Buffer.alloc(3000, index),
  };
}

async function withSnapshots(...indexes: number[]): Promise<SimDisk> {
  const disk = newDisk();
  for (const index of indexes) await writeSnapshot(disk.files(), folder, snapshotAt(index));
  return disk;
}

test('the newest snapshot is read, the two newest are kept', async () => {
  const disk = await withSnapshots(5, 90, 100);
  assert.deepEqual(await readSnapshot(disk.files(), folder), snapshotAt(100));
  assert.deepEqual(disk.paths(), [
    `${folder}/00000000000000000090.snapshot`,
    `${folder}/00000000000000000100.snapshot`,
  ]);
});

test('a damaged newest snapshot is passed over, whichever byte it is', async () => {
  const disk = await withSnapshots(5, 6);
  const newest = disk.paths().at(-1)!;
  const content = disk.content(newest);
  for (let at = 0; at < content.length; at += at < 100 ? 1 : 61) {
    const other = disk.clone();
    other.overwrite(newest, at, Buffer.from([content[at]! ^ 0x80]));
    assert.deepEqual(await readSnapshot(other.files(), folder), snapshotAt(5), `byte ${at}`);
  }
  for (let end = 0; end < content.length; end += end < 100 ? 1 : 61) {
    const other = disk.clone();
    other.cut(newest, end);
    assert.deepEqual(await readSnapshot(other.files(), folder), snapshotAt(5), `cut at ${end}`);
  }
});

test('only damaged snapshots are refused, none at all is a fresh folder', async () => {
  const disk = await withSnapshots(5);
  disk.overwrite(disk.paths()[0]!, 80, Buffer.from('damage'));
  await assert.rejects(readSnapshot(disk.files(), folder), { code: 'SNAPSHOT_DAMAGED' });
  assert.equal(await readSnapshot(newDisk().files(), folder), undefined);
});

test('a snapshot of an unknown version stops the start', async () => {
  const disk = await withSnapshots(5, 6);
  const newest = disk.paths().at(-1)!;
  const header = disk.content(newest).subarray(0, 64);
  header.writeUInt16LE(2, 4);
  header.writeUInt32LE(crc32c(header.subarray(0, 60)), 60);
  disk.overwrite(newest, 0, header);
  await assert.rejects(readSnapshot(disk.files(), folder), { code: 'JOURNAL_VERSION_UNKNOWN' });
});

test('a leftover of an interrupted write does no harm', async () => {
  const disk = await withSnapshots(5);
  disk.put(`${folder}/snapshot.tmp`, Buffer.alloc(10_000, 1));
  assert.deepEqual(await readSnapshot(disk.files(), folder), snapshotAt(5));
  await writeSnapshot(disk.files(), folder, snapshotAt(6));
  assert.deepEqual(await readSnapshot(disk.files(), folder), snapshotAt(6));
});

test('without space the half-written snapshot is removed', async () => {
  const disk = await withSnapshots(5);
  disk.quotaBytes = disk.usedBytes + 1024;
  await assert.rejects(writeSnapshot(disk.files(), folder, snapshotAt(6)), { code: 'ENOSPC' });
  assert.deepEqual(disk.paths(), [`${folder}/00000000000000000005.snapshot`]);
});

test('older snapshots are given up only for a sound one', async () => {
  const disk = await withSnapshots(5, 6);
  const damaged = disk.clone();
  damaged.overwrite(damaged.paths().at(-1)!, 80, Buffer.from('damage'));
  assert.equal(await keepNewestSnapshot(damaged.files(), folder), false);
  assert.equal(damaged.paths().length, 2);
  assert.equal(await keepNewestSnapshot(disk.files(), folder), true);
  assert.deepEqual(disk.paths(), [`${folder}/00000000000000000006.snapshot`]);
});
