/** Batches spread evenly over 100,000 partitions, against the same batches in 12. */
import { type Arm, keylane } from '../broker-process.ts';
import { type Case, less, type Sample, type Session } from '../case.ts';
import { rawLoad } from '../clients.ts';

export interface Spread {
  readonly topics: number;
  readonly partitions: number;
}

const few: Spread = { topics: 1, partitions: 12 };
export const many: Spread = { topics: 100, partitions: 1000 };
const recordBytes = 1000;
const recordsPerBatch = 16;
/** Each of the 100,000 partitions gets one batch. */
const batches = 100_000;

export async function measureSpread(session: Session, spread: Spread): Promise<Sample[]> {
  const options = { prefix: 'spread', ...spread, connections: 4 };
  const started = performance.now();
  await session.createTopics(options.prefix, spread.partitions, spread.topics);
  const createSeconds = (performance.now() - started) / 1000;
  const load = { ...options, recordBytes, batchBytes: recordBytes * recordsPerBatch, batches };
  const records = batches * recordsPerBatch;
  const { address } = session;
  const samples = [
    ...(await session.measure('produce, raw client', () => rawLoad('produce', address, load))),
    ...(await session.measure('consume, raw client', async () => {
      const result = await rawLoad('consume', address, { ...options, records });
      return { ...result, bytes: records * recordBytes };
    })),
  ];
  const { residentMb, residentPeakMb } = session.broker.stats();
  return [
    ...samples,
    less('create topics', 's', createSeconds),
    less('after load', 'RSS MB', residentMb),
    less('highest', 'RSS MB', residentPeakMb),
  ];
}

function variant(name: string, arm: Arm, spread: Spread) {
  return { name, arm, measure: (session: Session) => measureSpread(session, spread) };
}

export const manyPartitionsCase: Case = {
  name: 'many-partitions',
  about: 'batches of 16 × 1 kB, 8 to a request, 4 connections; fetch sessions',
  variants: [variant('100,000 partitions', keylane, many), variant('12 partitions', keylane, few)],
  goals: [{ what: /raw client/, unit: 'MB/s', of: 'ratio', limit: 0.8 }],
};
