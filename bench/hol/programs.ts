/** The client programs below clients/, as processes: how they are started and what they say. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { project } from '../paths.ts';
import { processStats } from '../process-stats.ts';

export type ClientName =
  | 'kafkajs'
  | 'java-manual'
  | 'java-auto'
  | 'librdkafka'
  | 'franz-go'
  | 'sarama';

export const clientNames: readonly ClientName[] = [
  'kafkajs',
  'java-manual',
  'java-auto',
  'librdkafka',
  'franz-go',
  'sarama',
];

/** What each is, with all that is not its default. */
export const aboutClients: Readonly<Record<ClientName, string>> = {
  kafkajs: 'kafkajs 2.2.4, defaults (commits after each batch)',
  'java-manual': 'Java 4.3.1, enable.auto.commit=false, commitSync after each poll',
  'java-auto': 'Java 4.3.1, defaults (commits every 5 s)',
  librdkafka: 'librdkafka of the distribution, defaults (commits every 5 s)',
  'franz-go': 'franz-go 1.22.3, defaults (commits what it polled before every 5 s)',
  sarama: 'sarama 1.61.1, defaults (commits what is marked every second)',
};

/** Longer than any client needs to leave its group; handlers that go on are cut. */
const stopMsMax = 10_000;
const stderrCharsMax = 4096;

const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

/** A process that is told what to do by lines and answers by lines. */
class Program {
  readonly #child: ChildProcess;
  readonly #name: string;
  readonly #onLine: (line: string) => void;
  #errors = '';
  /** What the callers of `until` wait for. */
  #checks: (() => void)[] = [];

  constructor(command: readonly string[], onLine: (line: string) => void) {
    const [file, ...options] = command;
    this.#name = command.join(' ');
    this.#onLine = onLine;
    this.#child = spawn(file!, options, { stdio: ['pipe', 'pipe', 'pipe'] });
    alive.add(this.#child);
    this.#child.stderr!.on('data', (text: Buffer) => {
      this.#errors = (this.#errors + text.toString()).slice(-stderrCharsMax);
    });
    this.#child.on('exit', () => this.#check());
    // A broken pipe is told by the exit as well.
    this.#child.stdin!.on('error', () => this.#check());
    createInterface({ input: this.#child.stdout! }).on('line', (line) => {
      this.#onLine(line);
      this.#check();
    });
  }

  /** What it has said on standard error lately. */
  get errors(): string {
    return this.#errors;
  }

  get cpuSeconds(): number {
    return processStats(this.#child.pid!).cpuSeconds;
  }

  say(line: string): void {
    this.#child.stdin!.write(`${line}\n`);
  }

  /** Waits until the condition holds, which is looked at after each line; false if it is late. */
  until(condition: () => boolean, msMax: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => end(() => resolve(false)), msMax);
      const end = (how: () => void): void => {
        clearTimeout(late);
        this.#checks = this.#checks.filter((one) => one !== check);
        how();
      };
      const check = (): void => {
        if (condition()) end(() => resolve(true));
        else if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
          end(() => reject(new Error(`${this.#name} ended: ${this.#errors}`)));
        }
      };
      this.#checks.push(check);
      check();
    });
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, 'exit');
      this.#child.stdin!.end();
      const late = setTimeout(() => this.#child.kill('SIGKILL'), stopMsMax);
      await ended;
      clearTimeout(late);
    }
    alive.delete(this.#child);
  }

  #check(): void {
    for (const check of this.#checks) check();
  }
}

/** Serial consumers of one group, in one process. */
export class Consumers {
  readonly #program: Program;
  #isReady = false;
  #handled = 0;

  constructor(client: ClientName, options: readonly (string | number)[]) {
    const command = [...commandOf(client), ...options.map(String), ...modeOf(client)];
    this.#program = new Program(command, (line) => {
      this.#isReady ||= line === 'ready';
      const handled = /^handled (\d+)$/.exec(line)?.[1];
      if (handled !== undefined) this.#handled = Number(handled);
    });
  }

  get errors(): string {
    return this.#program.errors;
  }

  get cpuSeconds(): number {
    return this.#program.cpuSeconds;
  }

  /** Calls of handlers that are in the file of events. */
  get handledCount(): number {
    return this.#handled;
  }

  /** Waits until each of them has its share of the partitions. */
  async ready(msMax: number): Promise<void> {
    if (await this.#program.until(() => this.#isReady, msMax)) return;
    throw new Error(`the consumers did not get their partitions: ${this.errors}`);
  }

  /** Waits until there are so many of them; false if it takes longer. */
  handled(count: number, msMax: number): Promise<boolean> {
    return this.#program.until(() => this.#handled >= count, msMax);
  }

  stop(): Promise<void> {
    return this.#program.stop();
  }
}

/** By how much sends missed the intended times of their records. It is part of every wait. */
export interface Lateness {
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** The producer is the same for all clients. */
export class Producer {
  readonly #program: Program;
  #isReady = false;
  #late: Lateness | undefined;

  constructor(address: string, topic: string) {
    const command = [...kafkajs('producer.mjs'), address, topic];
    this.#program = new Program(command, (line) => {
      this.#isReady ||= line === 'ready';
      const sent = /^sent \d+ ([\d.]+) ([\d.]+)$/.exec(line);
      if (sent !== null) this.#late = { p99Ms: Number(sent[1]), maxMs: Number(sent[2]) };
    });
  }

  async ready(msMax: number): Promise<void> {
    if (await this.#program.until(() => this.#isReady, msMax)) return;
    throw new Error(`the producer did not connect: ${this.#program.errors}`);
  }

  /** Sends the records of a file, each at its time after the start. */
  async send(file: string, startUs: number, msMax: number): Promise<Lateness> {
    let late: Lateness | undefined;
    this.#late = undefined;
    this.#program.say(`send ${file} ${startUs}`);
    await this.#program.until(() => {
      late = this.#late;
      return late !== undefined;
    }, msMax);
    if (late === undefined) throw new Error(`records not sent: ${this.#program.errors}`);
    return late;
  }

  stop(): Promise<void> {
    return this.#program.stop();
  }
}

const prepared = new Map<string, string>();

/** Runs a script that installs or builds, once, and answers what it printed. */
function prepare(script: string): string {
  let output = prepared.get(script);
  if (output === undefined) {
    const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit'];
    output = execFileSync(clientFile(script), { encoding: 'utf8', stdio }).trim();
    prepared.set(script, output);
  }
  return output;
}

function clientFile(path: string): string {
  return project(`bench/hol/clients/${path}`);
}

function kafkajs(script: string): string[] {
  prepare('kafkajs/install.sh');
  return [process.execPath, clientFile(`kafkajs/${script}`)];
}

function commandOf(client: ClientName): string[] {
  if (client === 'kafkajs') return kafkajs('consumers.mjs');
  if (client === 'librdkafka') return [prepare('librdkafka/build.sh')];
  if (client === 'franz-go' || client === 'sarama') return [`${prepare('go/build.sh')}/${client}`];
  const log = project('compat-tests/apache-kafka/log4j2.properties');
  const flags = ['-Xmx512m', `-Dlog4j2.configurationFile=${log}`];
  return ['java', ...flags, '-cp', prepare('java/build.sh'), 'keylane.hol.Consumers'];
}

function modeOf(client: ClientName): string[] {
  if (client === 'java-manual') return ['manual'];
  return client === 'java-auto' ? ['auto'] : [];
}
