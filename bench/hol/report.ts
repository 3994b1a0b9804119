/** The table of all results that there are, and whether each did what it should. */
import { markdownTable, median, percent } from '../report.ts';
import { armNames, isKeyed } from './arms.ts';
import type { Piece } from './plan.ts';
import { clientNames } from './programs.ts';
import type { Result } from './run.ts';
import { workloadNames } from './workloads.ts';

/** What keyed delivery is to reach for clients that say in time what they have handled. */
const idealFactor = 2;
const idealSlackMs = 20;
/** Two runs of the same thing differ by so much. */
const noiseFactor = 1.1;
const noiseMs = 20;

export interface Judgement {
  /** What it had to reach, in words; empty if nothing. */
  readonly goal: string;
  readonly isReached: boolean | undefined;
}

/** `results` has the runs against Apache Kafka that some goals are relative to. */
export function judgementOf(result: Result, results: readonly Result[]): Judgement {
  const { piece, figures, isFinished } = result;
  if (!isKeyed(piece.arm) || piece.quick) return { goal: '', isReached: undefined };
  const isSafe =
    isFinished &&
    figures.orderViolations === 0 &&
    figures.keyInFlightMax <= 1 &&
    figures.lost === 0;
  const p99 = figures.bystanderWaitMs.p99;
  const isDrain = piece.workload === 'W0' || piece.workload === 'W6';
  if (!isDrain && isPromised(piece)) {
    const limit = idealFactor * figures.idealBystanderWaitMs.p99 + idealSlackMs;
    return { goal: `p99 ≤ ${time(limit)}`, isReached: isSafe && p99 <= limit };
  }
  const kafka = results.find(
    (one) => one.piece.arm === 'kafka' && isLike(one.piece, piece) && one.isFinished,
  );
  if (kafka === undefined) return { goal: 'order, none lost', isReached: isSafe };
  if (isDrain) {
    const limit = kafka.figures.endMs * noiseFactor;
    return { goal: `end ≤ ${time(limit)}`, isReached: isSafe && figures.endMs <= limit };
  }
  const limit = kafka.figures.bystanderWaitMs.p99 * noiseFactor + noiseMs;
  return { goal: `p99 ≤ ${time(limit)}`, isReached: isSafe && p99 <= limit };
}

/**
 * The promise holds for clients that commit what they have handled, and for those that handle
 * records in their poll loop where the broker is told so. The others are never worse than on Kafka.
 */
function isPromised({ client, arm }: Piece): boolean {
  return client === 'kafkajs' || client === 'java-manual' || arm === 'keyed-poll';
}

function isLike(a: Piece, b: Piece): boolean {
  return (
    a.workload === b.workload &&
    a.client === b.client &&
    a.seed === b.seed &&
    a.scale === b.scale &&
    a.quick === b.quick
  );
}

/** One line for each arm, with all its seeds. */
export function holTable(results: readonly Result[]): string {
  const groups = new Map<string, Result[]>();
  for (const result of inOrder(results)) {
    const { workload, scale, client, arm, quick } = result.piece;
    const key = [workload, scale, client, arm, quick].join(' ');
    groups.set(key, [...(groups.get(key) ?? []), result]);
  }
  const lines = [...groups.values()].map((group) => lineOf(group, results));
  return markdownTable(head, lines);
}

const head = [
  ...['workload', 'client', 'arm', 'seeds'],
  ...['bystander p50', 'p99', 'p99.9', 'max', 'ideal p99', 'own key p99', 'HOL ×'],
  ...['end', 'ideal end', 'idle', 'order', 'in flight', 'twice', 'lost', 'stolen', 'goal', ''],
];

function lineOf(group: readonly Result[], results: readonly Result[]): string[] {
  const { piece } = group[0]!;
  const times = (of: (result: Result) => number): string => spread(group.map(of), time);
  const most = (of: (result: Result) => number): string => String(Math.max(...group.map(of)));
  const judgements = group.map((result) => judgementOf(result, results));
  const unfinished = group.filter(({ isFinished }) => !isFinished).length;
  const isReached = judgements.every((one) => one.isReached);
  return [
    `${piece.workload}${piece.scale === 1 ? '' : ` ×${piece.scale}`}${piece.quick ? ' quick' : ''}`,
    piece.client,
    piece.arm,
    `${group.length}${unfinished > 0 ? `, ${unfinished} not finished` : ''}`,
    times(({ figures }) => figures.bystanderWaitMs.p50),
    times(({ figures }) => figures.bystanderWaitMs.p99),
    times(({ figures }) => figures.bystanderWaitMs.p999),
    times(({ figures }) => figures.bystanderWaitMs.max),
    times(({ figures }) => figures.idealBystanderWaitMs.p99),
    times(({ figures }) => figures.ownKeyWaitMs.p99),
    amplification(group, results),
    times(({ figures }) => figures.endMs),
    times(({ figures }) => figures.idealEndMs),
    spread(
      group.map(({ figures }) => figures.idleBesideReady20Ms),
      percent,
    ),
    most(({ figures }) => figures.orderViolations),
    most(({ figures }) => figures.keyInFlightMax),
    most(({ figures }) => figures.duplicates),
    most(({ figures }) => figures.lost),
    spread(
      group.map(({ stolenShare }) => stolenShare),
      percent,
    ),
    [...new Set(judgements.map(({ goal }) => goal))].join(', '),
    judgements[0]!.isReached === undefined ? '' : isReached ? 'yes' : 'NO',
  ];
}

/** Bystander p99 over the same with the slow records made quick, where there is such a run. */
function amplification(group: readonly Result[], results: readonly Result[]): string {
  const ratios = group.flatMap(({ piece, figures }) => {
    const quick = results.find(
      (one) => one.piece.arm === piece.arm && isLike(one.piece, { ...piece, quick: true }),
    );
    if (quick === undefined || piece.quick) return [];
    return [figures.bystanderWaitMs.p99 / quick.figures.bystanderWaitMs.p99];
  });
  return ratios.length === 0 ? '' : median(ratios).toPrecision(3);
}

function inOrder(results: readonly Result[]): Result[] {
  const rank = ({ piece }: Result): number[] => [
    workloadNames.indexOf(piece.workload),
    Number(piece.quick),
    piece.scale,
    clientNames.indexOf(piece.client),
    armNames.indexOf(piece.arm),
    piece.seed,
  ];
  return [...results].sort((a, b) => {
    const other = rank(b);
    return rank(a).reduce((order, value, i) => order || value - other[i]!, 0);
  });
}

/** The median, and how far the seeds lie apart. */
function spread(values: readonly number[], text: (value: number) => string): string {
  const middle = text(median(values));
  if (values.length < 2) return middle;
  return `${middle} (${text(Math.min(...values))}–${text(Math.max(...values))})`;
}

function time(ms: number): string {
  if (!Number.isFinite(ms)) return '–';
  if (ms >= 1000) return `${(ms / 1000).toPrecision(3)} s`;
  return `${ms >= 100 ? Math.round(ms) : ms.toFixed(1)} ms`;
}
