import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import type { FilePort, JournalFile } from '../../src/log/file-port.ts';
import { nodeFiles } from '../../src/log/node-files.ts';
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
  await settled(spare, bytes / 16);
  assert.deepEqual(disk.paths(), []);
  assert.equal(await spare.take(), undefined);
});

test('it keeps pace with the present file and is whole before that is full', async () => {
  const disk = await newDisk();
  const spare = new SpareFile(disk.files(), path, bytes);
  await settled(spare, bytes * 0.4);
  const early = disk.usedBytes;
  assert.ok(early > 0 && early < bytes);
  await settled(spare, bytes * 0.875);
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

test('on a disk it is zeros from end to end, in the page cache or past it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keylane-spare-'));
  t.after(() => rm(folder, { recursive: true }));
  const { openDirect: _, ...cachedFiles } = nodeFiles;
  // Neither whole pages nor whole steps.
  const odd = 6 * 1024 * 1024 + 100;
  for (const files of [nodeFiles, cachedFiles]) {
    const onDisk = join(folder, 'next.tmp');
    const spare = new SpareFile(files, onDisk, odd);
    spare.advance(odd);
    const file = await spare.take();
    await file?.write([Buffer.from('head')], 0);
    await file?.close();
    const content = await readFile(onDisk);
    assert.equal(content.length, odd);
    assert.equal(content.toString('latin1', 0, 4), 'head');
    assert.ok(content.subarray(4).every((byte) => byte === 0));
  }
});

/** Files whose direct writes do what is said; `written` counts the bytes that they take. */
function withDirect(files: FilePort, failure: string | undefined) {
  const written = { bytes: 0, isOpen: false };
  const openDirect = async (direct: string): Promise<JournalFile> => {
    const file = await files.open(direct, 'write');
    written.isOpen = true;
    return {
      ...file,
      write: async (pieces, position) => {
        if (failure !== undefined) throw Object.assign(new Error(failure), { code: failure });
        written.bytes += pieces.reduce((sum, { length }) => sum + length, 0);
        await file.write(pieces, position);
      },
      close: async () => {
        written.isOpen = false;
        await file.close();
      },
    };
  };
  return { files: { ...files, openDirect }, written };
}

test('it goes past the page cache where it can, and through it where it cannot', async () => {
  for (const [failure, direct] of [
    [undefined, bytes],
    ['EINVAL', 0],
  ] as const) {
    const disk = await newDisk();
    const { files, written } = withDirect(disk.files(), failure);
    const spare = new SpareFile(files, path, bytes);
    await settled(spare, bytes);
    assert.equal(disk.usedBytes, bytes);
    assert.equal(written.bytes, direct);
    const file = await spare.take();
    assert.equal(written.isOpen, false);
    await file?.close();
  }
});

test('without space for direct writes it is given up, too', async () => {
  const disk = await newDisk();
  const { files, written } = withDirect(disk.files(), 'ENOSPC');
  const spare = new SpareFile(files, path, bytes);
  await settled(spare, bytes);
  assert.deepEqual(disk.paths(), []);
  assert.equal(written.isOpen, false);
  assert.equal(await spare.take(), undefined);
});
