/** A broker in a process of its own, to be killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { HostPort } from '../../src/net/listeners.ts';
import { parseHostPort } from '../../src/net/listeners.ts';

const bin = fileURLToPath(new URL('../../../bin/keylane.cjs', import.meta.url));

export class BrokerProcess {
  readonly address: HostPort;
  readonly #child: ChildProcess;
  readonly exited: Promise<number | string>;

  private constructor(child: ChildProcess, address: HostPort) {
    this.#child = child;
    this.address = address;
    this.exited = exitOf(child);
  }

  /** Starts a broker on the folder and waits until it serves. */
  static async start(
    folder: string,
    settings: Readonly<Record<string, string | number>> = {},
    port = 0,
  ): Promise<BrokerProcess> {
    const sets = Object.entries(settings).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
    const place = ['--listen', `127.0.0.1:${port}`, '--data', folder];
    const child = spawn(
      process.execPath,
      [bin, 'start', ...place, '--set', 'admin.listen=', ...sets],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stdout! })) {
      lines.push(line);
      const said = JSON.parse(line) as { msg: string; address?: string };
      if (said.msg === 'ready') return new BrokerProcess(child, parseHostPort(said.address!));
    }
    throw new Error(`the broker did not start: ${lines.join('\n')}`);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** kill -9. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.exited;
  }

  /** Answers the exit code. */
  async terminate(): Promise<number | string> {
    this.#child.kill('SIGTERM');
    return this.exited;
  }
}

function exitOf(child: ChildProcess): Promise<number | string> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
}
