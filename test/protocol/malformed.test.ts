/** Whatever arrives, decoding gives a value or a DecodeError, and never reads past its range. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../src/core/random.ts';
import { ApiKey } from '../../src/protocol/api-keys.ts';
import { decode } from '../../src/protocol/codec.ts';
import { DecodeError } from '../../src/protocol/codec-error.ts';
import { decodeRequestHead } from '../../src/protocol/frame.ts';
import { interpretRead } from '../../src/protocol/interpreter.ts';
import { Reader } from '../../src/protocol/reader.ts';
import { decodeRequest } from '../../src/protocol/registry.ts';
import { produceRequest } from '../../src/protocol/schema/00-produce.ts';
import { metadataRequest } from '../../src/protocol/schema/03-metadata.ts';
import { consumerProtocolAssignment } from '../../src/protocol/schema/consumer-protocol-assignment.ts';
import { consumerProtocolSubscription } from '../../src/protocol/schema/consumer-protocol-subscription.ts';
import type { MessageTable } from '../../src/protocol/schema-types.ts';
import { type MessageVector, messageVectors } from './vectors.ts';

interface Sample {
  readonly table: MessageTable;
  readonly vector: MessageVector;
  readonly bytes: Buffer;
}

/** The ends of a table's versions, and both sides of where it becomes flexible. */
function isSampled(table: MessageTable, version: number): boolean {
  const [first, last] = table.versions;
  const flexibleFrom = table.flexibleFrom ?? first;
  return [first, last, flexibleFrom, flexibleFrom - 1].includes(version);
}

const samples: Sample[] = messageVectors()
  .filter(({ vector }) => vector.variant === 'full' || vector.variant === 'unknownTags')
  .filter(({ table, vector }) => isSampled(table, vector.version))
  .map(({ table, vector }) => ({ table, vector, bytes: Buffer.from(vector.hex, 'hex') }));

/** What decoding does: a value, or undefined for the one error that it may throw. */
function attempt({ table, vector }: Sample, bytes: Buffer, end = bytes.length): unknown {
  try {
    return decode(table, vector.version, bytes, 0, end);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return undefined;
  }
}

test('a message that is cut short anywhere is refused', () => {
  for (const sample of samples) {
    for (let end = 0; end < sample.bytes.length; end++) {
      const value = attempt(sample, sample.bytes, end);
      assert.equal(value, undefined, `${sample.vector.name} v${sample.vector.version} at ${end}`);
    }
  }
});

test('a byte after the message is refused, unless the caller allows it', () => {
  for (const sample of samples) {
    const { table, vector, bytes } = sample;
    const longer = Buffer.concat([bytes, Buffer.from([0])]);
    assert.equal(attempt(sample, longer), undefined, `${vector.name} v${vector.version}`);
    assert.deepEqual(
      decode(table, vector.version, longer, 0, longer.length, { trailing: true }),
      decode(table, vector.version, bytes),
    );
  }
});

test('changed bytes give a value or a DecodeError', () => {
  const random = seededRandom(42);
  for (const sample of samples) {
    for (let round = 0; round < 60; round++) {
      const bytes = Buffer.from(sample.bytes);
      const changes = 1 + Math.floor(random.next() * 3);
      for (let change = 0; change < changes && bytes.length > 0; change++) {
        bytes[Math.floor(random.next() * bytes.length)] = Math.floor(random.next() * 256);
      }
      attempt(sample, bytes);
    }
  }
});

test('random bytes give a value or a DecodeError', () => {
  const random = seededRandom(43);
  for (const sample of samples) {
    for (let round = 0; round < 10; round++) {
      attempt(sample, random.bytes(Math.floor(random.next() * 60)));
    }
  }
});

test('absurd lengths at any place give a value or a DecodeError', () => {
  const lengths = ['7fffffff', 'ffffffff', '80000000', '7fff', '8000', 'ffffffff0f', 'ffffff7f'];
  for (const sample of samples) {
    if (sample.vector.variant !== 'full') continue;
    for (const length of lengths) {
      const absurd = Buffer.from(length, 'hex');
      for (let at = 0; at + absurd.length <= sample.bytes.length; at += 3) {
        const bytes = Buffer.from(sample.bytes);
        absurd.copy(bytes, at);
        attempt(sample, bytes);
      }
    }
  }
});

test('interpreter and compiled code refuse the same bytes', () => {
  const random = seededRandom(44);
  for (const sample of samples) {
    const { table, vector } = sample;
    for (let round = 0; round < 10; round++) {
      const bytes = Buffer.from(sample.bytes);
      if (bytes.length > 0) bytes[Math.floor(random.next() * bytes.length)] = 255;
      let expected: unknown;
      try {
        const reader = new Reader(bytes, 0, bytes.length);
        expected = interpretRead(table, vector.version, reader);
        reader.expectEnd(bytes.length);
      } catch (error) {
        assert.ok(error instanceof DecodeError);
        expected = undefined;
      }
      assert.deepEqual(attempt(sample, bytes), expected, vector.name);
    }
  }
});

