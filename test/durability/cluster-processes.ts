/** Brokers in processes of their own that form one cluster on loopback. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Kafka, logLevel } from 'kafkajs';
import { freePorts } from '../free-ports.ts';

const bin = fileURLToPath(new URL('../../../bin/keylane.cjs', import.meta.url));
const secret = 'the secret of the tests';

export class ClusterProcesses {
  readonly ids = [1, 2, 3];
  readonly #folder: string;
  readonly #settings: readonly string[];
  readonly #children = new Map<number, ChildProcess>();
  /** For clients, then for the other nodes. */
  readonly #ports: readonly number[];

  private constructor(folder: string, settings: readonly string[], ports: readonly number[]) {
    this.#folder = folder;
    this.#settings = settings;
    this.#ports = ports;
  }

  /** `settings`: `NAME=VALUE` for all nodes. */
  static async create(folder: string, settings: readonly string[] = []): Promise<ClusterProcesses> {
    return new ClusterProcesses(folder, settings, await freePorts(6));
  }

  get brokers(): string[] {
    return this.ids.map((id) => `127.0.0.1:${this.#ports[id - 1]}`);
  }

  folder(id: number): string {
    return `${this.#folder}/${id}`;
  }

  /** Where nodes reach each other, as the command line takes it. */
  nodes(ids: readonly number[]): string {
    return ids.map((id) => `${id}@127.0.0.1:${this.#ports[id + 2]}`).join(',');
  }

  /** Resolves when the node serves clients. `known`: nodes that its settings name, if any. */
  async start(id: number, known: readonly number[] = this.ids): Promise<void> {
    const cluster = known.length === 0 ? [] : ['--cluster', this.nodes(known)];
    const settings = ['admin.listen=', 'group.initial.rebalance.delay.ms=0', ...this.#settings];
    const child = spawn(
      process.execPath,
      [
        ...[bin, 'start', '--node-id', String(id), ...cluster],
        ...['--listen', `127.0.0.1:${this.#ports[id - 1]}`, '--data', this.folder(id)],
        ...settings.flatMap((setting) => ['--set', setting]),
      ],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, KEYLANE_CLUSTER_SECRET: secret },
      },
    );
    this.#children.set(id, child);
    const lines = createInterface({ input: child.stdout! });
    await new Promise<void>((resolve, reject) => {
      lines.on('line', (line) => {
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
  client(clientId: string, ids: readonly number[] = this.ids): Kafka {
    return new Kafka({
      clientId,
      brokers: ids.map((id) => this.brokers[id - 1]!),
      logLevel: logLevel.NOTHING,
      retry: { retries: 50, initialRetryTime: 20, maxRetryTime: 200 },
    });
  }

  /** The nodes but one. */
  others(id: number): number[] {
    return this.ids.filter((one) => one !== id);
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
    const child = spawn(process.execPath, [bin, ...args], {
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
  }
}
