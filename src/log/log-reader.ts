import { BufferPool } from './buffer-pool.ts';
import type { ExtentVisitor } from './extent-index.ts';
import type { Journal } from './journal.ts';
import type { LogFile } from './journal-file.ts';

/** Stored batches that a read will give, by position; nothing is read yet. */
export class ReadPlan {
  readonly positions: number[] = [];
  readonly lengths: number[] = [];
  bytes = 0;

  add(position: number, bytes: number): void {
    this.positions.push(position);
    this.lengths.push(bytes);
    this.bytes += bytes;
  }
}

export interface ReadLimits {
  /** Batches are given whole, as many as fit. */
  readonly bytesMax: number;
  /** The first batch is given however large it is (KIP-74). */
  readonly oneAtLeast: boolean;
  /** Batches from this offset on are not given. */
  readonly offsetEnd: number;
}

/** Batches as lists of pieces, in the order of the plans. */
export interface ReadResult {
  readonly pieces: Buffer[][];
  /** To be called once when the pieces are written out or not needed. */
  readonly release: () => void;
}

/** Reads from disk are made in buffers of this size; small gaps between batches are read too. */
const coldBufferBytes = 1024 * 1024;
const coldBuffersKept = 24;
const coldGapBytesMax = 16 * 1024;
/** Reads in the thread pool at a time: journal writes share it with them. */
const coldReadsMax = 4;
const noBytes: Buffer = Buffer.alloc(0);

/** Reads stored batches: recent ones from memory as they are, older ones from disk. */
export class LogReader {
  readonly #journal: Journal;
  readonly #pool = new BufferPool(coldBufferBytes, coldBuffersKept);
  #reading = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** Which batches to give from `offset` on. False: an index block is missing, plan nothing. */
  plan(partition: number, offset: number, limits: ReadLimits, into: ReadPlan): boolean {
    const walk = { partition, start: { offset } };
    return this.#journal.extents.walk(walk, planner(limits, into)) === undefined;
  }

  /** As `plan`, with what is missing read from disk. */
  planLoading(
    partition: number,
    offset: number,
    limits: ReadLimits,
    into: ReadPlan,
  ): Promise<void> {
    const walk = { partition, start: { offset } };
    return this.#journal.extents.walkLoading(walk, planner(limits, into));
  }

  /** The batches, if all of them are in memory. */
  readRecent(plans: readonly ReadPlan[]): Buffer[][] | undefined {
    const result: Buffer[][] = [];
    for (const plan of plans) {
      const pieces: Buffer[] = [];
      for (let i = 0; i < plan.positions.length; i++) {
        const piece = this.#journal.recent.read(plan.positions[i]!, plan.lengths[i]!);
        if (piece === undefined) return undefined;
        pieces.push(piece);
      }
      result.push(pieces);
    }
    return result;
  }

  /**
   * The batches, from memory or disk. Neighbours on disk are read together. Undefined if a file
   * was removed since the plan was made: nothing in it was alive any more.
   */
  async read(plans: readonly ReadPlan[]): Promise<ReadResult | undefined> {
    const pieces = plans.map((plan) => new Array<Buffer>(plan.positions.length));
    const cold: ColdBatch[] = [];
    plans.forEach((plan, planIndex) => {
      for (let i = 0; i < plan.positions.length; i++) {
        const position = plan.positions[i]!;
        const bytes = plan.lengths[i]!;
        const recent = this.#journal.recent.read(position, bytes);
        if (recent === undefined) cold.push({ position, bytes, planIndex, index: i });
        else pieces[planIndex]![i] = recent;
      }
    });
    cold.sort((a, b) => a.position - b.position);
    const runs = this.#runs(cold);
    if (runs === undefined) return undefined;
    const buffers = this.#giveTargets(runs);
    try {
      await this.#readRuns(runs);
      for (const { position, target, batches } of runs) {
        for (const batch of batches) {
          const from = batch.position - position;
          pieces[batch.planIndex]![batch.index] = target.subarray(from, from + batch.bytes);
        }
      }
    } catch (error) {
      for (const buffer of buffers) this.#pool.give(buffer);
      throw error;
    }
    return {
      pieces,
      release: () => {
        for (const buffer of buffers.splice(0)) this.#pool.give(buffer);
      },
    };
  }

  /** Groups batches that lie close together in one file into single reads, and holds the files. */
  #runs(cold: readonly ColdBatch[]): Run[] | undefined {
    const runs: Run[] = [];
    let run: Run | undefined;
    for (const batch of cold) {
      const end = batch.position + batch.bytes;
      const logFile = this.#journal.fileAt(batch.position);
      if (logFile === undefined) return undefined;
      const joins =
        run !== undefined &&
        batch.position - (run.position + run.bytes) <= coldGapBytesMax &&
        end - run.position <= coldBufferBytes &&
        run.logFile === logFile;
      if (run === undefined || !joins) {
        const { position, bytes } = batch;
        run = { logFile, position, bytes, target: noBytes, batches: [] };
        runs.push(run);
      }
      run.bytes = Math.max(run.bytes, end - run.position);
      run.batches.push(batch);
    }
    for (const { logFile } of runs) this.#journal.hold(logFile);
    return runs;
  }

  /** Says where each run is read to: many small runs share one buffer of the pool. */
  #giveTargets(runs: readonly Run[]): Buffer[] {
    const buffers: Buffer[] = [];
    let buffer = noBytes;
    let used = 0;
    for (const run of runs) {
      if (used + run.bytes > buffer.length) {
        buffer = this.#pool.take(run.bytes);
        buffers.push(buffer);
        used = 0;
      }
      run.target = buffer.subarray(used, used + run.bytes);
      used += run.bytes;
    }
    return buffers;
  }

  /** All at once, and one by one what has to wait for the disk. */
  async #readRuns(runs: readonly Run[]): Promise<void> {
    const done = await this.#journal.readMany(runs);
    if (done < runs.length) {
      await Promise.all(runs.slice(done).map((run) => this.#readRun(run)));
    }
  }

  async #readRun(run: Run): Promise<void> {
    if (this.#reading === coldReadsMax) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#reading++;
    try {
      await this.#journal.readInto(run);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#reading--;
      else next();
    }
  }
}

function planner(limits: ReadLimits, into: ReadPlan): ExtentVisitor {
  const { bytesMax, oneAtLeast, offsetEnd } = limits;
  return (baseOffset, count, _maxTimestamp, _epoch, position, bytes) => {
    if (baseOffset >= offsetEnd) return false;
    const isFirst = into.positions.length === 0;
    if (into.bytes + bytes > bytesMax && !(isFirst && oneAtLeast)) return false;
    into.add(position, bytes);
    // Behind the last one there is nothing to look for, in however many files.
    return into.bytes < bytesMax && baseOffset + count < offsetEnd;
  };
}

interface ColdBatch {
  readonly position: number;
  readonly bytes: number;
  readonly planIndex: number;
  readonly index: number;
}

interface Run {
  readonly logFile: LogFile;
  readonly position: number;
  bytes: number;
  target: Buffer;
  readonly batches: ColdBatch[];
}
