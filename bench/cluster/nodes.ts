import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codecs } from '../../src/core/codecs.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import { produceRequest, produceResponse } from '../../src/protocol/schema/00-produce.ts';
import { metadataRequest, metadataResponse } from '../../src/protocol/schema/03-metadata.ts';
import { project } from '../paths.ts';
import { processStats } from '../process-stats.ts';
import type { Target } from '../raw-client.ts';
import { RawConnection } from '../raw-connection.ts';
import { preloadsTurns, type TurnsReport, turnsOf } from '../turns-report.ts';

const secret = 'the secret of a benchmark';
const pollMs = 2;
const produceVersion = 12;
const metadataVersion = 9;

/** Brokers on loopback that form one cluster, each a process with a data folder of its own. */
export abstract class Nodes {
  protected readonly folder = mkdtempSync(join(tmpdir(), 'keylane-cluster-'));
  protected readonly port: number;
  readonly count: number;
  readonly #children = new Map<number, ChildProcess>();

  constructor(count: number, port: number) {
    this.count = count;
    this.port = port;
    // Whatever ends the harness.
    process.once('exit', () => this.stop());
  }

  get ids(): number[] {
    return Array.from({ length: this.count }, (_, i) => i + 1);
  }

  target(id: number): Target {
    return { host: '127.0.0.1', port: this.port + id };
  }

  start(id: number): void {
    this.#children.set(id, this.spawn(id));
  }

  protected abstract spawn(id: number): ChildProcess;

  /** What processes of the node cost since they began; s. */
  cpuSeconds(id: number): number {
    return processStats(this.child(id).pid!).cpuSeconds;
  }

  protected child(id: number): ChildProcess {
    return this.#children.get(id)!;
  }

  /** All nodes, until they are one cluster. */
  async startAll(): Promise<void> {
    for (const id of this.ids) this.start(id);
    await this.whole();
  }

