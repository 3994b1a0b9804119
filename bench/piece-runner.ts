/** What the benchmarks that run for hours share: a plan of pieces, each with a stored result. */
import { cpus, platform, totalmem } from 'node:os';
import type { StoredResults } from './stored-results.ts';

export interface PieceRunner<Piece, Result> {
  readonly stored: StoredResults<Result>;
  readonly idOf: (piece: Piece) => string;
  readonly expectedMs: (piece: Piece) => number;
  readonly run: (piece: Piece) => Promise<Result>;
  /** One line for the progress. */
  readonly summary: (result: Result) => string;
}

/** Begins no piece that would take longer than `minutes` in all. */
export async function runPieces<Piece, Result>(
  { stored, idOf, expectedMs, run, summary }: PieceRunner<Piece, Result>,
  pieces: readonly Piece[],
  minutes: number,
): Promise<void> {
  const endMs = performance.now() + minutes * 60_000;
  for (const [index, one] of pieces.entries()) {
    if (performance.now() + expectedMs(one) > endMs) {
      say(`${pieces.length - index} more would take too long; --resume goes on`);
      return;
    }
    say(`${idOf(one)} (${index + 1} of ${pieces.length})`);
    try {
      const result = await run(one);
      stored.store(idOf(one), result);
      say(summary(result));
    } catch (error) {
      // The others are worth their minutes all the same.
      console.error(`${idOf(one)} failed:`, error);
      process.exitCode = 1;
    }
  }
}

export function listPieces<Piece, Result>(
  { idOf, expectedMs }: PieceRunner<Piece, Result>,
  pieces: readonly Piece[],
): void {
  let minutes = 0;
  for (const one of pieces) {
    const ms = expectedMs(one);
    minutes += ms / 60_000;
    console.log(`${idOf(one).padEnd(40)} ${(ms / 1000).toFixed(0).padStart(4)} s`);
  }
  console.log(`${pieces.length} runs, ${minutes.toFixed(0)} minutes at most`);
}

/** As JSON, or as `tables` make text of them; the machine stands above. */
export function printResults<Result>(
  results: readonly Result[],
  isJson: boolean,
  tables: readonly ((results: readonly Result[]) => string)[],
): void {
  const machine =
    `${cpus()[0]?.model ?? 'unknown'} × ${cpus().length}, ` +
    `${Math.round(totalmem() / 1e9)} GB, ${platform()}, Node ${process.versions.node}`;
  if (isJson) console.log(JSON.stringify({ machine, results }, undefined, 2));
  else console.log([machine, ...tables.map((table) => table(results))].join('\n\n'));
}

/** Progress goes to standard error: standard output is the result. */
function say(text: string): void {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);
}
