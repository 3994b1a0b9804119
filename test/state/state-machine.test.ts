import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AssertionFailed } from '../../src/core/assert.ts';
import { codecs } from '../../src/core/codecs.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import {
  ConfigResource,
  encodeBatches,
  encodeConfigsSet,
  encodeGroupDeleted,
  encodeGroupStored,
  encodeLogStarts,
  encodeOffsetsCommitted,
  encodePartitionsAdded,
  encodeTopicCreated,
  encodeTopicDeleted,
} from '../../src/state/commands.ts';
import { EntryType, entryVersion } from '../../src/state/entry-types.ts';
import { type AppliedEntry, StateMachine } from '../../src/state/state-machine.ts';
import { RandomEntries } from './random-entries.ts';

const topicId = '00112233445566778899aabbccddeeff';

/** Applies commands one after the other. */
class Applier {
  readonly state = new StateMachine();

  entry(type: EntryType, meta: Buffer, more: Partial<AppliedEntry> = {}): void {
    const index = this.state.appliedIndex + 1;
    this.state.apply({
      type,
      version: 1,
      term: 1,
      index,
      meta,
      batches: [],
      partitions: [],
      ...more,
    });
  }

  createTopic(name = 'orders', id = topicId, firstPartition = 0, partitionCount = 2): void {
    const created = { name, topicId: id, firstPartition, partitionCount, configs: new Map() };
    this.entry(EntryType.topicCreated, encodeTopicCreated(created));
  }

  append(partition: number, baseOffset: number, more = {}): void {
    const records = [{ key: null, value: Buffer.from('v'), timestamp: 50 + baseOffset }];
    const batch = buildBatch({ records, baseOffset, ...more }, codecs);
    this.entry(EntryType.batches, encodeBatches(7), { batches: [batch], partitions: [partition] });
  }

  commit(groupId: string, partition: number, offset: number): void {
    const committed = { offset, leaderEpoch: -1, metadata: '', commitMs: 1, expireMs: -1 };
    const meta = encodeOffsetsCommitted({ groupId, offsets: [[partition, committed]] });
    this.entry(EntryType.offsetsCommitted, meta);
  }
}

test('batches move the end, the bytes and the greatest timestamp of their partition', () => {
  const applier = new Applier();
  applier.createTopic();
  applier.append(1, 0, { lastOffsetDelta: 4 });
  applier.append(1, 5);
  const { partitions } = applier.state.topics;
  assert.equal(partitions.end(1), 6);
  assert.equal(partitions.end(0), 0);
  assert.equal(partitions.maxTimestamp(1), 55);
  assert.equal(partitions.maxTimestampBase(1), 5);
  assert.ok(partitions.bytes(1) > 120);
});

test('a gap between batches, or between entries, is a broken invariant', () => {
  const applier = new Applier();
  applier.createTopic();
  assert.throws(() => applier.append(0, 1), AssertionFailed);
  const noop = { type: EntryType.noop, version: 1, term: 1, meta: Buffer.alloc(0) };
  assert.throws(
    () => applier.state.apply({ ...noop, index: 9, batches: [], partitions: [] }),
    AssertionFailed,
  );
});

test('effects on a deleted topic are void', () => {
  const applier = new Applier();
  applier.createTopic();
  applier.createTopic('other', '99999999999999999999999999999999', 2000, 1);
  applier.entry(EntryType.topicDeleted, encodeTopicDeleted(topicId));
  const before = applier.state.image();
  const { appliedIndex } = applier.state;
  applier.append(0, 0, { producerId: 5, producerEpoch: 0, baseSequence: 0 });
  applier.commit('g', 1, 5);
  applier.entry(EntryType.topicDeleted, encodeTopicDeleted(topicId));
  applier.entry(
    EntryType.partitionsAdded,
    encodePartitionsAdded({ topicId, firstPartition: 3000, partitionCount: 1 }),
  );
  applier.entry(
    EntryType.logStartsMoved,
    encodeLogStarts([{ partition: 0, offset: 1, droppedBytes: 0 }]),
  );
  const changes = new Map([['retention.ms', '5']]);
  const set = { resourceType: ConfigResource.topic, resource: topicId, changes };
  applier.entry(EntryType.configsSet, encodeConfigsSet(set));
  assert.equal(applier.state.appliedIndex, appliedIndex + 6);
  // Only the index differs.
  assert.deepEqual(applier.state.image().subarray(2), before.subarray(2));
});

