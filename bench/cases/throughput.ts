/** Produce and consume as fast as it goes, with Java's clients and with librdkafka. */
import { kafka, keylane } from '../broker-process.ts';
import type { Case, Goal, Sample, Session } from '../case.ts';
import {
  consumeJava,
  consumeLibrdkafka,
  type Load,
  produceJava,
  produceLibrdkafka,
  produceTogether,
} from '../clients.ts';
import type { LoadResult } from '../raw-client.ts';
import { loadOf, shapeName, shapes } from './loads.ts';

type Client = (address: string, load: Load) => Promise<LoadResult>;

/** Throughput is demanded for 1 kB and 10 kB records, the cost for all. */
const goals: readonly Goal[] = [
  { what: / kB/, unit: 'MB/s', of: 'ratio', limit: 1 },
  { what: /./, unit: 'CPU s/GB', of: 'ratio', limit: 1 },
];

function compare(name: string, about: string, measure: (s: Session) => Promise<Sample[]>): Case {
  const variants = [keylane, kafka].map((arm) => ({ name: arm.name, arm, measure }));
  return { name, about, variants, goals };
}

function produceCase(name: string, about: string, client: Client): Case {
  return compare(name, about, async (session) => {
    const samples: Sample[] = [];
    await session.warmUp();
    for (const shape of shapes) {
      const prefix = `produce-${shape.recordBytes}-${shape.partitions}`;
      await session.createTopics(prefix, shape.partitions);
      const load = loadOf(`${prefix}-0`, shape.recordBytes, shape.partitions);
      const what = `produce ${shapeName(shape)}`;
      samples.push(...(await session.measure(what, () => client(session.address, load))));
    }
    return samples;
  });
}

/** What is consumed was just produced: most of it lies in the page cache, as it usually does. */
function consumeCase(name: string, about: string, client: Client): Case {
  return compare(name, about, async (session) => {
    const samples: Sample[] = [];
    await session.warmUp();
    for (const shape of shapes) {
      const prefix = `consume-${shape.recordBytes}-${shape.partitions}`;
      await session.createTopics(prefix, shape.partitions);
      const load = loadOf(`${prefix}-0`, shape.recordBytes, shape.partitions);
      await produceLibrdkafka(session.address, load);
      const what = `consume ${shapeName(shape)}`;
      const rounds = () => repeat(consumeRounds, () => client(session.address, load));
      samples.push(...(await session.measure(what, rounds)));
    }
    return samples;
  });
}

/** Reading is over soon, and one wait of a client for its next fetch weighs much. */
const consumeRounds = 2;

async function repeat(rounds: number, load: () => Promise<LoadResult>): Promise<LoadResult> {
  const total = { bytes: 0, records: 0, seconds: 0 };
  for (let round = 0; round < rounds; round++) {
    const { bytes, records, seconds } = await load();
    total.bytes += bytes;
    total.records += records;
    total.seconds += seconds;
  }
  return total;
}

const producersTogether = 4;
/** Each record in a request of its own, sent at once: the price of a request. */
const singly = ['--linger', '0', '--batch-records', '1'];

async function measureTogether(session: Session): Promise<Sample[]> {
  await session.warmUp();
  await session.createTopics('together', 12);
  const large = loadOf('together-0', 1000, 12);
  const small = { topic: 'together-0', partitions: 12, recordBytes: 100, records: 300_000 };
  const { address } = session;
  return [
    ...(await session.measure(`${producersTogether} producers, 1 kB × 12`, () =>
      produceTogether(address, producersTogether, large),
    )),
    ...(await session.measure(`${producersTogether} producers, requests of one 100 B record`, () =>
      produceTogether(address, producersTogether, small, singly),
    )),
  ];
}

export const throughputCases: readonly Case[] = [
  produceCase('produce-librdkafka', 'produce, librdkafka, acks=all', produceLibrdkafka),
  produceCase('produce-java', "produce, Java's producer-perf, acks=all", produceJava),
  compare('produce-together', 'several librdkafka producers at once, acks=all', measureTogether),
  consumeCase('consume-librdkafka', 'consume, librdkafka', consumeLibrdkafka),
  consumeCase('consume-java', "consume, Java's consumer-perf", consumeJava),
];
