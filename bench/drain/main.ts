/**
 * How fast a backlog is drained in keyed delivery, beside log delivery and the ideal, and what an
 * idle group costs: `npm run bench:drain`. See README.md of this folder.
 */
import { Command } from 'commander';
import { useKeylaneScript } from '../broker-process.ts';
import { arms } from '../hol/arms.ts';
import { aboutClients, type ClientName, clientNames } from '../hol/programs.ts';
import { namesOf, positive } from '../options.ts';
import { listPieces, type PieceRunner, printResults, runPieces } from '../piece-runner.ts';
import { percent } from '../report.ts';
import { StoredResults } from '../stored-results.ts';
import { type DrainArm, drainArms, idOf, loadName, loads, type Piece, plan } from './plan.ts';
import { drainTable, idleTable } from './report.ts';
import { expectedMs, type Result, runPiece } from './run.ts';

interface Options {
  readonly client?: readonly ClientName[];
  readonly load?: readonly string[];
  readonly arm?: readonly DrainArm[];
  readonly resume?: boolean;
  readonly minutes: number;
  readonly table?: boolean;
  readonly json?: boolean;
  readonly list?: boolean;
  readonly port: number;
  readonly keylane?: string;
  readonly results: string;
}

const options = new Command('bench:drain')
  .option('--client <names>', 'only these, with commas between', namesOf(clientNames))
  .option('--load <names>', 'only these', namesOf(loads.map(loadName)))
  .option('--arm <names>', 'only these', namesOf(drainArms))
  .option('--resume', 'leave out what has a result already')
  .option('--minutes <n>', 'begin nothing that would take longer than this in all', positive, 600)
  .option('--table', 'run nothing, print the tables of the results that there are')
  .option('--json', 'print the results as JSON instead of the tables')
  .option('--list', 'run nothing, print the plan')
  .option('--port <n>', 'port of the brokers; the next one is their admin.listen', positive, 19092)
  .option('--keylane <script>', 'start this instead of bin/keylane.cjs, to compare builds')
  .option('--results <folder>', 'below bench/results, to compare builds', 'drain')
  .addHelpText('after', helpText())
  .parse()
  .opts<Options>();
const stored = new StoredResults<Result>(options.results);
if (options.keylane !== undefined) useKeylaneScript(options.keylane);

const pieces = piecesOf(options);
const runner: PieceRunner<Piece, Result> = {
  ...{ stored, idOf, expectedMs, summary },
  run: (piece) => runPiece(piece, options.port),
};
if (options.list === true) listPieces(runner, pieces);
else {
  if (options.table !== true) await runPieces(runner, pieces, options.minutes);
  printResults(stored.all(), options.json === true, [drainTable, idleTable]);
}

function piecesOf({ client, load, arm, resume }: Options): Piece[] {
  return plan().filter(
    (one) =>
      (client?.includes(one.client) ?? true) &&
      (load?.includes(loadName(one.load)) ?? true) &&
      (arm?.includes(one.arm) ?? true) &&
      !(resume === true && stored.has(idOf(one))),
  );
}

function summary({ drain, brokerCpuPerSecond, requestsPerSecond }: Result): string {
  const use = `CPU ${percent(brokerCpuPerSecond)}, ${requestsPerSecond.toFixed(1)} requests/s`;
  if (drain === undefined) return `  ${use}`;
  return `  ${drain.rate.toFixed(0)}/s; each second ${drain.perSecond.join(' ')}; ${use}`;
}

function helpText(): string {
  const about = clientNames.map((name) => `  ${name}: ${aboutClients[name]}`);
  const brokers = drainArms.map((name) => `  ${name}: ${arms[name].about}`);
  return ['\nClients:', ...about, 'Arms:', ...brokers].join('\n');
}
