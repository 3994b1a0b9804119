/** One run: a new broker, a workload, consumers of one client, and what became of the records. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { BrokerProcess, pause } from '../broker-process.ts';
import { stolenCpuSeconds } from '../process-stats.ts';
import { createTopics } from '../raw-client.ts';
import { arms, isKeyed, partitionsOf, topic } from './arms.ts';
import { idealSchedule, partitionSchedule } from './model.ts';
import { idOf, type Piece, workloadOf } from './plan.ts';
import { Consumers, type Lateness, Producer } from './programs.ts';
import { type Delivery, type Figures, judge } from './verdict.ts';
import type { Workload } from './workloads.ts';

export interface Result {
  readonly piece: Piece;
  readonly startedAt: string;
  readonly consumers: number;
  readonly partitions: number;
  readonly records: number;
  /** False if records were still missing when the time was over: figures are of those that came. */
  readonly isFinished: boolean;
  readonly figures: Figures;
  readonly producerLate: Lateness;
  readonly brokerCpuSeconds: number;
  readonly brokerResidentMb: number;
  /** Of the machine, before and after: whether others disturbed the run. */
  readonly loadAverage: readonly [number, number];
  /** Of the processors' time during the workload: what the host of a virtual machine kept. */
  readonly stolenShare: number;
  /** What the consumers said on standard error, if anything. */
  readonly clientErrors: string;
}

const readyMsMax = 60_000;
/**
 * Records of keys of their own, before the clock starts, until code is compiled and fetches are
 * under way. They come at a pace: a backlog is fetched in large portions, and leaves what handles
 * small ones to be compiled beside the workload.
 */
const warmUpRecords = 12_000;
const warmUpIntervalMs = 1.25;
const warmUpServiceUs = 5000;
const warmUpMsMax = 60_000;
/** From the decision to start to the first record. */
const startDelayUs = 300_000;
/** Late repetitions of records that were handled have so long to come. */
const quietMs = 1000;
/** How long the model's time may become before the run is given up. */
const patience = 1.5;
const slackMs = 30_000;
/** Start and end of the broker, the group, the warm-up. */
const overheadMs = 23_000;

/** If there is a folder for them, the events of the handlers are kept, to find out what happened. */
export async function runPiece(
  piece: Piece,
  port: number,
  eventsFolder: string | undefined,
): Promise<Result> {
  const startedAt = new Date().toISOString();
  const loadBefore = loadavg()[0]!;
  const workload = workloadOf(piece);
  const broker = await BrokerProcess.start(arms[piece.arm], port);
  const folder = mkdtempSync(join(tmpdir(), 'keylane-hol-'));
  try {
    const partitions = partitionsOf(piece.arm, workload);
    await createTopics(broker.target, [{ name: topic, partitions }]);
    const run = await drive(piece, workload, broker.address, folder);
    const { cpuSeconds, residentMb } = broker.stats();
    return {
      piece,
      startedAt,
      consumers: workload.consumers,
      partitions,
      records: workload.arrivals.length,
      ...run,
      brokerCpuSeconds: cpuSeconds,
      brokerResidentMb: residentMb,
      loadAverage: [loadBefore, loadavg()[0]!],
    };
  } finally {
    await broker.stop(false);
    const events = join(folder, 'events');
    if (eventsFolder !== undefined && existsSync(events)) {
      mkdirSync(eventsFolder, { recursive: true });
      copyFileSync(events, join(eventsFolder, `${idOf(piece)}.events`));
    }
    rmSync(folder, { recursive: true, force: true });
  }
}

/** From the first intended time to the end of the last handler, as the models have it. */
function modelMs({ arm }: Piece, { arrivals, consumers, partitions }: Workload): number {
  const ideal = idealSchedule(arrivals, consumers).endMs;
  return isKeyed(arm) ? ideal : partitionSchedule(arrivals, consumers, partitions).endMs;
}

/** About how long a run takes, from the start of the broker to its end. */
export function expectedMs(piece: Piece): number {
  return modelMs(piece, workloadOf(piece)) + overheadMs;
}

