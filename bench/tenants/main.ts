/**
 * What tenants cost on one node: many in which nothing happens, and some that all produce at once,
 * beside one: `npm run bench:tenants`. See README.md of this folder.
 */
import { execFileSync } from 'node:child_process';
import { Command } from 'commander';
import { codecs } from '../../src/core/codecs.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import { produceRequest, produceResponse } from '../../src/protocol/schema/00-produce.ts';
import { metadataRequest, metadataResponse } from '../../src/protocol/schema/03-metadata.ts';
import { type Arm, BrokerProcess, pause } from '../broker-process.ts';
import { positive } from '../options.ts';
import { RawConnection } from '../raw-connection.ts';

interface Options {
  readonly idle: number;
  readonly active: number;
  readonly batches: number;
  readonly runs: number;
  readonly port: number;
}

const options = new Command('bench:tenants')
  .option('--idle <n>', 'tenants in which nothing happens', positive, 1000)
  .option('--active <n>', 'tenants that produce at once', positive, 200)
  .option('--batches <n>', 'of 16 records of 1 kB each, in all', positive, 20_000)
  .option('--runs <n>', 'of the throughput', positive, 3)
  .option('--port <n>', 'ports from here on', positive, 19_500)
  .parse()
  .opts<Options>();

const secret = 'the secret of a benchmark';
const createdAtOnce = 16;
const watchedSeconds = 20;
const recordsPerBatch = 16;
const inFlightMax = 200;
const leaderNotAvailable = 5;
const portBase = options.port + 10;
const admin = `127.0.0.1:${options.port + 1}`;
const arm: Arm = {
  name: 'keylane',
  broker: 'keylane',
  settings: [
    ...[`admin.listen=${admin}`, `admin.secret=${secret}`, `tenant.port.base=${portBase}`],
    ...['disk.low.water.bytes=0', 'disk.reserve.bytes=0'],
  ],
};

await measureIdle();
await measureActive();
process.exit(0);

async function createTenants(count: number): Promise<void> {
  const numbers = Array.from({ length: count }, (_, i) => i + 1).values();
  const create = async (): Promise<void> => {
    for (const number of numbers) {
      const headers = { authorization: `Bearer ${secret}` };
      const answer = await fetch(`http://${admin}/tenants/t${number}`, { method: 'PUT', headers });
      if (answer.status !== 200) throw new Error(await answer.text());
      await answer.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: createdAtOnce }, create));
}

async function measureIdle(): Promise<void> {
  const broker = await BrokerProcess.start(arm, options.port);
  const before = broker.stats().residentMb;
  const startedMs = performance.now();
  await createTenants(options.idle);
  const each = (performance.now() - startedMs) / options.idle;
  console.log(`${options.idle} tenants, ${each.toFixed(1)} ms each to create`);
  await watch(broker, 'idle', before);
  const folder = await broker.stop(true);
  const diskMb = Number(execFileSync('du', ['-sm', folder]).toString().split('\t')[0]);
  console.log(`disk: ${diskMb} MB`);
  const restartedMs = performance.now();
  const again = await BrokerProcess.start(arm, options.port, folder);
  // The default tenant is served first.
  while (!(await areServed())) await pause(20);
  const seconds = (performance.now() - restartedMs) / 1000;
  console.log(`started again with all of them in ${seconds.toFixed(1)} s`);
  await watch(again, 'idle, after a start', before);
  await again.stop(false);
}

async function areServed(): Promise<boolean> {
  const answer = await fetch(`http://${admin}/tenants`).catch(() => undefined);
  if (answer === undefined) return false;
  const { tenants } = (await answer.json()) as { tenants: { address: string | null }[] };
  return tenants.every(({ address }) => address !== null);
}

async function watch(broker: BrokerProcess, what: string, beforeMb: number): Promise<void> {
  const { cpuSeconds } = broker.stats();
  await pause(watchedSeconds * 1000);
  const { cpuSeconds: cpuEnd, residentMb } = broker.stats();
  const cpu = ((cpuEnd - cpuSeconds) / watchedSeconds) * 100;
  const memory = `${residentMb.toFixed(0)} MB resident, ${beforeMb.toFixed(0)} without tenants`;
  console.log(`${what}: ${cpu.toFixed(1)} % of a core, ${memory}`);
}

/** The same load to one tenant, and spread over all. */
async function measureActive(): Promise<void> {
  const broker = await BrokerProcess.start(arm, options.port);
  await createTenants(options.active);
  const value = Buffer.alloc(1000, 'x');
  const record = { key: null, value, timestamp: Date.now() };
  const records = buildBatch(
    { records: Array.from({ length: recordsPerBatch }, () => record) },
    codecs,
  );
  for (let run = 0; run < options.runs; run++) {
    const one = await produce(records, 1, inFlightMax);
    for (const inFlight of [1, 5]) {
      const all = await produce(records, options.active, inFlight);
      const rates = `${(all / 1000).toFixed(0)} k/s, one ${(one / 1000).toFixed(0)} k/s`;
      const what = `${options.active} tenants with ${inFlight} request(s) in flight each`;
      console.log(`${what}: ${rates}; ratio ${(all / one).toFixed(2)}`);
    }
  }
  await broker.stop(false);
}

/** Records a second. */
async function produce(records: Buffer, tenants: number, inFlight: number): Promise<number> {
  const connections = await Promise.all(
    Array.from({ length: tenants }, (_, i) => RawConnection.open('127.0.0.1', portBase + i + 1)),
  );
  await Promise.all(connections.map(createTopic));
  const run = async (count: number): Promise<void> => {
    let left = count;
    const sendAll = async (connection: RawConnection): Promise<void> => {
      while (left-- > 0) await send(connection, records);
    };
    await Promise.all(
      connections.flatMap((one) => Array.from({ length: inFlight }, () => sendAll(one))),
    );
  };
  await run(Math.max(2000, tenants * 4));
  const startedMs = performance.now();
  await run(options.batches);
  const seconds = (performance.now() - startedMs) / 1000;
  for (const connection of connections) connection.close();
  return (options.batches * recordsPerBatch) / seconds;
}

async function createTopic(connection: RawConnection): Promise<void> {
  const value = { topics: [{ name: 'load' }], allowAutoTopicCreation: true };
  for (;;) {
    const { topics } = await connection.call(metadataRequest, metadataResponse, 9, value);
    if (topics[0]!.errorCode === 0) return;
    if (topics[0]!.errorCode !== leaderNotAvailable) throw new Error(`${topics[0]!.errorCode}`);
  }
}

async function send(connection: RawConnection, records: Buffer): Promise<void> {
  const { responses } = await connection.call(produceRequest, produceResponse, 12, {
    ...{ acks: -1, timeoutMs: 30_000 },
    topicData: [{ name: 'load', partitionData: [{ index: 0, records }] }],
  });
  const { errorCode } = responses[0]!.partitionResponses[0]!;
  if (errorCode !== 0) throw new Error(`produce: error ${errorCode}`);
}
