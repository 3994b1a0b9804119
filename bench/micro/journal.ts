/**
 * How fast the journal takes entries, syncs them and reads them back at a start, on the disk of a
 * folder: `node dist/bench/micro/journal.js [folder]`. Each entry holds one batch. "at a time" is
 * how many entries go out in one group: 1 is a lone producer, the others are group commit.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/core/clock.ts';
import { codecs } from '../../src/core/codecs.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { Entry } from '../../src/log/format.ts';
import { Journal } from '../../src/log/journal.ts';
import { nodeFiles } from '../../src/log/node-files.ts';
import { writeBaseOffset } from '../../src/protocol/records/batch-header.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import { encodeBatches } from '../../src/state/commands.ts';
import { EntryType } from '../../src/state/entry-types.ts';

const measureMs = 3000;
const random = seededRandom(1);

function open(folder: string, sync: 'always' | 'interval', onEntry: () => void) {
  return Journal.open({
    files: nodeFiles,
    folder,
    clock: systemClock,
    random,
    start: { position: 0, index: 0, term: 0 },
    onEntry,
    sync,
    syncIntervalMs: 1000,
    fileBytesMax: 128 * 1024 * 1024,
    fileExtentsMax: 250_000,
    recentBytesMax: 64 * 1024 * 1024,
    indexCacheBytesMax: 16 * 1024 * 1024,
    mayPreallocate: () => true,
    onFatal: (error) => {
      throw error;
    },
  });
}

function entryOf(index: number, batch: Buffer): Entry {
  const own = Buffer.from(batch);
  writeBaseOffset(own, 0, index - 1);
  const meta = encodeBatches(0);
  const place = { tenant: 0, term: 1, index };
  return { type: EntryType.batches, version: 1, ...place, meta, batches: [own], partitions: [1] };
}

async function measure(valueBytes: number, together: number, sync: 'always' | 'interval') {
  const folder = await mkdtemp(join(process.argv[2] ?? tmpdir(), 'journal-bench-'));
  const records = [{ key: null, value: random.bytes(valueBytes), timestamp: 1 }];
  const batch = buildBatch({ records }, codecs);
  const { journal } = await open(folder, sync, () => undefined);
  const latencies: number[] = [];
  let index = 0;
  const start = performance.now();
  while (performance.now() - start < measureMs) {
    const entries = Array.from({ length: together }, () => entryOf(++index, batch));
    const before = performance.now();
    for (const stored of await journal.append(entries)) journal.apply(stored);
    latencies.push(performance.now() - before);
    if (journal.sealIsDue) void journal.seal(index);
  }
  const seconds = (performance.now() - start) / 1000;
  await journal.close();
  const reopened = performance.now();
  let found = 0;
  const again = await open(folder, sync, () => found++);
  const startMs = performance.now() - reopened;
  await again.journal.close();
  await rm(folder, { recursive: true });
  latencies.sort((a, b) => a - b);
  const at = (share: number) => latencies[Math.floor(latencies.length * share)]!.toFixed(2);
  const bytes = (index * batch.length) / 1e6;
  console.log(
    [
      `${String(valueBytes).padStart(5)} B, ${String(together).padStart(4)} at a time, ${sync}:`,
      `${Math.round(index / seconds)} entries/s, ${(bytes / seconds).toFixed(1)} MB/s,`,
      `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms;`,
      `start: ${found} entries in ${startMs.toFixed(0)} ms (${Math.round(bytes / (startMs / 1000))} MB/s)`,
    ].join(' '),
  );
}

console.log(`${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}`);
for (const [valueBytes, together, sync] of [
  [200, 1, 'always'],
  [200, 64, 'always'],
  [200, 1024, 'always'],
  [16 * 1024, 1, 'always'],
  [16 * 1024, 64, 'always'],
  [200, 1024, 'interval'],
  [16 * 1024, 64, 'interval'],
] as const) {
  await measure(valueBytes, together, sync);
}
