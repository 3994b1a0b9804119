import { DecodeError } from '../protocol/codec-error.ts';
import { Reader } from '../protocol/reader.ts';
import { fetchRequest } from '../protocol/schema/01-fetch.ts';
import { ZERO_UUID } from '../protocol/uuid.ts';

/** From this version on topics are named by id alone (KIP-516). */
export const topicIdsFrom = 13;

/** What a Fetch says of itself, apart from its partitions. */
export interface FetchOptions {
  readonly apiVersion: number;
  readonly maxWaitMs: number;
  readonly minBytes: number;
  readonly maxBytes: number;
  readonly isolationLevel: number;
  readonly sessionId: number;
  readonly sessionEpoch: number;
}

export interface NamedTopic {
  /** Empty from version 13 on. */
  readonly name: string;
  /** 32 hex digits; zero below version 13. */
  readonly id: string;
}

/** A topic of the request, whose partitions are still bytes. */
export interface RequestedTopic extends NamedTopic {
  readonly count: number;
  /** Where its partitions begin. */
  readonly start: number;
}

export interface ForgottenTopic extends NamedTopic {
  readonly indexes: readonly number[];
}

export interface FetchRequestView {
  readonly options: FetchOptions;
  readonly topics: readonly RequestedTopic[];
  readonly partitionCount: number;
  readonly forgotten: readonly ForgottenTopic[];
  readonly frame: Buffer;
}

const flexibleFrom = fetchRequest.flexibleFrom;

/**
 * Reads a Fetch with all checks, but leaves its partitions where they are: 100,000 of them would be
 * as many objects, made in one turn of the loop. `RequestedPartitions` goes through them. A test
 * compares with what the codec reads.
 */
export function viewFetchRequest(
  frame: Buffer,
  start: number,
  apiVersion: number,
): FetchRequestView {
  try {
    return view(new Reader(frame, start, frame.length), apiVersion);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw new DecodeError(`${fetchRequest.name} version ${apiVersion}: ${error.message}`);
  }
}

function view(reader: Reader, apiVersion: number): FetchRequestView {
  if (apiVersion <= 14) reader.int32(); // replicaId
  const options: FetchOptions = {
    apiVersion,
    maxWaitMs: reader.int32(),
    minBytes: reader.int32(),
    maxBytes: apiVersion >= 3 ? reader.int32() : 0x7fffffff,
    isolationLevel: apiVersion >= 4 ? reader.int8() : 0,
    sessionId: apiVersion >= 7 ? reader.int32() : 0,
    sessionEpoch: apiVersion >= 7 ? reader.int32() : -1,
  };
  const isFlexible = apiVersion >= flexibleFrom;
  const topics: RequestedTopic[] = [];
  let partitionCount = 0;
  for (let left = countOf(reader, apiVersion); left > 0; left--) {
    const topic = nameOf(reader, apiVersion);
    const count = countOf(reader, apiVersion);
    topics.push({ ...topic, count, start: reader.position });
    skipPartitions(reader, apiVersion, count);
    if (isFlexible) reader.skipTags();
    partitionCount += count;
  }
  const forgotten = apiVersion >= 7 ? forgottenOf(reader, apiVersion) : [];
  if (isFlexible) {
    reader.compactString(); // rackId
    reader.skipTags();
  } else if (apiVersion >= 11) reader.string();
  return { options, topics, partitionCount, forgotten, frame: reader.buffer };
}

function forgottenOf(reader: Reader, apiVersion: number): ForgottenTopic[] {
  const forgotten: ForgottenTopic[] = [];
  for (let left = countOf(reader, apiVersion); left > 0; left--) {
    const topic = nameOf(reader, apiVersion);
    const indexes = new Array<number>(countOf(reader, apiVersion));
    for (let i = 0; i < indexes.length; i++) indexes[i] = reader.int32();
    if (apiVersion >= flexibleFrom) reader.skipTags();
    forgotten.push({ ...topic, indexes });
  }
  return forgotten;
}

function countOf(reader: Reader, apiVersion: number): number {
  return apiVersion >= flexibleFrom ? reader.compactCount(4) : reader.count(4);
}

function nameOf(reader: Reader, apiVersion: number): NamedTopic {
  if (apiVersion >= topicIdsFrom) return { name: '', id: reader.uuid() };
  const name = apiVersion >= flexibleFrom ? reader.compactString() : reader.string();
  return { name, id: ZERO_UUID };
}

/** Bytes of a partition without its tagged fields, none of which is looked at. */
function partitionBytes(apiVersion: number): number {
  let bytes = 16; // partition, fetchOffset, partitionMaxBytes
  if (apiVersion >= 5) bytes += 8; // logStartOffset
  if (apiVersion >= 9) bytes += 4; // currentLeaderEpoch
  if (apiVersion >= 12) bytes += 4; // lastFetchedEpoch
  return bytes;
}

function skipPartitions(reader: Reader, apiVersion: number, count: number): void {
  const bytes = partitionBytes(apiVersion);
  if (bytes * count > reader.end - reader.position) reader.fail(`${count} partitions`);
  if (apiVersion < flexibleFrom) {
    reader.position += bytes * count;
    return;
  }
  for (let left = count; left > 0; left--) {
    if (bytes > reader.end - reader.position) reader.fail('a partition');
    reader.position += bytes;
    reader.skipTags();
  }
}

/** Goes through the partitions of a request; what it tells is that of the present one. */
export class RequestedPartitions {
  readonly #view: FetchRequestView;
  readonly #apiVersion: number;
  readonly #reader: Reader;
  #nextTopic = 0;
  #left = 0;
  topic: RequestedTopic | undefined;
  index = -1;
  currentLeaderEpoch = -1;
  fetchOffset = -1;
  bytesMax = 0;

  constructor(request: FetchRequestView) {
    this.#view = request;
    this.#apiVersion = request.options.apiVersion;
    this.#reader = new Reader(request.frame, 0, request.frame.length);
  }

  /** False behind the last one. */
  next(): boolean {
    while (this.#left === 0) {
      const topic = this.#view.topics[this.#nextTopic++];
      if (topic === undefined) return false;
      this.topic = topic;
      this.#left = topic.count;
      this.#reader.position = topic.start;
    }
    this.#left--;
    const reader = this.#reader;
    const apiVersion = this.#apiVersion;
    this.index = reader.int32();
    this.currentLeaderEpoch = apiVersion >= 9 ? reader.int32() : -1;
    this.fetchOffset = reader.int64();
    if (apiVersion >= 12) reader.int32(); // lastFetchedEpoch
    if (apiVersion >= 5) reader.int64(); // logStartOffset
    this.bytesMax = reader.int32();
    if (apiVersion >= flexibleFrom) reader.skipTags();
    return true;
  }
}
