/**
 * What a cluster of three brokers on one machine costs, and how long it is without a leader:
 * `npm run bench:cluster`. See README.md of this folder.
 */
import { execFileSync } from 'node:child_process';
import { Command } from 'commander';
import { positive } from '../options.ts';
import { project } from '../paths.ts';
import type { LoadResult } from '../raw-client.ts';
import { delay, Nodes, Pinger } from './nodes.ts';

interface Options {
  readonly rounds: number;
  readonly port: number;
  readonly only?: string;
}

const options = new Command('bench:cluster')
  .option('--rounds <n>', 'how often the leader goes', positive, 10)
  .option('--port <n>', 'ports from here on', positive, 19300)
  .option('--only <part>', 'failover, handover or throughput')
  .parse()
  .opts<Options>();

const isWanted = (part: string) => options.only === undefined || options.only === part;
if (isWanted('failover')) await leaderGoes('SIGKILL', 'leader killed (kill -9)');
if (isWanted('handover')) await leaderGoes('SIGTERM', 'leader stopped (SIGTERM)');
if (isWanted('throughput')) await throughput();
process.exit(0);

/** From the signal to the first acknowledged produce after it; ms. */
async function leaderGoes(signal: NodeJS.Signals, what: string): Promise<void> {
  const nodes = new Nodes(3, options.port, []);
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

/** Acknowledged records of 1 kB, acks=all, with one voter and with three in turn. */
async function throughput(): Promise<void> {
  const settings = ['disk.low.water.bytes=0', 'disk.reserve.bytes=0'];
  const rates = new Map<number, number[]>([
    [1, []],
    [3, []],
  ]);
  for (let run = 0; run < 3; run++) {
    for (const [count, found] of rates) {
      const nodes = new Nodes(count, options.port, settings);
      try {
        await nodes.startAll();
        const leader = await nodes.whole();
        await delay(500);
        found.push(load(nodes, leader));
      } finally {
        nodes.stop();
      }
    }
  }
  for (const [count, found] of rates) {
    found.sort((a, b) => a - b);
    console.log(
      `${count} voters: ${found.map((rate) => `${(rate / 1000).toFixed(0)} k/s`).join(' ')}`,
    );
  }
  const [one, three] = [rates.get(1)![1]!, rates.get(3)![1]!];
  console.log(`three voters over one: ${(three / one).toFixed(2)}`);
}

function load(nodes: Nodes, leader: number): number {
  const { host, port } = nodes.target(leader);
  const run = (mode: string, load: object) => {
    const text = JSON.stringify({ prefix: 'load', topics: 1, partitions: 8, ...load });
    const script = project('dist/bench/raw-load.js');
    return execFileSync(process.execPath, [script, mode, `${host}:${port}`, text]).toString();
  };
  run('create', {});
  const result = JSON.parse(run('produce', { batches: 30_000 })) as LoadResult;
  return result.records / result.seconds;
}
