/**
 * `npm run demo`: what keyed delivery is, in a minute: a broker, a producer and four kafkajs
 * consumers; one record takes 20 s among thousands of quick ones, first in log delivery, then in
 * keyed delivery. See README.md of the project.
 */
import { writeFileSync } from 'node:fs';
import { Command } from 'commander';
import { DemoBroker } from './broker.ts';
import type { Figures } from './figures.ts';
import { picture } from './picture.ts';
import { planOf, type RoundName } from './plan.ts';
import { Round } from './round.ts';
import { openScreen } from './screen.ts';

interface Options {
  readonly fast?: boolean;
  readonly picture?: string;
}

const drawEveryMs = 100;
/** 128 and the number of the signal, as shells say it. */
const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

const options = new Command('demo')
  .description('one slow record among thousands of quick ones, in log and in keyed delivery')
  .option('--fast', 'a slow record of 5 s instead of 20 s, a third of a minute in all')
  .option('--picture <file.svg>', 'write a picture of what happened')
  .parse()
  .opts<Options>();

const plan = planOf({ fast: options.fast === true });
const screen = openScreen(process.stdout, plan);
process.on('exit', () => screen.close());
for (const [signal, status] of Object.entries(signals))
  process.on(signal, () => process.exit(status));

try {
  await show();
  // kafkajs would try for a while to reach the broker again.
  process.exit(0);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

async function show(): Promise<void> {
  const broker = await DemoBroker.start();
  const log = await play('log', broker);
  const keyed = await play('keyed', broker);
  if (options.picture !== undefined) writeFileSync(options.picture, picture({ log, keyed }, plan));
  await broker.stop();
}

async function play(name: RoundName, { address }: DemoBroker): Promise<Figures> {
  const round = new Round(name, plan, address);
  screen.show(name, undefined, 'consumers are joining');
  await round.prepare();
  const drawing = setInterval(() => {
    round.tick();
    screen.show(name, round.figures, 'running');
  }, drawEveryMs);
  await round.run();
  clearInterval(drawing);
  screen.finish(name, round.figures);
  round.leave();
  return round.figures;
}