type Driven = Pick<
  Result,
  'isFinished' | 'figures' | 'producerLate' | 'stolenShare' | 'clientErrors'
>;

async function drive(
  piece: Piece,
  workload: Workload,
  address: string,
  folder: string,
): Promise<Driven> {
  const { arrivals, consumers: count } = workload;
  const events = join(folder, 'events');
  const records = join(folder, 'records');
  const warmUp = join(folder, 'warm-up');
  writeRecords(workload, records, warmUp);
  const partitions = partitionsOf(piece.arm, workload);
  const consumers = new Consumers(piece.client, [
    ...[address, topic, 'hol', count, partitions],
    events,
  ]);
  const producer = new Producer(address, topic);
  let isStopped = false;
  try {
    await producer.ready(readyMsMax);
    await consumers.ready(readyMsMax);
    await producer.send(warmUp, nowUs(), warmUpMsMax);
    if (!(await consumers.handled(warmUpRecords, warmUpMsMax))) {
      throw new Error(`the warm-up did not end: ${consumers.errors}`);
    }
    const startUs = nowUs() + startDelayUs;
    const stolenBefore = stolenCpuSeconds();
    const endUs = startUs + (patience * modelMs(piece, workload) + slackMs) * 1000;
    const producerLate = await producer.send(records, startUs, (endUs - nowUs()) / 1000);
    let isFinished = false;
    // Repetitions count as handled too, so the events have to tell whether all are there.
    let wanted = warmUpRecords + arrivals.length;
    while (!isFinished && nowUs() < endUs) {
      await consumers.handled(wanted, (endUs - nowUs()) / 1000);
      const seen = new Set<number>();
      for (const { sequence } of readEvents(events, startUs, arrivals.length)) seen.add(sequence);
      isFinished = seen.size === arrivals.length;
      wanted = consumers.handledCount + 1;
    }
    const stolen = stolenCpuSeconds() - stolenBefore;
    const stolenShare = stolen / (((nowUs() - startUs) / 1e6) * availableParallelism());
    if (isFinished) await pause(quietMs);
    await consumers.stop();
    isStopped = true;
    const figures = judge(workload, readEvents(events, startUs, arrivals.length));
    return { isFinished, figures, producerLate, stolenShare, clientErrors: consumers.errors };
  } finally {
    await Promise.all([producer.stop(), isStopped ? undefined : consumers.stop()]);
  }
}

/** The same clock as that of the clients: CLOCK_MONOTONIC. */
function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

/** Records of the warm-up have sequence numbers beyond those of the workload. */
function writeRecords({ arrivals }: Workload, records: string, warmUp: string): void {
  const line = (atMs: number, key: string, sequence: number, serviceUs: number): string =>
    `${Math.round(atMs * 1000)}\t${key}\t${sequence} ${Math.round(serviceUs)}\n`;
  writeFileSync(
    records,
    arrivals.map(({ atMs, key, serviceMs }, i) => line(atMs, key, i, serviceMs * 1000)).join(''),
  );
  writeFileSync(
    warmUp,
    Array.from({ length: warmUpRecords }, (_, i) =>
      line(i * warmUpIntervalMs, `warm-up-${i}`, arrivals.length + i, warmUpServiceUs),
    ).join(''),
  );
}

/** Lines of the events, without those of the warm-up and one that is not written whole yet. */
function readEvents(file: string, startUs: number, records: number): Delivery[] {
  const text = readFileSync(file, 'utf8');
  const lines = text
    .slice(0, text.lastIndexOf('\n') + 1)
    .trimEnd()
    .split('\n');
  return lines
    .map((line) => line.split(' ').map(Number))
    .filter(([sequence]) => sequence! < records)
    .map(([sequence, start, end, member]) => ({
      sequence: sequence!,
      startMs: (start! - startUs) / 1000,
      endMs: (end! - startUs) / 1000,
      member: member!,
    }));
}
