/** Brokers in processes of their own that form one cluster on loopback. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Kafka, logLevel } from 'kafkajs';
import { freePorts } from '../free-ports.ts';
import { PeerProxies } from './peer-proxies.ts';

const ownBin = fileURLToPath(new URL('../../../bin/keylane.cjs', import.meta.url));
const secret = 'the secret of the tests';

export interface ClusterProcessesOptions {
  /** `NAME=VALUE` for all nodes. */
  readonly settings?: readonly string[];
  /** `admin.listen` of a node; else it has none. */
  readonly admin?: (id: number) => string;
  /** The network between the nodes can be cut. */
  readonly isProxied?: boolean;
  /** Hears what the nodes log. */
  readonly onLine?: (id: number, line: string) => void;
  /** Of one node's process. */
  readonly env?: (id: number) => NodeJS.ProcessEnv;
  /** The program that a node is started with; else the present one. */
  readonly bin?: (id: number) => string;
}

export class ClusterProcesses {
  readonly ids = [1, 2, 3];
  readonly #folder: string;
  readonly #options: ClusterProcessesOptions;
  readonly #children = new Map<number, ChildProcess>();
  /** For clients, then for the other nodes. */
  readonly #ports: readonly number[];
  #proxies: PeerProxies | undefined;

  private constructor(folder: string, options: ClusterProcessesOptions, ports: readonly number[]) {
    this.#folder = folder;
    this.#options = options;
    this.#ports = ports;
  }

  static async create(
    folder: string,
    options: ClusterProcessesOptions = {},
  ): Promise<ClusterProcesses> {
    const cluster = new ClusterProcesses(folder, options, await freePorts(6));
    if (options.isProxied === true) {
      cluster.#proxies = await PeerProxies.create(cluster.ids, (id) => cluster.#peerPort(id));
    }
    return cluster;
  }

  /** Between the nodes. */
  get network(): PeerProxies {
    return this.#proxies!;
  }

  #peerPort(id: number): number {
    return this.#ports[id + 2]!;
  }

  get brokers(): string[] {
    return this.ids.map((id) => `127.0.0.1:${this.#ports[id - 1]}`);
  }

  folder(id: number): string {
    return `${this.#folder}/${id}`;
  }

  /** Where nodes reach each other, as the command line takes it; as one of them does, if proxied. */
  nodes(ids: readonly number[], from?: number): string {
    return ids.map((id) => `${id}@127.0.0.1:${this.#portFrom(from, id)}`).join(',');
  }

  #portFrom(from: number | undefined, to: number): number {
    if (this.#proxies === undefined || from === undefined || from === to) return this.#peerPort(to);
    return this.#proxies.port(from, to);
  }

  /** Resolves when the node serves clients. `known`: nodes that its settings name, if any. */
  async start(id: number, known: readonly number[] = this.ids): Promise<void> {
    const cluster = known.length === 0 ? [] : ['--cluster', this.nodes(known, id)];
    const { settings: more = [], env, bin, onLine, admin } = this.#options;
    const settings = [
      `admin.listen=${admin?.(id) ?? ''}`,
      'group.initial.rebalance.delay.ms=0',
      ...more,
    ];
    const child = spawn(
      process.execPath,
      [
        ...[bin?.(id) ?? ownBin, 'start', '--node-id', String(id), ...cluster],
        ...['--listen', `127.0.0.1:${this.#ports[id - 1]}`, '--data', this.folder(id)],
        ...settings.flatMap((setting) => ['--set', setting]),
      ],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, KEYLANE_CLUSTER_SECRET: secret, ...env?.(id) },
      },
    );
    this.#children.set(id, child);
    const lines = createInterface({ input: child.stdout! });
    await new Promise<void>((resolve, reject) => {
      lines.on('line', (line) => {
        onLine?.(id, line);
        if ((JSON.parse(line) as { msg: string }).msg === 'ready') resolve();
      });
      child.once('exit', () => reject(new Error(`node ${id} ended before it was ready`)));
    });
  }

  async startAll(): Promise<void> {
    await Promise.all(this.ids.map((id) => this.start(id)));
    await this.whole();
  }

  /** `ids`: nodes that it is to begin with. */
  client(clientId: string, ids: readonly number[] = this.ids, level = logLevel.NOTHING): Kafka {
    return new Kafka({
      clientId,
      brokers: ids.map((id) => this.brokers[id - 1]!),
      logLevel: level,
      retry: { retries: 50, initialRetryTime: 20, maxRetryTime: 200 },
    });
  }

  /** The nodes but one. */
  others(id: number): number[] {
    return this.ids.filter((one) => one !== id);
  }

  /** Who leads, as these nodes say; -1 if they know of nobody. */
  async leader(ids: readonly number[]): Promise<number> {
    const admin = this.client('leader', ids).admin();
    await admin.connect();
    try {
      const { topics } = await admin.fetchTopicMetadata({ topics: ['probe'] });
      return topics[0]?.partitions[0]?.leader ?? -1;
    } finally {
      await admin.disconnect();
    }
  }

  /** Until all of `count` nodes follow one leader, which it answers. */
  async whole(count = this.ids.length): Promise<number> {
    const admin = this.client('admin').admin();
    await admin.connect();
    try {
      for (;;) {
        const { topics } = await admin
          .fetchTopicMetadata({ topics: ['probe'] })
          .catch(() => ({ topics: [] }));
        const partition = topics[0]?.partitions[0];
        if (partition !== undefined && partition.leader > 0 && partition.isr.length === count) {
          return partition.leader;
        }
        await admin.createTopics({ topics: [{ topic: 'probe' }] }).catch(() => undefined);
      }
    } finally {
      await admin.disconnect();
    }
  }

  /** Runs a command of the command line to its end. */
  async run(args: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
    const child = spawn(process.execPath, [ownBin, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, KEYLANE_CLUSTER_SECRET: secret },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
    }
    const code = await new Promise<number>((resolve) => child.once('close', resolve));
    return { code, output };
  }

  signal(id: number, signal: NodeJS.Signals): void {
    this.#children.get(id)!.kill(signal);
  }

  /** Sends the signal, and waits for the end. */
  async end(id: number, signal: NodeJS.Signals): Promise<void> {
    const child = this.#children.get(id)!;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await exited;
  }

  stop(): void {
    for (const child of this.#children.values()) child.kill('SIGKILL');
    this.#proxies?.close();
  }
}
