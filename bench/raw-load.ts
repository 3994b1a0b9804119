/**
 * The raw client as a process of its own, so that it does not share an event loop with the
 * harness: `node raw-load.js create|produce|consume HOST:PORT JSON`. The JSON says which topics
 * there are (`prefix`, `topics`, `partitions` of each) and what ProduceLoad and ConsumeLoad need.
 * The result is one line of JSON.
 */
import { parseHostPort } from '../src/net/listeners.ts';
import {
  type ConsumeLoad,
  consumeRaw,
  createTopics,
  type LoadResult,
  type Place,
  type ProduceLoad,
  produceRaw,
} from './raw-client.ts';

interface Topics {
  readonly prefix: string;
  readonly topics: number;
  readonly partitions: number;
  /** Which nodes have replicas of all partitions, the leader first; else what the broker does. */
  readonly replicas?: readonly number[];
}

const [mode, address = '', text = '{}'] = process.argv.slice(2);
const target = parseHostPort(address);
const options = JSON.parse(text) as Topics & Partial<ProduceLoad & ConsumeLoad>;
console.log(JSON.stringify(await run()));
process.exit(0);

async function run(): Promise<LoadResult | Record<string, never>> {
  const names = Array.from({ length: options.topics }, (_, i) => `${options.prefix}-${i}`);
  if (mode === 'create') {
    const { partitions, replicas = [] } = options;
    await createTopics(
      target,
      names.map((name) => ({ name, partitions, replicas })),
    );
    return {};
  }
  // Partition by partition over the topics, so that a request carries batches of several topics.
  const places: Place[] = [];
  for (let partition = 0; partition < options.partitions; partition++) {
    for (const topic of names) places.push({ topic, partition });
  }
  if (mode === 'produce') {
    return produceRaw({
      target,
      places,
      connections: options.connections ?? 4,
      recordBytes: options.recordBytes ?? 1000,
      batchBytes: options.batchBytes ?? 16 * 1024,
      batchesPerRequest: options.batchesPerRequest ?? 8,
      inFlight: options.inFlight ?? 5,
      batches: options.batches ?? 10_000,
      hasKeys: options.hasKeys ?? false,
    });
  }
  if (mode === 'consume') {
    return consumeRaw({
      target,
      places,
      connections: options.connections ?? 4,
      records: options.records ?? 1,
      fetchBytesMax: options.fetchBytesMax ?? 4 * 1024 * 1024,
      partitionBytesMax: options.partitionBytesMax ?? 1024 * 1024,
    });
  }
  throw new Error(`unknown mode ${mode ?? ''}`);
}
