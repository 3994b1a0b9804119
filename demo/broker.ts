import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The broker of the same build as this file. */
const main = fileURLToPath(new URL('../src/main.js', import.meta.url));
const stopMsMax = 10_000;

/** A broker on a free port, with a data folder that goes when it stops. */
export class DemoBroker {
  readonly address: string;
  readonly #child: ChildProcess;
  readonly #folder: string;
  #isStopping = false;

  private constructor(child: ChildProcess, folder: string, address: string) {
    this.#child = child;
    this.#folder = folder;
    this.address = address;
  }

  static async start(): Promise<DemoBroker> {
    const folder = mkdtempSync(join(tmpdir(), 'keylane-demo-'));
    const settings = ['group.initial.rebalance.delay.ms=1000', 'admin.listen='];
    const child = spawn(
      process.execPath,
      [
        ...[main, 'start', '--listen', '127.0.0.1:0', '--data', folder],
        ...settings.flatMap((setting) => ['--set', setting]),
      ],
      { stdio: ['ignore', 'pipe', 'pipe'], env: environment() },
    );
    // Whatever ends this process, its broker and folder go too.
    process.on('exit', () => {
      child.kill('SIGKILL');
      removeFolder(folder);
    });
    const broker = new DemoBroker(child, folder, await readyAddress(child));
    child.once('exit', (code, signal) => {
      if (broker.#isStopping) return;
      console.error(`the broker ended by itself: ${signal ?? `status ${code}`}`);
      process.exit(1);
    });
    return broker;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()));
      const overdue = setTimeout(() => this.#child.kill('SIGKILL'), stopMsMax);
      this.#child.kill('SIGTERM');
      await ended;
      clearTimeout(overdue);
    }
    removeFolder(this.#folder);
  }
}

/** Settings of another broker must not reach this one; threads are those of bin/keylane.cjs. */
function environment(): NodeJS.ProcessEnv {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith('KEYLANE_'));
  return { UV_THREADPOOL_SIZE: '8', ...Object.fromEntries(others) };
}

/** The address in the line of its log that says it takes connections. */
function readyAddress(child: ChildProcess): Promise<string> {
  let said = '';
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout! }).on('line', (line) => {
      said += `${line}\n`;
      if (line.includes('"msg":"ready"')) {
        resolve((JSON.parse(line) as { address: string }).address);
      }
    });
    child.stderr!.on('data', (text: Buffer) => {
      said += text.toString();
    });
    child.once('exit', () => reject(new Error(`the broker did not start:\n${said}`)));
  });
}

function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
