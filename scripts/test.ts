/**
 * Runs the compiled tests: `node dist/scripts/test.js [part of a path ...]`.
 * Node 20 has no globs for --test, so the list is made here.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../test', import.meta.url));
const wanted = process.argv.slice(2);
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.js'))
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)))
  .map((file) => join(root, file))
  .sort();
if (files.length === 0) {
  console.error(`no test file matches ${wanted.join(' ')}`);
  process.exit(1);
}
const { status } = spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit' });
process.exit(status ?? 1);
