/**
 * Three brokers in processes of their own, load from unchanged clients (idempotent producers of
 * kafkajs and Java, a group in keyed delivery), and one thing after the other that goes wrong:
 * `npm run rounds -- [--rounds 50] [--seed N] [--only TEXT] [--from BIN]`. With --from the nodes are started with an
 * older version, and upgraded one by one in the first rounds. At the end nothing that was
 * acknowledged may be lost, nothing be there twice, all be in order, and each record of the group
 * have been handled, one of its key at a time. Needs root (a small file system for each node).
 */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { logLevel, type Producer } from 'kafkajs';
import { seededRandom } from '../../src/core/random.ts';
import { check, Load, partitions } from '../../test/durability/cluster-load.ts';
import { ClusterProcesses } from '../../test/durability/cluster-processes.ts';
import { freePorts } from '../../test/free-ports.ts';
import { type Group, javaGroup, kafkajsGroup } from './groups.ts';
import { JavaProcess } from './java-process.ts';

const mib = 1024 * 1024;
const diskBytes = 1024 * mib;
const settings = [
  `journal.file.bytes=${16 * mib}`,
  `journal.snapshot.bytes=${8 * mib}`,
  `disk.low.water.bytes=${16 * mib}`,
  `disk.reserve.bytes=${4 * mib}`,
  'keyed.topics=chat',
];
/** How long a node stands still or is cut off: longer than any lease, shorter than clients wait. */
const harmMs = 2500;
const dayMs = 86_400_000;
const keys = 20;
/** So much of each load has to come through after each round. */
const more = 30;
const roundMsMax = 90_000;

const options = new Command('rounds')
  .option('--rounds <n>', 'how many', '50')
  .option('--seed <n>', 'decides what happens when', '1')
  .option('--only <text>', 'only what has this in its name', '')
  .option('--log <file>', 'what the brokers log, and when each round begins')
  .option('--client-log', 'what kafkajs says')
  .option('--from <bin>', 'an older program to start with: its bin/keylane.cjs')
  .parse()
  .opts<{
    rounds: string;
    seed: string;
    only: string;
    clientLog?: boolean;
    log?: string;
    from?: string;
  }>();

const root = fileURLToPath(new URL('../../..', import.meta.url));
const preload = join(root, 'scripts', 'rounds', 'shifted-clock.mjs');
const random = seededRandom(Number(options.seed));
const folder = mkdtempSync(join(tmpdir(), 'keylane-rounds-'));
const upgraded = new Set<number>();

function below(bound: number): number {
  return Math.floor(random.next() * bound);
}

function pick<T>(items: readonly T[]): T {
  return items[below(items.length)]!;
}

function sleep(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

const clockFile = (id: number) => join(folder, `clock-${id}`);

function note(line: string): void {
  if (options.log !== undefined) appendFileSync(options.log, `${line}\n`);
}

const adminPorts = await freePorts(3);
const adminOf = (id: number) => `127.0.0.1:${adminPorts[id - 1]}`;
const cluster = await ClusterProcesses.create(folder, {
  admin: adminOf,
  onLine: (id, line) => note(`${id} ${line}`),
  settings,
  isProxied: true,
  env: (id) => ({ SHIFTED_CLOCK_FILE: clockFile(id), NODE_OPTIONS: `--import=${preload}` }),
  ...(options.from !== undefined && {
    bin: (id: number) =>
      upgraded.has(id) ? join(root, 'bin', 'keylane.cjs') : resolve(options.from!),
  }),
});

function shiftClock(id: number, ms: number): void {
  writeFileSync(clockFile(id), String(ms));
}

for (const id of cluster.ids) {
  mkdirSync(cluster.folder(id));
  const size = `size=${diskBytes}`;
  execFileSync('mount', ['-t', 'tmpfs', '-o', size, 'tmpfs', cluster.folder(id)]);
}

function cleanUp(): void {
  cluster.stop();
  for (const id of cluster.ids) execFileSync('umount', ['-l', cluster.folder(id)]);
  rmSync(folder, { recursive: true, force: true });
}

/** The Java producer, and what it was told. */
class JavaLoad {
  readonly acknowledged = new Set<string>();
  readonly errors: string[] = [];
  readonly #process: JavaProcess;

  constructor(topic: string) {
    const args = ['Load', cluster.brokers.join(','), topic, String(partitions)];
    this.#process = new JavaProcess(args, (line) => {
      if (line.startsWith('error')) this.errors.push(line);
      else this.acknowledged.add(line);
    });
  }

  stop(): Promise<void> {
    return this.#process.stop();
  }
}

/** Numbers of keys, each in order, for the group in keyed delivery. */
class KeyedLoad {
  readonly sent = new Map<string, number>();
  acknowledged = 0;
  readonly #producer: Producer;
  readonly #running: Promise<void>;
  #isStopped = false;

