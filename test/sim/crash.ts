import assert from 'node:assert/strict';
import { BrokerError } from '../../src/core/errors.ts';
import { type Random, seededRandom } from '../../src/core/random.ts';
import { checkJournal } from '../../src/log/check.ts';
import { Replica } from '../../src/replica/replica.ts';
import { Model } from './model.ts';
import { SimClock } from './sim-clock.ts';
import { SimDisk } from './sim-files.ts';
import type { CrashMode } from './sim-inode.ts';
import { verify } from './verify.ts';
import { Workload, type WorkloadCounts } from './workload.ts';

export interface CrashRunOptions {
  readonly seed: number;
  readonly sync?: 'always' | 'interval';
  /** See SimDisk: a run with a lying disk must fail for some seed. */
  readonly lies?: SimDisk['lies'];
  /** Syncs and writes fail now and then. */
  readonly faults?: boolean;
  /** The disk fills up now and then. */
  readonly fills?: boolean;
}

export interface CrashRunCounts extends WorkloadCounts {
  starts: number;
  crashes: number;
  kills: number;
  failures: number;
  startsCut: number;
  startsOnFullDisk: number;
  cutBytes: number;
  filesMade: number;
  filesRemoved: number;
  snapshots: number;
}

const folder = 'data/default';
const syncIntervalMs = 50;

/**
 * One seed, one history: random requests against the production code of log, raft, state and
 * replica, stopped again and again at some moment (crash, kill, failed disk, or in good order),
 * also while it starts, and each time compared with what was acknowledged.
 */
export class CrashRun {
  readonly counts: CrashRunCounts = {
    acknowledged: 0,
    refused: 0,
    duplicates: 0,
    resent: 0,
    starts: 0,
    crashes: 0,
    kills: 0,
    failures: 0,
    startsCut: 0,
    startsOnFullDisk: 0,
    cutBytes: 0,
    filesMade: 0,
    filesRemoved: 0,
    snapshots: 0,
  };
  readonly #options: CrashRunOptions;
  readonly #random: Random;
  readonly #clock: SimClock;
  readonly #disk: SimDisk;
  readonly #model: Model;
  readonly #fileBytesMax: number;
  readonly #snapshotBytes: number;
  readonly #aheadBytesMin: number;
  readonly #besideSyncMsMin: number;
  #workload: Workload | undefined;
  #fatal: unknown;

