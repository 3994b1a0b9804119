/** What happens in the demo, as data. All times are milliseconds. */

export type RoundName = 'log' | 'keyed';

export interface Plan {
  /** How long the slow record takes; everything else is measured out by it. */
  readonly slowMs: number;
  /** How long a quick record takes. */
  readonly quickMs: number;
  readonly quickPerSecond: number;
  readonly consumers: number;
  readonly keys: number;
  /** Quick records that go through before the clock starts. */
  readonly warmUpRecords: number;
  /** From the start of the clock to the slow record, and from its end to the last quick record. */
  readonly marginMs: number;
  /** Later records of the slow one's key. They have to wait for it. */
  readonly sameKeyRecords: number;
}

/** One minute for both rounds, half of it the two slow records. */
const usual: Plan = {
  slowMs: 20_000,
  quickMs: 6,
  quickPerSecond: 180,
  consumers: 4,
  keys: 400,
  warmUpRecords: 200,
  marginMs: 2_000,
  sameKeyRecords: 3,
};

export function planOf({ fast }: { readonly fast: boolean }): Plan {
  return fast ? { ...usual, slowMs: 5_000, marginMs: 500 } : usual;
}

/** All of the demo, consumers joining and the backlog of log delivery included; a round figure. */
export function aboutSeconds({ slowMs, marginMs }: Plan): number {
  const rounds = 2 * (slowMs + 2 * marginMs);
  const backlog = 0.4 * slowMs;
  const joining = 4_000;
  return Math.round((rounds + backlog + joining) / 10_000) * 10;
}

/** The drawing has so many columns; this many of them are the slow record. */
export const columnsMax = 48;
const columnsOfSlowRecord = 30;

export function columnMsOf({ slowMs }: Plan): number {
  return slowMs / columnsOfSlowRecord;
}

/** A wait of less than this is no wait: nobody was held up. */
export const waitMsMin = 100;

export const titles: Readonly<Record<RoundName, readonly [string, string]>> = {
  log: ['LOG DELIVERY', 'partitions in order, as in Kafka'],
  keyed: ['KEYED DELIVERY', 'the same four consumers; delivery.mode=keyed'],
};