test('what lies around the message is neither read nor needed', () => {
  for (const { table, vector, bytes } of samples) {
    const padding = Buffer.alloc(5, 0xff);
    const around = Buffer.concat([padding, bytes, padding]);
    const expected = decode(table, vector.version, bytes);
    assert.deepEqual(decode(table, vector.version, around, 5, 5 + bytes.length), expected);
    const view = around.subarray(5, 5 + bytes.length);
    assert.notEqual(view.byteOffset, 0);
    assert.deepEqual(decode(table, vector.version, view), expected);
  }
});

test('records are views on the frame', () => {
  const frame = Buffer.from('ff0001000003e8000000010001740000000100000000000000046b657973', 'hex');
  // Version 3 has a transactional id, here null, before the rest.
  const bytes = Buffer.concat([Buffer.from('ff', 'hex'), frame]);
  const request = decode(produceRequest, 3, bytes);
  const records = request.topicData[0]?.partitionData[0]?.records;
  assert.equal(records?.toString(), 'keys');
  assert.equal(records.buffer, bytes.buffer);
  bytes.write('KEYS', bytes.length - 4);
  assert.equal(records.toString(), 'KEYS');
});

test('a count that no bytes stand behind is refused before anything is made', () => {
  const billions = Buffer.from('7fffffff00', 'hex');
  assert.throws(() => decode(metadataRequest, 1, billions), DecodeError);
  const compact = Buffer.from('ffffffff0f00', 'hex');
  assert.throws(() => decode(metadataRequest, 9, compact), DecodeError);
});

test('a frame full of tiny elements is refused before it fills the heap', () => {
  const count = 1_000_001;
  const bytes = Buffer.alloc(4 + 2 * count);
  bytes.writeInt32BE(count, 0);
  assert.throws(() => decode(metadataRequest, 0, bytes), /more than 1000000 elements/);
  // Spread over many lists, it is still one message.
  const lists = 1000;
  const list = Buffer.alloc(2 + 4 + 1001 * 4);
  list.writeInt32BE(1001, 2);
  const head = Buffer.alloc(4);
  head.writeInt32BE(lists);
  const spread = Buffer.concat([head, ...Array.from({ length: lists }, () => list)]);
  assert.throws(() => decode(consumerProtocolAssignment, 0, spread), /more than 1000000/);
});

test('text that is not UTF-8 is refused, and U+FFFD itself is not', () => {
  const topic = (hex: string): Buffer => {
    const text = Buffer.from(hex, 'hex');
    return Buffer.concat([Buffer.from([0, 0, 0, 1, 0, text.length]), text]);
  };
  const name = (hex: string): string | null | undefined =>
    decode(metadataRequest, 0, topic(hex)).topics?.[0]?.name;
  assert.equal(name('efbfbd'), '\ufffd');
  assert.equal(name('c3a9f09f9880'), 'é😀');
  assert.equal(name('efbbbf61'), '\ufeffa');
  for (const bad of ['80', 'c3', 'f09f98', 'eda080', 'c0af', 'ff', '61fe62', 'f4908080']) {
    assert.throws(() => name(bad), DecodeError, bad);
  }
});

test('a range outside of the buffer and an unknown version are refused', () => {
  const bytes = Buffer.alloc(8);
  assert.throws(() => decode(metadataRequest, 0, bytes, 4, 9), DecodeError);
  assert.throws(() => decode(metadataRequest, 0, bytes, 5, 4), DecodeError);
  for (const version of [-1, 14, 1.5, Number.NaN]) {
    assert.throws(() => decode(metadataRequest, version, bytes), DecodeError);
  }
  assert.throws(() => decodeRequest(9999, 0, bytes, 0, 8), DecodeError);
  assert.throws(() => decodeRequest(ApiKey.Metadata, 99, bytes, 0, 8), DecodeError);
});

test('a newer consumer may append to what this version knows of its protocol', () => {
  const bytes = Buffer.from('00000001000174ffffffff' + 'abcdef', 'hex');
  assert.throws(() => decode(consumerProtocolSubscription, 0, bytes), DecodeError);
  const options = { trailing: true };
  const read = decode(consumerProtocolSubscription, 0, bytes, 0, bytes.length, options);
  assert.deepEqual(read.topics, ['t']);
  assert.equal(read.generationId, -1);
});

test('a request header that is cut short anywhere is refused', () => {
  const header = Buffer.from('0012000300000007000361626302' + '05026162' + '060100', 'hex');
  const whole = decodeRequestHead(header, 0, header.length);
  assert.equal(whole.clientId, 'abc');
  assert.equal(whole.bodyStart, header.length);
  for (let end = 0; end < header.length; end++) {
    assert.throws(() => decodeRequestHead(header, 0, end), DecodeError);
  }
});
