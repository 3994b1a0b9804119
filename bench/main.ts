/**
 * Keylane beside Apache Kafka on one machine, in turn, with the same clients: `npm run bench`.
 * See README.md of this folder.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { arch, cpus, loadavg, platform, totalmem } from 'node:os';
import { Command, InvalidArgumentError } from 'commander';
import { useKeylaneScript } from './broker-process.ts';
import { type Case, type Sample, Session } from './case.ts';
import { footprintCase } from './cases/footprint.ts';
import { latencyCases } from './cases/latency.ts';
import { manyPartitionsCase } from './cases/many-partitions.ts';
import { throughputCases } from './cases/throughput.ts';
import { turnsCase } from './cases/turns.ts';
import { project } from './paths.ts';
import { type Row, rowsOf, table } from './report.ts';

const cases: readonly Case[] = [
  ...throughputCases,
  ...latencyCases,
  footprintCase,
  manyPartitionsCase,
  turnsCase,
];

interface Options {
  readonly only: readonly string[];
  readonly runs: number;
  readonly port: number;
  readonly json?: boolean;
  readonly keylane?: string;
}

function integer(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('not a number above 0');
  return value;
}

const command = new Command('bench')
  .option('--only <names>', 'cases to run, with commas between', (text) => text.split(','), [])
  .option('--runs <n>', 'alternating runs of each', integer, 3)
  .option('--port <n>', 'port of the brokers', integer, 19092)
  .option('--json', 'print the result as JSON instead of tables')
  .option('--keylane <script>', 'start this instead of bin/keylane.cjs, to compare builds')
  .addHelpText('after', `\nCases:\n${cases.map((c) => `  ${c.name}: ${c.about}`).join('\n')}`)
  .parse();
const options = command.opts<Options>();
if (options.keylane !== undefined) useKeylaneScript(options.keylane);
for (const name of options.only) {
  if (!cases.some((one) => one.name === name)) command.error(`there is no case ${name}`);
}

/** Kafka answers from the page cache; whoever reads a table must know. */
const note =
  'Keylane syncs to disk before it acknowledges; Kafka, as it is set by default, does not: it ' +
  'acknowledges what is in the page cache. Kafka: 1 GB heap, G1, warmed up. Figures: median of ' +
  'the runs (lowest–highest); ratio: first column over second.';

const results: { name: string; about: string; rows: Row[] }[] = [];
const environment = { ...machine(), runs: options.runs, startedAt: new Date().toISOString() };
say(
  `${environment.cpu} × ${environment.cpus}, ${environment.memoryGb} GB, Node ${environment.node}`,
);
for (const bench of cases) {
  if (options.only.length > 0 && !options.only.includes(bench.name)) continue;
  try {
    const rows = rowsOf(bench, await runCase(bench));
    results.push({ name: bench.name, about: bench.about, rows });
    if (options.json !== true) console.log(`\n${table(bench, rows)}`);
  } catch (error) {
    // The other cases are worth their minutes all the same.
    console.error(`${bench.name} failed:`, error);
    process.exitCode = 1;
  }
}
const report = { note, environment, results };
const folder = project('bench/results');
mkdirSync(folder, { recursive: true });
const file = `${folder}/${environment.startedAt.replaceAll(/[:.]/g, '-')}.json`;
writeFileSync(file, `${JSON.stringify(report, undefined, 2)}\n`);
console.log(options.json === true ? JSON.stringify(report, undefined, 2) : `\n${note}\n\n${file}`);

/** Runs all variants in turn, so that what changes on the machine meets all of them. */
async function runCase(bench: Case): Promise<Map<string, Sample[][]>> {
  const runs = new Map<string, Sample[][]>();
  for (const { name, arm, prepare } of bench.variants) {
    runs.set(name, []);
    if (prepare === undefined) continue;
    say(`${bench.name}: ${name}: prepares`);
    await inSession(arm, (session) => prepare(session));
  }
  for (let run = 1; run <= options.runs; run++) {
    for (const { name, arm, measure } of bench.variants) {
      say(`${bench.name}: ${name}: run ${run} of ${options.runs}`);
      runs.get(name)!.push(await inSession(arm, measure));
    }
  }
  return runs;
}

async function inSession<T>(
  arm: Parameters<typeof Session.open>[0],
  work: (s: Session) => Promise<T>,
) {
  const session = await Session.open(arm, options.port);
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

function machine() {
  return {
    platform: `${platform()} ${arch()}`,
    cpu: cpus()[0]?.model ?? 'unknown',
    cpus: cpus().length,
    memoryGb: Math.round(totalmem() / 1e9),
    node: process.versions.node,
    loadAverage: loadavg(),
  };
}

/** Progress goes to standard error: standard output is the result. */
function say(text: string): void {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);
}
