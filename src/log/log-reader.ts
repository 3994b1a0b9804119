import { BufferPool, type LentBuffer } from './buffer-pool.ts';
import type { ExtentVisitor } from './extent-index.ts';
import type { Journal } from './journal.ts';
import type { LogFile } from './journal-file.ts';
import { type AheadBatch, ReadAhead } from './read-ahead.ts';

/** Stored batches that a read will give, by position; nothing is read yet. */
export class ReadPlan {
  readonly positions: number[] = [];
  readonly lengths: number[] = [];
  bytes = 0;
  /** What was asked for, to go on from there. */
  partition = -1;
  offset = -1;
  limits: ReadLimits | undefined;
  /** The offset after the last batch. */
  end = -1;

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
  /**
   * To be called once when the pieces are written out or not needed. `wasSent`: the reader will
   * most likely go on where this read ended, if it has done so before.
   */
  readonly release: (wasSent?: boolean) => void;
}

/** Reads from disk are made in buffers of this size; small gaps between batches are read too. */
const coldBufferBytes = 1024 * 1024;
const coldBuffersKept = 32;
/** Of these for what is read ahead: the next answer for twelve partitions of 1 MiB each. */
const aheadBuffersMax = 16;
/** Who reads more partitions than this at a time gets to each of them rarely. */
const aheadPlansMax = 32;
const coldGapBytesMax = 16 * 1024;
/** Reads in the thread pool at a time: journal writes share it with them. */
const coldReadsMax = 4;
const noBytes: Buffer = Buffer.alloc(0);

/** Reads stored batches: recent ones from memory as they are, older ones from disk. */
export class LogReader {
  readonly #journal: Journal;
  readonly #pool = new BufferPool(coldBufferBytes, coldBuffersKept);
  readonly #ahead = new ReadAhead(aheadBuffersMax);
  #reading = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** Which batches to give from `offset` on. False: an index block is missing, plan nothing. */
  plan(partition: number, offset: number, limits: ReadLimits, into: ReadPlan): boolean {
    const visit = planner(partition, offset, limits, into);
    return this.#journal.extents.walk({ partition, start: { offset } }, visit) === undefined;
  }

