import type { ErrorCode } from '../protocol/error-codes.ts';
import { responseHeaderVersion } from '../protocol/frame.ts';
import { fetchResponse } from '../protocol/schema/01-fetch.ts';
import { Writer } from '../protocol/writer.ts';
import type { FetchTopic } from './fetch-partitions.ts';
import { topicIdsFrom } from './fetch-request.ts';
import type { CurrentLeader, NodeEndpoint } from './nodes.ts';

const flexibleFrom = fetchResponse.flexibleFrom;
const noPreferredReplica = -1;
const currentLeaderTag = 1;
const nodeEndpointsFrom = 16;
const nodeEndpointsTag = 0;
/** Two numbers of four bytes and an empty tagged section. */
const currentLeaderBytes = 9;

/** Most answers are made in one turn, and share a writer. */
const idle: Writer[] = [];

/**
 * Writes a Fetch answer piece by piece, frame included, so that one of 100,000 partitions may take
 * several turns of the loop and needs no objects. A test compares with what the codec writes.
 */
export class FetchResponseWriter {
  readonly #apiVersion: number;
  readonly #isFlexible: boolean;
  readonly #isReadCommitted: boolean;
  readonly #writer = idle.pop() ?? new Writer();

  constructor(apiVersion: number, correlationId: number, isReadCommitted: boolean) {
    this.#apiVersion = apiVersion;
    this.#isFlexible = apiVersion >= flexibleFrom;
    this.#isReadCommitted = isReadCommitted;
    this.#writer.reset();
    this.#writer.beginFrame();
    this.#writer.int32(correlationId);
    if (responseHeaderVersion(fetchResponse.apiKey, apiVersion) === 1) this.#tags();
  }

  begin(errorCode: ErrorCode, sessionId: number, topics: number): void {
    const writer = this.#writer;
    if (this.#apiVersion >= 1) writer.int32(0); // throttleTimeMs
    if (this.#apiVersion >= 7) {
      writer.int16(errorCode);
      writer.int32(sessionId);
    }
    this.#count(topics);
  }

  /** As many calls of `partition` follow, then one of `endTopic`. */
  beginTopic({ name, id }: FetchTopic, partitions: number): void {
    const writer = this.#writer;
    if (this.#apiVersion >= topicIdsFrom) writer.uuid(id);
    else if (this.#isFlexible) writer.compactString(name);
    else writer.string(name);
    this.#count(partitions);
  }

  partition(
    index: number,
    errorCode: ErrorCode,
    highWatermark: number,
    logStart: number,
    records: Buffer | readonly Buffer[],
    currentLeader: CurrentLeader | undefined,
  ): void {
    const writer = this.#writer;
    const apiVersion = this.#apiVersion;
    writer.int32(index);
    writer.int16(errorCode);
    writer.int64(highWatermark);
    if (apiVersion >= 4) writer.int64(highWatermark); // lastStableOffset
    if (apiVersion >= 5) writer.int64(logStart);
    if (apiVersion >= 4) {
      if (this.#isReadCommitted) this.#count(0);
      else if (this.#isFlexible) writer.compactNullCount();
      else writer.nullCount();
    }
    if (apiVersion >= 11) writer.int32(noPreferredReplica);
    if (this.#isFlexible) writer.compactRecords(records);
    else writer.records(records);
    if (!this.#isFlexible) return;
    if (currentLeader === undefined) this.#tags();
    else this.#leader(currentLeader);
  }

  endTopic(): void {
    if (this.#isFlexible) this.#tags();
  }

  /** `endpoints`: where leaders are reached that partitions of the answer name. */
  finish(endpoints: readonly NodeEndpoint[] = []): Buffer[] {
    if (this.#apiVersion >= nodeEndpointsFrom && endpoints.length > 0) this.#endpoints(endpoints);
    else if (this.#isFlexible) this.#tags();
    this.#writer.endFrame();
    const pieces = this.#writer.finish();
    if (idle.length === 0) idle.push(this.#writer);
    return pieces;
  }

  #leader({ leaderId, leaderEpoch }: CurrentLeader): void {
    const writer = this.#writer;
    writer.unsignedVarint(1);
    writer.unsignedVarint(currentLeaderTag);
    writer.unsignedVarint(currentLeaderBytes);
    writer.int32(leaderId);
    writer.int32(leaderEpoch);
    this.#tags();
  }

  #endpoints(endpoints: readonly NodeEndpoint[]): void {
    const writer = this.#writer;
    writer.unsignedVarint(1);
    const start = writer.beginTag(nodeEndpointsTag);
    writer.compactCount(endpoints.length);
    for (const { nodeId, host, port } of endpoints) {
      writer.int32(nodeId);
      writer.compactString(host);
      writer.int32(port);
      writer.compactStringOrNull(null);
      this.#tags();
    }
    writer.endTag(start);
  }

  #count(value: number): void {
    if (this.#isFlexible) this.#writer.compactCount(value);
    else this.#writer.count(value);
  }

  /** An empty tagged section. */
  #tags(): void {
    this.#writer.unsignedVarint(0);
  }
}
