/**
 * Runs foreign clients against a broker: `npm run compat -- [--kafka] [--nodes 3] [client ...]`.
 *
 * Every suite is a folder `compat-tests/<client>` with a `run.sh BOOTSTRAP` that ends with a line
 * `N passed, N failed`. Each gets a broker of its own on a fresh data directory, so that no suite
 * sees the topics or the damage of another. With --kafka the broker is Apache Kafka itself: a check
 * that fails there is wrong, whatever Keylane does. With --nodes 3 it is a cluster, of which the
 * suites are told one node that does not lead; with --failover too only the checks run that kill
 * the node that leads, of the clients that have some.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { ClusterView } from '../src/broker/admin/cluster-view.ts';
import { freePorts } from '../test/free-ports.ts';

const startMsMax = 60_000;
const stopMsMax = 10_000;
const suiteMsMax = 900_000;
const logLinesMax = 40;
/** Topics of these names are in keyed delivery; Apache Kafka has none, so suites leave them out. */
const keyedTopics = 'keyed-*';

const root = fileURLToPath(new URL('../..', import.meta.url));
const suitesFolder = join(root, 'compat-tests');

/** Clients with checks that kill the node that leads. */
const failoverClients = {
  go: ['franz-go', 'sarama'],
  python: ['aiokafka', 'kafka-python', 'librdkafka'],
};

type BrokerKind = 'keylane' | 'kafka';

interface Broker {
  readonly address: string;
  /** Of the node that leads, for checks that write requests themselves. */
  readonly leader: string;
  readonly leaderPid: number;
  readonly children: readonly ChildProcess[];
  /** The newest lines of the broker's own output, shown when a suite fails. */
  readonly logTail: string[];
  readonly dataFolder: string;
}

/** What the suites run against. */
interface Target {
  readonly kind: BrokerKind;
  /** The program that starts Keylane. */
  readonly bin: string;
  readonly nodes: number;
  readonly failover: boolean;
}

interface SuiteResult {
  readonly client: string;
  readonly passed: number;
  readonly failed: number;
  readonly seconds: number;
  /** Null when the suite passed, otherwise what is wrong with it. */
  readonly fault: string | null;
}

/** All running children and their data; an interrupt must leave none of them behind. */
const running = new Set<ChildProcess>();
const dataFolders = new Set<string>();

