/** How long producers wait at half load, and how long a record takes from end to end. */
import { type Arm, kafka, keylane, keylaneSlow } from '../broker-process.ts';
import { type Case, less, type Sample, type Session, type Variant } from '../case.ts';
import {
  endToEndLibrdkafka,
  latencyLibrdkafka,
  produceLibrdkafka,
  produceTogether,
} from '../clients.ts';
import { loadOf } from './loads.ts';

const partitions = 12;
const recordBytes = 1000;
const seconds = 8;
/** As at the peak: without it, the load would be one of many small requests. */
const halfLoadLingerMs = 5;
/** Records that come one by one: the client waits for no further ones. */
const endToEndLingerMs = 0;
const endToEndPerSecond = 2000;

/** The peaks of the variants; what all of them can do at half load is half of the lowest. */
class Peaks {
  readonly #perSecond: number[] = [];

  async measure(session: Session): Promise<void> {
    await session.warmUp();
    await session.createTopics('peak', partitions);
    const result = await produceLibrdkafka(
      session.address,
      loadOf('peak-0', recordBytes, partitions),
    );
    this.#perSecond.push(result.records / result.seconds);
  }

  get halfLoad(): number {
    return Math.round(Math.min(...this.#perSecond) / 2);
  }
}

async function measureHalfLoad(session: Session, recordsPerSecond: number): Promise<Sample[]> {
  const what = 'produce at half load';
  await session.createTopics('half-load', partitions);
  const { p50, p99 } = await latencyLibrdkafka(session.address, {
    topic: 'half-load-0',
    partitions,
    recordBytes,
    recordsPerSecond,
    records: recordsPerSecond * seconds,
    lingerMs: halfLoadLingerMs,
  });
  return [
    { what, unit: 'records/s', better: 'more', value: recordsPerSecond },
    less(what, 'p50 ms', p50),
    less(what, 'p99 ms', p99),
  ];
}

function latencyVariants(arms: readonly Arm[]): Variant[] {
  const peaks = new Peaks();
  return arms.map((arm) => ({
    name: arm.name,
    arm,
    prepare: (session) => peaks.measure(session),
    async measure(session) {
      await session.warmUp();
      const samples = await measureHalfLoad(session, peaks.halfLoad);
      await session.createTopics('end-to-end', partitions);
      const { p50, p99 } = await endToEndLibrdkafka(session.address, {
        topic: 'end-to-end-0',
        partitions,
        recordBytes,
        recordsPerSecond: endToEndPerSecond,
        records: endToEndPerSecond * seconds,
        lingerMs: endToEndLingerMs,
      });
      const what = `end to end at ${endToEndPerSecond}/s`;
      return [...samples, less(what, 'p50 ms', p50), less(what, 'p99 ms', p99)];
    },
  }));
}

function slowDiskVariants(): Variant[] {
  const peaks = new Peaks();
  return [keylaneSlow, keylane].map((arm) => ({
    name: arm.name,
    arm,
    prepare: (session) => peaks.measure(session),
    async measure(session) {
      await session.warmUp();
      await session.createTopics('saturated', partitions);
      const load = loadOf('saturated-0', recordBytes, partitions);
      const { address } = session;
      return [
        ...(await session.measure('saturated, 1 producer', () => produceLibrdkafka(address, load))),
        ...(await session.measure('saturated, 4 producers', () =>
          produceTogether(address, 4, load),
        )),
        ...(await measureHalfLoad(session, peaks.halfLoad)),
      ];
    },
  }));
}

export const latencyCases: readonly Case[] = [
  {
    name: 'latency',
    about: "librdkafka, 1 kB × 12, at half of the slower one's peak; and end to end",
    variants: latencyVariants([keylane, kafka]),
    goals: [],
  },
  {
    name: 'slow-disk',
    about: 'each sync delayed by 5 ms, against none',
    variants: slowDiskVariants(),
    goals: [
      { what: /^saturated/, unit: 'MB/s', of: 'ratio', limit: 0.8 },
      { what: /half load/, unit: 'p50 ms', of: 'value', limit: 12.5 },
    ],
  },
];
