/** Results, one file for each run, so that a plan can go on where it was broken off. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { project } from '../paths.ts';
import { idOf, type Piece } from './plan.ts';
import type { Result } from './run.ts';

const folder = project('bench/results/hol');

export function hasResult(piece: Piece): boolean {
  return existsSync(fileOf(piece));
}

export function storeResult(result: Result): void {
  mkdirSync(folder, { recursive: true });
  const file = fileOf(result.piece);
  writeFileSync(`${file}.part`, `${JSON.stringify(result, undefined, 2)}\n`);
  // What was broken off while it was written is no result.
  renameSync(`${file}.part`, file);
}

export function storedResults(): Result[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(`${folder}/${name}`, 'utf8')) as Result);
}

function fileOf(piece: Piece): string {
  return `${folder}/${idOf(piece)}.json`;
}
