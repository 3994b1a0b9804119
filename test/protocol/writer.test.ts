import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode, encode } from '../../src/protocol/codec.ts';
import { EncodeError } from '../../src/protocol/codec-error.ts';
import { Reader } from '../../src/protocol/reader.ts';
import {
  type ProduceRequest,
  type ProduceRequestInput,
  produceRequest,
  produceResponse,
} from '../../src/protocol/schema/00-produce.ts';
import { fetchRequest, fetchResponse } from '../../src/protocol/schema/01-fetch.ts';
import { metadataRequest, metadataResponse } from '../../src/protocol/schema/03-metadata.ts';
import { offsetCommitRequest } from '../../src/protocol/schema/08-offset-commit.ts';
import { describeTopicPartitionsResponse } from '../../src/protocol/schema/75-describe-topic-partitions.ts';
import { INT64_MAX } from '../../src/protocol/schema-types.ts';
import { Writer } from '../../src/protocol/writer.ts';

const batch = Buffer.from('a batch');

function produceOf(records: Buffer | Buffer[]): ProduceRequestInput {
  return {
    acks: 1,
    timeoutMs: 5,
    topicData: [{ name: 't', partitionData: [{ index: 0, records }] }],
  };
}

test('record batches are referenced, and everything between them is one buffer', () => {
  const other = Buffer.from('another');
  const pieces = encode(fetchResponse, 11, {
    responses: [
      {
        topic: 't',
        partitions: [
          { partitionIndex: 0, errorCode: 0, highWatermark: 1, records: [batch, other] },
          { partitionIndex: 1, errorCode: 0, highWatermark: 1, records: batch },
          { partitionIndex: 2, errorCode: 0, highWatermark: 1, records: null },
          { partitionIndex: 3, errorCode: 0, highWatermark: 1, records: Buffer.alloc(0) },
        ],
      },
    ],
  });
  assert.equal(pieces.length, 6);
  assert.equal(pieces[1], batch);
  assert.equal(pieces[2], other);
  assert.equal(pieces[4], batch);
  assert.equal(pieces[0]?.buffer, pieces[5]?.buffer);
  const read = decode(fetchResponse, 11, Buffer.concat(pieces));
  const records = read.responses[0]?.partitions.map((partition) => partition.records?.toString());
  assert.deepEqual(records, ['a batchanother', 'a batch', undefined, '']);
});

test('a list of batches and their concatenation give the same bytes', () => {
  for (const version of [0, 3, 9, 12]) {
    const listed = Buffer.concat(encode(produceRequest, version, produceOf([batch, batch])));
    const whole = Buffer.concat([batch, batch]);
    const joined = Buffer.concat(encode(produceRequest, version, produceOf(whole)));
    assert.deepEqual(listed, joined);
  }
});

test('pieces are not changed by what is encoded later', () => {
  const first = encode(produceRequest, 9, produceOf(batch));
  const before = Buffer.concat(first).toString('hex');
  for (let index = 0; index < 3; index++) encode(metadataRequest, 9, { topics: null });
  assert.equal(Buffer.concat(first).toString('hex'), before);
});

test('a message larger than the scratch buffer is written whole', () => {
  const topics = Array.from({ length: 40_000 }, (_, index) => ({
    errorCode: 0,
    name: `topic-with-a-long-name-${index}`,
    partitions: [],
  }));
  for (const version of [8, 12]) {
    const pieces = encode(metadataResponse, version, { brokers: [], topics });
    assert.equal(pieces.length, 1);
    const read = decode(metadataResponse, version, Buffer.concat(pieces));
    assert.equal(read.topics.length, topics.length);
    assert.equal(read.topics[39_999]?.name, 'topic-with-a-long-name-39999');
  }
});

test('a field that the version lacks is refused, dropped if ignorable, free at its default', () => {
  const partition = { index: 0, errorCode: 6, baseOffset: -1 };
  const response = (extra: object) => ({
    responses: [{ name: 't', partitionResponses: [{ ...partition, ...extra }] }],
  });
  const plain = Buffer.concat(encode(produceResponse, 1, response({})));
  // logAppendTimeMs is ignorable, currentLeader is not (KIP-951).
  const dropped = encode(produceResponse, 1, response({ logAppendTimeMs: 5 }));
  assert.deepEqual(Buffer.concat(dropped), plain);
  const leader = (leaderId: number) => response({ currentLeader: { leaderId, leaderEpoch: -1 } });
  assert.throws(() => encode(produceResponse, 9, leader(4)), {
    name: 'EncodeError',
    message: 'ProduceResponse version 9: there is no place for currentLeader',
  });
  assert.deepEqual(Buffer.concat(encode(produceResponse, 1, leader(-1))), plain);
  const read = decode(produceResponse, 10, Buffer.concat(encode(produceResponse, 10, leader(4))));
  assert.equal(read.responses[0]?.partitionResponses[0]?.currentLeader.leaderId, 4);
});

