/**
 * A producer and a consumer on the bare protocol, for loads that clients cannot make: Java's
 * producer fills no batches when its records are spread over 100,000 partitions. Batches are built
 * before the clock starts, requests carry several of them, and consumers use fetch sessions.
 */
import { codecs } from '../src/core/codecs.ts';
import { decode } from '../src/protocol/codec.ts';
import { encodeRequest } from '../src/protocol/frame.ts';
import { readBatchBytes, readLastOffset } from '../src/protocol/records/batch-header.ts';
import { buildBatch } from '../src/protocol/records/build.ts';
import { produceRequest, produceResponse } from '../src/protocol/schema/00-produce.ts';
import {
  type FetchRequestInput,
  type FetchResponse,
  fetchRequest,
  fetchResponse,
} from '../src/protocol/schema/01-fetch.ts';
import { listOffsetsRequest, listOffsetsResponse } from '../src/protocol/schema/02-list-offsets.ts';
import { metadataRequest, metadataResponse } from '../src/protocol/schema/03-metadata.ts';
import {
  createTopicsRequest,
  createTopicsResponse,
} from '../src/protocol/schema/19-create-topics.ts';
import { RawConnection } from './raw-connection.ts';

/** The last versions that name topics by name. */
const produceVersion = 12;
const fetchVersion = 12;
const metadataVersion = 9;
const createTopicsVersion = 5;
const listOffsetsVersion = 6;
const latestOffset = -1;

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** One partition of one topic. */
export interface Place {
  readonly topic: string;
  readonly partition: number;
}

export interface RawLoad {
  readonly target: Target;
  readonly places: readonly Place[];
  readonly connections: number;
}

/** Is there a broker that answers and knows of itself? */
export async function isServing({ host, port }: Target): Promise<boolean> {
  let connection: RawConnection;
  try {
    connection = await RawConnection.open(host, port);
  } catch {
    return false; // nobody listens yet
  }
  try {
    const value = { topics: [], allowAutoTopicCreation: false };
    const answer = await connection.call(metadataRequest, metadataResponse, metadataVersion, value);
    return answer.brokers.length > 0;
  } catch {
    return false; // it listens and does not serve yet
  } finally {
    connection.close();
  }
}

/** Creates topics and waits until each partition is served. */
export async function createTopics(
  target: Target,
  topics: readonly {
    readonly name: string;
    readonly partitions: number;
    /** Which nodes have replicas of all partitions, the leader first; empty: one, anywhere. */
    readonly replicas?: readonly number[];
  }[],
): Promise<void> {
  const connection = await RawConnection.open(target.host, target.port);
  try {
    for (const { name, partitions, replicas = [] } of topics) {
      const answer = await connection.call(
        createTopicsRequest,
        createTopicsResponse,
        createTopicsVersion,
        {
          topics: [
            replicas.length === 0
              ? {
                  name,
                  numPartitions: partitions,
                  replicationFactor: 1,
                  assignments: [],
                  configs: [],
                }
              : {
                  ...{ name, numPartitions: -1, replicationFactor: -1, configs: [] },
                  assignments: Array.from({ length: partitions }, (_, partitionIndex) => ({
                    partitionIndex,
                    brokerIds: [...replicas],
                  })),
                },
          ],
        },
      );
      const { errorCode, errorMessage } = answer.topics[0]!;
      if (errorCode !== 0) throw new Error(`${name}: error ${errorCode} ${errorMessage ?? ''}`);
    }
    for (const { name, partitions } of topics) {
      while (!(await areServed(connection, name, partitions)));
    }
  } finally {
    connection.close();
  }
}

/** Metadata tells of leaders before Kafka serves them, so each partition is asked for its end. */
async function areServed(
  connection: RawConnection,
  topic: string,
  count: number,
): Promise<boolean> {
  const partitions = Array.from({ length: count }, (_, partitionIndex) => ({
    partitionIndex,
    timestamp: latestOffset,
  }));
  const answer = await connection.call(
    listOffsetsRequest,
    listOffsetsResponse,
    listOffsetsVersion,
    { replicaId: -1, isolationLevel: 0, topics: [{ name: topic, partitions }] },
  );
  return answer.topics[0]!.partitions.every((partition) => partition.errorCode === 0);
}

