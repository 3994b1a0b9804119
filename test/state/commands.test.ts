/** Every command reads back as it was written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import * as commands from '../../src/state/commands.ts';

/** Plain objects, as decoders make them. */
function object<T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> {
  return fc.record<T>(model, { noNullPrototype: true }) as fc.Arbitrary<T>;
}

const text = fc.string({ unit: 'grapheme', maxLength: 30 });
const number = fc.maxSafeNat();
const hexId = fc
  .uint8Array({ minLength: 16, maxLength: 16 })
  .map((id) => Buffer.from(id).toString('hex'));
const configs = fc.array(fc.tuple(text, text), { maxLength: 5 }).map((pairs) => new Map(pairs));
const changes = fc
  .array(fc.tuple(text, fc.option(text)), { maxLength: 5 })
  .map((pairs) => new Map(pairs));
const anyNumber = fc.oneof(number, fc.constant(-1));
const committedOffset = object({
  offset: number,
  leaderEpoch: anyNumber,
  metadata: text,
  commitMs: anyNumber,
  expireMs: anyNumber,
});

function roundTrips<T>(
  name: string,
  values: fc.Arbitrary<T>,
  encode: (value: T) => Buffer,
  decode: (meta: Buffer) => T,
): void {
  test(`${name} reads back`, () => {
    fc.assert(
      fc.property(values, (value) => {
        // As a view into a larger buffer, which is what recovery hands over.
        const whole = Buffer.concat([Buffer.alloc(5, 1), encode(value), Buffer.alloc(5, 1)]);
        assert.deepEqual(decode(whole.subarray(5, whole.length - 5)), value);
      }),
      { seed: 1 },
    );
  });
}

roundTrips(
  'hardState',
  object({ term: number, votedFor: fc.option(text) }),
  commands.encodeHardState,
  commands.decodeHardState,
);
roundTrips('batches', anyNumber, commands.encodeBatches, commands.decodeBatches);
roundTrips(
  'topicCreated',
  object({
    name: text,
    topicId: hexId,
    firstPartition: number,
    partitionCount: number,
    configs,
  }),
  commands.encodeTopicCreated,
  commands.decodeTopicCreated,
);
roundTrips('topicDeleted', hexId, commands.encodeTopicDeleted, commands.decodeTopicDeleted);
roundTrips(
  'partitionsAdded',
  object({ topicId: hexId, firstPartition: number, partitionCount: number }),
  commands.encodePartitionsAdded,
  commands.decodePartitionsAdded,
);
roundTrips(
  'configsSet',
  object({ resourceType: fc.constantFrom(2, 4, 32), resource: text, changes }),
  commands.encodeConfigsSet,
  commands.decodeConfigsSet,
);
roundTrips(
  'logStartsMoved',
  fc.array(object({ partition: number, offset: number, droppedBytes: number })),
  commands.encodeLogStarts,
  commands.decodeLogStarts,
);
roundTrips(
  'offsetsCommitted',
  object({ groupId: text, offsets: fc.array(fc.tuple(number, committedOffset)) }),
  commands.encodeOffsetsCommitted,
  commands.decodeOffsetsCommitted,
);
roundTrips(
  'offsetsDeleted',
  object({ groupId: text, partitions: fc.array(number) }),
  commands.encodeOffsetsDeleted,
  commands.decodeOffsetsDeleted,
);
roundTrips(
  'groupStored',
  object({
    groupId: text,
    image: fc.uint8Array({ maxLength: 400 }).map((image) => Buffer.from(image)),
  }),
  commands.encodeGroupStored,
  commands.decodeGroupStored,
);
roundTrips('groupDeleted', text, commands.encodeGroupDeleted, commands.decodeGroupDeleted);
roundTrips(
  'producerIdsAllocated',
  number,
  commands.encodeProducerIdsAllocated,
  commands.decodeProducerIdsAllocated,
);
roundTrips(
  'producersExpired',
  object({ producers: fc.array(fc.tuple(number, number)) }),
  commands.encodeProducersExpired,
  commands.decodeProducersExpired,
);
roundTrips('clusterFounded', text, commands.encodeClusterFounded, commands.decodeClusterFounded);

test('a group image does not share memory with the entry that it came in', () => {
  const meta = commands.encodeGroupStored({ groupId: 'g', image: Buffer.from('image') });
  const { image } = commands.decodeGroupStored(meta);
  meta.fill(0);
  assert.equal(image.toString(), 'image');
});
