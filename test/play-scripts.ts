import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

/** Runs the commands of one step, and answers what they say, line by line. */
export type Player = (commands: readonly string[]) => readonly string[];

/**
 * A test for each script of a folder below `test`. A script is a row of steps, parted by blank
 * lines: comments (`#`), commands, `----`, and what they must say. `REWRITE=1` writes down what they
 * say now; read the diff.
 */
export function playScripts(title: string, path: string, newPlayer: () => Player): void {
  // Scripts are not compiled: they lie beside the sources.
  const folder = fileURLToPath(new URL(`../../test/${path}/`, import.meta.url));
  for (const file of readdirSync(folder).sort()) {
    test(`${title} ${file}`, () => {
      const script = readFileSync(folder + file, 'utf8');
      const player = newPlayer();
      const steps = script.trim().split(/\n\n+/);
      const played = `${steps.map((step) => playStep(player, step)).join('\n\n')}\n`;
      if (process.env['REWRITE'] === '1') writeFileSync(folder + file, played);
      else assert.equal(played, script);
    });
  }
}

function playStep(player: Player, step: string): string {
  const lines = step.split('\n');
  const input = lines.includes('----') ? lines.slice(0, lines.indexOf('----')) : lines;
  const commands = input.filter((line) => !line.startsWith('#'));
  if (commands.length === 0) return input.join('\n');
  return [...input, '----', ...player(commands)].join('\n');
}
