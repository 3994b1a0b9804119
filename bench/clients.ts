import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { compiled, project } from './paths.ts';
import type { LoadResult } from './raw-client.ts';

/** A load, whichever client makes it. */
export interface Load {
  readonly topic: string;
  readonly partitions: number;
  readonly records: number;
  readonly recordBytes: number;
}

export interface Rate extends Load {
  readonly recordsPerSecond: number;
  readonly lingerMs: number;
}

export interface Latency {
  readonly p50: number;
  readonly p99: number;
}

/** Enough for the slowest load; a client that hangs is ended. */
const clientMsMax = 300_000;

/** The same batching for both clients, as in Kafka's own advice for throughput. */
const lingerMs = 5;
const javaBatchBytes = 64 * 1024;

let loadProgram: string | undefined;

/** librdkafka's load program; built when it is first used. */
function librdkafka(): string {
  loadProgram ??= execFileSync(project('compat-tests/librdkafka/perf/build.sh'), {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  }).trim();
  return loadProgram;
}

export async function produceLibrdkafka(address: string, load: Load): Promise<LoadResult> {
  return resultOf(load, await runLibrdkafka('produce', address, load, []));
}

/**
 * Its partitions come up one after the other. A first fetch of a few that have nothing more would
 * wait for half a second, by default, while nothing is read of the others: chance, not speed.
 */
const shortWaits = ['-X', 'fetch.wait.max.ms=10'];

export async function consumeLibrdkafka(address: string, load: Load): Promise<LoadResult> {
  return resultOf(load, await runLibrdkafka('consume', address, load, shortWaits));
}

/** Several producers at once, each with records of its own; the rate is that of all together. */
export async function produceTogether(
  address: string,
  producers: number,
  load: Load,
  options: readonly string[] = [],
): Promise<LoadResult> {
  const each = { ...load, records: Math.round(load.records / producers) };
  const results = await Promise.all(
    Array.from({ length: producers }, () => runLibrdkafka('produce', address, each, options)),
  );
  // They start together; the slowest one tells how long all of them took.
  const seconds = Math.max(...results.map((result) => result['seconds'] as number));
  const records = each.records * producers;
  return { records, bytes: records * load.recordBytes, seconds };
}

export async function latencyLibrdkafka(address: string, load: Rate): Promise<Latency> {
  const result = await runLibrdkafka('produce', address, load, rateOptions(load));
  return result['latency_ms'] as Latency;
}

export async function endToEndLibrdkafka(address: string, load: Rate): Promise<Latency> {
  const result = await runLibrdkafka('end-to-end', address, load, rateOptions(load));
  return result['end_to_end_ms'] as Latency;
}

function rateOptions(load: Rate): string[] {
  return ['--rate', String(load.recordsPerSecond), '--linger', String(load.lingerMs)];
}

async function runLibrdkafka(
  mode: string,
  address: string,
  load: Load,
  options: readonly string[],
): Promise<Record<string, unknown>> {
  const { topic, partitions, records, recordBytes } = load;
  // Kafka takes longer than librdkafka waits where 1,000 partitions get a small batch each.
  const patience = ['message.timeout.ms=600000', 'socket.timeout.ms=300000'];
  const given = [...options, ...patience.flatMap((property) => ['-X', property])];
  const numbers = ['--partitions', partitions, '--records', records, '--size', recordBytes];
  const output = await run(librdkafka(), [mode, address, topic, ...numbers.map(String), ...given]);
  return JSON.parse(output) as Record<string, unknown>;
}

function resultOf(load: Load, result: Record<string, unknown>): LoadResult {
  const records = result['records'] as number;
  return { records, bytes: records * load.recordBytes, seconds: result['seconds'] as number };
}

export async function produceJava(address: string, load: Load): Promise<LoadResult> {
  const properties = [
    'acks=all',
    `batch.size=${javaBatchBytes}`,
    `linger.ms=${lingerMs}`,
    'buffer.memory=67108864',
  ];
  const output = await java('org.apache.kafka.tools.ProducerPerformance', [
    ...['--bootstrap-server', address, '--topic', load.topic],
    ...['--num-records', String(load.records), '--record-size', String(load.recordBytes)],
    ...['--throughput', '-1', '--command-property', ...properties],
  ]);
  const line = output.trim().split('\n').at(-1) ?? '';
  const perSecond = /records sent, ([\d.]+) records\/sec/.exec(line)?.[1];
  if (perSecond === undefined) throw new Error(`not a result of producer-perf: ${output}`);
  const { records, recordBytes } = load;
  return { records, bytes: records * recordBytes, seconds: records / Number(perSecond) };
}

export async function consumeJava(address: string, load: Load): Promise<LoadResult> {
  const output = await java('org.apache.kafka.tools.ConsumerPerformance', [
    ...['--bootstrap-server', address, '--topic', load.topic],
    ...[
      '--num-records',
      String(load.records),
      '--group',
      `bench-${randomBytes(4).toString('hex')}`,
    ],
    ...['--timeout', '30000', '--hide-header'],
  ]);
  // start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, fetch MB/s, fetch records/s
  const fields = (output.trim().split('\n').at(-1) ?? '').split(', ');
  if (fields.length < 10) throw new Error(`not a result of consumer-perf: ${output}`);
  const records = Number(fields[4]);
  if (records < load.records) throw new Error(`only ${records} records came`);
  return { records, bytes: records * load.recordBytes, seconds: Number(fields[7]) / 1000 };
}

function java(main: string, options: readonly string[]): Promise<string> {
  const folder = project('compat-tests/apache-kafka');
  return run('java', [
    ...[
      '-Xms512m',
      '-Xmx512m',
      '-XX:+UseG1GC',
      `-Dlog4j2.configurationFile=${folder}/log4j2.properties`,
    ],
    ...['-cp', `${folder}/lib/*`, main, ...options],
  ]);
}

/** The raw client, in a process of its own. */
export async function rawLoad(
  mode: 'create' | 'produce' | 'consume',
  address: string,
  options: Readonly<Record<string, number | string>>,
): Promise<LoadResult> {
  const script = compiled('raw-load.js');
  const output = await run(process.execPath, [script, mode, address, JSON.stringify(options)]);
  return JSON.parse(output) as LoadResult;
}

/** Runs a client to its end and answers what it wrote. */
function run(command: string, options: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child: ChildProcess = spawn(command, options, { stdio: ['ignore', 'pipe', 'pipe'] });
    const late = setTimeout(() => child.kill('SIGKILL'), clientMsMax);
    let output = '';
    let errors = '';
    child.stdout?.on('data', (text: Buffer) => {
      output += text.toString();
    });
    child.stderr?.on('data', (text: Buffer) => {
      errors = (errors + text.toString()).slice(-4096);
    });
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(late);
      if (code === 0) resolve(output);
      else
        reject(new Error(`${command} ${options.join(' ')} ended with ${code}: ${errors}${output}`));
    });
  });
}