  constructor(producer: Producer) {
    this.#producer = producer;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const key = `k${below(keys)}`;
      const number = this.sent.get(key) ?? 0;
      await this.#producer.send({ topic: 'chat', messages: [{ key, value: String(number) }] });
      this.sent.set(key, number + 1);
      this.acknowledged++;
      await sleep(3);
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }
}

// What goes wrong. Each answers when everything works again.

/** The present leader, and the others. */
async function roles(): Promise<{ readonly leader: number; readonly followers: number[] }> {
  const leader = await cluster.whole();
  return { leader, followers: cluster.others(leader) };
}

async function kill(id: number): Promise<void> {
  await cluster.end(id, 'SIGKILL');
  await sleep(below(2000));
  await cluster.start(id);
}

/** A file takes all the space that there is, as another program might. */
async function fill(id: number): Promise<void> {
  const ballast = join(cluster.folder(id), 'ballast');
  const { bavail, bsize } = statfsSync(cluster.folder(id));
  try {
    writeFileSync(ballast, Buffer.alloc(bavail * bsize));
  } catch {
    // The node wrote meanwhile: what there was is taken.
  }
  const moved = async () => (await cluster.leader(cluster.others(id))) !== id;
  while (!(await moved())) await sleep(50);
  await sleep(harmMs);
  rmSync(ballast);
}

async function wipe(id: number): Promise<void> {
  await cluster.end(id, 'SIGKILL');
  for (const name of readdirSync(cluster.folder(id))) {
    rmSync(join(cluster.folder(id), name), { recursive: true });
  }
  const nodes = ['--cluster', cluster.nodes(cluster.others(id))];
  // While nobody leads it is refused.
  for (;;) {
    const { code } = await cluster.run(['cluster', 'remove', String(id), ...nodes]);
    if (code === 0) break;
    await sleep(200);
  }
  await cluster.start(id);
}

const harms: Readonly<Record<string, () => Promise<void>>> = {
  'kill -9 of the leader': async () => kill((await roles()).leader),
  'kill -9 of a follower': async () => kill(pick((await roles()).followers)),
  'the leader stands still': async () => {
    const { leader } = await roles();
    cluster.signal(leader, 'SIGSTOP');
    await sleep(harmMs);
    cluster.signal(leader, 'SIGCONT');
  },
  'the leader is cut off': async () => {
    const { leader, followers } = await roles();
    for (const id of followers) {
      cluster.network.cut(leader, id);
      cluster.network.cut(id, leader);
    }
    await sleep(harmMs);
    cluster.network.heal();
  },
  'the leader does not hear a follower': async () => {
    const { leader, followers } = await roles();
    cluster.network.cut(pick(followers), leader);
    await sleep(harmMs);
    cluster.network.heal();
  },
  'nobody hears the leader': async () => {
    const { leader, followers } = await roles();
    for (const id of followers) cluster.network.cut(leader, id);
    await sleep(harmMs);
    cluster.network.heal();
  },
  'a rolling restart': async () => {
    for (const id of cluster.ids) {
      await cluster.whole();
      await cluster.end(id, 'SIGTERM');
      await cluster.start(id);
    }
  },
  "the leader's disk is full": async () => fill((await roles()).leader),
  'a follower loses its disk': async () => wipe(pick((await roles()).followers)),
  "the leader's clock jumps ten years ahead": async () => {
    const { leader } = await roles();
    shiftClock(leader, 3650 * dayMs);
    await sleep(harmMs);
    shiftClock(leader, 0);
  },
  // As leader it would refuse records that seem to be of tomorrow, as Kafka does.
  "a follower's clock jumps a day back, and stays there over a restart": async () => {
    const id = pick((await roles()).followers);
    shiftClock(id, -dayMs);
    await sleep(harmMs / 2);
    await cluster.end(id, 'SIGTERM');
    await cluster.start(id);
    await cluster.whole();
    shiftClock(id, 0);
  },
};

async function upgrade(id: number): Promise<void> {
  upgraded.add(id);
  await cluster.end(id, 'SIGTERM');
  await cluster.start(id);
}

interface Loads {
  readonly kafkajs: Load;
  readonly java: JavaLoad;
  readonly keyed: KeyedLoad;
  readonly groups: readonly Group[];
}

/** How many of these produce; the others are groups. */
const producers = 3;
const loadNames = ['kafkajs', 'java', 'keyed producer', 'kafkajs group', 'java group'];

function progressOf({ kafkajs, java, keyed, groups }: Loads): number[] {
  const produced = [kafkajs.acknowledged.size, java.acknowledged.size, keyed.acknowledged];
  return [...produced, ...groups.map(({ handled }) => handled.records)];
}