function spawnGroup(command: string, args: string[], env: NodeJS.ProcessEnv): ChildProcess {
  // A group of its own: run.sh starts Maven, Go or npm, and those have children again.
  const child = spawn(command, args, {
    cwd: root,
    env: { ...process.env, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    // The group may have ended between our look and the signal.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

/** True once the broker answers an ApiVersions v0 request: an open port alone says too little. */
function answersApiVersions(port: number): Promise<boolean> {
  const request = Buffer.from('0000000a0012000000000001ffff', 'hex');
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    const finish = (answered: boolean) => {
      socket.destroy();
      done(answered);
    };
    socket.setTimeout(2_000, () => finish(false));
    socket.once('data', () => finish(true));
    socket.once('error', () => finish(false));
    socket.once('close', () => done(false));
  });
}

/** Resolves with the address of Keylane's `ready` line, or null if its output ends before. */
function readyAddress(child: ChildProcess, logTail: string[]): Promise<string | null> {
  return new Promise((done) => {
    followLines(child, logTail, (line) => {
      if (!line.startsWith('{') || !line.includes('"ready"')) return;
      const entry: unknown = JSON.parse(line);
      if (typeof entry !== 'object' || entry === null) return;
      const { msg, address } = entry as { msg?: unknown; address?: unknown };
      if (msg === 'ready' && typeof address === 'string') done(address);
    });
    child.once('close', () => done(null));
  });
}

/** Reads both outputs to the end, so that the child never blocks on a full pipe. */
function followLines(child: ChildProcess, tail: string[], onLine: (line: string) => void): void {
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on('line', (line) => {
      tail.push(line);
      if (tail.length > logLinesMax) tail.shift();
      onLine(line);
    });
  }
}

// As start.sh sets it for Apache Kafka: suites with hundreds of groups need not wait for each.
const commonArgs = ['--keyed', keyedTopics, '--set', 'group.initial.rebalance.delay.ms=0'];

async function startKeylane(bin: string, dataFolder: string): Promise<Broker> {
  const place = ['--listen', '127.0.0.1:0', '--data', dataFolder, '--set', 'admin.listen='];
  const child = spawnGroup(process.execPath, [bin, 'start', ...place, ...commonArgs], {});
  const logTail: string[] = [];
  const timeout = delay(startMsMax, null, { ref: false });
  const address = await Promise.race([readyAddress(child, logTail), timeout]);
  const children = [child];
  const broker = {
    address: address ?? '',
    leader: address ?? '',
    leaderPid: 0,
    children,
    logTail,
    dataFolder,
  };
  if (address === null) await failStart(broker);
  return broker;
}

/** The address is that of a node that does not lead. */
async function startCluster(bin: string, dataFolder: string, nodes: number): Promise<Broker> {
  const ids = Array.from({ length: nodes }, (_, i) => i + 1);
  const ports = await freePorts(3 * nodes);
  const peers = ids.map((id) => `${id}@127.0.0.1:${ports[id - 1]}`).join(',');
  const logTail: string[] = [];
  const children = ids.map((id) => {
    const listen = `127.0.0.1:${ports[nodes + id - 1]}`;
    const admin = `admin.listen=127.0.0.1:${ports[2 * nodes + id - 1]}`;
    const place = ['--listen', listen, '--data', join(dataFolder, String(id)), '--set', admin];
    const member = ['--node-id', String(id), '--cluster', peers];
    const args = [bin, 'start', ...place, ...member, ...commonArgs];
    return spawnGroup(process.execPath, args, { KEYLANE_CLUSTER_SECRET: 'only for these tests' });
  });
  const addresses = await Promise.all(children.map((child) => readyAddress(child, logTail)));
  const broker = { address: '', leader: '', leaderPid: 0, children, logTail, dataFolder };
  const deadline = Date.now() + startMsMax;
  for (;;) {
    if (addresses.includes(null) || Date.now() > deadline) await failStart(broker);
    const answer = await fetch(`http://127.0.0.1:${ports[2 * nodes]}/cluster`);
    const { leaderId, members } = (await answer.json()) as ClusterView;
    const voters = members.filter(({ role }) => role !== 'learner');
    const follower = ids.find((id) => id !== leaderId)!;
    if (leaderId > 0 && voters.length === nodes) {
      const [address, leader] = [addresses[follower - 1]!, addresses[leaderId - 1]!];
      return { ...broker, address, leader, leaderPid: children[leaderId - 1]!.pid! };
    }
    // It is formed one by one.
    await delay(100);
  }
}

async function startKafka(dataFolder: string): Promise<Broker> {
  const [port] = (await freePorts(1)) as [number];
  const script = join(suitesFolder, 'apache-kafka', 'start.sh');
  const child = spawnGroup('bash', [script, String(port), dataFolder], {});
  const address = `127.0.0.1:${port}`;
  const children = [child];
  const broker = {
    address,
    leader: address,
    leaderPid: 0,
    children,
    logTail: [] as string[],
    dataFolder,
  };
  followLines(child, broker.logTail, () => {});
  const deadline = Date.now() + startMsMax;
  while (!(await answersApiVersions(port))) {
    if (child.exitCode !== null || Date.now() > deadline) await failStart(broker);
    await delay(200);
  }
  return broker;
}

async function failStart(broker: Broker): Promise<never> {
  await stopBroker(broker);
  throw new Error(`the broker did not start:\n${broker.logTail.join('\n')}`);
}

function startBroker({ kind, bin, nodes }: Target): Promise<Broker> {
  const dataFolder = mkdtempSync(join(tmpdir(), `compat-${kind}-`));
  dataFolders.add(dataFolder);
  if (kind === 'kafka') return startKafka(dataFolder);
  return nodes > 1 ? startCluster(bin, dataFolder, nodes) : startKeylane(bin, dataFolder);
}

async function stopBroker({ children, dataFolder }: Broker): Promise<void> {
  await Promise.all(children.map(stopChild));
  removeData(dataFolder);
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  signalGroup(child, 'SIGTERM');
  const stopped = await Promise.race([exited, delay(stopMsMax, null, { ref: false })]);
  if (stopped === null) signalGroup(child, 'SIGKILL');
  await exited;
}

function removeData(folder: string): void {
  // Retries, because a killed broker may still be writing while its folder goes.
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  dataFolders.delete(folder);
}

/** How a suite is told to run these checks alone. */
function failoverArgs(client: string): readonly string[] {
  return failoverClients.go.includes(client)
    ? ['keyed/the-leader-is-killed']
    : ['-k', 'the_leader_is_killed', '-s'];
}

/** Runs one suite; its output goes to ours, and its last summary line is what counts. */
async function runSuite(
  client: string,
  { kind, bin, nodes, failover }: Target,
  { address, leader, leaderPid }: Broker,
): Promise<SuiteResult> {
  const startedMs = Date.now();
  const script = join(suitesFolder, client, 'run.sh');
  // COMPAT_BIN is for checks that need a broker of their own, which they may end and start again.
  const place = { COMPAT_NODES: String(nodes), COMPAT_LEADER: leader };
  const killed = failover ? { COMPAT_LEADER_PID: String(leaderPid) } : {};
  const env = { COMPAT_BROKER: kind, COMPAT_BIN: bin, ...place, ...killed };
  const child = spawnGroup(
    'bash',
    [script, address, ...(failover ? failoverArgs(client) : [])],
    env,
  );
  let passed = 0;
  let failed = 0;
  let hasSummary = false;
  followLines(child, [], (line) => {
    console.log(line);
    const summary = /^(\d+) passed, (\d+) failed$/.exec(line.trim());
    if (summary === null) return;
    hasSummary = true;
    passed = Number(summary[1]);
    failed = Number(summary[2]);
  });
  const overdue = setTimeout(() => signalGroup(child, 'SIGKILL'), suiteMsMax);
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  clearTimeout(overdue);
  let fault: string | null = null;
  if (signal !== null) fault = `ended by ${signal}`;
  else if (!hasSummary) fault = `no line "N passed, N failed", exit status ${code}`;
  else if (failed > 0) fault = `${failed} failed`;
  else if (code !== 0) fault = `exit status ${code}`;
  return { client, passed, failed, seconds: (Date.now() - startedMs) / 1000, fault };
}

async function runOnFreshBroker(client: string, target: Target): Promise<SuiteResult> {
  const { kind, nodes } = target;
  console.log(`\n=== ${client} on ${kind}${nodes > 1 ? `, ${nodes} nodes` : ''} ===`);
  let broker: Broker;
  try {
    broker = await startBroker(target);
  } catch (error) {
    console.log(error instanceof Error ? error.message : String(error));
    return { client, passed: 0, failed: 0, seconds: 0, fault: 'the broker did not start' };
  }
  const killed = target.failover ? broker.leaderPid : 0;
  let brokerDied = false;
  for (const child of broker.children) {
    child.once('exit', () => {
      brokerDied ||= child.pid !== killed;
    });
  }
  try {
    const result = await runSuite(client, target, broker);
    const fault = brokerDied ? 'the broker ended during the suite' : result.fault;
    if (fault !== null) console.log(`--- broker output ---\n${broker.logTail.join('\n')}`);
    return { ...result, fault };
  } finally {
    await stopBroker(broker);
  }
}

function availableClients(): string[] {
  return readdirSync(suitesFolder)
    .filter((client) => existsSync(join(suitesFolder, client, 'run.sh')))
    .sort();
}

function printTable(results: readonly SuiteResult[]): void {
  const width = Math.max(6, ...results.map((result) => result.client.length));
  console.log(`\n${'client'.padEnd(width)}  passed  failed  seconds  result`);
  for (const { client, passed, failed, seconds, fault } of results) {
    const counts = `${String(passed).padStart(6)}  ${String(failed).padStart(6)}`;
    const time = seconds.toFixed(1).padStart(7);
    console.log(`${client.padEnd(width)}  ${counts}  ${time}  ${fault ?? 'ok'}`);
  }
}

function stopEverythingOn(signal: NodeJS.Signals, exitStatus: number): void {
  process.once(signal, () => {
    for (const child of running) signalGroup(child, 'SIGKILL');
    for (const folder of dataFolders) removeData(folder);
    process.exit(exitStatus);
  });
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      kafka: { type: 'boolean', default: false },
      nodes: { type: 'string', default: '1' },
      failover: { type: 'boolean', default: false },
      bin: { type: 'string', default: join(root, 'bin', 'keylane.cjs') },
    },
  });
  const { go, python } = failoverClients;
  const available = values.failover ? [...go, ...python] : availableClients();
  const unknown = positionals.filter((client) => !available.includes(client));
  if (unknown.length > 0) {
    console.error(`no suite ${unknown.join(', ')}; there are: ${available.join(', ')}`);
    process.exit(2);
  }
  stopEverythingOn('SIGINT', 130);
  stopEverythingOn('SIGTERM', 143);
  const target: Target = {
    kind: values.kafka ? 'kafka' : 'keylane',
    bin: resolve(values.bin),
    nodes: Number(values.nodes),
    failover: values.failover,
  };
  const results: SuiteResult[] = [];
  for (const client of positionals.length > 0 ? positionals : available) {
    results.push(await runOnFreshBroker(client, target));
  }
  printTable(results);
  process.exitCode = results.every((result) => result.fault === null) ? 0 : 1;
}

await main();
