/** Record batches and the requests around them, for tests that produce and fetch. */
import { codecs } from '../../src/core/codecs.ts';
import { type BatchInput, buildBatch } from '../../src/protocol/records/build.ts';
import { decodeBatches } from '../../src/protocol/records/decode.ts';
import { produceRequest, produceResponse } from '../../src/protocol/schema/00-produce.ts';
import {
  type FetchRequestInput,
  type FetchResponse,
  fetchRequest,
  fetchResponse,
} from '../../src/protocol/schema/01-fetch.ts';
import type { Asker } from './support.ts';

export function batchOf(values: readonly string[], extra: Partial<BatchInput> = {}): Buffer {
  const records = values.map((value) => ({
    key: null,
    value: Buffer.from(value),
    timestamp: 1000,
  }));
  return buildBatch({ ...extra, records }, codecs);
}

export interface ProduceTo {
  readonly topic: string;
  readonly partition?: number;
  readonly records: Buffer | null;
  readonly version?: number;
  readonly acks?: number;
}

/** Produces one batch and answers what is said of its partition. */
export async function produceTo(client: Asker, to: ProduceTo) {
  const answer = await client.ask(produceRequest, produceResponse, to.version ?? 9, {
    acks: to.acks ?? -1,
    timeoutMs: 1000,
    topicData: [
      { name: to.topic, partitionData: [{ index: to.partition ?? 0, records: to.records }] },
    ],
  });
  return answer.responses[0]!.partitionResponses[0]!;
}

export type FetchOptions = Partial<Omit<FetchRequestInput, 'topics'>> & {
  readonly version?: number;
};

export interface FetchFrom {
  readonly topic: string;
  readonly partition?: number;
  readonly offset: number;
  readonly bytesMax?: number;
  readonly leaderEpoch?: number;
}

export function fetchFrom(
  client: Asker,
  from: readonly FetchFrom[],
  options: FetchOptions = {},
): Promise<FetchResponse> {
  const { version = 11, ...rest } = options;
  const topics = from.map(({ topic, partition = 0, offset, bytesMax, leaderEpoch }) => ({
    topic,
    partitions: [
      {
        partition,
        fetchOffset: offset,
        partitionMaxBytes: bytesMax ?? 1024 * 1024,
        ...(version >= 9 && { currentLeaderEpoch: leaderEpoch ?? -1 }),
      },
    ],
  }));
  return client.ask(fetchRequest, fetchResponse, version, {
    maxWaitMs: 0,
    minBytes: 1,
    maxBytes: 10 * 1024 * 1024,
    topics,
    forgottenTopicsData: [],
    ...rest,
  });
}

/** Offsets and values of all records in a fetched partition. */
export function recordsOf(records: Buffer | null | undefined): [offset: number, value: string][] {
  const { batches } = decodeBatches(records ?? Buffer.alloc(0), {
    codecs,
    openedBytesMax: 1024 * 1024,
  });
  return batches.flatMap((batch) =>
    batch.records.map(
      ({ offset, value }) => [Number(offset), String(value)] satisfies [number, string],
    ),
  );
}
