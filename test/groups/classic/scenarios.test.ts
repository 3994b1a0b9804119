/**
 * Runs the scripts in testdata. A script is a row of steps, parted by blank lines: lines to run,
 * `----`, and what they must say. `REWRITE=1` writes down what they say now; read the diff.
 */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { World } from './world.ts';

const folder = fileURLToPath(new URL('../../../../test/groups/classic/testdata/', import.meta.url));

for (const file of readdirSync(folder)) {
  test(`classic group script ${file}`, () => {
    const script = readFileSync(folder + file, 'utf8');
    const played = play(script);
    if (process.env['REWRITE'] === '1') writeFileSync(folder + file, played);
    else assert.equal(played, script);
  });
}

function play(script: string): string {
  const world = new World();
  const steps = script.trim().split(/\n\n+/);
  return `${steps.map((step) => playStep(world, step)).join('\n\n')}\n`;
}

function playStep(world: World, step: string): string {
  const lines = step.split('\n');
  const input = lines.includes('----') ? lines.slice(0, lines.indexOf('----')) : lines;
  const commands = input.filter((line) => !line.startsWith('#'));
  if (commands.length === 0) return input.join('\n');
  world.out = [];
  for (const line of commands) {
    const [command, ...words] = line.split(' ');
    const args = new Map<string, string>();
    const names: string[] = [];
    for (const word of words) {
      const at = word.indexOf('=');
      if (at < 0) names.push(word);
      else args.set(word.slice(0, at), word.slice(at + 1));
    }
    world.run(command!, names, args);
  }
  return [...input, '----', ...world.out].join('\n');
}
