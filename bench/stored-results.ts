/** Results, one file for each run, so that a plan can go on where it was broken off. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { project } from './paths.ts';

export class StoredResults<Result> {
  readonly #folder: string;

  /** A folder below `bench/results`. */
  constructor(name: string) {
    this.#folder = project(`bench/results/${name}`);
  }

  has(id: string): boolean {
    return existsSync(this.#fileOf(id));
  }

  store(id: string, result: Result): void {
    mkdirSync(this.#folder, { recursive: true });
    const file = this.#fileOf(id);
    writeFileSync(`${file}.part`, `${JSON.stringify(result, undefined, 2)}\n`);
    // What was broken off while it was written is no result.
    renameSync(`${file}.part`, file);
  }

  all(): Result[] {
    if (!existsSync(this.#folder)) return [];
    return readdirSync(this.#folder)
      .filter((name) => name.endsWith('.json'))
      .map((name) => JSON.parse(readFileSync(`${this.#folder}/${name}`, 'utf8')) as Result);
  }

  #fileOf(id: string): string {
    return `${this.#folder}/${id}.json`;
  }
}
