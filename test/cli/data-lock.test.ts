import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { findDataFolderHolder, lockDataFolder } from '../../src/cli/data-lock.ts';

const lockModule = new URL('../../src/cli/data-lock.js', import.meta.url).href;

/** Locks the folder when told to, says how that went, and stays until it is killed. */
const starterCode = `
  import { lockDataFolder } from ${JSON.stringify(lockModule)};
  process.stdin.once('data', async () => {
    try {
      await lockDataFolder(process.argv[1]);
      console.log('locked');
    } catch (error) {
      console.log(error.code, error.fields?.pid, error.message);
    }
  });
  console.log('up');
`;

interface Starter {
  readonly pid: number;
  /** Tries to lock; answers what it says. */
  lock(): Promise<string>;
  kill(): Promise<void>;
}

async function spawnStarter(t: TestContext, folder: string): Promise<Starter> {
  const args = ['--input-type=module', '--eval', starterCode, folder];
  const child: ChildProcess = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  t.after(kill);
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const nextLine = async (): Promise<string> => String((await lines.next()).value);
  assert.equal(await nextLine(), 'up');
  return {
    pid: child.pid!,
    lock() {
      child.stdin!.write('go\n');
      return nextLine();
    },
    kill,
  };
}

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'keylane-lock-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('of two that start at once, beside what a killed one left, one gets the folder', async (t) => {
  const folder = newFolder(t);
  for (let round = 0; round < 20; round++) {
    const starters = await Promise.all([spawnStarter(t, folder), spawnStarter(t, folder)]);
    const answers = await Promise.all(starters.map((starter) => starter.lock()));
    const winner = answers.indexOf('locked');
    assert.notEqual(winner, -1, answers.join());
    const { pid } = starters[winner]!;
    assert.match(answers[1 - winner]!, new RegExp(`^DATA_DIR_LOCKED ${pid} .*: process ${pid}$`));
    assert.equal((await findDataFolderHolder(folder))?.pid, pid);
    for (const starter of starters) await starter.kill();
    assert.equal(await findDataFolderHolder(folder), undefined);
  }
});

test('of many that start at once, exactly one gets the folder', async (t) => {
  const folder = newFolder(t);
  for (let round = 0; round < 3; round++) {
    const starters = await Promise.all(Array.from({ length: 6 }, () => spawnStarter(t, folder)));
    const answers = await Promise.all(starters.map((starter) => starter.lock()));
    assert.equal(answers.filter((answer) => answer === 'locked').length, 1, answers.join());
    for (const starter of starters) await starter.kill();
  }
});

test('a locked folder holds one generation and one socket, however often taken', async (t) => {
  const folder = newFolder(t);
  for (let round = 1; round <= 3; round++) {
    const starter = await spawnStarter(t, folder);
    assert.equal(await starter.lock(), 'locked');
    const names = readdirSync(folder).sort();
    assert.equal(names.length, 2, names.join());
    assert.match(names[0]!, /^lock-.*\.sock$/);
    assert.equal(names[1], `lock.${round}`);
    await starter.kill();
  }
});

test('what is no lock of ours does not block', async (t) => {
  const links = [
    '0.1.a.2.b',
    '-1.1.a.2.b',
    '1.1.a.2',
    '1.1.a.2.b.c',
    'lock.1',
    '/',
    '1.1.a.2.../b',
  ];
  for (const target of links) {
    const folder = newFolder(t);
    symlinkSync(target, join(folder, 'lock.7'));
    await (await lockDataFolder(folder)).release();
    assert.deepEqual(readdirSync(folder), ['lock.8']);
  }
  const folder = newFolder(t);
  writeFileSync(join(folder, 'lock.7'), '');
  await (await lockDataFolder(folder)).release();
  assert.deepEqual(readdirSync(folder), ['lock.8']);
});

test('files of other names are left alone', async (t) => {
  const folder = newFolder(t);
  const others = ['lock', 'lock.0', 'lock.01', 'lock.x', 'meta.json', 'lock.1.bak'];
  for (const name of others) writeFileSync(join(folder, name), '');
  const lock = await lockDataFolder(folder);
  assert.deepEqual(
    readdirSync(folder)
      .filter((name) => !name.endsWith('.sock'))
      .sort(),
    [...['lock', 'lock.0', 'lock.01', 'lock.1', 'lock.1.bak', 'lock.x', 'meta.json']],
  );
  await lock.release();
});

test('a refused starter leaves nothing behind', async (t) => {
  const folder = newFolder(t);
  const holder = await spawnStarter(t, folder);
  await holder.lock();
  const before = readdirSync(folder).sort();
  await assert.rejects(lockDataFolder(folder), { code: 'DATA_DIR_LOCKED' });
  assert.deepEqual(readdirSync(folder).sort(), before);
});

test('a path that is too long for a socket is locked all the same', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'keylane-'.padEnd(150, 'x')));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const first = await spawnStarter(t, folder);
  assert.equal(await first.lock(), 'locked');
  await assert.rejects(lockDataFolder(folder), { code: 'DATA_DIR_LOCKED' });
  await first.kill();
  await (await lockDataFolder(folder)).release();
});
