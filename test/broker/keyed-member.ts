/** What the tests of keyed delivery share: members of a group that speak the raw protocol. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { codecs } from '../../src/core/codecs.ts';
import { encodeAssignment } from '../../src/groups/consumer-protocol.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { buildBatch, type RecordHeaderInput } from '../../src/protocol/records/build.ts';
import { decodeBatches } from '../../src/protocol/records/decode.ts';
import type { DecodedRecord } from '../../src/protocol/records/decoded-batch.ts';
import {
  offsetFetchRequest,
  offsetFetchResponse,
} from '../../src/protocol/schema/09-offset-fetch.ts';
import {
  apiVersionsRequest,
  apiVersionsResponse,
} from '../../src/protocol/schema/18-api-versions.ts';
import { Member, type MemberOptions } from './group-client.ts';
import { type FetchOptions, fetchFrom, produceTo } from './records.ts';
import { type Asker, startTestNode, type TestClient, type TestNode } from './support.ts';

export const numbersPerSlot = 2 ** 44;

/** Configs of a topic in keyed delivery that does not hold back what a test waits for. */
export const keyedConfigs = {
  'retention.ms': '-1',
  'delivery.mode': 'keyed',
  'delivery.window': '1000',
  'retry.backoff.ms': '0',
};

export interface KeyedOptions extends MemberOptions {
  /** What its ApiVersions says it is: that decides what commits and fetches prove. */
  readonly software?: string;
}

/** One answer of a lane. */
export interface LaneAnswer {
  readonly errorCode: number;
  readonly highWatermark: number;
  readonly lastStableOffset: number;
  readonly logStartOffset: number;
  readonly bytes: Buffer;
  readonly records: readonly DecodedRecord[];
}

/** A member of a group whose topic is in keyed delivery, on a connection of its own. */
export class KeyedMember extends Member {
  readonly topic: string;
  readonly #node: TestNode;
  readonly #software: string;
  /** Where it goes on, by lane. */
  readonly positions = new Map<number, number>();

  constructor(node: TestNode, client: TestClient, options: KeyedOptions) {
    super(client, options);
    this.#node = node;
    this.topic = options.topics![0]!;
    this.#software = options.software ?? 'kafkajs';
  }

  static async connect(node: TestNode, options: KeyedOptions): Promise<KeyedMember> {
    const member = new KeyedMember(node, await node.connect(), options);
    await member.introduce();
    return member;
  }

  async introduce(): Promise<void> {
    await this.client.ask(apiVersionsRequest, apiVersionsResponse, 3, {
      clientSoftwareName: this.#software,
      clientSoftwareVersion: '1',
    });
  }

  /** On a new connection it goes on as the member that it was. */
  async reconnect(): Promise<void> {
    this.client = await this.#node.connect();
    await this.introduce();
    // This is how the broker learns which member it is.
    await this.heartbeat();
  }

  /** Assigns lanes, by member id, as the leader of the group. */
  assign(lanes: Readonly<Record<string, readonly number[]>>) {
    return this.sync({}, 5, {
      assignments: Object.entries(lanes).map(([memberId, partitions]) => ({
        memberId,
        assignment: encodeAssignment({
          version: 1,
          partitions: new Map([[this.topic, partitions]]),
          userData: null,
        }),
      })),
    });
  }

  /** Joins as the only member, with these lanes, and asks where it is. */
  async own(...lanes: readonly number[]): Promise<void> {
    await this.join();
    const synced = await this.assign({ [this.memberId]: lanes });
    assert.equal(synced.errorCode, ErrorCode.NONE);
    await this.locate(...lanes);
  }

  /** OffsetFetch, as every consumer does before it fetches. */
  async locate(...lanes: readonly number[]): Promise<number[]> {
    const offsets = await offsetsOf(this.client, this.groupId, this.topic, lanes, this.memberId);
    for (const [i, lane] of lanes.entries()) this.positions.set(lane, offsets[i]!);
    return offsets;
  }

  /** One Fetch of one lane, where it is; goes on behind what it got. */
  async fetch(lane = 0, options: FetchOptions & { at?: number; bytesMax?: number } = {}) {
    const { at = this.positions.get(lane)!, bytesMax, ...rest } = options;
    const from = {
      topic: this.topic,
      partition: lane,
      offset: at,
      ...(bytesMax !== undefined && { bytesMax }),
    };
    const answer = await fetchFrom(this.client, [from], rest);
    assert.equal(answer.sessionId, 0);
    const found = laneAnswer(answer.responses[0]!.partitions[0]!);
    const last = found.records.at(-1);
    if (last !== undefined) this.positions.set(lane, last.offset + 1);
    return found;
  }

