/** The tables of all results that there are, and whether each reached its goal. */
import { markdownTable, percent } from '../report.ts';
import { goalOf, idOf, loadName, plan, settledMs } from './plan.ts';
import { secondReaching } from './progress.ts';
import type { Drain, Result } from './run.ts';

export interface Judgement {
  /** Over the rate of log delivery, and over the ideal for the time that handlers took. */
  readonly ofLog: number | undefined;
  readonly ofIdeal: number | undefined;
  /** After how many seconds the goal was reached for the first time. */
  readonly reachedAfter: number | undefined;
  /** In words; empty if there is none. */
  readonly goal: string;
  readonly isReached: boolean | undefined;
}

/** `results` has the runs in log delivery that some goals are relative to. */
export function judgementOf(result: Result, results: readonly Result[]): Judgement {
  const { piece } = result;
  const drain = result.drain!;
  const log = results.find(({ piece: other }) => idOf(other) === idOf({ ...piece, arm: 'log' }));
  const logRate = piece.arm === 'log' ? undefined : log?.drain?.rate;
  const ofLog = logRate === undefined ? undefined : drain.rate / logRate;
  const { idealAsHandled } = drain;
  const ofIdeal = idealAsHandled === undefined ? undefined : drain.rate / idealAsHandled;
  const goal = goalOf(piece);
  if (goal === undefined) {
    return { ofLog, ofIdeal, reachedAfter: undefined, goal: '', isReached: undefined };
  }
  const [reference, share] = goal.of === 'ideal' ? [idealAsHandled, ofIdeal] : [logRate, ofLog];
  const within = settledMs(piece.client) / 1000;
  return {
    ofLog,
    ofIdeal,
    reachedAfter:
      reference === undefined
        ? undefined
        : secondReaching(drain.perSecond, goal.atLeast * reference),
    goal: `≥ ${goal.atLeast} of ${goal.of} after ${within} s`,
    isReached: share === undefined ? undefined : share >= goal.atLeast,
  };
}

export function drainTable(results: readonly Result[]): string {
  const lines = inOrder(results)
    .filter(({ drain }) => drain !== undefined)
    .map((result) => lineOf(result, results));
  return markdownTable(drainHead, lines);
}

const useHead = ['broker CPU', 'client CPU', 'other CPU', 'requests/s'];

const drainHead = [
  ...['client', 'load', 'arm', 'rate', 'of log', 'of ideal', 'of nominal ideal', 'reached after'],
  ...['after 1 s', '3 s', '20 s', ...useHead, 'again', 'machine load'],
  ...['goal', ''],
];

function lineOf(result: Result, results: readonly Result[]): string[] {
  const { piece } = result;
  const drain = result.drain!;
  const { ofLog, ofIdeal, reachedAfter, goal, isReached } = judgementOf(result, results);
  return [
    piece.client,
    loadName(piece.load),
    piece.arm,
    `${rate(drain.rate)}/s`,
    ...[ofLog, ofIdeal, ofNominal(drain)].map(share),
    reachedAfter === undefined ? '' : `${reachedAfter} s`,
    ...[1, 3, 20].map((second) => rateAt(drain, second)),
    ...useOf(result),
    piece.arm === 'log' ? '' : String(drain.redelivered),
    result.loadAverage.map((load) => load.toFixed(1)).join(' → '),
    goal,
    isReached === undefined ? '' : isReached ? 'yes' : 'NO',
  ];
}

/** What a group costs that has nothing to do. */
export function idleTable(results: readonly Result[]): string {
  const idle = inOrder(results).filter(({ piece }) => piece.load.kind === 'idle');
  return markdownTable(
    ['client', 'arm', ...useHead],
    idle.map((result) => [result.piece.client, result.piece.arm, ...useOf(result)]),
  );
}

function useOf(result: Result): string[] {
  const { brokerCpuPerSecond, clientCpuPerSecond, otherCpuPerSecond, requestsPerSecond } = result;
  const cpu = [brokerCpuPerSecond, clientCpuPerSecond, otherCpuPerSecond];
  return [...cpu.map(percent), rate(requestsPerSecond)];
}

function ofNominal({ rate: measured, idealRate }: Drain): number | undefined {
  return idealRate === undefined ? undefined : measured / idealRate;
}

function share(value: number | undefined): string {
  return value === undefined ? '' : value.toFixed(2);
}

function rateAt({ perSecond }: Drain, second: number): string {
  const count = perSecond[second];
  return count === undefined ? '' : rate(count);
}

function rate(perSecond: number): string {
  if (!Number.isFinite(perSecond)) return '–';
  if (perSecond >= 10_000) return `${(perSecond / 1000).toFixed(0)} k`;
  return perSecond >= 100 ? perSecond.toFixed(0) : perSecond.toFixed(1);
}

function inOrder(results: readonly Result[]): Result[] {
  const places = new Map(plan().map((piece, index) => [idOf(piece), index]));
  // Of what was run and is no longer in the plan, the order does not matter.
  const rank = ({ piece }: Result): number => places.get(idOf(piece)) ?? places.size;
  return [...results].sort((a, b) => rank(a) - rank(b));
}
