import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { BufferPool } from '../../src/log/buffer-pool.ts';
import type { JournalFile } from '../../src/log/file-port.ts';
import { nodeFiles } from '../../src/log/node-files.ts';

const fileBytes = 100_000;

async function openFile(t: TestContext): Promise<JournalFile> {
  const folder = await mkdtemp(join(tmpdir(), 'keylane-read-'));
  const file = await nodeFiles.open(join(folder, 'f'), 'create');
  await file.write([Buffer.from(Array.from({ length: fileBytes }, (_, i) => i % 251))], 0);
  t.after(async () => {
    await file.close().catch(() => undefined);
    await rm(folder, { recursive: true });
  });
  return file;
}

function shared(bytes: number): Buffer {
  return Buffer.from(new SharedArrayBuffer(bytes));
}

interface Read {
  readonly target: Buffer;
  readonly position: number;
}

function readMany(file: JournalFile, reads: readonly Read[]): Promise<number> {
  return nodeFiles.readMany!(reads.map((read) => ({ ...read, file })));
}

/** Reads all of it, however often the thread hands reads back. */
async function readAll(file: JournalFile, reads: Read[]) {
  for (let left = reads; left.length > 0; ) {
    const done = await readMany(file, left);
    left = left.slice(done);
    const next = left.shift();
    if (next === undefined) continue;
    await file.read(next.target, 0, next.target.length, next.position);
  }
}

test('many reads fill their targets, in one buffer or in several', async (t) => {
  const file = await openFile(t);
  const first = shared(1000);
  const second = shared(50);
  const reads = [
    { target: first.subarray(0, 10), position: 500 },
    { target: first.subarray(10, 1000), position: 7 },
    { target: second, position: fileBytes - 50 },
  ];
  await readAll(file, reads);
  for (const { target, position } of reads) {
    const expected = Array.from({ length: target.length }, (_, i) => (position + i) % 251);
    assert.deepEqual([...target], expected);
  }
});

test('a read beyond the end of the file is not done, those before it are', async (t) => {
  const file = await openFile(t);
  const target = shared(100);
  const reads = [
    { target: target.subarray(0, 50), position: 0 },
    { target: target.subarray(50), position: fileBytes - 10 },
  ];
  assert.ok((await readMany(file, reads)) < 2);
});

test('memory that threads do not share is left to single reads', async (t) => {
  const file = await openFile(t);
  assert.equal(await readMany(file, [{ target: Buffer.alloc(10), position: 0 }]), 0);
});

test('a pool keeps shared buffers up to its bound and drops the others', () => {
  const pool = new BufferPool(1000, 2);
  const taken = [pool.take(1), pool.take(1000), pool.take(1), pool.take(5000)];
  const isShared = taken.map(({ bytes }) => bytes.buffer instanceof SharedArrayBuffer);
  assert.deepEqual(isShared, [true, true, false, false]);
  assert.deepEqual(
    taken.map(({ bytes }) => bytes.length),
    [1000, 1000, 1000, 5000],
  );
  for (const buffer of taken) buffer.letGo();
  assert.equal(pool.take(1).bytes, taken[1]!.bytes);
  assert.equal(pool.take(1).bytes, taken[0]!.bytes);
  assert.notEqual(pool.take(1).bytes, taken[2]!.bytes);
});

test('a buffer goes back when its last holder lets go, and not twice', () => {
  const pool = new BufferPool(1000, 1);
  const buffer = pool.take(1);
  buffer.hold();
  buffer.letGo();
  assert.equal(pool.freeCount, 0);
  assert.notEqual(pool.take(1).bytes, buffer.bytes);
  buffer.letGo();
  assert.equal(pool.freeCount, 1);
  assert.throws(() => buffer.letGo());
  assert.throws(() => buffer.hold());
});