  /**
   * Fetches until there is something. The clock of the node goes on meanwhile, but not so far that
   * the member's session ends: threads that read the log take time that is none of that clock's.
   */
  async await(lane = 0, options: FetchOptions & { bytesMax?: number } = {}): Promise<LaneAnswer> {
    for (let i = 0; i < 100_000; i++) {
      const found = await this.fetch(lane, options);
      if (found.records.length > 0) return found;
      if (i < 400) this.#node.clock.advance(60);
    }
    throw new Error('no record came');
  }

  /** Commits all that it fetched of the lane. */
  async commitAll(lane = 0): Promise<void> {
    const errorCode = await this.commit(this.topic, lane, this.positions.get(lane)!);
    assert.equal(errorCode, ErrorCode.NONE);
  }
}

export function laneAnswer(partition: {
  errorCode: number;
  highWatermark: number;
  lastStableOffset: number;
  logStartOffset: number;
  records: Buffer | null;
}): LaneAnswer {
  const { errorCode, highWatermark, lastStableOffset, logStartOffset } = partition;
  const bytes = partition.records ?? Buffer.alloc(0);
  return {
    ...{ errorCode, highWatermark, lastStableOffset, logStartOffset, bytes },
    records: decoded(bytes),
  };
}

/** Checksums are verified. */
export function decoded(bytes: Buffer): DecodedRecord[] {
  const { batches } = decodeBatches(bytes, { codecs, openedBytesMax: 1024 * 1024 });
  return batches.flatMap(({ records }) => records);
}

/** `key=value` of each record. */
export function texts(records: readonly DecodedRecord[]): string[] {
  return records.map(({ key, value }) => `${key}=${value}`);
}

export async function offsetsOf(
  client: Asker,
  groupId: string,
  topic: string,
  partitionIndexes: readonly number[],
  memberId: string | null = null,
): Promise<number[]> {
  const answer = await client.ask(offsetFetchRequest, offsetFetchResponse, 9, {
    groups: [{ groupId, memberId, memberEpoch: -1, topics: [{ name: topic, partitionIndexes }] }],
  });
  const [group] = answer.groups;
  assert.equal(group?.errorCode, ErrorCode.NONE);
  return group.topics[0]!.partitions.map(({ committedOffset }) => committedOffset);
}

/** Of the first record of a batch. Topics of these tests keep records for ever. */
export const sentMs = 1000;

export interface KeyedRecord {
  readonly key: string | null;
  readonly value: string;
  readonly headers?: readonly RecordHeaderInput[];
}

export interface SendOptions {
  readonly partition?: number;
  readonly compression?: 0 | 1 | 2 | 3 | 4;
}

/** One batch; `k=v` is a record with key k. Answers its bytes. */
export async function send(
  client: TestClient,
  topic: string,
  records: readonly (string | KeyedRecord)[],
  { partition = 0, compression = 0 }: SendOptions = {},
): Promise<Buffer> {
  const batch = buildBatch(
    {
      compression,
      records: records.map((record, i) => {
        const { key, value, headers = [] } = typeof record === 'string' ? parsed(record) : record;
        return {
          key: key === null ? null : Buffer.from(key),
          value: Buffer.from(value),
          timestamp: sentMs + i,
          headers,
        };
      }),
    },
    codecs,
  );
  const outcome = await produceTo(client, { topic, partition, records: batch });
  assert.equal(outcome.errorCode, ErrorCode.NONE);
  return batch;
}

function parsed(text: string): KeyedRecord {
  const [key, value] = text.split('=');
  return { key: key!, value: value! };
}

/** A second member joins; the first is the leader and shares the lanes out. */
export async function shareLanes(
  first: KeyedMember,
  second: KeyedMember,
  lanes: readonly [readonly number[], readonly number[]],
): Promise<void> {
  const joining = second.join();
  while ((await first.heartbeat()) !== ErrorCode.REBALANCE_IN_PROGRESS);
  const [joined] = await Promise.all([first.join(), joining]);
  assert.equal(joined.leader, first.memberId);
  const syncing = second.sync();
  await first.assign({ [first.memberId]: lanes[0], [second.memberId]: lanes[1] });
  await syncing;
  await first.locate(...lanes[0]);
  await second.locate(...lanes[1]);
}

/** A node with the topic `orders`, and the one member of group `g`, which owns all its lanes. */
export interface Started {
  readonly node: TestNode;
  readonly producer: TestClient;
  readonly member: KeyedMember;
}

export async function started(
  t: TestContext,
  configs: Readonly<Record<string, string>> = {},
  partitionCount = 1,
): Promise<Started> {
  const node = await startTestNode(t);
  await node.createTopic('orders', partitionCount, { ...keyedConfigs, ...configs });
  const producer = await node.connect('producer');
  const member = await KeyedMember.connect(node, { groupId: 'g', topics: ['orders'] });
  await member.own(...Array.from({ length: partitionCount }, (_, lane) => lane));
  return { node, producer, member };
}
