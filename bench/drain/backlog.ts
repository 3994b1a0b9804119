/** Fills a topic before anybody consumes it, over the bare protocol, because clients are slower. */
import { codecs } from '../../src/core/codecs.ts';
import { murmur2Partition } from '../../src/core/murmur2.ts';
import { seededRandom } from '../../src/core/random.ts';
import { decode } from '../../src/protocol/codec.ts';
import { encodeRequest } from '../../src/protocol/frame.ts';
import { buildBatch, type RecordInput } from '../../src/protocol/records/build.ts';
import { produceRequest, produceResponse } from '../../src/protocol/schema/00-produce.ts';
import type { Target } from '../raw-client.ts';
import { RawConnection } from '../raw-connection.ts';

export interface Backlog {
  readonly topic: string;
  readonly partitions: number;
  readonly records: number;
  readonly recordBytes: number;
  readonly keys: number;
  readonly serviceMs: number;
}

interface PartitionBatch {
  readonly partition: number;
  readonly records: Buffer;
  readonly count: number;
}

const produceVersion = 12;
/** What Java's producer makes of a backlog with its default `batch.size`. */
const batchBytes = 16 * 1024;
/** More records than this are the same ones again: building them takes longer than sending. */
const distinctMax = 50_000;
const requestsInFlight = 64;

export async function fill(target: Target, backlog: Backlog): Promise<void> {
  const batches = batchesOf(backlog);
  const connection = await RawConnection.open(target.host, target.port);
  let missing = backlog.records;
  let next = 0;
  const sender = async (): Promise<void> => {
    while (missing > 0) {
      const batch = batches[next++ % batches.length]!;
      missing -= batch.count;
      await send(connection, backlog.topic, batch);
    }
  };
  try {
    await Promise.all(Array.from({ length: requestsInFlight }, sender));
  } finally {
    connection.close();
  }
}

/** A request may hold one batch of a partition only, so there are many of them in flight. */
function send(connection: RawConnection, topic: string, batch: PartitionBatch): Promise<void> {
  const { partition: index, records } = batch;
  const pieces = encodeRequest(produceRequest, produceVersion, 0, 'bench', {
    acks: -1,
    timeoutMs: 30_000,
    topicData: [{ name: topic, partitionData: [{ index, records }] }],
  });
  return new Promise((resolve, reject) => {
    connection.onFailure(reject);
    connection.send(pieces, 1, (frame, bodyStart) => {
      const { responses } = decode(produceResponse, produceVersion, frame, bodyStart, frame.length);
      for (const { partitionResponses } of responses) {
        for (const { index, errorCode } of partitionResponses) {
          if (errorCode !== 0) return reject(new Error(`${topic}-${index}: error ${errorCode}`));
        }
      }
      resolve();
    });
  });
}

/** Keys are drawn with equal chances and lie where the default partitioners would put them. */
export function batchesOf(backlog: Backlog): PartitionBatch[] {
  const { records, recordBytes, partitions, keys } = backlog;
  const random = seededRandom(1);
  const countMax = Math.max(1, Math.round(batchBytes / recordBytes));
  const open = Array.from({ length: partitions }, (): RecordInput[] => []);
  const batches: PartitionBatch[] = [];
  const close = (partition: number): void => {
    const taken = open[partition]!;
    if (taken.length === 0) return;
    const built = buildBatch({ records: taken }, codecs);
    batches.push({ partition, records: built, count: taken.length });
    open[partition] = [];
  };
  const timestamp = Date.now();
  for (let sequence = 0; sequence < Math.min(records, distinctMax); sequence++) {
    const key = Buffer.from(`k${Math.floor(random.next() * keys)}`);
    const partition = murmur2Partition(key, partitions);
    open[partition]!.push({ key, value: payloadOf(backlog, sequence), timestamp });
    if (open[partition]!.length === countMax) close(partition);
  }
  for (let partition = 0; partition < partitions; partition++) close(partition);
  return batches;
}

/** What the consumers of ../hol/clients understand: work, or that there is none. */
function payloadOf({ serviceMs, recordBytes }: Backlog, sequence: number): Buffer {
  const text = serviceMs === 0 ? '-' : `${sequence} ${serviceMs * 1000} `;
  return Buffer.from(text.padEnd(recordBytes, 'x'));
}
