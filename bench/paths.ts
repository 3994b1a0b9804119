import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The project's folder: the nearest one above the compiled file that holds a package.json. */
function findRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
}

const root = findRoot();

export function project(path: string): string {
  return join(root, path);
}

/** A compiled file beside this one. */
export function compiled(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}
