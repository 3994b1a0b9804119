import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { isRunning, parseHolder, thisProcess } from '../../src/cli/lock-holder.ts';

const linuxOnly = { skip: process.platform !== 'linux' && 'needs /proc' };

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'keylane-holder-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('what is written is read back', () => {
  const holder = thisProcess('lock-x.sock');
  assert.deepEqual(parseHolder(JSON.stringify(holder)), holder);
});

test('this process runs', async (t) => {
  assert.equal(await isRunning(thisProcess(''), newFolder(t)), true);
});

test('a pid that now belongs to another process does not count', linuxOnly, async (t) => {
  assert.equal(await isRunning({ ...thisProcess(''), startTime: '1' }, newFolder(t)), false);
});

test('a pid of before the last boot does not count', async (t) => {
  const holder = { ...thisProcess(''), bootId: '00000000-0000-0000-0000-000000000000' };
  assert.equal(await isRunning(holder, newFolder(t)), false);
});

test('in another process namespace only the socket tells', async (t) => {
  const folder = newFolder(t);
  const holder = { ...thisProcess('lock-a.sock'), pidNamespace: 'pid:[1]' };
  assert.equal(await isRunning(holder, folder), false, 'no socket');
  writeFileSync(join(folder, 'lock-a.sock'), '');
  assert.equal(await isRunning(holder, folder), false, 'a file in its place');
  rmSync(join(folder, 'lock-a.sock'));

  const server = createServer((socket) => socket.destroy()).listen(join(folder, 'lock-a.sock'));
  await once(server, 'listening');
  assert.equal(await isRunning(holder, folder), true);
  server.close();
});

test('the socket of a killed process is refused', async (t) => {
  const folder = newFolder(t);
  const path = join(folder, 'lock-b.sock');
  const listen = `createServer().listen(${JSON.stringify(path)}, () => console.log(1))`;
  const code = `require('net').${listen}`;
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  const holder = { ...thisProcess('lock-b.sock'), pid: child.pid!, pidNamespace: 'pid:[1]' };
  assert.equal(await isRunning(holder, folder), true);
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.equal(await isRunning(holder, folder), false);
});

test('a zombie has ended, though its parent has not looked', linuxOnly, async (t) => {
  // The shell becomes `sleep`, which never collects the child that the shell had started.
  const parent = spawn('sh', ['-c', 'sleep 300 & echo $!; exec sleep 300 >&-']);
  t.after(() => parent.kill('SIGKILL'));
  const lines = createInterface({ input: parent.stdout })[Symbol.asyncIterator]();
  const pid = Number((await lines.next()).value);
  const stat = (): string[] => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  const holder = { ...thisProcess(''), pid, startTime: stat()[19]! };
  assert.equal(await isRunning(holder, newFolder(t)), true);
  process.kill(pid, 'SIGKILL');
  while (stat()[0] !== 'Z') await new Promise(setImmediate);
  assert.equal(await isRunning(holder, newFolder(t)), false);
});
