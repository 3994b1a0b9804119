import type { Journal } from '../log/journal.ts';
import { TermLog, type TermRun } from '../raft/term-log.ts';
import type { LogFacts } from '../state/commands.ts';

/**
 * How far back the entries reach that other members can be given: as far as the snapshot says, and
 * no further than the files do. Where one was removed between others is found out by those who need
 * it.
 */
export function logReach(
  { logFiles }: Journal,
  { base, runs: covered }: LogFacts,
  start: { readonly index: number; readonly term: number },
  recovered: readonly TermRun[],
): { readonly base: TermRun; readonly runs: readonly TermRun[] } {
  const startPlace = { index: start.index, term: start.term };
  if (base === undefined) return { base: startPlace, runs: recovered };
  // A file whose entries are all void may begin behind those that took their places.
  const first = Math.min(...logFiles.map(({ header }) => header.firstIndex));
  const log = new TermLog(base, covered, start.index);
  log.compactTo(Math.min(Math.max(base.index, first - 1), start.index));
  const known = log.runs;
  const isSame = known.at(-1)?.term === recovered[0]?.term;
  return { base: log.base, runs: [...known, ...recovered.slice(isSame ? 1 : 0)] };
}
