/** One run: a new broker, a backlog, and consumers of one client that come to handle it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Arm, BrokerProcess, pause } from '../broker-process.ts';
import { arms, topic } from '../hol/arms.ts';
import { type ClientName, Consumers } from '../hol/programs.ts';
import { machineCpuSeconds } from '../process-stats.ts';
import { createTopics } from '../raw-client.ts';
import { type Backlog, fill } from './backlog.ts';
import { type BrokerCounts, brokerCounts } from './broker-metrics.ts';
import {
  backlogOf,
  consumersOf,
  type DrainLoad,
  keyCount,
  measuredMs,
  type Piece,
  settledMs,
  smallBytes,
} from './plan.ts';
import { progressOf, rateFrom, readStretches } from './progress.ts';

export interface Result {
  readonly piece: Piece;
  readonly startedAt: string;
  /** Of the machine, before and after: whether others disturbed the run. */
  readonly loadAverage: readonly [number, number];
  /** CPU seconds, and requests to the broker, in each second of what was measured. */
  readonly brokerCpuPerSecond: number;
  readonly clientCpuPerSecond: number;
  /** Of everything else on the machine, the harness included: it should be little. */
  readonly otherCpuPerSecond: number;
  readonly requestsPerSecond: number;
  /** Missing for an idle group. */
  readonly drain?: Drain;
  /** What the consumers said on standard error, if anything. */
  readonly clientErrors: string;
}

export interface Drain {
  /** Records handled in each second of the clock. */
  readonly perSecond: readonly number[];
  /** Records a second after the time in which the client is to have got there. */
  readonly rate: number;
  /** min(consumers, keys) / service time, where the handlers have something to do. */
  readonly idealRate?: number;
  /** The same for the time that handlers took: a timer is never early. */
  readonly idealAsHandled?: number;
  readonly joinedLateMs: number;
  /** Keyed delivery only: whether the rate is one of new records. */
  readonly redelivered: number;
}

const readyMsMax = 60_000;
/**
 * Another group drains so much, or for so long, before the clock starts, so that the broker is one
 * that has been running for a while: in its first seconds it compiles its own code beside the
 * clients.
 */
const warmUpBytes = 1_000_000_000;
const warmUpRecordsMax = 3_000_000;
const warmUpMsMax = 8000;
/** After the consumers are ready, the last one may take so long to get its first record. */
const firstRecordMsMax = 5000;
/** What a group does when it has just got everything is not what it does when idle. */
const idleAfterMs = 8000;
const idleMeasuredMs = 10_000;
const idleRecords = 2000;
/** Start and end of the broker, the warm-up, the backlog, the group. */
const overheadMs = 35_000;

/** About how long a run takes at most. */
export function expectedMs({ client, load }: Piece): number {
  const isIdle = load.kind === 'idle';
  return overheadMs + (isIdle ? idleAfterMs + idleMeasuredMs : measuredMs(client));
}