test('defaults of older versions do not stop a value that came from a newer one', () => {
  const value = { topics: [{ name: 't' }], allowAutoTopicCreation: true };
  assert.doesNotThrow(() => encode(metadataRequest, 0, value));
  assert.throws(
    () => encode(metadataRequest, 3, { ...value, allowAutoTopicCreation: false }),
    EncodeError,
  );
  const commit = { groupId: 'g', topics: [], memberId: 'm', generationIdOrMemberEpoch: 3 };
  const bytes = Buffer.concat(encode(offsetCommitRequest, 0, commit));
  assert.equal(decode(offsetCommitRequest, 0, bytes).generationIdOrMemberEpoch, -1);
});

test('null is refused where the version has none', () => {
  assert.throws(() => encode(metadataRequest, 0, { topics: null }), EncodeError);
  assert.doesNotThrow(() => encode(metadataRequest, 1, { topics: null }));
  const topics = [{ name: null }];
  assert.throws(() => encode(metadataRequest, 9, { topics }), EncodeError);
  assert.doesNotThrow(() => encode(metadataRequest, 10, { topics }));
});

test('what was decoded can be encoded again', () => {
  const bytes = Buffer.concat(encode(produceRequest, 9, produceOf(batch)));
  const read: ProduceRequest = decode(produceRequest, 9, bytes);
  assert.deepEqual(Buffer.concat(encode(produceRequest, 9, read)), bytes);
});

test('a nullable struct is there or not', () => {
  const base = { throttleTimeMs: 0, topics: [] };
  for (const nextCursor of [null, { topicName: 't', partitionIndex: 3 }]) {
    const pieces = encode(describeTopicPartitionsResponse, 0, { ...base, nextCursor });
    const read = decode(describeTopicPartitionsResponse, 0, Buffer.concat(pieces));
    assert.deepEqual(read.nextCursor, nextCursor);
  }
});

test('int64 goes both ways: exact, nearest beyond 2^53, bigint on demand', () => {
  const writer = new Writer();
  const roundTrip = (value: number | bigint, lossless: boolean): unknown => {
    writer.reset();
    writer.int64(value);
    return new Reader(Buffer.concat(writer.finish()), 0, 8, lossless).int64();
  };
  const exact = [0, 1, -1, 0xffffffff, -0x100000000, 2 ** 32, 2 ** 53 - 1, 1 - 2 ** 53, 2 ** 60];
  for (const value of exact) {
    assert.equal(roundTrip(value, false), value);
    assert.equal(roundTrip(BigInt(value), false), value);
  }
  assert.equal(roundTrip(2 ** 53 - 1, true), 2 ** 53 - 1);
  assert.equal(roundTrip(2n ** 53n + 1n, true), 2n ** 53n + 1n);
  assert.equal(roundTrip(-(2n ** 63n), true), -(2n ** 63n));
  assert.equal(roundTrip(2n ** 53n + 3n, false), 2 ** 53 + 4);
  // The largest int64 is the default of a field of Fetch, and has to survive as a number.
  assert.equal(roundTrip(2n ** 63n - 1n, false), INT64_MAX);
  assert.equal(roundTrip(INT64_MAX, true), 2n ** 63n - 1n);
  for (const value of [2 ** 64, -(2 ** 64), 0.5, Number.NaN, 2n ** 63n]) {
    assert.throws(() => roundTrip(value, false), EncodeError);
  }
});

test('the largest int64 as a default is not written, whichever form it has', () => {
  const request = (highWatermark: number | bigint | undefined) =>
    Buffer.concat(
      encode(fetchRequest, 18, {
        maxWaitMs: 0,
        minBytes: 0,
        topics: [
          { partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1, highWatermark }] },
        ],
      }),
    );
  assert.deepEqual(request(INT64_MAX), request(undefined));
  assert.deepEqual(request(2n ** 63n - 1n), request(undefined));
  assert.equal(request(5).length, request(undefined).length + 10);
});

test('values out of the range of their type are refused', () => {
  const writer = new Writer();
  const refused: (() => void)[] = [
    () => writer.int8(128),
    () => writer.int16(-32769),
    () => writer.uint16(-1),
    () => writer.uint16(65536),
    () => writer.int32(2 ** 31),
    () => writer.int32(1.5),
    () => writer.int16(Number.NaN),
    () => writer.string('x'.repeat(32768)),
    () => writer.compactString('é'.repeat(16384)),
    () => writer.uuid('0'.repeat(31)),
    () => writer.uuid('g'.repeat(32)),
    () => writer.string(null as unknown as string),
    () => writer.bytes(null as unknown as Buffer),
    () => writer.records('text' as unknown as Buffer),
    () => writer.bool(1 as unknown as boolean),
    () => writer.float64('1' as unknown as number),
  ];
  for (const attempt of refused) {
    assert.throws(attempt, EncodeError, String(attempt));
    writer.reset();
  }
  writer.string('x'.repeat(32767));
  assert.equal(writer.finish()[0]?.length, 32769);
});

test('a version that the table lacks is refused', () => {
  assert.throws(() => encode(metadataRequest, 14, { topics: null }), EncodeError);
});