test('deleting a topic takes its producers and its committed offsets along', () => {
  const applier = new Applier();
  applier.createTopic();
  applier.append(0, 0, { producerId: 5, producerEpoch: 0, baseSequence: 0 });
  applier.commit('g', 0, 1);
  applier.commit('g', 1, 1);
  assert.equal(applier.state.producers.size, 1);
  applier.entry(EntryType.topicDeleted, encodeTopicDeleted(topicId));
  assert.equal(applier.state.producers.size, 0);
  assert.equal(applier.state.offsets.has('g'), false);
  assert.equal(applier.state.topics.partitions.live, 0);
});

test('a log start never moves back, nor beyond the end', () => {
  const applier = new Applier();
  applier.createTopic();
  applier.append(0, 0, { lastOffsetDelta: 9 });
  const move = (offset: number) =>
    applier.entry(
      EntryType.logStartsMoved,
      encodeLogStarts([{ partition: 0, offset, droppedBytes: 10 }]),
    );
  move(7);
  move(3);
  assert.equal(applier.state.topics.partitions.logStart(0), 7);
  assert.throws(() => move(11), AssertionFailed);
});

test('a partition number is never used again', () => {
  const applier = new Applier();
  applier.createTopic();
  applier.entry(EntryType.topicDeleted, encodeTopicDeleted(topicId));
  assert.throws(() => applier.createTopic('again', topicId, 1), AssertionFailed);
});

test('a producer is remembered by its last five batches of its present epoch', () => {
  const applier = new Applier();
  applier.createTopic();
  for (let i = 0; i < 7; i++) {
    applier.append(0, i, { producerId: 5, producerEpoch: 0, baseSequence: i });
  }
  const sequences = () =>
    applier.state.producers.get(0, 5)!.batches.map((batch) => batch.firstSequence);
  assert.deepEqual(sequences(), [2, 3, 4, 5, 6]);
  applier.append(0, 7, { producerId: 5, producerEpoch: 1, baseSequence: 0 });
  assert.deepEqual(sequences(), [0]);
});

test('a deleted group loses image and offsets', () => {
  const applier = new Applier();
  applier.createTopic();
  applier.commit('g', 0, 1);
  const stored = { groupId: 'g', image: Buffer.from('image') };
  applier.entry(EntryType.groupStored, encodeGroupStored(stored));
  assert.ok(applier.state.groupImages.has('g'));
  applier.entry(EntryType.groupDeleted, encodeGroupDeleted('g'));
  assert.equal(applier.state.groupImages.has('g'), false);
  assert.equal(applier.state.offsets.has('g'), false);
});

test('an entry of an unknown type or version stops the node', () => {
  const applier = new Applier();
  const unknown = /written by a newer one/;
  assert.throws(() => applier.entry(200 as EntryType, Buffer.alloc(0)), unknown);
  const version = entryVersion + 1;
  assert.throws(() => applier.entry(EntryType.noop, Buffer.alloc(0), { version }), unknown);
});

test('equal entries give equal state', () => {
  const first = new StateMachine();
  const second = new StateMachine();
  const entries = new RandomEntries(9, first);
  for (let i = 0; i < 500; i++) {
    const entry = entries.next();
    first.apply(entry);
    second.apply(entry);
  }
  assert.ok(first.image().equals(second.image()));
});

test('configurations of a node are kept apart from those of all nodes', () => {
  const applier = new Applier();
  const set = (resource: string, key: string, value: string | null): void => {
    const changes = new Map([[key, value]]);
    const configs = { resourceType: ConfigResource.broker, resource, changes };
    applier.entry(EntryType.configsSet, encodeConfigsSet(configs));
  };
  set('', 'a', '1');
  set('0', 'a', '2');
  set('10', 'b', '3');
  const { state } = applier;
  assert.deepEqual([...state.brokerConfigs], [['a', '1']]);
  assert.deepEqual([...state.nodeConfigs.keys()], ['0', '10']);
  assert.equal(state.nodeConfigs.get('0')!.get('a'), '2');
  set('0', 'a', null);
  assert.deepEqual([...state.nodeConfigs.keys()], ['10']);
});
