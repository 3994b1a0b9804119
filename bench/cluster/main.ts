/**
 * What a cluster of three brokers on one machine costs, and how long it is without a leader, beside
 * Apache Kafka's: `npm run bench:cluster`. See README.md of this folder.
 */
import { Command } from 'commander';
import { positive } from '../options.ts';
import { firstGrants, topic } from './first-grant.ts';
import { load } from './load.ts';
import { delay, KafkaNodes, KeylaneNodes, type Nodes, Pinger } from './nodes.ts';
import { slowDisk } from './slow-disk.ts';
import { manyPartitions } from './turns.ts';

interface Options {
  readonly rounds: number;
  readonly runs: number;
  readonly batches: number;
  readonly port: number;
  readonly only?: string;
}

const options = new Command('bench:cluster')
  .option('--rounds <n>', 'how often the leader goes', positive, 10)
  .option('--runs <n>', 'of the throughput', positive, 3)
  .option('--batches <n>', 'of the throughput, of 16 kB each', positive, 30_000)
  .option('--port <n>', 'ports from here on', positive, 19300)
  .option('--only <part>', 'failover, handover, grant, throughput, slow-disk or turns')
  .parse()
  .opts<Options>();

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
const isWanted = (part: string) => options.only === undefined || options.only === part;
// Three nodes write as much as the disk of a small machine has.
const unguarded = ['disk.low.water.bytes=0', 'disk.reserve.bytes=0'];
const keylaneOf = (count: number, settings: readonly string[] = [], measuresTurns = false) =>
  new KeylaneNodes(count, options.port, [...unguarded, ...settings], measuresTurns);
const kafkaOf = (count: number) => new KafkaNodes(count, options.port + 50);
const brokers = [
  ['Keylane', keylaneOf],
  ['Apache Kafka', kafkaOf],
] as const;
for (const [name, nodesOf] of brokers) {
  if (isWanted('failover')) await leaderGoes(nodesOf(3), 'SIGKILL', `${name}, kill -9`);
  if (isWanted('handover')) await leaderGoes(nodesOf(3), 'SIGTERM', `${name}, SIGTERM`);
}
if (isWanted('grant')) await grants();
if (isWanted('throughput')) await throughput();
if (isWanted('slow-disk')) await slowDisk((settings) => keylaneOf(3, settings), options.runs);
if (isWanted('turns')) await manyPartitions((settings) => keylaneOf(3, settings, true));
process.exit(0);

/** From the signal to the first acknowledged produce after it; ms. */
async function leaderGoes(nodes: Nodes, signal: NodeJS.Signals, what: string): Promise<void> {
  try {
    await nodes.startAll();
    const gaps: number[] = [];
    for (let round = 0; round < options.rounds; round++) {
      const leader = await nodes.whole();
      const pinger = new Pinger(nodes);
      for (let i = 0; i < 200; i++) await pinger.send();
      let longest = 0;
      let last = performance.now();
      nodes.signal(leader, signal);
      const endMs = last + 2500;
      while (performance.now() < endMs) {
        await pinger.send();
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
      }
      pinger.close();
      gaps.push(longest);
      await nodes.exited(leader);
      nodes.start(leader);
      await nodes.whole();
    }
    gaps.sort((a, b) => a - b);
    const median = gaps[Math.floor(gaps.length / 2)]!;
    const all = gaps.map((gap) => gap.toFixed(0)).join(' ');
    console.log(
      `${what}: median ${median.toFixed(0)} ms, worst ${gaps.at(-1)!.toFixed(0)} ms (${all})`,
    );
  } finally {
    nodes.stop();
  }
}

/** With a million records of 100 bytes and five thousand keys before the group. */
async function grants(): Promise<void> {
  const nodes = keylaneOf(3, [`keyed.topics=${topic}`]);
  try {
    await nodes.startAll();
    const leader = await nodes.whole();
    const backlog = { prefix: 'backlog', hasKeys: true, recordBytes: 100, batchBytes: 500_000 };
    load(nodes, leader, 'create', backlog);
    load(nodes, leader, 'produce', { ...backlog, batches: 200, batchesPerRequest: 1 });
    const found = await firstGrants(nodes, options.rounds);
    const names = {
      electedMs: 'killed to elected',
      readyMs: 'elected to records that may be granted',
      grantedMs: 'elected to the first grant',
    } as const;
    for (const what of ['electedMs', 'readyMs', 'grantedMs'] as const) {
      const sorted = found.map((one) => one[what]).sort((a, b) => a - b);
      const [median, worst] = [sorted[sorted.length >> 1]!, sorted.at(-1)!];
      console.log(`${names[what]}: median ${median.toFixed(0)} ms, worst ${worst.toFixed(0)} ms`);
    }
  } finally {
    nodes.stop();
  }
}

interface Throughput {
  readonly rate: number;
  /** Of all brokers, for a million records. */
  readonly cpuSeconds: number;
}

/** Acknowledged records of 1 kB, acks=all, of each cluster in turn. */
async function throughput(): Promise<void> {
  const arms = [
    ['Keylane, one node', () => keylaneOf(1)],
    ['Keylane, three nodes', () => keylaneOf(3)],
    ['Apache Kafka, three nodes', () => kafkaOf(3)],
  ] as const;
  const found = arms.map(() => [] as Throughput[]);
  for (let run = 0; run < options.runs; run++) {
    for (const [i, [, nodesOf]] of arms.entries()) found[i]!.push(await loaded(nodesOf()));
  }
  const medians = found.map((runs) => [...runs].sort((a, b) => a.rate - b.rate)[runs.length >> 1]!);
  for (const [i, [name]] of arms.entries()) {
    const rates = found[i]!.map(({ rate }) => `${(rate / 1000).toFixed(0)} k/s`).join(' ');
    const cpu = medians[i]!.cpuSeconds.toFixed(1);
    console.log(`${name}: ${rates}; ${cpu} s of all brokers' processor time per million`);
  }
  const [one, three, kafka] = medians.map(({ rate }) => rate) as [number, number, number];
  console.log(`three nodes over one: ${(three / one).toFixed(2)}`);
  console.log(`three nodes over Apache Kafka's: ${(three / kafka).toFixed(2)}`);
}

async function loaded(nodes: Nodes): Promise<Throughput> {
  try {
    await nodes.startAll();
    const leader = await nodes.whole();
    await delay(500);
    // All partitions have one leader, wherever replicas are placed.
    const replicas = [leader, ...nodes.ids.filter((id) => id !== leader)];
    load(nodes, leader, 'create', { replicas });
    load(nodes, leader, 'produce', { batches: 3000 });
    const cpu = () => nodes.ids.reduce((sum, id) => sum + nodes.cpuSeconds(id), 0);
    const before = cpu();
    const { records, seconds } = load(nodes, leader, 'produce', { batches: options.batches });
    return { rate: records / seconds, cpuSeconds: ((cpu() - before) / records) * 1e6 };
  } finally {
    nodes.stop();
  }
}