  /** As `plan`, with what is missing read from disk. */
  planLoading(
    partition: number,
    offset: number,
    limits: ReadLimits,
    into: ReadPlan,
  ): Promise<void> {
    const visit = planner(partition, offset, limits, into);
    return this.#journal.extents.walkLoading({ partition, start: { offset } }, visit);
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
    for (const { positions } of plans) {
      const pending = this.#ahead.pending(positions);
      if (pending !== undefined) await pending;
    }
    const pieces = plans.map((plan) => new Array<Buffer>(plan.positions.length));
    const cold: ColdBatch[] = [];
    const buffers: LentBuffer[] = [];
    const stored: ReadPlan[] = [];
    plans.forEach((plan, planIndex) => {
      let isStored = false;
      for (let i = 0; i < plan.positions.length; i++) {
        const position = plan.positions[i]!;
        const bytes = plan.lengths[i]!;
        const recent = this.#journal.recent.read(position, bytes);
        if (recent !== undefined) {
          pieces[planIndex]![i] = recent;
          continue;
        }
        isStored = true;
        const ahead = this.#ahead.take(position);
        if (ahead === undefined) cold.push({ position, bytes, planIndex, index: i });
        else {
          pieces[planIndex]![i] = ahead.piece;
          buffers.push(ahead.buffer);
        }
      }
      if (isStored) stored.push(plan);
    });
    const giveBack = () => {
      for (const buffer of buffers.splice(0)) buffer.letGo();
    };
    const runs = this.#runs(cold);
    if (runs === undefined) {
      giveBack();
      return undefined;
    }
    buffers.push(...this.#giveTargets(runs));
    for (const { logFile } of runs) this.#journal.hold(logFile);
    try {
      await this.#readRuns(runs);
    } catch (error) {
      giveBack();
      throw error;
    }
    for (const run of runs) {
      for (const batch of run.batches) {
        pieces[batch.planIndex]![batch.index] = pieceOf(run, batch);
      }
    }
    const sequential = this.#sequential(stored);
    return {
      pieces,
      release: (wasSent) => {
        giveBack();
        if (wasSent !== true || sequential.length === 0) return;
        // A failed disk has been reported; of anything else the reader will hear when it comes.
        this.#readOn(sequential).catch(() => undefined);
      },
    };
  }

  /** Those of the plans that go on where a read before ended. */
  #sequential(plans: readonly ReadPlan[]): readonly ReadPlan[] {
    if (plans.length > aheadPlansMax) return [];
    return plans.filter(({ partition, offset, end }) => this.#ahead.follow(partition, offset, end));
  }

  /** Reads what comes after these plans, as far as there is room; nobody waits for it yet. */
  async #readOn(plans: readonly ReadPlan[]): Promise<void> {
    this.#ahead.dropForgotten();
    // Gaps take room too, and so does the end of each buffer.
    let bytesLeft = (this.#aheadRoom - 1) * coldBufferBytes;
    const cold: ColdBatch[] = [];
    for (let i = 0; i < plans.length && bytesLeft > 0; i++) {
      const { partition, end, limits } = plans[i]!;
      const bytesMax = Math.min(limits!.bytesMax, bytesLeft);
      const nextLimits = { ...limits!, bytesMax, oneAtLeast: false };
      let next = new ReadPlan();
      if (!this.plan(partition, end, nextLimits, next)) {
        next = new ReadPlan();
        await this.planLoading(partition, end, nextLimits, next);
      }
      // The reader may have come meanwhile.
      if (!this.#ahead.isAwaited(partition, end)) continue;
      bytesLeft -= next.bytes;
      next.positions.forEach((position, index) => {
        const bytes = next.lengths[index]!;
        if (this.#journal.recent.read(position, bytes) !== undefined) return;
        if (!this.#ahead.has(position)) cold.push({ position, bytes, planIndex: i, index });
      });
    }
    const runs = this.#runs(cold);
    if (runs === undefined || runs.length === 0 || buffersFor(runs) > this.#aheadRoom) return;
    await this.#readRunsAhead(runs);
  }

  get #aheadRoom(): number {
    return Math.min(this.#ahead.room, this.#pool.freeCount);
  }

  async #readRunsAhead(runs: readonly Run[]): Promise<void> {
    const buffers = this.#giveTargets(runs);
    for (const { logFile } of runs) this.#journal.hold(logFile);
    const batches: AheadBatch[] = [];
    for (const run of runs) {
      for (const batch of run.batches) {
        run.buffer!.hold();
        const piece = pieceOf(run, batch);
        batches.push({ position: batch.position, buffer: run.buffer!, piece });
      }
    }
    const reading = this.#readRuns(runs).finally(() => {
      for (const buffer of buffers) buffer.letGo();
    });
    await this.#ahead.add(batches, buffers.length, reading);
  }

  /** Groups batches that lie close together in one file into single reads. */
  #runs(cold: ColdBatch[]): Run[] | undefined {
    const runs: Run[] = [];
    let run: Run | undefined;
    cold.sort((a, b) => a.position - b.position);
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
        run = { logFile, position, bytes, target: noBytes, buffer: undefined, batches: [] };
        runs.push(run);
      }
      run.bytes = Math.max(run.bytes, end - run.position);
      run.batches.push(batch);
    }
    return runs;
  }

  /** Says where each run is read to: many small runs share one buffer of the pool. */
  #giveTargets(runs: readonly Run[]): LentBuffer[] {
    const buffers: LentBuffer[] = [];
    let buffer: LentBuffer | undefined;
    let used = 0;
    for (const run of runs) {
      if (buffer === undefined || used + run.bytes > buffer.bytes.length) {
        buffer = this.#pool.take(run.bytes);
        buffers.push(buffer);
        used = 0;
      }
      run.buffer = buffer;
      run.target = buffer.bytes.subarray(used, used + run.bytes);
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

function buffersFor(runs: readonly Run[]): number {
  let count = 0;
  let left = 0;
  for (const { bytes } of runs) {
    if (bytes > left) {
      count++;
      left = coldBufferBytes;
    }
    left -= bytes;
  }
  return count;
}

function pieceOf({ position, target }: Run, batch: ColdBatch): Buffer {
  const from = batch.position - position;
  return target.subarray(from, from + batch.bytes);
}

function planner(
  partition: number,
  offset: number,
  limits: ReadLimits,
  into: ReadPlan,
): ExtentVisitor {
  const { bytesMax, oneAtLeast, offsetEnd } = limits;
  into.partition = partition;
  into.offset = offset;
  into.limits = limits;
  return (baseOffset, count, _maxTimestamp, _epoch, position, bytes) => {
    if (baseOffset >= offsetEnd) return false;
    const isFirst = into.positions.length === 0;
    if (into.bytes + bytes > bytesMax && !(isFirst && oneAtLeast)) return false;
    into.add(position, bytes);
    into.end = baseOffset + count;
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
  buffer: LentBuffer | undefined;
  readonly batches: ColdBatch[];
}
