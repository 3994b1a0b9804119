/**
 * Three brokers on this machine that form one cluster: `npm run cluster [-- --data DIR]`. Data stay
 * in the folder; Ctrl-C stops all of them.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';

const { data } = new Command('cluster')
  .option('--data <dir>', 'folder of the data', 'data/cluster')
  .parse()
  .opts<{ data: string }>();

const ids = [1, 2, 3];
const bin = fileURLToPath(new URL('../../bin/keylane.cjs', import.meta.url));
mkdirSync(data, { recursive: true });
const secretPath = join(data, 'secret');
if (!existsSync(secretPath)) {
  writeFileSync(secretPath, randomBytes(24).toString('base64url'), { mode: 0o600 });
}
const env = { ...process.env, KEYLANE_CLUSTER_SECRET: readFileSync(secretPath, 'utf8') };
const peers = ids.map((id) => `${id}@127.0.0.1:${9192 + id}`).join(',');

const children = ids.map((id) => {
  const place = ['--listen', `127.0.0.1:${9091 + id}`, '--data', join(data, String(id))];
  const admin = ['--set', `admin.listen=127.0.0.1:${9643 + id}`];
  return spawn(
    process.execPath,
    [bin, 'start', '--node-id', String(id), '--cluster', peers, ...place, ...admin],
    { stdio: ['ignore', 'pipe', 'inherit'], env },
  );
});
for (const [i, child] of children.entries()) {
  child.stdout.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().trimEnd().split('\n')) {
      const { msg = line, level = '' } = parsed(line);
      console.log(`node ${ids[i]}: ${level === 'info' ? '' : `${level}: `}${msg}`);
    }
  });
  child.once('exit', (code) => console.log(`node ${ids[i]}: ended (${code ?? 'killed'})`));
}
console.log(`bootstrap.servers=${ids.map((id) => `127.0.0.1:${9091 + id}`).join(',')}`);
console.log('keylane cluster status shows who leads; kill one of the processes and see');
for (const [i, child] of children.entries()) console.log(`node ${ids[i]}: process ${child.pid}`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    for (const child of children) child.kill('SIGTERM');
  });
}

function parsed(line: string): { msg?: string; level?: string } {
  try {
    return JSON.parse(line) as { msg?: string; level?: string };
  } catch {
    return {};
  }
}
