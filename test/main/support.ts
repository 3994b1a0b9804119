import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

/** Real processes of Keylane, started by its own launcher on the build that is under test. */

const build = fileURLToPath(new URL('../..', import.meta.url));
const root = join(build, '..');
const startMsMax = 60_000;

export function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'keylane-test-'));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** A copy of the launcher, beside the build under test, wherever that was built. */
export function launcher(t: TestContext): string {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'bin'));
  symlinkSync(build, join(folder, 'dist'));
  const path = join(folder, 'bin', 'keylane.cjs');
  copyFileSync(join(root, 'bin', 'keylane.cjs'), path);
  return path;
}

export interface ReadyLine {
  readonly address: string;
  /** Of the admin endpoint. */
  readonly admin?: string;
  readonly port: number;
  readonly nodeId: number;
  readonly version: string;
  readonly startMs: number;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

export interface RunOptions {
  readonly environment?: NodeJS.ProcessEnv;
  /** Instead of the launcher's own command line. */
  readonly command?: readonly [string, ...string[]];
  /** The address of the admin endpoint; there is none where it is not given. */
  readonly admin?: string;
}

/** A running `keylane` with everything it has said so far. It ends with the test at the latest. */
export class Keylane {
  readonly child: ChildProcess;
  readonly lines: string[] = [];
  readonly exited: Promise<Exit>;
  #onLine: () => void = () => undefined;
  #hasEnded = false;

  constructor(t: TestContext, args: readonly string[], options: RunOptions = {}) {
    const [command, ...rest] = options.command ?? [process.execPath, launcher(t), ...args];
    this.child = spawn(command, rest, {
      env: { ...process.env, ...options.environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      createInterface({ input: stream }).on('line', (line) => {
        this.lines.push(line);
        this.#onLine();
      });
    }
    this.exited = once(this.child, 'close').then(([code, signal]) => {
      this.#hasEnded = true;
      this.#onLine();
      return { code, signal } as Exit;
    });
    t.after(async () => {
      this.child.kill('SIGKILL');
      await this.exited;
    });
  }

  get output(): string {
    return this.lines.join('\n');
  }

  /** Resolves with the first line that matches; fails if the process ends without one. */
  async line(pattern: RegExp): Promise<string> {
    const overdue = setTimeout(() => this.child.kill('SIGKILL'), startMsMax);
    try {
      for (let next = 0; ; ) {
        for (; next < this.lines.length; next++) {
          if (pattern.test(this.lines[next]!)) return this.lines[next]!;
        }
        if (this.#hasEnded) throw new Error(`ended without ${pattern}:\n${this.output}`);
        await new Promise<void>((resolve) => {
          this.#onLine = resolve;
        });
      }
    } finally {
      clearTimeout(overdue);
    }
  }

  async ready(): Promise<ReadyLine> {
    const line = JSON.parse(await this.line(/"msg":"ready"/)) as ReadyLine;
    return { ...line, port: Number(line.address.split(':').at(-1)) };
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Exit> {
    this.child.kill(signal);
    return this.exited;
  }
}

/** Runs a command to its end. */
export async function run(
  t: TestContext,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Exit & { readonly output: string }> {
  const keylane = new Keylane(t, args, options);
  return { ...(await keylane.exited), output: keylane.output };
}

/** Starts a broker on any free port and waits until it is ready. */
export async function startBroker(
  t: TestContext,
  data: string,
  args: readonly string[] = [],
  options: RunOptions = {},
): Promise<Keylane & { readonly address: ReadyLine }> {
  const place = ['--listen', '127.0.0.1:0', '--data', data];
  const all = ['start', ...place, '--set', `admin.listen=${options.admin ?? ''}`, ...args];
  const keylane = new Keylane(t, all, options);
  return Object.assign(keylane, { address: await keylane.ready() });
}
