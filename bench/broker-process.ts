import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { project } from './paths.ts';
import { type ProcessStats, processStats } from './process-stats.ts';
import { isServing, type Target } from './raw-client.ts';
import { preloadsTurns, type TurnsReport, turnsOf } from './turns-report.ts';

/** One of the brokers that are compared, with the settings that it gets. */
export interface Arm {
  readonly name: string;
  readonly broker: 'keylane' | 'kafka';
  /** Keylane's settings that are not the default. */
  readonly settings?: readonly string[];
  /** Further flags of `keylane start`. */
  readonly flags?: readonly string[];
  /** Further lines of Kafka's server.properties. */
  readonly properties?: readonly string[];
  /** Preloads loop-delay.mjs. */
  readonly measuresTurns?: boolean;
}

export const keylane: Arm = { name: 'keylane', broker: 'keylane' };
export const kafka: Arm = { name: 'kafka', broker: 'kafka' };
/** Keylane with the syncs of a slow disk. */
export const keylaneSlow: Arm = {
  name: 'keylane, sync +5 ms',
  broker: 'keylane',
  settings: ['journal.sync.delay.ms=5'],
};

const readyMsMax = 120_000;
const stopMsMax = 60_000;
const pollMs = 5;

/** What has to go whatever ends the harness: brokers and their data. */
const alive = new Map<ChildProcess, string>();
process.on('exit', () => {
  for (const [child, folder] of alive) {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    console.error(`ended by ${signal}`);
    process.exit(1);
  });
}

let keylaneScript = project('bin/keylane.cjs');

/** Another build than this project's, to compare two of them. */
export function useKeylaneScript(path: string): void {
  keylaneScript = path;
}

/** A broker that runs, with a data folder of its own below TMPDIR. */
export class BrokerProcess {
  readonly arm: Arm;
  readonly target: Target;
  /** From the start of the process to its first answer. */
  readonly readySeconds: number;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(
    arm: Arm,
    target: Target,
    child: ChildProcess,
    folder: string,
    ready: number,
  ) {
    this.arm = arm;
    this.target = target;
    this.#child = child;
    this.#folder = folder;
    this.readySeconds = ready;
    // What nobody reads would fill the pipe.
    child.stderr?.resume();
  }

  /** Starts in a new data folder, or in that of a broker which was stopped with `keep`. */
  static async start(arm: Arm, port: number, kept?: string): Promise<BrokerProcess> {
    const folder = kept ?? mkdtempSync(join(tmpdir(), `keylane-bench-${arm.broker}-`));
    const target = { host: '127.0.0.1', port };
    if (await isServing(target)) throw new Error(`there is a broker on port ${port} already`);
    const started = performance.now();
    const child =
      arm.broker === 'kafka' ? startKafka(arm, port, folder) : startKeylane(arm, port, folder);
    alive.set(child, folder);
    let early = '';
    const gather = (text: Buffer): void => {
      early += text.toString();
    };
    child.stderr?.on('data', gather);
    while (!(await isServing(target))) {
      if (child.exitCode !== null || performance.now() - started > readyMsMax) {
        throw new Error(`${arm.name} did not start: ${early}`);
      }
      await pause(pollMs);
    }
    const readySeconds = (performance.now() - started) / 1000;
    child.stderr?.off('data', gather);
    return new BrokerProcess(arm, target, child, folder, readySeconds);
  }

  get address(): string {
    return `${this.target.host}:${this.target.port}`;
  }

  stats(): ProcessStats {
    return processStats(this.#child.pid!);
  }

  /** What its event loop did since the last time. */
  turns(): Promise<TurnsReport> {
    return turnsOf(this.#child);
  }

  /** Stops the broker; answers its data folder if that is to be kept. */
  async stop(keep: boolean): Promise<string> {
    const ended = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()));
    if (this.#child.exitCode === null) {
      this.#child.kill('SIGTERM');
      const late = setTimeout(() => this.#child.kill('SIGKILL'), stopMsMax);
      await ended;
      clearTimeout(late);
    }
    alive.delete(this.#child);
    if (!keep) rmSync(this.#folder, { recursive: true, force: true });
    return this.#folder;
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The flags that Kafka's documentation recommends are start.sh's; the heap is theirs as well. */
function startKafka(arm: Arm, port: number, folder: string): ChildProcess {
  const properties = (arm.properties ?? []).join('\n');
  return spawn(project('compat-tests/apache-kafka/start.sh'), [String(port), folder], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, KAFKA_HEAP_OPTS: '-Xms1g -Xmx1g', KAFKA_PROPERTIES: properties },
  });
}

function startKeylane(arm: Arm, port: number, folder: string): ChildProcess {
  const own = arm.settings ?? [];
  const usual = ['group.initial.rebalance.delay.ms=0', 'log.level=warn'];
  const nameOf = (setting: string): string => setting.split('=', 1)[0]!;
  // The broker refuses a setting that is given twice.
  const given = usual.filter((one) => !own.some((other) => nameOf(other) === nameOf(one)));
  const settings = [...given, ...own].flatMap((setting) => ['--set', setting]);
  const flags = ['--listen', `127.0.0.1:${port}`, '--data', folder, ...(arm.flags ?? [])];
  return spawn(process.execPath, [keylaneScript, 'start', ...flags, ...settings], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...(arm.measuresTurns && preloadsTurns) },
  });
}
