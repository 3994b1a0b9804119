import assert from 'node:assert/strict';
import test from 'node:test';
import { RequestedPartitions, viewFetchRequest } from '../../src/broker/fetch-request.ts';
import { FetchResponseWriter } from '../../src/broker/fetch-response.ts';
import { seededRandom } from '../../src/core/random.ts';
import { decode, encode } from '../../src/protocol/codec.ts';
import { DecodeError } from '../../src/protocol/codec-error.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { encodeResponse } from '../../src/protocol/frame.ts';
import {
  type FetchRequestInput,
  fetchRequest,
  fetchResponse,
} from '../../src/protocol/schema/01-fetch.ts';
import { ZERO_UUID } from '../../src/protocol/uuid.ts';

const versions = Array.from({ length: 19 }, (_, version) => version);
const random = seededRandom(11);
const below = (count: number) => Math.floor(random.next() * count);
const several = <T>(make: (i: number) => T) => Array.from({ length: below(4) }, (_, i) => make(i));

function nameOf(version: number) {
  return version >= 13 ? { topicId: random.bytes(16).toString('hex') } : { topic: `t${below(99)}` };
}

function randomRequest(version: number): FetchRequestInput {
  return {
    maxWaitMs: below(1000),
    minBytes: below(1000),
    ...(version >= 3 && { maxBytes: below(2 ** 31) }),
    ...(version >= 4 && { isolationLevel: below(2) }),
    ...(version >= 7 && { sessionId: below(2 ** 31), sessionEpoch: below(99) - 1 }),
    ...(version >= 12 && { clusterId: 'a cluster' }),
    ...(version >= 11 && { rackId: 'a rack' }),
    topics: several(() => ({
      ...nameOf(version),
      partitions: several(() => ({
        partition: below(2 ** 31),
        fetchOffset: below(2 ** 48),
        partitionMaxBytes: below(2 ** 31),
        ...(version >= 9 && { currentLeaderEpoch: below(99) - 1 }),
        ...(version >= 5 && { logStartOffset: below(99) }),
        ...(version >= 12 && { lastFetchedEpoch: below(99) }),
        ...(version >= 17 && below(2) > 0 && { replicaDirectoryId: '0a'.repeat(16) }),
      })),
    })),
    forgottenTopicsData:
      version >= 7
        ? several(() => ({ ...nameOf(version), partitions: several(() => below(2 ** 31)) }))
        : [],
  };
}

function viewed(frame: Buffer, start: number, version: number) {
  const view = viewFetchRequest(frame, start, version);
  const requested = new RequestedPartitions(view);
  const partitions: unknown[] = [];
  while (requested.next()) {
    const { topic, index, currentLeaderEpoch, fetchOffset, bytesMax } = requested;
    partitions.push([topic!.name, topic!.id, index, currentLeaderEpoch, fetchOffset, bytesMax]);
  }
  assert.equal(view.partitionCount, partitions.length);
  return { options: view.options, partitions, forgotten: view.forgotten };
}

test('a view of a request tells what the codec reads, in every version', () => {
  for (const version of versions) {
    for (let round = 0; round < 50; round++) {
      const frame = Buffer.concat([
        Buffer.alloc(3),
        ...encode(fetchRequest, version, randomRequest(version)),
      ]);
      const read = decode(fetchRequest, version, frame, 3);
      const { maxWaitMs, minBytes, maxBytes, isolationLevel, sessionId, sessionEpoch } = read;
      assert.deepEqual(viewed(frame, 3, version), {
        options: {
          ...{ apiVersion: version, maxWaitMs, minBytes, maxBytes },
          ...{ isolationLevel, sessionId, sessionEpoch },
        },
        partitions: read.topics.flatMap(({ topic, topicId, partitions }) =>
          partitions.map((each) => [
            ...[topic, topicId, each.partition, each.currentLeaderEpoch],
            ...[each.fetchOffset, each.partitionMaxBytes],
          ]),
        ),
        forgotten: read.forgottenTopicsData.map(({ topic, topicId, partitions }) => ({
          name: topic,
          id: topicId,
          indexes: partitions,
        })),
      });
    }
  }
});

test('a request that is cut short is malformed, wherever it is cut', () => {
  for (const version of versions) {
    const whole = Buffer.concat(encode(fetchRequest, version, randomRequest(version)));
    for (let bytes = 0; bytes < whole.length; bytes++) {
      assert.throws(() => viewFetchRequest(whole.subarray(0, bytes), 0, version), DecodeError);
    }
    for (let round = 0; round < 300; round++) {
      const bad = Buffer.from(whole);
      bad[below(bad.length)] = below(256);
      try {
        viewed(bad, 0, version);
      } catch (error) {
        assert.ok(error instanceof DecodeError);
      }
    }
  }
});

test('an answer has the bytes that the codec writes, in every version', () => {
  for (const version of versions) {
    for (const isReadCommitted of [false, true]) {
      const topics = several(() => ({
        name: version >= 13 ? '' : `t${below(99)}`,
        id: version >= 13 ? random.bytes(16).toString('hex') : ZERO_UUID,
        partitions: several((i) => ({
          index: below(2 ** 31),
          errorCode: i === 1 ? ErrorCode.FENCED_LEADER_EPOCH : ErrorCode.NONE,
          highWatermark: below(2 ** 48) - 1,
          logStart: below(2 ** 48) - 1,
          records: several(() => random.bytes(below(200))),
          leader: version >= 12 && i === 1 ? { leaderId: 3, leaderEpoch: below(9) } : undefined,
        })),
      }));
      const writer = new FetchResponseWriter(version, 77, isReadCommitted);
      const sessionId = version >= 7 ? below(2 ** 31) : 0;
      writer.begin(ErrorCode.NONE, sessionId, topics.length);
      for (const topic of topics) {
        writer.beginTopic(topic, topic.partitions.length);
        for (const {
          index,
          errorCode,
          highWatermark,
          logStart,
          records,
          leader,
        } of topic.partitions) {
          writer.partition(index, errorCode, highWatermark, logStart, records, leader);
        }
        writer.endTopic();
      }
      const endpoints = several((i) => ({
        nodeId: i,
        host: `h${'x'.repeat(i * 70)}`,
        port: 90 + i,
      }));
      const expected = encodeResponse(fetchResponse, version, 77, {
        sessionId,
        ...(version >= 16 && { nodeEndpoints: endpoints }),
        responses: topics.map(({ name, id, partitions }) => ({
          topic: name,
          topicId: id,
          partitions: partitions.map((each) => ({
            partitionIndex: each.index,
            errorCode: each.errorCode,
            highWatermark: each.highWatermark,
            lastStableOffset: each.highWatermark,
            logStartOffset: each.logStart,
            abortedTransactions: isReadCommitted ? [] : null,
            records: each.records,
            ...(each.leader !== undefined && { currentLeader: each.leader }),
          })),
        })),
      });
      assert.deepEqual(Buffer.concat(writer.finish(endpoints)), Buffer.concat(expected));
    }
  }
});