  constructor(options: CrashRunOptions) {
    this.#options = options;
    this.#random = seededRandom(options.seed);
    this.#clock = new SimClock(this.#random);
    this.#disk = new SimDisk({
      random: this.#random,
      defer: (complete) => this.#clock.defer(complete),
    });
    this.#model = new Model(options.sync === 'interval');
    this.#disk.lies = options.lies ?? 'none';
    this.#fileBytesMax = this.#pick([2048, 8192, 32768]);
    this.#snapshotBytes = this.#pick([3000, 20_000, 100_000]);
    this.#aheadBytesMin = this.#pick([0, 500, 1_000_000]);
    this.#besideSyncMsMin = this.#pick([0, 1]);
  }

  async run(): Promise<CrashRunCounts> {
    const rounds = 2 + this.#below(4);
    for (let round = 0; round < rounds; round++) {
      const replica = await this.#start();
      await verify(replica, this.#model, this.#clock);
      this.#workload ??= this.#newWorkload(replica);
      if (round > 0) this.#workload.startWith(replica);
      await this.#work(replica);
      await this.#stop(replica);
    }
    const last = await this.#start();
    await verify(last, this.#model, this.#clock);
    Object.assign(this.counts, this.#workload!.counts);
    return this.counts;
  }

  #newWorkload(replica: Replica): Workload {
    const mayLoseTail = this.#options.sync === 'interval';
    const mayRefuse = this.#options.fills === true;
    const options = { mayLoseTail, mayRefuse };
    return new Workload(this.#random, this.#clock, this.#model, replica, options);
  }

  #below(bound: number): number {
    return Math.floor(this.#random.next() * bound);
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#below(items.length)]!;
  }

  async #start(): Promise<Replica> {
    while (this.#random.next() < 0.15) await this.#startInterrupted();
    if (this.#random.next() < 0.3) await this.#check();
    const { replica, cutBytes } = await this.#openWithSpace();
    this.counts.starts++;
    if (cutBytes > 0) this.counts.startsCut++;
    this.counts.cutBytes += cutBytes;
    await this.#clock.settle();
    this.#model.started(replica.state.appliedIndex, replica.state.terms);
    return replica;
  }

  /** A start on a full disk is refused, and works once there is space. */
  async #openWithSpace(): Promise<{ replica: Replica; cutBytes: number }> {
    try {
      return await this.#clock.run(this.#open());
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      this.counts.startsOnFullDisk++;
      this.#disk.kill();
      this.#clock.clear();
      this.#disk.quotaBytes = Number.POSITIVE_INFINITY;
      return this.#clock.run(this.#open());
    }
  }

  #open(): Promise<{ replica: Replica; cutBytes: number }> {
    return Replica.open({
      files: this.#disk.files(),
      folder,
      clock: this.#clock,
      random: this.#random,
      voter: 'voter-1',
      journal: {
        sync: this.#options.sync ?? 'always',
        syncIntervalMs,
        fileBytesMax: this.#fileBytesMax,
        fileBytesMin: 600,
        fileExtentsMax: 40,
        recentBytesMax: 16_384,
        indexCacheBytesMax: 8192,
        snapshotBytes: this.#snapshotBytes,
        // In most runs groups are written while a sync is under way, as large ones are.
        aheadBytesMin: this.#aheadBytesMin,
        // In half of them a second sync begins beside the first, and may end before it.
        besideSyncMsMin: this.#besideSyncMsMin,
      },
      disk:
        this.#options.fills === true
          ? { lowWaterBytes: 2000, reserveBytes: 4096 }
          : { lowWaterBytes: 0, reserveBytes: 0 },
      onFatal: (error) => {
        this.#fatal ??= error;
      },
    });
  }

  /** Whatever a stop leaves behind, an offline check finds no damage. */
  async #check(): Promise<void> {
    const lines: string[] = [];
    const isSound = await checkJournal({
      files: this.#disk.clone().files(),
      folder,
      entryTypeName: String,
      onLine: (line) => lines.push(line),
    });
    assert.ok(isSound, lines.join('\n'));
  }

  /** A start that does not come to its end. */
  async #startInterrupted(): Promise<void> {
    const opening = this.#open();
    // After the stop its calls never complete, so this promise does not settle any more.
    let failed: unknown;
    opening.catch((error: unknown) => {
      failed = error;
    });
    for (let steps = this.#below(40); steps > 0; steps--) await this.#clock.step();
    if (failed !== undefined && !isDiskFull(failed)) throw failed;
    this.#fail();
  }

  async #work(replica: Replica): Promise<void> {
    if (this.#options.faults === true && this.#random.next() < 0.5) this.#planFault();
    const before = replica.journal.logFiles[0];
    const actions = 5 + this.#below(60);
    for (let i = 0; i < actions && this.#fatal === undefined; i++) {
      this.#workload!.act();
      if (this.#options.fills === true) this.#changeQuota();
      const steps = this.#below(this.#pick([2, 8, 30]));
      for (let step = 0; step < steps; step++) await this.#clock.step();
      if (this.#random.next() < 0.05) await this.#clock.advance(this.#below(1500));
    }
    this.counts.filesMade += replica.journal.logFiles.length - 1;
    if (replica.journal.logFiles[0] !== before) this.counts.filesRemoved++;
    this.counts.snapshots += this.#disk.paths().filter((path) => path.endsWith('.snapshot')).length;
    if (this.#options.faults !== true && this.#fatal !== undefined) throw this.#fatal;
  }

  /** Other programs take the space on the disk, and give it back. */
  #changeQuota(): void {
    const dice = this.#random.next();
    if (dice < 0.05) this.#disk.quotaBytes = this.#disk.usedBytes + this.#below(8000);
    else if (dice > 0.9) this.#disk.quotaBytes = Number.POSITIVE_INFINITY;
  }

  /** One of the coming calls of some kind fails. */
  #planFault(): void {
    const kind = this.#pick(['sync', 'sync', 'write', 'syncFolder'] as const);
    let calls = this.#below(20);
    this.#disk.fault = (call) => {
      if (call.kind !== kind || calls-- > 0) return undefined;
      this.#disk.fault = undefined;
      return 'EIO';
    };
  }

  async #stop(replica: Replica): Promise<void> {
    if (this.#fatal !== undefined) {
      assert.ok(this.#options.faults, String(this.#fatal));
      this.counts.failures++;
      this.#fatal = undefined;
      this.#disk.fault = undefined;
      // What is proposed to a broken node is never answered, so nothing of it may count.
      this.#fail();
      return;
    }
    this.#disk.fault = undefined;
    const dice = this.#random.next();
    if (dice < 0.15) {
      await this.#clock.run(replica.stop());
      this.#model.keep();
      if (this.#random.next() < 0.5) return;
    } else if (dice < 0.4) {
      await this.#clock.settle();
      await verify(replica, this.#model, this.#clock);
      await this.#clock.advance(syncIntervalMs);
      await this.#clock.settle();
      this.#model.keep();
    }
    this.#fail();
  }

  /** The process ends, or the power fails. */
  #fail(): void {
    if (this.#random.next() < 0.25) {
      this.#disk.kill();
      this.counts.kills++;
    } else {
      const keep = this.#pick([0, 0.1, 0.5, 0.9, 1]);
      const mode: CrashMode = { keep, tear: this.#pick([0, 0.3]) };
      this.#disk.crash(mode);
      this.counts.crashes++;
    }
    this.#clock.clear();
    this.#fatal = undefined;
  }
}

function isDiskFull(error: unknown): boolean {
  return error instanceof BrokerError && error.code === 'DISK_FULL';
}
