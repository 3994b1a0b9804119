import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('../../../compat-tests/java/load.sh', import.meta.url));

/** A program of the Java suite, which ends when it is told to (see load.sh). */
export class JavaProcess {
  readonly #child: ChildProcess;

  constructor(args: readonly string[], onLine: (line: string) => void) {
    this.#child = spawn('bash', [script, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface({ input: this.#child.stdout! }).on('line', onLine);
    // Whatever ends the rounds.
    process.once('exit', () => this.#child.kill('SIGKILL'));
  }

  async stop(): Promise<void> {
    const ended = new Promise((done) => this.#child.once('close', done));
    this.#child.stdin!.end('\n');
    await ended;
  }
}