/** Until all loads are through with more than at the beginning of it; answers how long each took. */
async function untilAllGoOn(loads: Loads): Promise<number[]> {
  const startedMs = performance.now();
  const before = progressOf(loads);
  const tookMs = before.map(() => -1);
  const isNeeded = (i: number) => loads.groups[i - producers]?.isSteady ?? true;
  while (tookMs.some((ms, i) => ms === -1 && isNeeded(i))) {
    if (performance.now() - startedMs > roundMsMax) {
      const stuck = loadNames.filter((_, i) => tookMs[i] === -1);
      await showGroups();
      throw new Error(`${stuck} did not go on within ${roundMsMax} ms`);
    }
    await sleep(20);
    for (const [i, now] of progressOf(loads).entries()) {
      if (tookMs[i] === -1 && now >= before[i]! + more) {
        tookMs[i] = Math.round(performance.now() - startedMs);
      }
    }
  }
  return tookMs;
}

/** What the leader says that groups wait for. */
async function showGroups(): Promise<void> {
  const { leader } = await roles();
  for (const group of ['kafkajs-chat', 'java-chat']) {
    const { output } = await cluster.run(['groups', group, '--admin', adminOf(leader)]);
    console.log(output);
  }
}

function checkFaults(groups: readonly Group[]): void {
  const faults = groups.flatMap(({ handled }) => handled.faults);
  if (faults.length > 0) throw new Error(faults.slice(0, 5).join('; '));
}

async function run(): Promise<void> {
  await cluster.startAll();
  const level = options.clientLog === true ? logLevel.INFO : logLevel.NOTHING;
  const kafka = cluster.client('rounds', cluster.ids, level);
  const admin = kafka.admin();
  await admin.connect();
  const topics = ['orders', 'payments', 'chat'].map((topic) => {
    return { topic, numPartitions: partitions, replicationFactor: 3 };
  });
  await admin.createTopics({ topics });
  await admin.disconnect();
  const [producer, keyedProducer] = [0, 1].map(() => {
    return kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  }) as [Producer, Producer];
  await producer.connect();
  await keyedProducer.connect();
  const groups = [await kafkajsGroup(kafka, 'chat', 3), javaGroup(cluster.brokers, 'chat', 3)];
  const loads = {
    kafkajs: new Load(producer, 'orders', 5),
    java: new JavaLoad('payments'),
    keyed: new KeyedLoad(keyedProducer),
    groups,
  };
  await untilAllGoOn(loads);
  const names = Object.keys(harms).filter((name) => name.includes(options.only));
  const upgrades = options.from === undefined ? [] : cluster.ids;
  const rounds = Number(options.rounds);
  console.log(`round  what, and ms until these went on: ${loadNames.join(', ')}`);
  for (let round = 0; round < rounds; round++) {
    const id = upgrades[round];
    const name = names[round % names.length]!;
    const what = id === undefined ? name : `node ${id} gets the new version`;
    const before = groups.map(({ handled: { joins, again } }) => ({ joins, again }));
    const startedMs = performance.now();
    note(`${new Date().toISOString()} round ${round + 1}: ${what}`);
    if (id === undefined) await harms[name]!();
    else await upgrade(id);
    const tookMs = await untilAllGoOn(loads);
    await cluster.whole();
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    const moves = groups.map(({ handled: { joins, again } }, i) => {
      return `${joins - before[i]!.joins}+${again - before[i]!.again}`;
    });
    const number = String(round + 1).padStart(5);
    console.log(`${number}  ${what}: ${tookMs}; joins+again ${moves}; ${seconds} s in all`);
    checkFaults(groups);
  }
  await Promise.all([loads.kafkajs.stop(), loads.java.stop(), loads.keyed.stop()]);
  for (const one of [producer, keyedProducer]) await one.disconnect();
  if (loads.java.errors.length > 0) throw new Error(loads.java.errors.slice(0, 5).join('; '));
  await check(cluster, 'orders', loads.kafkajs);
  await check(cluster, 'payments', loads.java);
  const deadline = performance.now() + roundMsMax;
  for (;;) {
    const steady = groups.filter(({ isSteady }) => isSteady);
    const missing = steady.flatMap(({ handled }) => handled.missing(loads.keyed.sent));
    if (missing.length === 0) break;
    if (performance.now() > deadline) {
      await showGroups();
      throw new Error(`not handled: ${missing.join(', ')}`);
    }
    await sleep(50);
  }
  checkFaults(groups);
  for (const group of groups) await group.stop();
  const counts = progressOf(loads);
  console.log(`in all: ${loadNames.map((name, i) => `${name} ${counts[i]}`).join(', ')}`);
  const again = groups.map(
    ({ handled }) => `${handled.again} again, ${handled.joins} joins, ${handled.crashes} gave up`,
  );
  console.log(`groups: ${again.join('; ')}`);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    cleanUp();
    process.exit(1);
  });
}
let failed = 0;
try {
  await run();
} catch (error) {
  failed = 1;
  console.error(error);
} finally {
  cleanUp();
}
console.log(`${Number(options.rounds) - failed} passed, ${failed} failed`);
process.exit(failed);
