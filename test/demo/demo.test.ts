import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../main/support.ts';

const main = fileURLToPath(new URL('../../demo/main.js', import.meta.url));

/** The short form of the demo, with its broker's data folder inside `folder`. */
function startDemo(t: TestContext, folder: string, ...args: string[]) {
  const temporary = join(folder, 'tmp');
  mkdirSync(temporary);
  const child = spawn(process.execPath, [main, '--fast', ...args], {
    env: { ...process.env, TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGTERM'));
  const demo = { child, temporary, output: '', exit: once(child, 'close') };
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text: Buffer) => {
      demo.output += text.toString();
    });
  }
  return demo;
}

test('keyed delivery keeps the quick records from waiting, and log delivery does not', async (t) => {
  const folder = temporaryFolder(t);
  const svg = join(folder, 'demo.svg');
  const demo = startDemo(t, folder, '--picture', svg);
  const [code] = await demo.exit;
  const { output, temporary } = demo;
  assert.equal(code, 0, output);
  const figure = (pattern: string): number => {
    const found = new RegExp(pattern, 'm').exec(output);
    assert.ok(found, output);
    return Number(found[1]);
  };
  // The slow record takes 5 s, and the next one in its partition comes at once.
  assert.ok(figure('^log: .* worst ([0-9.]+) s$') > 4, output);
  // Not the worst wait: on a starved machine records pile up, and consumers get several at a time.
  // Those few that were handed over along with the slow one wait for it in keyed delivery as well.
  const waitsOf = (name: string): number => figure(`^${name}: .* 99 in 100 within ([0-9.]+) s`);
  assert.ok(waitsOf('keyed') < waitsOf('log') / 2, output);
  const behind = figure('^log delivery: +([0-9]+) quick records waited behind the slow one');
  const [, some = '0'] = /^keyed delivery: ([0-9]+) quick/m.exec(output) ?? [];
  assert.ok(Number(some) < behind / 5, output);
  assert.match(output, /^keyed delivery: .+\n$/m);
  assert.ok(!output.includes('\u001b'), 'no escape codes where there is no terminal');
  assert.match(readFileSync(svg, 'utf8'), /^<svg .*<\/svg>\n$/s);
  assert.deepEqual(readdirSync(temporary), []);
});

test('a signal ends the broker too, and leaves nothing behind', async (t) => {
  const folder = temporaryFolder(t);
  const demo = startDemo(t, folder);
  while (!demo.output.includes('joining')) await once(demo.child.stdout, 'data');
  const [data] = readdirSync(demo.temporary);
  const lock = readlinkSync(join(demo.temporary, data!, 'lock.1'));
  demo.child.kill('SIGINT');
  const [code] = await demo.exit;
  assert.equal(code, 130, demo.output);
  const pid = Number(/\d+/.exec(lock)?.[0]);
  await new Promise<void>((resolve) => {
    // A process that is no child of ours tells nobody that it has ended.
    const poll = setInterval(() => {
      if (isRunning(pid)) return;
      clearInterval(poll);
      resolve();
    }, 10);
  });
  assert.ok(!existsSync(join(demo.temporary, data!)));
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
