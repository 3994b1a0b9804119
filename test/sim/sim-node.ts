import { memberId } from '../../src/cluster/formation.ts';
import type { Hello } from '../../src/cluster/hello.ts';
import { LeaderDuties } from '../../src/cluster/leader-duties.ts';
import { decodeMessage } from '../../src/cluster/peer-codec.ts';
import type { Clock } from '../../src/core/clock.ts';
import { codecs } from '../../src/core/codecs.ts';
import { BrokerError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { ProducePlanner } from '../../src/replica/produce-planner.ts';
import { Replica } from '../../src/replica/replica.ts';
import { featureLevel } from '../../src/state/entry-types.ts';
import type { ClusterWorld } from './cluster-world.ts';
import { SimBroker } from './sim-broker.ts';
import { reactions, type SimClock } from './sim-clock.ts';
import { SimDisk } from './sim-files.ts';

/** One machine: its clock and disk, and the process on it. */
export class SimNode {
  readonly clock: NodeClock;
  disk: SimDisk;
  replica: Replica | undefined;
  planner: ProducePlanner | undefined;
  duties: LeaderDuties | undefined;
  broker: SimBroker | undefined;
  isUp = false;
  /** Feature level of its version: some are upgraded while the others go on. */
  level: number;
  /** Calls of the disk take up to so long. */
  slowMs = 0;
  readonly #nodeId: number;
  /** The folder was lost so many times: then it is another member. */
  #wiped = 0;
  #mustRestart = false;
  readonly world: ClusterWorld;
  /** What others ask of the process, to be told when it is gone. */
  readonly #asked = new Set<() => void>();

  constructor(world: ClusterWorld, nodeId: number) {
    this.world = world;
    this.#nodeId = nodeId;
    this.clock = new NodeClock(world.clock);
    this.disk = this.#newDisk();
    this.level = world.random.next() < 0.2 ? 1 : featureLevel;
  }

  get node() {
    const address = { host: 'h', port: 1, peerHost: 'h', peerPort: 2 };
    const directoryId = `d${this.#nodeId}${'x'.repeat(this.#wiped)}`;
    return { nodeId: this.#nodeId, directoryId, ...address };
  }

  get id(): string {
    return memberId(this.node);
  }

  #newDisk(): SimDisk {
    const { random, clock, counts, lies } = this.world;
    const disk = new SimDisk({
      random,
      defer: (complete) => {
        const guarded = this.clock.guard(complete);
        if (this.slowMs === 0) clock.defer(guarded);
        else clock.after(this.world.below(this.slowMs), guarded);
      },
    });
    disk.lies = lies;
    disk.fault = ({ kind, path }) => {
      if (kind === 'remove' && path.endsWith('.journal')) counts.filesRemoved++;
      if (kind === 'rename' && path.includes('/index/')) counts.filesSealed++;
      return undefined;
    };
    return disk;
  }

  /** The machine gets a new disk. */
  wipe(): void {
    if (this.isUp) this.stop(true);
    this.#wiped++;
    this.world.counts.wipes++;
    this.disk = this.#newDisk();
  }

  get isPaused(): boolean {
    return this.clock.isPaused;
  }

  /** A snapshot is fetched: the replica stops, which may be cut short, and starts anew. */
  async takeSnapshot(): Promise<void> {
    if (!this.#mustRestart || this.isPaused || this.replica === undefined) return;
    this.#mustRestart = false;
    const { replica, broker } = this;
    this.#forget();
    await this.run(
      Promise.resolve(broker?.stop())
        .then(() => replica!.stop())
        .then(() => true),
    );
    if (!this.isUp) return;
    this.clock.end();
    this.disk.kill();
    await this.start();
  }

  async start(): Promise<void> {
    this.isUp = true;
    this.#mustRestart = false;
    this.#upgrade();
    const generation = this.clock.begin();
    const onFatal = (error: unknown): void => {
      if (this.clock.generation === generation) this.world.fail(error);
    };
    const opening = Replica.open({
      files: this.disk.files(),
      folder: 'data/default',
      clock: this.clock,
      random: this.world.random,
      voter: this.id,
      founders: this.#nodeId === 1 && this.#wiped === 0 ? [this.id] : [],
      group: {
        peers: {
          send: (message, entries) => this.world.network.send(this, message, entries),
          ask: (member, request) => this.world.network.ask(this, member, request),
        },
        log: silentLogger,
        fetchBytesPerSecondMax: 200_000,
        appendBytesMax: this.world.appendBytesMax,
        onSnapshotFetched: () => {
          this.world.counts.installs++;
          this.#mustRestart = true;
        },
      },
      times: { electionTimeoutMs: 100, heartbeatMs: 15, missedMs: 500, ...this.world.doze },
      journal: {
        ...{ sync: 'always', syncIntervalMs: 50, fileExtentsMax: 50 },
        ...{ ...this.world.sizes, fileBytesMin: 600 },
        ...{ recentBytesMax: 16_384, indexCacheBytesMax: 8192 },
        ...{ aheadBytesMin: 200, besideSyncMsMin: 1 },
      },
      disk: { lowWaterBytes: 0, reserveBytes: 0 },
      onFatal,
    });
    let opened: Replica | undefined;
    try {
      opened = (await this.run(opening))?.replica;
    } catch (error) {
      const isFull = error instanceof BrokerError && error.code === 'DISK_FULL';
      if (!isFull) throw error;
    }
    if (opened === undefined) {
      if (this.isUp) this.stop(false);
      return;
    }
    const { world } = this;
    opened.listen({
      onApplied: (entry) => world.truth.onApplied(this, entry),
      onGroupApplied: () => {
        if (world.random.next() < 0.1) world.truth.noteState(this, opened);
      },
    });
    world.counts.starts++;
    world.note(() => `${this.id} started, applied ${opened.state.appliedIndex}`);
    // What was applied while it was opened: by the only voter, or by marks in its journal.
    await world.truth.onStarted(this, opened);
    if (!this.isUp) return;
    this.replica = opened;
    this.duties = new LeaderDuties({
      ...{ replica: opened, self: this.node, level: this.level },
      ...{ clock: this.clock, log: silentLogger },
      present: () => this.#present(),
      hasRoom: (nodeId) => this.world.network.askForRoom(this, nodeId),
    });
    if (world.hasBrokers) this.broker = new SimBroker(world, this, opened, onFatal);
    else this.planner = new ProducePlanner(opened, this.clock, codecs, 1_000_000);
  }

  /** Its version is older than that of others. */
  get isOld(): boolean {
    return this.level < featureLevel;
  }

  #upgrade(): void {
    if (!this.isOld || this.world.random.next() < 0.5) return;
    this.level = featureLevel;
    this.world.counts.upgrades++;
  }

  /** What it says of itself to the others. */
  #hello(): Hello {
    const clusterId = this.replica?.state.clusterId ?? '';
    return { clusterId, node: this.node, level: this.level, tenantPortBase: 0 };
  }

  #present(): Hello[] {
    const others = this.world.nodes.filter((node) => node !== this && node.isUp);
    return others.map((node) => node.#hello());
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
    // Now and then the machine goes down meanwhile.
    const stepsMax = this.world.random.next() < 0.1 ? this.world.below(200) : 5000;
    for (let i = 0; i < stepsMax && result === undefined && failure === undefined; i++) {
      if (!(await this.world.clock.step())) await this.world.clock.advance(1);
    }
    if (failure !== undefined) throw failure;
    if (result === undefined) this.stop(this.world.random.next() < 0.7);
    return result;
  }

  /** Another node fetches a snapshot; undefined if this one ends before it answers. */
  answerFetch(request: Buffer): Promise<Buffer | undefined> {
    return this.#answer(async () => {
      return this.replica && Buffer.concat(await this.replica.answerFetch(request));
    });
  }

  /** The same for what another node passes on to the leader. */
  answerForwarded(request: Buffer): Promise<Buffer | undefined> {
    return this.#answer(async () => this.broker?.answer(request));
  }

  answerRoom(): Promise<Buffer | undefined> {
    return this.#answer(async () => this.replica && Buffer.of(this.replica.disk.isRoomy ? 1 : 0));
  }

  #answer(serve: () => Promise<Buffer | undefined>): Promise<Buffer | undefined> {
    return new Promise((resolve) => {
      const answer = (bytes?: Buffer): void => {
        this.#asked.delete(answer);
        resolve(bytes);
      };
      if (!this.isUp) {
        resolve(undefined);
        return;
      }
      this.#asked.add(answer);
      this.clock.guard(() => {
        serve().then(answer, () => answer());
      })();
    });
  }

  /** The process ends; with the machine, if `isCrash`. */
  stop(isCrash: boolean): void {
    this.resume();
    const isSnapshot = (path: string) => path.endsWith('.snapshot');
    this.world.counts.snapshots += this.disk.paths().filter(isSnapshot).length;
    this.isUp = false;
    this.world.note(() => `${this.id} ${isCrash ? 'crashes' : 'is killed'}`);
    this.#forget();
    this.clock.end();
    for (const fail of this.#asked) fail();
    this.#asked.clear();
    if (this.disk.isWriting) this.world.counts.tornWrites++;
    if (isCrash) {
      this.world.counts.crashes++;
      this.disk.crash({ keep: this.world.random.next(), tear: this.world.random.next() });
    } else {
      this.world.counts.kills++;
      this.disk.kill();
    }
  }

  #forget(): void {
    this.replica = undefined;
    this.planner = undefined;
    this.duties = undefined;
    const { broker } = this;
    this.broker = undefined;
    broker?.onEnd();
  }

  receive(frame: Buffer): void {
    const run = this.clock.guard(() => {
      const { message, entries } = decodeMessage(frame);
      const { raft, consensus } = this.replica ?? {};
      if (raft === undefined || consensus === undefined) return;
      const { lastIndex, lastTerm } = raft;
      consensus.receive(message, entries);
      if (raft.termAt(lastIndex) !== lastTerm) this.world.counts.conflicts++;
    });
    if (this.isUp) run();
  }

  /** The process stands still for so long, if it lives so long. */
  pause(forMs: number): void {
    if (!this.isUp || this.isPaused) return;
    this.world.counts.pauses++;
    this.clock.isPaused = true;
    const { generation } = this.clock;
    this.world.clock.after(forMs, () => {
      if (this.clock.generation !== generation || !this.isPaused) return;
      // Requests that came while it was stopped are read first.
      if (this.replica !== undefined) this.world.clients.onResumed(this.replica);
      this.resume();
    });
  }

  resume(): void {
    this.clock.resume();
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

  /** From now on the wall clock is off by so much. */
  jumpWall(ms: number): void {
    this.#wallAddedMs = ms;
  }

  /** A process begins. With a clock far ahead it would believe it, and delete what is old by it. */
  begin(): number {
    this.#wallAddedMs = Math.min(this.#wallAddedMs, 0);
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
