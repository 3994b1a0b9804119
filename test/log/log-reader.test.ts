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
