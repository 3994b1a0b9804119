import assert from 'node:assert/strict';
import test from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { SpareFile } from '../../src/log/spare-file.ts';
import { SimDisk } from '../sim/sim-files.ts';

const path = 'folder/next.tmp';
const bytes = 16 * 1024 * 1024;

async function newDisk(): Promise<SimDisk> {
  const disk = new SimDisk({ random: seededRandom(3) });
  await disk.files().makeFolder('folder');
  return disk;
}

/** Steps that can be taken without waiting for anything but the disk, which answers at once. */
async function settled(spare: SpareFile, usedBytes: number): Promise<void> {
  for (let turn = 0; turn < 100; turn++) {
    spare.advance(usedBytes);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('a journal that is hardly used has no spare file', async () => {
  const disk = await newDisk();
  const spare = new SpareFile(disk.files(), path, bytes);
  await settled(spare, bytes * 0.25);
  assert.deepEqual(disk.paths(), []);
  assert.equal(await spare.take(), undefined);
});

test('it keeps pace with the present file and is whole at three quarters', async () => {
  const disk = await newDisk();
  const spare = new SpareFile(disk.files(), path, bytes);
  await settled(spare, bytes * 0.4);
  const early = disk.usedBytes;
  assert.ok(early > 0 && early < bytes);
  await settled(spare, bytes * 0.75);
  assert.equal(disk.usedBytes, bytes);
  const file = await spare.take();
  assert.equal(await file?.size(), bytes);
  assert.ok(disk.content(path).every((byte) => byte === 0));
  await file?.close();
});

test('what it is filled with is synced: a power failure leaves it whole', async () => {
  const disk = await newDisk();
  const files = disk.files();
  const spare = new SpareFile(files, path, bytes);
  await settled(spare, bytes);
  const file = await spare.take();
  await files.rename(path, 'folder/taken');
  await files.syncFolder('folder');
  await file?.close();
  disk.crash({ keep: 0, tear: 0 });
  assert.equal(disk.usedBytes, bytes);
});

test('one that is taken before it is full has its full length', async () => {
  const disk = await newDisk();
  const spare = new SpareFile(disk.files(), path, bytes);
  spare.advance(bytes * 0.3);
  const file = await spare.take();
  assert.equal(await file?.size(), bytes);
  await file?.close();
});

test('without space it is given up, leaves nothing, and is tried again for the next file', async () => {
  const disk = await newDisk();
  disk.quotaBytes = bytes / 2;
  const spare = new SpareFile(disk.files(), path, bytes);
  await settled(spare, bytes);
  assert.deepEqual(disk.paths(), []);
  assert.equal(await spare.take(), undefined);
  disk.quotaBytes = Number.POSITIVE_INFINITY;
  await settled(spare, bytes);
  const file = await spare.take();
  assert.equal(await file?.size(), bytes);
  await file?.close();
});
