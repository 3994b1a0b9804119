import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BytesError } from '../../src/core/bytes.ts';
import { seededRandom } from '../../src/core/random.ts';
import { decodeGroupImage, type GroupImage } from '../../src/groups/group-image.ts';
import { encodeGroupImage } from './encode-group-image.ts';

const full: GroupImage = {
  protocolType: 'consumer',
  generationId: 2147483647,
  protocolName: 'range',
  leaderId: 'a-1',
  stateTimestampMs: 1_700_000_000_123,
  members: [
    {
      memberId: 'a-1',
      groupInstanceId: null,
      clientId: 'a',
      clientHost: '/10.0.0.1',
      rebalanceTimeoutMs: 300_000,
      sessionTimeoutMs: 45_000,
      protocols: [
        { name: 'range', metadata: Buffer.from([0, 1, 2]) },
        { name: 'cooperative-sticky', metadata: Buffer.alloc(0) },
      ],
      assignment: Buffer.from('x'.repeat(300)),
      generations: { firstGenerationId: -1, lastGenerationId: 2147483647 },
    },
    {
      memberId: 'größe-2',
      groupInstanceId: 'größe',
      clientId: '',
      clientHost: '',
      rebalanceTimeoutMs: 0,
      sessionTimeoutMs: 6_000,
      protocols: [{ name: 'range', metadata: Buffer.from('b') }],
      assignment: Buffer.alloc(0),
      generations: { firstGenerationId: 3, lastGenerationId: 2147483646 },
    },
  ],
};

const empty: GroupImage = {
  protocolType: null,
  generationId: 0,
  protocolName: null,
  leaderId: null,
  stateTimestampMs: 0,
  members: [],
};

test('an image comes back as it was', () => {
  for (const image of [full, empty]) {
    assert.deepEqual(decodeGroupImage(encodeGroupImage(image)), image);
  }
});

/** Old data is opened for ever: these bytes must never mean anything else. */
const version2 =
  '020108636f6e73756d657205010572616e67650103612d3100008056febc78420103612d31010269310161022f' +
  '68e0d403904e010572616e676502010201780406';

test('version 1 is read as it was written', () => {
  const bytes = Buffer.from(
    '010108636f6e73756d657205010572616e67650103612d3100008056febc78420103612d31010269310161022f' +
      '68e0d403904e010572616e67650201020178',
    'hex',
  );
  const image = decodeGroupImage(bytes);
  assert.equal(image.generationId, 5);
  assert.equal(image.members[0]?.generations, undefined);
  assert.equal(image.members[0]?.groupInstanceId, 'i1');
  assert.equal(image.members[0]?.rebalanceTimeoutMs, 60_000);
});

test('an image of version 1 is stored again as if all were given its generation', () => {
  const [member] = full.members;
  const { generations: _, ...old } = member!;
  const again = decodeGroupImage(encodeGroupImage({ ...full, generationId: 5, members: [old] }))
    .members[0];
  assert.deepEqual(again?.generations, { firstGenerationId: 5, lastGenerationId: 5 });
});

test('version 2 keeps its bytes', () => {
  const bytes = Buffer.from(version2, 'hex');
  const image = decodeGroupImage(bytes);
  assert.deepEqual(encodeGroupImage(image), bytes);
  const generations = { firstGenerationId: 3, lastGenerationId: 5 };
  assert.deepEqual(image.members[0]?.generations, generations);
});

test('an image that was cut or has bytes too many is refused', () => {
  const bytes = encodeGroupImage(full);
  for (let end = 0; end < bytes.length; end++) {
    assert.throws(() => decodeGroupImage(bytes.subarray(0, end)), BytesError);
  }
  assert.throws(() => decodeGroupImage(Buffer.concat([bytes, Buffer.alloc(1)])), BytesError);
});

test('an unknown version is refused by name', () => {
  const bytes = encodeGroupImage(full);
  for (const version of [0, 3]) {
    bytes[0] = version;
    const named = new RegExp(`group image version ${version} is not known`);
    assert.throws(() => decodeGroupImage(bytes), named);
  }
});

test('damaged images never cost more than the decode error', () => {
  const random = seededRandom(7);
  for (let i = 0; i < 5_000; i++) {
    const bytes = Buffer.from(encodeGroupImage(full));
    for (let hits = 0; hits < 3; hits++) {
      bytes[Math.floor(random.next() * bytes.length)] = Math.floor(random.next() * 256);
    }
    try {
      decodeGroupImage(bytes);
    } catch (error) {
      assert.ok(error instanceof BytesError, String(error));
    }
  }
});
