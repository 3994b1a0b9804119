/**
 * Whether the simulation notices bugs: `npm run sim:planted -- --seeds COUNT [NAME]`. Each is planted
 * into a copy of the build, which then runs seed after seed until one fails. Prints which one, and
 * fails if a bug gets through all of them.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { type PlantedBug, plantedBugs } from './planted-bugs.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const atOnce = 2;
/** A bug may make a run go on for ever: that is noticed, too. */
const seedMsMax = 120_000;

const program = new Command('sim:planted')
  .argument('[name]', 'only bugs with this in their name', '')
  .option('--seeds <n>', 'how many seeds each has to get through', '2000')
  .parse();
const seeds = Number(program.opts<{ seeds: string }>().seeds);
const wanted = plantedBugs.filter(({ name }) => name.includes(program.args[0] ?? ''));

/** A copy of the build with the bug in it. */
function plant({ name, file, from, to }: PlantedBug): string {
  const folder = mkdtempSync(join(tmpdir(), 'keylane-planted-'));
  cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true });
  for (const other of ['package.json', 'node_modules']) {
    symlinkSync(join(root, other), join(folder, other));
  }
  const path = join(folder, 'dist', 'src', `${file}.js`);
  const text = readFileSync(path, 'utf8');
  const planted = text.replace(from, to);
  if (planted === text) throw new Error(`${file} has nothing to plant "${name}" into`);
  writeFileSync(path, planted);
  return folder;
}

/** What noticed it: the seed and the first line of what it says; undefined: nothing did. */
async function tryOut(bug: PlantedBug): Promise<string | undefined> {
  const folder = plant(bug);
  try {
    const args = [
      join(folder, 'dist', 'scripts', 'sim.js'),
      '--seeds',
      String(seeds),
      '--progress',
    ];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let noted = '';
    let hangs = false;
    const hang = (): void => {
      hangs = true;
      child.kill('SIGKILL');
    };
    let overdue = setTimeout(hang, seedMsMax);
    child.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.stdout.on('data', (chunk: Buffer) => {
      noted = chunk.toString();
      clearTimeout(overdue);
      overdue = setTimeout(hang, seedMsMax);
    });
    const status = await new Promise<number | null>((resolve) => child.once('close', resolve));
    clearTimeout(overdue);
    if (hangs) return `after ${noted.trim().split('\n').at(-1)}: it never ends`;
    return status === 0 ? undefined : output.split('\n')[0];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const queue = [...wanted];
const missed: string[] = [];
async function work(): Promise<void> {
  for (let bug = queue.shift(); bug !== undefined; bug = queue.shift()) {
    const noticed = await tryOut(bug);
    if (noticed === undefined) missed.push(bug.name);
    console.log(`${bug.name}: ${noticed ?? 'NOT NOTICED'}`);
  }
}
await Promise.all(Array.from({ length: atOnce }, work));
console.log(`${wanted.length - missed.length} of ${wanted.length} noticed in ${seeds} seeds`);
process.exit(missed.length === 0 ? 0 : 1);