/** The port after the broker's is that of its endpoint for operators. */
export async function runPiece(piece: Piece, port: number): Promise<Result> {
  const startedAt = new Date().toISOString();
  const loadBefore = loadavg()[0]!;
  const broker = await BrokerProcess.start(withAdmin(arms[piece.arm], port + 1), port);
  const folder = mkdtempSync(join(tmpdir(), 'keylane-drain-'));
  const events = join(folder, 'events');
  const count = consumersOf(piece.load);
  let consumers: Consumers | undefined;
  try {
    if (piece.load.kind === 'drain') {
      await warmUp(broker, piece.client, piece.load.recordBytes, count);
    }
    await createTopics(broker.target, [{ name: topic, partitions: count }]);
    await fill(broker.target, backlogIn(piece, count));
    consumers = new Consumers(piece.client, [broker.address, topic, 'drain', count, count, events]);
    await consumers.ready(readyMsMax);
    const now = usedSoFar(broker, consumers, port + 1);
    const used = await measure(piece, consumers, now);
    await consumers.stop();
    return {
      piece,
      startedAt,
      loadAverage: [loadBefore, loadavg()[0]!],
      brokerCpuPerSecond: used.brokerSeconds / used.seconds,
      clientCpuPerSecond: used.clientSeconds / used.seconds,
      otherCpuPerSecond:
        (used.machineSeconds - used.brokerSeconds - used.clientSeconds) / used.seconds,
      requestsPerSecond: used.requests / used.seconds,
      ...(piece.load.kind === 'drain' && {
        drain: drainOf(piece, piece.load, readFileSync(events, 'utf8'), used.redelivered),
      }),
      clientErrors: consumers.errors,
    };
  } finally {
    await consumers?.stop();
    await broker.stop(false);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Another group of the same client drains another topic, as quickly as it can, and leaves. */
async function warmUp(
  broker: BrokerProcess,
  client: ClientName,
  recordBytes: number,
  partitions: number,
): Promise<void> {
  const name = 'warm-up';
  const records = Math.min(Math.round(warmUpBytes / recordBytes), warmUpRecordsMax);
  await createTopics(broker.target, [{ name, partitions }]);
  const backlog = { topic: name, partitions, keys: keyCount, records, recordBytes, serviceMs: 0 };
  await fill(broker.target, backlog);
  const consumers = new Consumers(client, [
    ...[broker.address, name, name, partitions, partitions],
    '/dev/null',
  ]);
  try {
    await consumers.ready(readyMsMax);
    await consumers.handled(records, warmUpMsMax);
  } finally {
    await consumers.stop();
  }
}

function withAdmin(arm: Arm, port: number): Arm {
  return { ...arm, settings: [...(arm.settings ?? []), `admin.listen=127.0.0.1:${port}`] };
}

/** An idle group has had something to do before: only then it is all there. */
function backlogIn(piece: Piece, partitions: number): Backlog {
  const common = { topic, partitions, keys: keyCount };
  const { load } = piece;
  if (load.kind === 'drain') return { ...common, ...load, records: backlogOf(piece) };
  return { ...common, records: idleRecords, recordBytes: smallBytes, serviceMs: 0 };
}

interface Use extends BrokerCounts {
  readonly seconds: number;
  readonly brokerSeconds: number;
  readonly clientSeconds: number;
  readonly machineSeconds: number;
}

function usedSoFar(
  broker: BrokerProcess,
  consumers: Consumers,
  adminPort: number,
): () => Promise<Use> {
  return async () => {
    const counts = await brokerCounts(adminPort);
    return {
      ...counts,
      seconds: performance.now() / 1000,
      brokerSeconds: broker.stats().cpuSeconds,
      clientSeconds: consumers.cpuSeconds,
      machineSeconds: machineCpuSeconds(),
    };
  };
}

/** What the broker used while the consumers handled their backlog, or nothing at all. */
async function measure(piece: Piece, consumers: Consumers, now: () => Promise<Use>): Promise<Use> {
  const isIdle = piece.load.kind === 'idle';
  if (isIdle) {
    if (!(await consumers.handled(idleRecords, readyMsMax))) {
      throw new Error(`the first records were not handled: ${consumers.errors}`);
    }
    await pause(idleAfterMs);
  }
  const before = await now();
  if (isIdle) await pause(idleMeasuredMs);
  else await consumers.handled(backlogOf(piece), measuredMs(piece.client) + firstRecordMsMax);
  const after = await now();
  return {
    seconds: after.seconds - before.seconds,
    brokerSeconds: after.brokerSeconds - before.brokerSeconds,
    clientSeconds: after.clientSeconds - before.clientSeconds,
    machineSeconds: after.machineSeconds - before.machineSeconds,
    requests: after.requests - before.requests,
    redelivered: after.redelivered - before.redelivered,
  };
}

function drainOf(
  { client, load }: Piece,
  { serviceMs }: DrainLoad,
  events: string,
  redelivered: number,
): Drain {
  const { perSecond, handlerMs, joinedLateMs } = progressOf(
    readStretches(events),
    measuredMs(client),
  );
  const rate = rateFrom(perSecond, settledMs(client));
  if (serviceMs === 0) return { perSecond, rate, joinedLateMs, redelivered };
  const workers = Math.min(consumersOf(load), keyCount);
  return {
    perSecond,
    rate,
    idealRate: (workers * 1000) / serviceMs,
    idealAsHandled: (workers * 1000) / handlerMs,
    joinedLateMs,
    redelivered,
  };
}
