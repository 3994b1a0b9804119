import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { settingNames } from '../../src/config/broker-configs.ts';
import { launcher, run, temporaryFolder } from './support.ts';

test('--version prints the version of the package', async (t) => {
  const { code, output } = await run(t, ['--version']);
  assert.equal(code, 0);
  const manifest = new URL('../../../package.json', import.meta.url);
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
  assert.equal(output, version);
});

test('--help lists the commands and the exit statuses', async (t) => {
  const { code, output } = await run(t, ['--help']);
  assert.equal(code, 0);
  for (const word of ['start', 'groups', 'settings', 'check', 'Exit status', '--version']) {
    assert(output.includes(word), word);
  }
  const start = await run(t, ['start', '--help']);
  assert.equal(start.code, 0);
  for (const flag of [
    '--listen',
    '--advertise',
    '--data',
    '--config',
    '--keyed',
    '--keyed-ack',
    '--set',
  ]) {
    assert(start.output.includes(flag), flag);
  }
});

test('settings lists them all', async (t) => {
  const { code, output } = await run(t, ['settings']);
  assert.equal(code, 0);
  for (const name of settingNames)
    assert(output.includes(`\n${name} = `) || output.startsWith(name));
  assert.match(output, /\nnum\.partitions = 1\n.*\n {4}allowed: an integer from 1 to 1000000\n/);
});

test('a wrong command line has status 2 and says what is wrong', async (t) => {
  const cases: readonly (readonly [string[], RegExp])[] = [
    [[], /Usage: keylane/],
    [['strat'], /unknown command 'strat'.*Did you mean start/s],
    [['start', '--liste', ':1'], /unknown option '--liste'.*Did you mean --listen/s],
    [['start', '--set', 'num.partitions'], /It must be NAME=VALUE/],
    [['start', 'now'], /too many arguments/],
    [['start', '--keyed', 'a,b c'], /--keyed: "a,b c" is not allowed; allowed: names of topics/],
    [['start', '--keyed', 'a', '--keyed', 'b c'], /--keyed: "a,b c" is not allowed/],
    [['start', '--keyed-ack', 'never'], /--keyed-ack: "never" is not allowed; .* commit, poll/],
  ];
  for (const [args, expected] of cases) {
    const { code, output } = await run(t, args);
    assert.match(output, expected);
    assert.equal(code, 2, args.join(' '));
  }
});

test('without a build, the launcher says how to make one', async (t) => {
  const folder = temporaryFolder(t);
  const alone = join(folder, 'bin', 'keylane.cjs');
  mkdirSync(dirname(alone));
  copyFileSync(launcher(t), alone);
  const { code, output } = await run(t, [], { command: [process.execPath, alone, 'start'] });
  assert.equal(code, 1);
  assert.match(output, /dist.src.main\.js is missing; run `npm run build` first/);
});