export interface ProduceLoad extends RawLoad {
  readonly recordBytes: number;
  /** About this much in each batch. */
  readonly batchBytes: number;
  readonly batchesPerRequest: number;
  /** Each record of a batch has a key of its own; else none has one. */
  readonly hasKeys?: boolean;
  /** Requests that each connection has in flight. */
  readonly inFlight: number;
  /** Batches in all. */
  readonly batches: number;
}

export interface LoadResult {
  readonly bytes: number;
  readonly records: number;
  readonly seconds: number;
}

/** Sends the batches round over all places, as fast as the broker takes them. */
export async function produceRaw(load: ProduceLoad): Promise<LoadResult> {
  const { target, places, batchesPerRequest } = load;
  const recordsPerBatch = Math.max(1, Math.round(load.batchBytes / load.recordBytes));
  const batch = prebuilt(recordsPerBatch, load.recordBytes, load.hasKeys === true);
  const connections = await openAll(target, load.connections);
  let sent = 0;
  const started = performance.now();
  await new Promise<void>((resolve, reject) => {
    let open = 0;
    const next = (connection: RawConnection): void => {
      const count = Math.min(batchesPerRequest, load.batches - sent);
      if (count === 0) {
        if (open === 0) resolve();
        return;
      }
      const pieces = produceOf(places, sent, count, batch);
      sent += count;
      open++;
      connection.send(pieces, 1, (frame, bodyStart) => {
        open--;
        const failure = produceError(frame, bodyStart);
        if (failure !== undefined) reject(new Error(failure));
        else next(connection);
      });
    };
    for (const connection of connections) {
      connection.onFailure(reject);
      for (let i = 0; i < load.inFlight; i++) next(connection);
    }
  });
  const seconds = (performance.now() - started) / 1000;
  for (const connection of connections) connection.close();
  const records = load.batches * recordsPerBatch;
  return { bytes: records * load.recordBytes, records, seconds };
}

/** The batch that is sent over and over: its bytes are random, so that nothing compresses them. */
function prebuilt(count: number, recordBytes: number, hasKeys: boolean): Buffer {
  const records = Array.from({ length: count }, (_, i) => ({
    key: hasKeys ? Buffer.from(`key-${i}`) : null,
    value: Buffer.from(Array.from({ length: recordBytes }, () => Math.floor(Math.random() * 256))),
    timestamp: Date.now(),
  }));
  return buildBatch({ records }, codecs);
}

function produceOf(places: readonly Place[], from: number, count: number, batch: Buffer): Buffer[] {
  const byTopic = new Map<string, { index: number; records: Buffer }[]>();
  for (let i = from; i < from + count; i++) {
    const { topic, partition } = places[i % places.length]!;
    const list = byTopic.get(topic);
    if (list === undefined) byTopic.set(topic, [{ index: partition, records: batch }]);
    else list.push({ index: partition, records: batch });
  }
  return encodeRequest(produceRequest, produceVersion, 0, 'bench', {
    acks: -1,
    timeoutMs: 30_000,
    topicData: [...byTopic].map(([name, partitionData]) => ({ name, partitionData })),
  });
}

function produceError(frame: Buffer, bodyStart: number): string | undefined {
  const answer = decode(produceResponse, produceVersion, frame, bodyStart, frame.length);
  for (const { name, partitionResponses } of answer.responses) {
    for (const { index, errorCode, errorMessage } of partitionResponses) {
      if (errorCode !== 0) return `${name}-${index}: error ${errorCode} ${errorMessage ?? ''}`;
    }
  }
  return undefined;
}

export interface ConsumeLoad extends RawLoad {
  /** Records to read in all. */
  readonly records: number;
  readonly fetchBytesMax: number;
  readonly partitionBytesMax: number;
}

/**
 * Reads everything, with one fetch session for each connection; offsets begin at zero. The first
 * requests, which name all partitions, are built before the clock starts.
 */
