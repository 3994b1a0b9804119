/**
 * Head-of-line blocking: Apache Kafka, Keylane in log delivery and Keylane in keyed delivery with
 * the same clients, beside the ideal: `npm run bench:hol`. See README.md of this folder.
 */
import { Command } from 'commander';
import { useKeylaneScript } from '../broker-process.ts';
import { namesOf, positive } from '../options.ts';
import { listPieces, type PieceRunner, printResults, runPieces } from '../piece-runner.ts';
import { percent } from '../report.ts';
import { StoredResults } from '../stored-results.ts';
import { type ArmName, armNames, arms } from './arms.ts';
import { idOf, type Piece, plan, planScales } from './plan.ts';
import { aboutClients, type ClientName, clientNames } from './programs.ts';
import { holTable } from './report.ts';
import { expectedMs, type Result, runPiece } from './run.ts';
import { recipes, type WorkloadName, workloadNames } from './workloads.ts';

interface Options {
  readonly workload?: readonly WorkloadName[];
  readonly arm?: readonly ArmName[];
  readonly client?: readonly ClientName[];
  readonly seed?: readonly number[];
  readonly scale?: number;
  readonly quick?: boolean;
  readonly resume?: boolean;
  readonly minutes: number;
  readonly table?: boolean;
  readonly json?: boolean;
  readonly list?: boolean;
  readonly events?: string;
  readonly port: number;
  readonly keylane?: string;
}

const options = new Command('bench:hol')
  .option('--workload <names>', 'only these, with commas between', namesOf(workloadNames))
  .option('--arm <names>', 'only these', namesOf(armNames))
  .option('--client <names>', 'only these', namesOf(clientNames))
  .option('--seed <numbers>', 'only these', (text) => text.split(',').map(positive))
  .option('--scale <factor>', 'only those of this scale', positive)
  .option('--quick', 'only those with the slow records made quick')
  .option('--resume', 'leave out what has a result already')
  .option('--minutes <n>', 'begin nothing that would take longer than this in all', positive, 600)
  .option('--table', 'run nothing, print the table of the results that there are')
  .option('--json', 'print the results as JSON instead of the table')
  .option('--list', 'run nothing, print the plan')
  .option('--events <folder>', 'keep what the handlers saw: SEQUENCE START_US END_US MEMBER …')
  .option('--port <n>', 'port of the brokers', positive, 19092)
  .option('--keylane <script>', 'start this instead of bin/keylane.cjs, to compare builds')
  .addHelpText('after', helpText())
  .parse()
  .opts<Options>();
const stored = new StoredResults<Result>('hol');
if (options.keylane !== undefined) useKeylaneScript(options.keylane);

const pieces = piecesOf(options).filter((one) => options.resume !== true || !stored.has(idOf(one)));
const runner: PieceRunner<Piece, Result> = {
  ...{ stored, idOf, expectedMs, summary },
  run: (piece) => runPiece(piece, options.port, options.events),
};
if (options.list === true) listPieces(runner, pieces);
else {
  if (options.table !== true) await runPieces(runner, pieces, options.minutes);
  printResults(stored.all(), options.json === true, [holTable]);
}

/** Those of the plan that were asked for, or, if workload, arm and client are named, just these. */
function piecesOf({ workload, arm, client, seed, scale, quick }: Options): Piece[] {
  if (workload === undefined || arm === undefined || client === undefined) {
    return plan().filter(
      (one) =>
        (workload?.includes(one.workload) ?? true) &&
        (arm?.includes(one.arm) ?? true) &&
        (client?.includes(one.client) ?? true) &&
        (seed?.includes(one.seed) ?? true) &&
        (scale === undefined || scale === one.scale) &&
        (quick !== true || one.quick),
    );
  }
  return workload.flatMap((name) =>
    client.flatMap((program) =>
      arm.flatMap((broker) =>
        (seed ?? [1]).map((number) => ({
          ...{ workload: name, client: program, arm: broker, seed: number },
          ...{ scale: scale ?? planScales[name], quick: quick ?? false },
        })),
      ),
    ),
  );
}

function summary({ figures, isFinished, producerLate, stolenShare }: Result): string {
  const { bystanderWaitMs, idealBystanderWaitMs, endMs, lost, duplicates } = figures;
  const texts = [
    `p99 ${bystanderWaitMs.p99.toFixed(1)} ms (ideal ${idealBystanderWaitMs.p99.toFixed(1)})`,
    `end ${(endMs / 1000).toFixed(1)} s`,
    `order violations ${figures.orderViolations}`,
    `in flight ${figures.keyInFlightMax}, twice ${duplicates}, lost ${lost}`,
    `producer late by ${producerLate.p99Ms} ms (p99), ${producerLate.maxMs} at most`,
    `stolen ${percent(stolenShare)}`,
    ...(isFinished ? [] : ['NOT FINISHED']),
  ];
  return `  ${texts.join('; ')}`;
}

function helpText(): string {
  const workloads = workloadNames.map(
    (name) => `  ${name}: ${recipes[name].about} (the scale shortens ${recipes[name].scales})`,
  );
  const brokers = armNames.map((name) => `  ${name}: ${arms[name].about}`);
  const clients = clientNames.map((name) => `  ${name}: ${aboutClients[name]}`);
  return ['\nWorkloads:', ...workloads, 'Arms:', ...brokers, 'Clients:', ...clients].join('\n');
}
