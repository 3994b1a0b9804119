import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Exit, run, startBroker, temporaryFolder } from './support.ts';

type Result = Exit & { readonly output: string };

test('a folder is sound after a stop and after a kill, and is not changed by the look', async (t) => {
  const data = temporaryFolder(t);
  const checkData = (): Promise<Result> => run(t, ['check', '--data', data]);
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const broker = await startBroker(t, data);
    const whileRunning = await checkData();
    assert.equal(whileRunning.code, 1);
    assert.match(whileRunning.output, new RegExp(`stop process ${broker.child.pid} first`));
    await broker.stop(signal);
    const before = readdirSync(data, { recursive: true });
    const { code, output } = await checkData();
    assert.equal(code, 0, output);
    assert.match(output, /node 0, directory [0-9a-f-]{36}\n.*clusterFounded 1.*\nok$/s);
    assert.deepEqual(readdirSync(data, { recursive: true }), before);
  }
});

test('damage is told, with status 1', async (t) => {
  const data = temporaryFolder(t);
  // Started twice: what the first start wrote is known to be synced.
  for (let start = 0; start < 2; start++) await (await startBroker(t, data)).stop();
  const folder = join(data, 'default', 'journal');
  const journal = join(folder, readdirSync(folder).find((name) => name.endsWith('.journal')) ?? '');
  const bytes = readFileSync(journal);
  bytes[300]! ^= 0xff;
  writeFileSync(journal, bytes);
  const { code, output } = await run(t, ['check', '--data', data]);
  assert.equal(code, 1, output);
  assert.match(output, /^damage: /m);
});

test('a folder that is none of ours is not checked', async (t) => {
  const empty = await run(t, ['check', '--data', temporaryFolder(t)]);
  assert.equal(empty.code, 1);
  assert.match(empty.output, /is no data folder: it has no meta\.json/);
  assert.equal((await run(t, ['check'])).code, 2);
});
