/**
 * The simulation of whole clusters: `npm run sim -- --seed N --steps M --seeds COUNT`. One seed is
 * one run, and always the same. Prints what happened in all of them (when it is interrupted: in
 * those that are through), or the first seed that breaks a promise.
 */
import { setImmediate } from 'node:timers/promises';
import { Command, Option } from 'commander';
import { seededRandom } from '../src/core/random.ts';
import { ClusterWorld } from '../test/sim/cluster-world.ts';

interface Options {
  readonly seed: string;
  readonly seeds: string;
  readonly steps: string;
  readonly nodes: string;
  readonly clients?: (typeof kinds)[number];
  readonly trace?: boolean;
  readonly progress?: boolean;
}

const kinds = ['direct', 'wire'] as const;

const options = new Command('sim')
  .option('--seed <n>', 'the first seed', '1')
  .option('--seeds <n>', 'how many', '1')
  .option('--steps <n>', 'steps of each', '2000')
  .option('--nodes <n>', 'nodes of the cluster', '3')
  .addOption(new Option('--clients <kind>', 'how they ask; else the seed decides').choices(kinds))
  .option('--trace', 'print what happens')
  .option('--progress', 'print each seed that is through')
  .parse()
  .opts<Options>();

const first = Number(options.seed);
const total: Record<string, number> = {};
const startedMs = performance.now();
let isInterrupted = false;
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => (isInterrupted = true));
let seed = first;
for (; seed < first + Number(options.seeds) && !isInterrupted; seed++) {
  const world = new ClusterWorld(seededRandom(seed), {
    nodes: Number(options.nodes),
    ...(options.clients !== undefined && { clients: options.clients }),
    trace: options.trace === true ? (line) => console.log(line) : undefined,
  });
  try {
    await world.run(Number(options.steps));
  } catch (error) {
    console.error(`seed ${seed}:`, error);
    process.exit(1);
  }
  if (options.progress === true) console.log(`seed ${seed}`);
  for (const [name, count] of Object.entries(world.counts)) {
    total[name] = (total[name] ?? 0) + count;
  }
  // Signals come in between.
  await setImmediate();
}
const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
console.log(`${seed - first} seeds of ${options.steps} steps in ${seconds} s, nothing broken`);
console.log(JSON.stringify(total, null, 2));
process.exit(0);
