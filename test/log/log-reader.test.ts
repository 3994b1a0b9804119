import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { LogReader, ReadPlan } from '../../src/log/log-reader.ts';
import { appendGroups, batchEntry, newDisk, openJournal } from './support.ts';

const everything = { bytesMax: 1_000_000, oneAtLeast: true, offsetEnd: 1000 };

/** Forty batches of partition 1 and some of others between them; most of it no longer in memory. */
async function filled(recentBytesMax = 2000) {
  const disk = newDisk();
  const { journal } = await openJournal(disk.files(), { fileBytesMax: 4096, recentBytesMax });
  const batches: Buffer[] = [];
  for (let i = 0; i < 40; i++) {
    const valueBytes = [50, 300, 1500][i % 3]!;
    const entry = batchEntry(i + 1, [
      { partition: 1, baseOffset: i, valueBytes },
      { partition: 2 + (i % 2), baseOffset: Math.floor(i / 2) },
    ]);
    batches.push(entry.batches[0]!);
    await appendGroups(journal, [[entry]]);
  }
  await journal.seal(40);
  return { disk, journal, reader: new LogReader(journal), batches };
}

async function planned(reader: LogReader, offset: number, limits = everything): Promise<ReadPlan> {
  const plan = new ReadPlan();
  await reader.planLoading(1, offset, limits, plan);
  return plan;
}

test('what was appended is read, from memory and from disk alike', async () => {
  for (const recentBytesMax of [1, 2000, 20_000, 1_000_000]) {
    const { reader, batches } = await filled(recentBytesMax);
    for (const offset of [0, 1, 17, 39]) {
      const plan = await planned(reader, offset);
      const read = await reader.read([plan]);
      assert.deepEqual(read?.pieces, [batches.slice(offset)]);
      read?.release();
    }
  }
});

test('recent batches are given without a read, or not at all', async () => {
  const { reader, batches } = await filled(2000);
  const recent = await planned(reader, 39);
  assert.deepEqual(reader.readRecent([recent]), [[batches[39]]]);
  assert.equal(reader.readRecent([recent, await planned(reader, 0)]), undefined);
});

test('a plan ends at its limits', async () => {
  const { reader, batches } = await filled();
  const total = (count: number) =>
    batches.slice(0, count).reduce((sum, batch) => sum + batch.length, 0);
  const lengths = async (limits: Partial<typeof everything>) =>
    (await planned(reader, 0, { ...everything, ...limits })).lengths.length;
  assert.equal(await lengths({ bytesMax: total(3) }), 3);
  assert.equal(await lengths({ bytesMax: total(3) - 1 }), 2);
  assert.equal(await lengths({ bytesMax: 1 }), 1, 'the first batch however large it is (KIP-74)');
  assert.equal(await lengths({ bytesMax: 1, oneAtLeast: false }), 0);
  assert.equal(await lengths({ offsetEnd: 7 }), 7);
});

test('many reads at once, over each other', async () => {
  const { reader, batches } = await filled();
  const random = seededRandom(3);
  await Promise.all(
    Array.from({ length: 60 }, async () => {
      const from = Math.floor(random.next() * 40);
      const bytesMax = Math.floor(random.next() * 6000);
      const plan = await planned(reader, from, { ...everything, bytesMax });
      const read = await reader.read([plan]);
      const count = plan.positions.length;
      assert.deepEqual(read?.pieces, [batches.slice(from, from + count)]);
      read?.release();
    }),
  );
});

test('a plan for a file that was removed meanwhile reads nothing', async () => {
  const { journal, reader } = await filled();
  const plan = await planned(reader, 0);
  await journal.remove([journal.logFiles[0]!]);
  assert.equal(await reader.read([plan]), undefined);
});

test('a disk error ends the read, and the buffers are not lost', async () => {
  const { disk, reader } = await filled();
  const plan = await planned(reader, 0);
  disk.fault = (call) => (call.kind === 'read' ? 'EIO' : undefined);
  await assert.rejects(reader.read([plan]), { code: 'DISK_FAILED' });
});

/** As `everything`, but an answer has room for few batches: a reader has to come again. */
const aLittle = { ...everything, bytesMax: 2500 };

/** Reads partition 1 from the start on, in turns; answers how many disk reads each turn took. */
async function readInTurns(
  { disk, reader, batches }: Awaited<ReturnType<typeof filled>>,
  wasSent: boolean,
  onTurn: () => void = () => undefined,
): Promise<number[]> {
  const reads: number[] = [];
  let count = 0;
  disk.fault = (call) => {
    if (call.kind === 'read' && !call.path.includes('index')) count++;
    return undefined;
  };
  for (let offset = 0; offset < 30; ) {
    const plan = await planned(reader, offset, aLittle);
    count = 0;
    const read = await reader.read([plan]);
    reads.push(count);
    assert.deepEqual(read?.pieces, [batches.slice(offset, plan.end)]);
    read?.release(wasSent);
    // Reading ahead takes turns of the event loop.
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    onTurn();
    offset = plan.end;
  }
  disk.fault = undefined;
  return reads;
}

test('what a sequential reader will ask for next is read while it is busy', async () => {
  const reads = await readInTurns(await filled(), true);
  assert.ok(reads[0]! > 0 && reads[1]! > 0, 'the second read shows that it goes on');
  assert.ok(reads.length > 5);
  assert.deepEqual([...new Set(reads.slice(2))], [0]);
});

test('nothing is read ahead for an answer that was not sent', async () => {
  const reads = await readInTurns(await filled(), false);
  assert.equal(reads.includes(0), false);
});

test('an answer that is being written keeps its bytes, whatever is read meanwhile', async () => {
  const world = await filled();
  const { reader, batches } = world;
  const slow = [];
  for (let offset = 0; offset < 30; ) {
    const plan = await planned(reader, offset, aLittle);
    const read = await reader.read([plan]);
    // The first ones are sent at once, so that the later ones come from what was read ahead.
    if (offset < 9) read!.release(true);
    else slow.push({ read: read!, offset, end: plan.end });
    offset = plan.end;
  }
  for (let i = 0; i < 40; i++) await readInTurns(world, i % 2 === 0);
  for (const { read, offset, end } of slow) {
    assert.deepEqual(read.pieces, [batches.slice(offset, end)]);
    read.release(true);
  }
});

test('a read ahead that fails is made again by the reader', async () => {
  const { disk, reader, batches } = await filled();
  let offset = 0;
  for (let turn = 0; turn < 4; turn++) {
    const plan = await planned(reader, offset, aLittle);
    const read = await reader.read([plan]);
    assert.deepEqual(read?.pieces, [batches.slice(offset, plan.end)]);
    disk.fault = (call) => (call.kind === 'read' ? 'EAGAIN' : undefined);
    read?.release(true);
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    disk.fault = undefined;
    offset = plan.end;
  }
});