export async function consumeRaw(load: ConsumeLoad): Promise<LoadResult> {
  const connections = await openAll(load.target, load.connections);
  const sessions = connections.map((_, index) => {
    const mine = load.places.filter((__, at) => at % connections.length === index);
    const session = new Session(mine, load);
    return { session, first: session.request() };
  });
  const started = performance.now();
  let records = 0;
  let bytes = 0;
  await new Promise<void>((resolve, reject) => {
    connections.forEach((connection, index) => {
      connection.onFailure(reject);
      const { session, first } = sessions[index]!;
      const ask = (request: Buffer[]): void => {
        connection.send(request, 1, (frame, bodyStart) => {
          try {
            const got = session.take(
              decode(fetchResponse, fetchVersion, frame, bodyStart, frame.length),
            );
            records += got.records;
            bytes += got.bytes;
          } catch (error) {
            reject(error as Error);
            return;
          }
          if (records >= load.records) resolve();
          else ask(session.request());
        });
      };
      ask(first);
    });
  });
  const seconds = (performance.now() - started) / 1000;
  for (const connection of connections) connection.close();
  return { bytes, records, seconds };
}

interface ReadPlace extends Place {
  offset: number;
}

/** A fetch session as KIP-227 describes it: the first fetch names all, later ones what changed. */
class Session {
  readonly #load: ConsumeLoad;
  readonly #places = new Map<string, Map<number, ReadPlace>>();
  #changed: ReadPlace[] = [];
  #id = 0;
  #epoch = 0;

  constructor(places: readonly Place[], load: ConsumeLoad) {
    this.#load = load;
    for (const { topic, partition } of places) {
      const byPartition = this.#places.get(topic) ?? new Map<number, ReadPlace>();
      this.#places.set(topic, byPartition);
      const place = { topic, partition, offset: 0 };
      byPartition.set(partition, place);
      this.#changed.push(place);
    }
  }

  request(): Buffer[] {
    const byTopic = new Map<string, ReadPlace[]>();
    for (const place of this.#changed) {
      const list = byTopic.get(place.topic);
      if (list === undefined) byTopic.set(place.topic, [place]);
      else list.push(place);
    }
    this.#changed = [];
    const value: FetchRequestInput = {
      maxWaitMs: 500,
      minBytes: 1,
      maxBytes: this.#load.fetchBytesMax,
      sessionId: this.#id,
      sessionEpoch: this.#epoch,
      topics: [...byTopic].map(([topic, places]) => ({
        topic,
        partitions: places.map(({ partition, offset }) => ({
          partition,
          fetchOffset: offset,
          partitionMaxBytes: this.#load.partitionBytesMax,
        })),
      })),
      forgottenTopicsData: [],
    };
    return encodeRequest(fetchRequest, fetchVersion, 0, 'bench', value);
  }

  /** Counts what came, and remembers where to go on. */
  take(answer: FetchResponse): { records: number; bytes: number } {
    if (answer.errorCode !== 0) throw new Error(`fetch: error ${answer.errorCode}`);
    if (this.#epoch === 0 && answer.sessionId === 0) throw new Error('no fetch session was given');
    this.#id = answer.sessionId;
    this.#epoch++;
    let records = 0;
    let bytes = 0;
    for (const { topic, partitions } of answer.responses) {
      const places = this.#places.get(topic)!;
      for (const { partitionIndex, errorCode, records: batches } of partitions) {
        if (errorCode !== 0) throw new Error(`${topic}-${partitionIndex}: error ${errorCode}`);
        if (batches === null || batches.length === 0) continue;
        const place = places.get(partitionIndex)!;
        const end = endOffset(batches);
        records += end - place.offset;
        bytes += batches.length;
        place.offset = end;
        this.#changed.push(place);
      }
    }
    return { records, bytes };
  }
}

/** The offset after the last whole batch. */
function endOffset(batches: Buffer): number {
  let at = 0;
  let last = 0;
  while (at + 12 <= batches.length && at + readBatchBytes(batches, at) <= batches.length) {
    last = at;
    at += readBatchBytes(batches, at);
  }
  return readLastOffset(batches, last) + 1;
}

function openAll(target: Target, count: number): Promise<RawConnection[]> {
  return Promise.all(
    Array.from({ length: count }, () => RawConnection.open(target.host, target.port)),
  );
}
