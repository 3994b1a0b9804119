/**
 * The workloads that show head-of-line blocking, as data made from a seed: what arrives when, with
 * which key, and how long its handler works. Nothing here knows of brokers or clients.
 */
import { type Random, seededRandom } from '../../src/core/random.ts';

/** One record. Its place in the list is its sequence number; times never go back. */
export interface Arrival {
  /** When it is to be sent, in milliseconds after the start, however late the producer is. */
  readonly atMs: number;
  readonly key: string;
  readonly serviceMs: number;
}

export interface Workload {
  readonly name: WorkloadName;
  readonly options: WorkloadOptions;
  /** Serial consumers, in every arm. */
  readonly consumers: number;
  /** Partitions where there is to be about one for each consumer. */
  readonly partitions: number;
  readonly arrivals: readonly Arrival[];
  /** Keys that have a slow record. The records of all others are the bystanders. */
  readonly slowKeys: ReadonlySet<string>;
}

export interface WorkloadOptions {
  readonly seed: number;
  /** What it shortens is different for each workload: `scales` says it. */
  readonly scale: number;
  /** Slow records are as quick as the others: what the bystanders' waits are compared with. */
  readonly quick: boolean;
}

export type WorkloadName = 'W0' | 'W1' | 'W2a' | 'W2b' | 'W3' | 'W4a' | 'W4b' | 'W5' | 'W6';

/** What a recipe makes of a seed; keys are numbers until they get their names. */
interface Draft {
  readonly atMs: number;
  readonly key: number;
  readonly serviceMs: number;
  /** Slow records have it: how long they take if they are made quick. */
  readonly quickMs?: number;
}

interface Recipe {
  readonly about: string;
  /** What a scale of 1/10 makes ten times shorter. */
  readonly scales: string;
  readonly consumers: number;
  readonly partitions: number;
  readonly make: (random: Random, scale: number) => Draft[];
}

const secondMs = 1000;

export const recipes: Readonly<Record<WorkloadName, Recipe>> = {
  W0: {
    about: '100 jobs at once, 4 of them take 10 s, the others 10 ms',
    scales: 'nothing',
    consumers: 5,
    partitions: 10,
    make: (random) => {
      const slow = new Set<number>();
      while (slow.size < 4) slow.add(below(random, 100));
      return Array.from({ length: 100 }, (_, key) => {
        const isSlow = slow.has(key);
        return { atMs: 0, key, ...(isSlow ? slowly(10 * secondMs, 10) : { serviceMs: 10 }) };
      });
    },
  },
  W1: {
    about: 'one record of 60 s among those of 5 ms, 1,000 keys, load 0.56',
    scales: 'the slow record and the run',
    consumers: 8,
    partitions: 8,
    make: oneSlowRecord,
  },
  W2a: { ...languageModels(0.5), about: 'language models: 0.2 s, 9 % 5 s, 1 % 60 s, load 0.5' },
  W2b: { ...languageModels(0.7), about: 'language models: 0.2 s, 9 % 5 s, 1 % 60 s, load 0.7' },
  W3: {
    about: 'Pareto 1.5, mean 50 ms, 10,000 keys, load 0.7; slow is 0.5 s and more',
    scales: 'the run',
    consumers: 8,
    partitions: 8,
    make: heavyTail,
  },
  W4a: { ...hotKeys(0.9), about: 'Zipf 0.9, 10,000 keys, 10 ms, load 0.6; the hottest is slow' },
  W4b: { ...hotKeys(1.1), about: 'Zipf 1.1, 10,000 keys, 10 ms, load 0.6; the hottest is slow' },
  W5: {
    about: '1 % of 10,000 keys take 2 s, the others 5 ms, load 0.3',
    scales: 'the run',
    consumers: 8,
    partitions: 8,
    make: slowKeys,
  },
  W6: {
    about: 'backlog of 20,000 at once, 1 % take 2 s, the others 5 ms, 1,000 keys',
    scales: 'the number of records',
    consumers: 8,
    partitions: 8,
    make: (random, scale) =>
      Array.from({ length: Math.round(20_000 * scale) }, () => {
        const isSlow = random.next() < 0.01;
        const key = below(random, 1000);
        return { atMs: 0, key, ...(isSlow ? slowly(2000, 5) : { serviceMs: 5 }) };
      }),
  },
};

export const workloadNames = Object.keys(recipes) as WorkloadName[];

export function makeWorkload(name: WorkloadName, options: WorkloadOptions): Workload {
  const { seed, scale, quick } = options;
  const { consumers, partitions, make } = recipes[name];
  const drafts = make(seededRandom(seed), scale);
  // With the seed in them, keys lie on other partitions for other seeds.
  const nameOf = (key: number): string => `s${seed}-k${key}`;
  return {
    name,
    options,
    consumers,
    partitions,
    arrivals: drafts.map(({ atMs, key, serviceMs, quickMs }) => ({
      atMs,
      key: nameOf(key),
      serviceMs: quick ? (quickMs ?? serviceMs) : serviceMs,
    })),
    slowKeys: new Set(
      drafts.filter(({ quickMs }) => quickMs !== undefined).map(({ key }) => nameOf(key)),
    ),
  };
}

