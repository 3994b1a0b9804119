/** What it costs if each sync of all three nodes takes 5 ms longer. */
import { latencyLibrdkafka, produceLibrdkafka } from '../clients.ts';
import { load } from './load.ts';
import { delay, type Nodes } from './nodes.ts';

const partitions = 12;
const recordBytes = 1000;
const records = 300_000;
const batches = 20_000;
const seconds = 8;
/** As at the peak: without it, the load would be one of many small requests. */
const lingerMs = 5;
const arms = [
  { name: 'without', settings: [] },
  { name: 'with 5 ms', settings: ['journal.sync.delay.ms=5'] },
] as const;

interface Peaks {
  readonly librdkafka: number;
  readonly raw: number;
}

/** Peaks with and without, in turn; then how long producers wait at half of the lower one. */
export async function slowDisk(
  start: (settings: readonly string[]) => Nodes,
  runs: number,
): Promise<void> {
  const found = arms.map(() => [] as Peaks[]);
  for (let run = 0; run < runs; run++) {
    for (const [i, { settings }] of arms.entries()) found[i]!.push(await peaks(start(settings)));
  }
  const medians = (what: keyof Peaks) =>
    found.map((of) => of.map((one) => one[what]).sort((a, b) => a - b)[of.length >> 1]!);
  for (const what of ['librdkafka', 'raw'] as const) {
    const [without, delayed] = medians(what) as [number, number];
    const shown = [without, delayed].map((rate) => `${(rate / 1000).toFixed(0)} k/s`).join(', ');
    console.log(`${what}, without and with: ${shown}; ratio ${(delayed / without).toFixed(2)}`);
  }
  const recordsPerSecond = Math.round(Math.min(...medians('librdkafka')) / 2);
  for (const { name, settings } of arms) {
    const nodes = start(settings);
    try {
      const topic = 'half-load';
      const leader = await prepare(nodes, topic);
      const rate = { recordsPerSecond, records: recordsPerSecond * seconds, lingerMs };
      const shape = { topic: `${topic}-0`, partitions, recordBytes };
      const { p50, p99 } = await latencyLibrdkafka(addressOf(nodes, leader), { ...shape, ...rate });
      console.log(`half load, ${recordsPerSecond}/s, ${name}: p50 ${p50} ms, p99 ${p99} ms`);
    } finally {
      nodes.stop();
    }
  }
}

async function peaks(nodes: Nodes): Promise<Peaks> {
  try {
    const leader = await prepare(nodes, 'load');
    const shape = { topic: 'load-0', partitions, recordBytes };
    const client = await produceLibrdkafka(addressOf(nodes, leader), { ...shape, records });
    const raw = load(nodes, leader, 'produce', { partitions, batches });
    return { librdkafka: client.records / client.seconds, raw: raw.records / raw.seconds };
  } finally {
    nodes.stop();
  }
}

/** A cluster that is warm; answers who leads. */
async function prepare(nodes: Nodes, prefix: string): Promise<number> {
  await nodes.startAll();
  const leader = await nodes.whole();
  await delay(500);
  load(nodes, leader, 'create', { prefix, partitions });
  load(nodes, leader, 'produce', { prefix, partitions, batches: 3000 });
  return leader;
}

function addressOf(nodes: Nodes, id: number): string {
  const { host, port } = nodes.target(id);
  return `${host}:${port}`;
}
