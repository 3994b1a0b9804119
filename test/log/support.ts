import assert from 'node:assert/strict';
import type { Clock } from '../../src/core/clock.ts';
import { codecs } from '../../src/core/codecs.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { Extent } from '../../src/log/extent-table.ts';
import type { FilePort } from '../../src/log/file-port.ts';
import type { Entry, StoredEntry } from '../../src/log/format.ts';
import { Journal, type JournalOptions } from '../../src/log/journal.ts';
import { LogReader, ReadPlan } from '../../src/log/log-reader.ts';
import type { RecoveryStart } from '../../src/log/recovery.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import { encodeBatches } from '../../src/state/commands.ts';
import { EntryType } from '../../src/state/entry-types.ts';
import { SimDisk } from '../sim/sim-files.ts';

export const folder = 'data/journal';
export const noStart: RecoveryStart = { position: 0, index: 0, term: 0 };

/** Time stands still, and `soon` is the real one. */
export const stillClock: Clock = {
  monotonicMs: () => 0,
  wallMs: () => 1_700_000_000_000,
  after: () => () => undefined,
  soon: (callback) => void setImmediate(callback),
};

export function newDisk(): SimDisk {
  return new SimDisk({ random: seededRandom(1) });
}

export interface Opened {
  readonly journal: Journal;
  readonly cutBytes: number;
  /** Copies of what recovery found beyond the start. */
  readonly found: Entry[];
  readonly fatal: unknown[];
}

export async function openJournal(
  files: FilePort,
  options: Partial<JournalOptions> = {},
): Promise<Opened> {
  const found: Entry[] = [];
  const fatal: unknown[] = [];
  const { journal, cutBytes } = await Journal.open({
    files,
    folder,
    clock: stillClock,
    random: seededRandom(7),
    start: noStart,
    onEntry: (entry, index) => {
      found.push(copyOf(entry));
      index(entry);
    },
    sync: 'always',
    syncIntervalMs: 50,
    fileBytesMax: 64 * 1024,
    fileExtentsMax: 1000,
    recentBytesMax: 64 * 1024,
    indexCacheBytesMax: 64 * 1024,
    mayPreallocate: () => true,
    onFatal: (error) => fatal.push(error),
    ...options,
  });
  return { journal, cutBytes, found, fatal };
}

/** Recovered buffers do not outlive the call that hands them over. */
function copyOf(entry: StoredEntry): Entry {
  const { type, version, tenant, term, index } = entry;
  const batches = entry.batches.map((batch) => Buffer.from(batch));
  const partitions = [...entry.partitions];
  return { type, version, tenant, term, index, meta: Buffer.from(entry.meta), batches, partitions };
}

export function plainEntry(index: number, meta: Buffer, type: EntryType = EntryType.groupStored) {
  const entry: Entry = {
    type,
    version: 1,
    tenant: 0,
    term: 1,
    index,
    meta,
    batches: [],
    partitions: [],
  };
  return entry;
}

export interface BatchPlace {
  readonly partition: number;
  readonly baseOffset: number;
  readonly valueBytes?: number;
  readonly value?: Buffer;
  readonly records?: number;
  readonly timestamp?: number;
  readonly leaderEpoch?: number;
}

export function batchEntry(index: number, places: readonly BatchPlace[]): Entry {
  const batches = places.map((place) =>
    buildBatch(
      {
        records: Array.from({ length: place.records ?? 1 }, () => ({
          key: null,
          value: place.value ?? Buffer.alloc(place.valueBytes ?? 40, index),
          timestamp: place.timestamp ?? 1000 + index,
        })),
        baseOffset: place.baseOffset,
        leaderEpoch: place.leaderEpoch ?? 1,
      },
      codecs,
    ),
  );
  return {
    ...plainEntry(index, encodeBatches(0), EntryType.batches),
    batches,
    partitions: places.map((place) => place.partition),
  };
}

/** Appends each as a group of its own, applies it, and answers where the groups begin. */
export async function appendGroups(
  journal: Journal,
  groups: readonly (readonly Entry[])[],
): Promise<number[]> {
  const starts: number[] = [];
  for (const entries of groups) {
    const before = journal.logFiles.length;
    let start = journal.end;
    const stored = await journal.append(entries);
    if (journal.logFiles.length > before) start = journal.logFiles.at(-1)!.header.basePosition + 64;
    starts.push(start);
    for (const entry of stored) journal.apply(entry);
  }
  return starts;
}

/** A partition's extents as the index lists them. */
export async function extentsOf(journal: Journal, partition: number) {
  const extents: { baseOffset: number; count: number; position: number; bytes: number }[] = [];
  await journal.extents.walkLoading(
    { partition, start: { offset: 0 } },
    (baseOffset, count, _maxTimestamp, _leaderEpoch, position, bytes) => {
      extents.push({ baseOffset, count, position, bytes });
      return true;
    },
  );
  return extents;
}

/** Stored bytes, from memory or disk, as fetches read them. */
export async function readBytes(journal: Journal, position: number, bytes: number) {
  const plan = new ReadPlan();
  plan.add(position, bytes);
  const read = await new LogReader(journal).read([plan]);
  assert.ok(read !== undefined, `position ${position} is in a file`);
  const found = Buffer.from(read.pieces[0]![0]!);
  read.release();
  return found;
}

/** Extents as a leader appends them: offsets and epochs of a partition only grow. */
export function randomExtents(seed: number, count: number, partitions: number): Extent[] {
  const random = seededRandom(seed);
  const below = (bound: number) => Math.floor(random.next() * bound);
  const ends = new Map<number, number>();
  const extents: Extent[] = [];
  let leaderEpoch = 1;
  let position = 1_000_064;
  for (let i = 0; i < count; i++) {
    if (random.next() < 0.02) leaderEpoch += 1 + below(3);
    const partition = below(partitions) * 7;
    // Now and then offsets are missing, as after a cleaner.
    const baseOffset = (ends.get(partition) ?? 0) + (random.next() < 0.1 ? below(5) : 0);
    const extentCount = 1 + below(4);
    const bytes = 61 + below(300);
    const maxTimestamp = random.next() < 0.05 ? -1 : 5000 + i * 10 - below(500);
    ends.set(partition, baseOffset + extentCount);
    extents.push({
      partition,
      baseOffset,
      count: extentCount,
      maxTimestamp,
      leaderEpoch,
      position,
      bytes,
    });
    position += bytes + below(50);
  }
  return extents;
}