/** The times of a slow record. */
function slowly(serviceMs: number, quickMs: number): Pick<Draft, 'serviceMs' | 'quickMs'> {
  return { serviceMs, quickMs };
}

/** 800 a second: a slow record of 60 s has 48,000 others behind it. */
function oneSlowRecord(random: Random, scale: number): Draft[] {
  const slowFromMs = 10 * secondMs * scale;
  const drafts: Draft[] = [];
  let isPast = false;
  for (const atMs of poisson(random, 800, 120 * secondMs * scale)) {
    const isSlow: boolean = !isPast && atMs >= slowFromMs;
    isPast ||= isSlow;
    const service = isSlow ? slowly(60 * secondMs * scale, 5) : { serviceMs: 5 };
    drafts.push({ atMs, key: below(random, 1000), ...service });
  }
  return drafts;
}

function languageModels(load: number): Omit<Recipe, 'about'> {
  const consumers = 64;
  const meanMs = 0.9 * 200 + 0.09 * 5000 + 0.01 * 60_000;
  return {
    scales: 'all times',
    consumers,
    partitions: consumers,
    // Of scaled times the quick ones are shorter than this, so it is a bound for them only.
    make: (random, scale) => {
      const perSecond = (load * consumers * secondMs) / (meanMs * scale);
      return poisson(random, perSecond, 600 * secondMs * scale).map((atMs) => {
        const kind = random.next();
        const seconds = kind < 0.9 ? 0.2 : kind < 0.99 ? 5 : 60;
        const serviceMs = seconds * secondMs * scale;
        const quickMs = 200 * scale;
        const service = seconds > 1 ? slowly(serviceMs, quickMs) : { serviceMs };
        return { atMs, key: below(random, 5000), ...service };
      });
    },
  };
}

function heavyTail(random: Random, scale: number): Draft[] {
  const shape = 1.5;
  const meanMs = 50;
  const smallestMs = (meanMs * (shape - 1)) / shape;
  const perSecond = (0.7 * 8 * secondMs) / meanMs;
  return poisson(random, perSecond, 600 * secondMs * scale).map((atMs) => {
    // Cut, so that no single record is longer than the run.
    const serviceMs = Math.min(smallestMs / (1 - random.next()) ** (1 / shape), 10 * secondMs);
    const service = serviceMs < 10 * meanMs ? { serviceMs } : slowly(serviceMs, meanMs);
    return { atMs, key: below(random, 10_000), ...service };
  });
}

function hotKeys(exponent: number): Omit<Recipe, 'about'> {
  const keys = 10_000;
  const serviceMs = 10;
  const consumers = 8;
  const shares = zipf(keys, exponent);
  return {
    scales: 'the run',
    consumers,
    partitions: consumers,
    make: (random, scale) => {
      const perSecond = (0.6 * consumers * secondMs) / serviceMs;
      return poisson(random, perSecond, 120 * secondMs * scale).map((atMs) => {
        const key = firstAbove(shares, random.next());
        return { atMs, key, ...(key === 0 ? slowly(serviceMs, serviceMs) : { serviceMs }) };
      });
    },
  };
}

function slowKeys(random: Random, scale: number): Draft[] {
  const keys = 10_000;
  const slowKeysCount = keys / 100;
  const meanMs = 0.01 * 2000 + 0.99 * 5;
  const perSecond = (0.3 * 8 * secondMs) / meanMs;
  return poisson(random, perSecond, 600 * secondMs * scale).map((atMs) => {
    const key = below(random, keys);
    return { atMs, key, ...(key < slowKeysCount ? slowly(2000, 5) : { serviceMs: 5 }) };
  });
}

/** Times of independent arrivals until the end. */
function poisson(random: Random, perSecond: number, endMs: number): number[] {
  const times: number[] = [];
  const gap = (): number => (-Math.log(1 - random.next()) * secondMs) / perSecond;
  for (let atMs = gap(); atMs < endMs; atMs += gap()) times.push(atMs);
  return times;
}

function below(random: Random, count: number): number {
  return Math.floor(random.next() * count);
}

/** Sums of the keys' shares, from the hottest one on; the last sum is 1. */
function zipf(keys: number, exponent: number): Float64Array {
  const sums = new Float64Array(keys);
  let sum = 0;
  for (let key = 0; key < keys; key++) {
    sum += (key + 1) ** -exponent;
    sums[key] = sum;
  }
  return sums.map((one) => one / sum);
}

/** The first index whose value is above the one given. */
function firstAbove(sorted: Float64Array, value: number): number {
  let low = 0;
  let high = sorted.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
