/** Consumers and brokers as processes, for the checks that kill them. */
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Context, Suite } from './context.mjs';
import { until, within } from './harness.mjs';

const memberScript = fileURLToPath(new URL('keyed-member.mjs', import.meta.url));
const defaultBin = fileURLToPath(new URL('../../../bin/keylane.cjs', import.meta.url));
const startMsMax = 20_000;

async function kill(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** How often a process is stopped and let go until it is where a check wants it. */
const freezesMax = 100;

/** A member of a group in a process of its own, whose sentinel watches over it. */
class MemberProcess {
  handled = 0;
  joins = 0;
  /** Errors that its own commits got. */
  refused = [];
  /** From when it was stopped until it has joined again its records are not its own any more. */
  isFrozen = false;
  /** Records that it handled meanwhile: those that it had in memory until it found out. */
  late = 0;
  #sentinel;

  constructor(child, sentinel) {
    this.child = child;
    this.name = `process ${child.pid}`;
    this.#sentinel = sentinel;
    child.on('message', ([event, ...details]) => this.#on(event, ...details));
  }

  #on(event, key, number) {
    if (event === 'refused') this.refused.push(key);
    else if (event === 'join') {
      this.joins++;
      this.isFrozen = false;
    } else if (this.isFrozen) {
      if (event === 'end') this.late++;
    } else if (event === 'begin') this.#sentinel.begin(this.name, key, number);
    else {
      this.#sentinel.end(key, number);
      this.handled++;
    }
  }

  /** Stops it (SIGSTOP) where `condition` holds. Its connections stay, and it knows of nothing. */
  async freeze(condition) {
    for (let i = 0; i < freezesMax; i++) {
      this.child.kill('SIGSTOP');
      // What came over its pipe before it stopped is still to be read.
      await delay(50);
      if (condition()) {
        this.isFrozen = true;
        return;
      }
      this.child.kill('SIGCONT');
      await delay(50);
    }
    throw new Error(`${this.name} could not be stopped where it was to be`);
  }

  thaw() {
    this.child.kill('SIGCONT');
  }
}

/** `commitsEach`: by itself, in its handler, instead of kafkajs' own way. */
export async function startMember(t, group, { handleMs, commitsEach = false }) {
  const { sentinel, topic, groupId } = group;
  const args = [t.suite.bootstrap, topic, groupId, String(handleMs)];
  const child = fork(memberScript, commitsEach ? [...args, 'commits'] : args);
  t.onClose('process', () => kill(child));
  const member = new MemberProcess(child, sentinel);
  await until('the process has joined', () => member.joins > 0);
  return member;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** A Keylane of a check's own, which it may kill and start again on the same data. */
class OwnBroker {
  constructor(port, dataFolder) {
    this.address = `127.0.0.1:${port}`;
    this.dataFolder = dataFolder;
    this.child = undefined;
  }

  async start() {
    const bin = process.env.COMPAT_BIN ?? defaultBin;
    const place = ['--listen', this.address, '--data', this.dataFolder];
    const settings = ['--keyed', 'keyed-*', '--set', 'group.initial.rebalance.delay.ms=0'];
    this.child = spawn(process.execPath, [bin, 'start', ...place, ...settings], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: this.child.stdout });
    const ready = new Promise((resolve, reject) => {
      lines.on('line', (line) => {
        if (line.includes('"msg":"ready"')) resolve();
      });
      lines.once('close', () => reject(new Error('the broker ended before it was ready')));
    });
    await within('start of a broker', startMsMax, ready);
  }

  kill() {
    return kill(this.child);
  }
}

/** Resolves with the broker and a context whose clients talk to it. */
export async function startBroker(t) {
  const dataFolder = await mkdtemp(join(tmpdir(), 'kafkajs-keyed-'));
  t.onClose('data', () => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));
  const broker = new OwnBroker(await freePort(), dataFolder);
  t.onClose('broker', () => broker.kill());
  await broker.start();
  const context = await new Context(new Suite(broker.address), t.onClose).open();
  return { broker, context };
}
