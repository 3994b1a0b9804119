import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { formatHolder, isRunning, parseHolder, thisProcess } from '../../src/cli/lock-holder.ts';

const linuxOnly = { skip: process.platform !== 'linux' && 'needs /proc' };

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'keylane-holder-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('what is written is read back, and needs no block of the disk', () => {
  const holder = thisProcess('0123abcd');
  assert.deepEqual(parseHolder(formatHolder(holder)), holder);
  const none = { pid: 1, startTime: '', bootId: '', pidNamespace: '', socketId: '' };
  assert.deepEqual(parseHolder(formatHolder(none)), none);
  const longest = { ...holder, pid: 4_194_304, startTime: '9'.repeat(12) };
  assert(formatHolder(longest).length < 60);
});

test('this process runs', async (t) => {
  assert.equal(await isRunning(thisProcess(''), newFolder(t)), true);
});

test('a pid that now belongs to another process does not count', linuxOnly, async (t) => {
  assert.equal(await isRunning({ ...thisProcess(''), startTime: '1' }, newFolder(t)), false);
});

test('a pid of before the last boot does not count', async (t) => {
  const holder = { ...thisProcess(''), bootId: '00000000' };
  assert.equal(await isRunning(holder, newFolder(t)), false);
});

test('in another process namespace only the socket tells', async (t) => {
  const folder = newFolder(t);
  const holder = { ...thisProcess('aa'), pidNamespace: '1' };
  assert.equal(await isRunning(holder, folder), false, 'no socket');
  writeFileSync(join(folder, 'lock-aa.sock'), '');
  assert.equal(await isRunning(holder, folder), false, 'a file in its place');
  rmSync(join(folder, 'lock-aa.sock'));

  const server = createServer((socket) => socket.destroy()).listen(join(folder, 'lock-aa.sock'));
  await once(server, 'listening');
  assert.equal(await isRunning(holder, folder), true);
  server.close();
});

test('the socket of a killed process is refused', async (t) => {
  const folder = newFolder(t);
  const path = join(folder, 'lock-bb.sock');
  const listen = `createServer().listen(${JSON.stringify(path)}, () => console.log(1))`;
  const code = `require('net').${listen}`;
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  const holder = { ...thisProcess('bb'), pid: child.pid!, pidNamespace: '1' };
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
