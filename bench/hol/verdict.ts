/**
 * What the handlers of a run have seen, held against the workload: waits, order, and whether every
 * record came. All times are milliseconds after the start of the run.
 */
import { idealSchedule } from './model.ts';
import type { Arrival, Workload } from './workloads.ts';

/** One call of a handler. */
export interface Delivery {
  readonly sequence: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly member: number;
}

export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

export interface Figures {
  /** From the intended time to the handler's start, of first deliveries. */
  readonly bystanderWaitMs: Quantiles;
  /** The same, to the handler's end. */
  readonly bystanderEndMs: Quantiles;
  /** Waits of the keys that have slow records. */
  readonly ownKeyWaitMs: Quantiles;
  readonly idealBystanderWaitMs: Quantiles;
  /** The ideal for the times that the handlers really took: timers are never early. */
  readonly idealAsHandledMs: Quantiles;
  /** When the last handler was done, and when it would have been. */
  readonly endMs: number;
  readonly idealEndMs: number;
  /** Share of the time in which a consumer idled beside a key that was ready for longer than this. */
  readonly idleBesideReady: number;
  readonly idleBesideReady20Ms: number;
  /** Records that were started before an earlier one of their key was done. */
  readonly orderViolations: number;
  readonly keyInFlightMax: number;
  readonly duplicates: number;
  readonly lost: number;
}

export function judge(workload: Workload, deliveries: readonly Delivery[]): Figures {
  const { arrivals, consumers } = workload;
  const firsts = firstDeliveries(arrivals, deliveries);
  const seen = firsts.filter((one) => one !== undefined);
  const ideal = idealSchedule(arrivals, consumers);
  const asHandled = arrivals.map((arrival, sequence) => {
    const first = firsts[sequence];
    return first === undefined ? arrival : { ...arrival, serviceMs: first.endMs - first.startMs };
  });
  const isBystander = (sequence: number): boolean =>
    !workload.slowKeys.has(arrivals[sequence]!.key);
  const waits = (timeOf: (one: Delivery) => number, bystanders: boolean): Quantiles =>
    quantiles(
      seen
        .filter(({ sequence }) => isBystander(sequence) === bystanders)
        .map((one) => timeOf(one) - arrivals[one.sequence]!.atMs),
    );
  const idealWaits = (startMs: Float64Array): Quantiles =>
    quantiles(
      [...startMs]
        .map((start, sequence) => ({ wait: start - arrivals[sequence]!.atMs, sequence }))
        .filter(({ sequence }) => isBystander(sequence))
        .map(({ wait }) => wait),
    );
  return {
    bystanderWaitMs: waits((one) => one.startMs, true),
    bystanderEndMs: waits((one) => one.endMs, true),
    ownKeyWaitMs: waits((one) => one.startMs, false),
    idealBystanderWaitMs: idealWaits(ideal.startMs),
    idealAsHandledMs: idealWaits(idealSchedule(asHandled, consumers).startMs),
    endMs: seen.reduce((latest, { endMs }) => Math.max(latest, endMs), 0),
    idealEndMs: ideal.endMs,
    idleBesideReady: idleBesideReady(arrivals, consumers, deliveries, firsts, 0),
    idleBesideReady20Ms: idleBesideReady(arrivals, consumers, deliveries, firsts, 20),
    orderViolations: orderViolations(arrivals, firsts),
    keyInFlightMax: keyInFlightMax(arrivals, deliveries),
    duplicates: deliveries.length - seen.length,
    lost: arrivals.length - seen.length,
  };
}

/** By nearest rank; all are NaN where there is nothing. */
export function quantiles(values: readonly number[]): Quantiles {
  const sorted = Float64Array.from(values).sort();
  const at = (share: number): number =>
    sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1) };
}

/** By sequence number. A record that came again counts from when it was first started. */
function firstDeliveries(
  arrivals: readonly Arrival[],
  deliveries: readonly Delivery[],
): (Delivery | undefined)[] {
  const firsts = new Array<Delivery | undefined>(arrivals.length).fill(undefined);
  for (const one of deliveries) {
    const before = firsts[one.sequence];
    if (before === undefined || one.startMs < before.startMs) firsts[one.sequence] = one;
  }
  return firsts;
}

function orderViolations(
  arrivals: readonly Arrival[],
  firsts: readonly (Delivery | undefined)[],
): number {
  /** When the last of the earlier records of a key was first done. */
  const doneMs = new Map<string, number>();
  let violations = 0;
  for (const [sequence, { key }] of arrivals.entries()) {
    const first = firsts[sequence];
    const before = doneMs.get(key) ?? 0;
    if (first !== undefined && first.startMs < before) violations++;
    doneMs.set(key, Math.max(before, first?.endMs ?? Number.POSITIVE_INFINITY));
  }
  return violations;
}

/** A step up or down at some time; of those at the same time, downs come first. */
interface Step {
  readonly atMs: number;
  readonly by: number;
}

function inOrder<T extends Step>(steps: T[]): T[] {
  return steps.sort((a, b) => a.atMs - b.atMs || a.by - b.by);
}

function keyInFlightMax(arrivals: readonly Arrival[], deliveries: readonly Delivery[]): number {
  const steps = deliveries.flatMap(({ sequence, startMs, endMs }) => {
    const { key } = arrivals[sequence]!;
    return [
      { atMs: startMs, by: 1, key },
      // A handler that takes no time at all would otherwise end before it starts.
      { atMs: Math.max(endMs, startMs + 1e-3), by: -1, key },
    ];
  });
  const inFlight = new Map<string, number>();
  let most = 0;
  for (const { by, key } of inOrder(steps)) {
    const count = (inFlight.get(key) ?? 0) + by;
    inFlight.set(key, count);
    most = Math.max(most, count);
  }
  return most;
}

/**
 * A key is ready from when its next record is due and the one before is done, until that record is
 * started. Counted is the time in which some key has been ready for longer than the grace, while
 * fewer handlers run than there are consumers.
 */
function idleBesideReady(
  arrivals: readonly Arrival[],
  consumers: number,
  deliveries: readonly Delivery[],
  firsts: readonly (Delivery | undefined)[],
  graceMs: number,
): number {
  interface Change extends Step {
    readonly of: 'busy' | 'ready';
  }
  const steps: Change[] = [];
  for (const { startMs, endMs } of deliveries) {
    steps.push({ atMs: startMs, by: 1, of: 'busy' }, { atMs: endMs, by: -1, of: 'busy' });
  }
  const doneMs = new Map<string, number>();
  for (const [sequence, { atMs, key }] of arrivals.entries()) {
    const first = firsts[sequence];
    if (first === undefined) continue;
    const readyMs = Math.max(atMs, doneMs.get(key) ?? 0) + graceMs;
    if (first.startMs > readyMs) {
      steps.push({ atMs: readyMs, by: 1, of: 'ready' });
      steps.push({ atMs: first.startMs, by: -1, of: 'ready' });
    }
    doneMs.set(key, Math.max(doneMs.get(key) ?? 0, first.endMs));
  }
  const counts = { busy: 0, ready: 0 };
  let wastedMs = 0;
  let beforeMs = 0;
  for (const { atMs, by, of } of inOrder(steps)) {
    if (counts.busy < consumers && counts.ready > 0) wastedMs += atMs - beforeMs;
    counts[of] += by;
    beforeMs = atMs;
  }
  return beforeMs === 0 ? 0 : wastedMs / beforeMs;
}