  /** Resolves when every node follows the leader; answers the leader. */
  async whole(): Promise<number> {
    for (;;) {
      const described = await Promise.all(this.ids.map((id) => this.#describe(id)));
      const leader = described[0]?.leaderId ?? -1;
      const isOne = described.every((one) => one?.leaderId === leader && one.inSync === this.count);
      if (leader >= 0 && isOne) return leader;
      await delay(20);
    }
  }

  async #describe(id: number): Promise<{ leaderId: number; inSync: number } | undefined> {
    const topics = [{ name: 'probe' }];
    const answer = await ask(this.target(id), topics).catch(() => undefined);
    const partition = answer?.topics[0]?.partitions[0];
    if (partition === undefined) return undefined;
    return { leaderId: partition.leaderId, inSync: partition.isrNodes.length };
  }

  signal(id: number, signal: NodeJS.Signals): void {
    this.child(id).kill(signal);
  }

  exited(id: number): Promise<unknown> {
    const child = this.child(id);
    if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
    return new Promise((resolve) => child.once('exit', resolve));
  }

  stop(): void {
    for (const child of this.#children.values()) child.kill('SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function ask(target: Target, topics: readonly { name: string }[]) {
  const connection = await RawConnection.open(target.host, target.port);
  try {
    const value = { topics, allowAutoTopicCreation: true };
    return await connection.call(metadataRequest, metadataResponse, metadataVersion, value);
  } finally {
    connection.close();
  }
}

export class KeylaneNodes extends Nodes {
  readonly #settings: readonly string[];
  readonly #measuresTurns: boolean;

  constructor(count: number, port: number, settings: readonly string[], measuresTurns = false) {
    super(count, port);
    this.#settings = settings;
    this.#measuresTurns = measuresTurns;
  }

  /** What the event loop of a node did since the last time. */
  turns(id: number): Promise<TurnsReport> {
    return turnsOf(this.child(id));
  }

  /** When the newest snapshot of a node was written, wall time; 0 if there is none. */
  snapshotMs(id: number): number {
    const folder = join(this.folder, String(id), 'default', 'snapshots');
    const times = readdirSync(folder).map((name) => statSync(join(folder, name)).mtimeMs);
    return Math.max(0, ...times);
  }

  /** Of its admin endpoint. */
  admin(id: number): string {
    return `http://127.0.0.1:${this.port + 200 + id}`;
  }

  protected spawn(id: number): ChildProcess {
    const peers = this.ids.map((one) => `${one}@127.0.0.1:${this.port + 100 + one}`);
    const cluster = this.count === 1 ? [] : ['--cluster', peers.join(',')];
    const admin = `admin.listen=127.0.0.1:${this.port + 200 + id}`;
    const sets = [admin, 'log.level=warn', ...this.#settings];
    const child = spawn(
      process.execPath,
      [
        ...[project('bin/keylane.cjs'), 'start', '--node-id', String(id), ...cluster],
        ...['--listen', `127.0.0.1:${this.port + id}`, '--data', join(this.folder, String(id))],
        ...sets.flatMap((set) => ['--set', set]),
      ],
      {
        stdio: ['ignore', 'ignore', this.#measuresTurns ? 'pipe' : 'ignore'],
        env: {
          ...process.env,
          KEYLANE_CLUSTER_SECRET: secret,
          ...(this.#measuresTurns && preloadsTurns),
        },
      },
    );
    child.stderr?.resume();
    return child;
  }
}

/** Apache Kafka: each node is broker and controller. */
export class KafkaNodes extends Nodes {
  protected spawn(id: number): ChildProcess {
    const controllerOf = (one: number) => `127.0.0.1:${this.port + 100 + one}`;
    const client = `127.0.0.1:${this.port + id}`;
    const voters = this.ids.map((one) => `${one}@${controllerOf(one)}`).join(',');
    const properties = [
      `node.id=${id}`,
      `controller.quorum.voters=${voters}`,
      `listeners=PLAINTEXT://${client},CONTROLLER://${controllerOf(id)}`,
      `default.replication.factor=${this.count}`,
      `min.insync.replicas=${Math.min(2, this.count)}`,
    ];
    const folder = join(this.folder, String(id));
    return spawn(project('compat-tests/apache-kafka/start.sh'), [String(this.port + id), folder], {
      stdio: ['ignore', 'ignore', 'ignore'],
      env: {
        ...process.env,
        KAFKA_HEAP_OPTS: '-Xms1g -Xmx1g',
        KAFKA_CLUSTER_ID: 'keylane-benchmark-clust',
        KAFKA_PROPERTIES: properties.join('\n'),
      },
    });
  }
}

/**
 * A producer that sends one small batch after the other with acks=all, and on any error looks for
 * the leader at whichever node answers, at once.
 */
export class Pinger {
  readonly #nodes: Nodes;
  #connection: RawConnection | undefined;
  #batch = 0;

  constructor(nodes: Nodes) {
    this.#nodes = nodes;
  }

  /** Until the next batch is acknowledged. */
  async send(): Promise<void> {
    while (!(await this.#try())) await delay(pollMs);
  }

  async #try(): Promise<boolean> {
    try {
      this.#connection ??= await this.#connect();
      const value = Buffer.from(String(this.#batch++));
      const records = buildBatch(
        { records: [{ key: null, value, timestamp: Date.now() }] },
        codecs,
      );
      const answer = await this.#connection.call(produceRequest, produceResponse, produceVersion, {
        ...{ acks: -1, timeoutMs: 30_000 },
        topicData: [{ name: 'probe', partitionData: [{ index: 0, records }] }],
      });
      if (answer.responses[0]!.partitionResponses[0]!.errorCode === 0) return true;
    } catch {
      // Looked for anew below.
    }
    this.close();
    return false;
  }

  async #connect(): Promise<RawConnection> {
    const asked = this.#nodes.ids.map(async (id) => {
      const { topics, brokers } = await ask(this.#nodes.target(id), [{ name: 'probe' }]);
      const leaderId = topics[0]!.partitions[0]!.leaderId;
      const leader = brokers.find(({ nodeId }) => nodeId === leaderId);
      if (leader === undefined) throw new Error('no leader');
      return RawConnection.open(leader.host, leader.port);
    });
    return Promise.any(asked);
  }

  close(): void {
    this.#connection?.onFailure(() => undefined);
    this.#connection?.close();
    this.#connection = undefined;
  }
}

export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
