import { memberId, nodeIdOf } from '../../src/cluster/formation.ts';
import { decodeMessage } from '../../src/cluster/peer-codec.ts';
import type { Clock } from '../../src/core/clock.ts';
import { codecs } from '../../src/core/codecs.ts';
import { BrokerError } from '../../src/core/errors.ts';
import { ProducePlanner } from '../../src/replica/produce-planner.ts';
import { Replica } from '../../src/replica/replica.ts';
import type { ClusterWorld } from './cluster-world.ts';
import { reactions, type SimClock } from './sim-clock.ts';
import { SimDisk } from './sim-files.ts';

/** One machine: its clock and disk, and the process on it. */
export class SimNode {
  readonly id: string;
  readonly node: Parameters<typeof memberId>[0] & {
    readonly host: string;
    readonly port: number;
    readonly peerHost: string;
    readonly peerPort: number;
  };
  readonly clock: NodeClock;
  readonly disk: SimDisk;
  replica: Replica | undefined;
  planner: ProducePlanner | undefined;
  isUp = false;
  /** Calls of the disk take up to so long. */
  slowMs = 0;
  readonly #world: ClusterWorld;

  constructor(world: ClusterWorld, nodeId: number) {
    this.#world = world;
    const address = { host: 'h', port: 1, peerHost: 'h', peerPort: 2 };
    this.node = { nodeId, directoryId: `d${nodeId}`, ...address };
    this.id = memberId(this.node);
    this.clock = new NodeClock(world.clock);
    this.disk = new SimDisk({
      random: world.random,
      defer: (complete) => {
        const guarded = this.clock.guard(complete);
        if (this.slowMs === 0) world.clock.defer(guarded);
        else world.clock.after(world.below(this.slowMs), guarded);
      },
    });
    this.disk.lies = world.lies;
  }

  get isPaused(): boolean {
    return this.clock.isPaused;
  }

  async start(): Promise<void> {
    this.isUp = true;
    const generation = this.clock.begin();
    const opening = Replica.open({
      files: this.disk.files(),
      folder: 'data/default',
      clock: this.clock,
      random: this.#world.random,
      voter: this.id,
      isFounder: nodeIdOf(this.id) === 1,
      peers: { send: (message, entries) => this.#world.send(this, message, entries) },
      times: { electionTimeoutMs: 100, heartbeatMs: 15 },
      journal: {
        ...{ sync: 'always', syncIntervalMs: 50, fileBytesMax: 8192, fileExtentsMax: 50 },
        ...{ recentBytesMax: 16_384, indexCacheBytesMax: 8192, snapshotBytes: 6000 },
        ...{ aheadBytesMin: 200, besideSyncMsMin: 1 },
      },
      disk: { lowWaterBytes: 0, reserveBytes: 0 },
      onFatal: (error) => {
        if (this.clock.generation === generation) throw error;
      },
    });
    let opened: Replica | undefined;
    try {
      opened = (await this.run(opening))?.replica;
    } catch (error) {
      const isFull = error instanceof BrokerError && error.code === 'DISK_FULL';
      if (!isFull) throw error;
    }
    if (opened === undefined) {
      this.stop(false);
      return;
    }
    this.replica = opened;
    this.planner = new ProducePlanner(opened, this.clock, codecs, 1_000_000);
    opened.listen({
      onApplied: (entry) => this.#world.onApplied(this, entry),
      onGroupApplied: () => {
        if (this.#world.random.next() < 0.1) this.#world.noteState(this, opened);
      },
    });
    // What was applied while it was opened: by the only voter, or by marks in its journal.
    await this.#world.onStarted(this, opened);
  }

  /** The rest of the world goes on meanwhile. */
  async run<T>(opening: Promise<T>): Promise<T | undefined> {
    let result: T | undefined;
    let failure: unknown;
    opening.then(
      (opened) => {
        result = opened;
      },
      (error: unknown) => {
        failure = error;
      },
    );
    await reactions();
    for (let i = 0; i < 5000 && result === undefined && failure === undefined; i++) {
      if (!(await this.#world.clock.step())) await this.#world.clock.advance(1);
    }
    if (failure !== undefined) throw failure;
    return result;
  }

  /** The process ends; with the machine, if `isCrash`. */
  stop(isCrash: boolean): void {
    this.resume();
    const isSnapshot = (path: string) => path.endsWith('.snapshot');
    this.#world.counts.snapshots += this.disk.paths().filter(isSnapshot).length;
    this.isUp = false;
    this.replica = undefined;
    this.planner = undefined;
    this.clock.end();
    if (isCrash) {
      this.#world.counts.crashes++;
      this.disk.crash({ keep: this.#world.random.next(), tear: this.#world.random.next() });
    } else {
      this.#world.counts.kills++;
      this.disk.kill();
    }
  }

  receive(frame: Buffer): void {
    const run = this.clock.guard(() => {
      const { message, entries } = decodeMessage(frame);
      const { raft, consensus } = this.replica ?? {};
      if (raft === undefined || consensus === undefined) return;
      const { lastIndex, lastTerm } = raft;
      consensus.receive(message, entries);
      if (raft.termAt(lastIndex) !== lastTerm) this.#world.counts.conflicts++;
    });
    if (this.isUp) run();
  }

  togglePause(): void {
    if (!this.isUp) return;
    if (this.isPaused) {
      // Requests that came while it was stopped are read first.
      if (this.replica !== undefined) this.#world.read(this.replica);
      this.resume();
    } else {
      this.#world.counts.pauses++;
      this.clock.isPaused = true;
    }
  }

  resume(): void {
    this.clock.resume();
  }

  changeQuota(): void {
    if (this.disk.quotaBytes === Number.POSITIVE_INFINITY) {
      this.#world.counts.fullDisks++;
      this.disk.quotaBytes = this.disk.usedBytes + this.#world.below(4000);
    } else this.disk.quotaBytes = Number.POSITIVE_INFINITY;
  }
}

/** The clock of one machine. While its process is stopped (SIGSTOP) what is due waits. */
class NodeClock implements Clock {
  readonly #clock: SimClock;
  generation = 0;
  isPaused = false;
  #waiting: (() => void)[] = [];
  #wallAddedMs = 0;

  constructor(clock: SimClock) {
    this.#clock = clock;
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  wallMs(): number {
    return this.#clock.wallMs() + this.#wallAddedMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    return this.#clock.after(delayMs, this.guard(callback));
  }

  soon(callback: () => void): void {
    this.#clock.soon(this.guard(callback));
  }

  jumpWall(ms: number): void {
    this.#wallAddedMs += ms;
  }

  /** A process begins. */
  begin(): number {
    return ++this.generation;
  }

  end(): void {
    this.generation++;
    this.#waiting = [];
  }

  /** Runs while the process lives, and only then. */
  guard(callback: () => void): () => void {
    const { generation } = this;
    return () => {
      if (generation !== this.generation) return;
      if (this.isPaused) this.#waiting.push(callback);
      else callback();
    };
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    const { generation } = this;
    for (const callback of this.#waiting.splice(0)) {
      if (generation === this.generation) callback();
    }
  }
}
