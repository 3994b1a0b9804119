import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AssertionFailed } from '../../src/core/assert.ts';
import { codecs } from '../../src/core/codecs.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import {
  ConfigResource,
  encodeBatches,
  encodeConfigsSet,
  encodeFeatureLevel,
  encodeGroupDeleted,
  encodeGroupStored,
  encodeLogStarts,
  encodeMembers,
  encodeNodeAdmitted,
  encodeOffsetsCommitted,
  encodePartitionsAdded,
  encodeTopicCreated,
  encodeTopicDeleted,
} from '../../src/state/commands.ts';
import { EntryType, entryVersion } from '../../src/state/entry-types.ts';
import { encodeKeyedChange, type KeyedEffect } from '../../src/state/keyed/effects.ts';
import { type AppliedEntry, StateMachine } from '../../src/state/state-machine.ts';
import { RandomEntries } from './random-entries.ts';

const topicId = '00112233445566778899aabbccddeeff';

const opened = { kind: 'opened', slot: 1, laneBase: 0, starts: [[0, 0]] } as const;
const granted = [
  { kind: 'rangeOpened', lane: 0, memberId: 'm' },
  { kind: 'granted', lane: 0, runs: [3, 0, 0] },
] as const;

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

  keyed(groupId: string, effects: readonly KeyedEffect[], more: Partial<AppliedEntry> = {}): void {
    const meta = encodeKeyedChange({ groupId, topicId, effects, appendedMs: 9 });
    this.entry(EntryType.keyed, meta, more);
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

test('an entry of keyed delivery appends its batches and changes the ledger', () => {
  const applier = new Applier();
  applier.createTopic();
  const records = [{ key: null, value: Buffer.from('dead'), timestamp: 50 }];
  const idempotence = { producerId: 4, producerEpoch: 0, baseSequence: 0 };
  const batches = [buildBatch({ records, baseOffset: 0, ...idempotence }, codecs)];
  applier.keyed('g', [opened, ...granted], { batches, partitions: [1] });
  const { state } = applier;
  assert.equal(state.topics.partitions.end(1), 1);
  assert.equal(state.producers.get(1, 4)!.lastMs, 9);
  assert.equal(state.keyed.get('g', topicId)!.present(0)!.grants.records, 3);
});

test('dead letters for a topic that is gone are void, what else the entry says is not', () => {
  const applier = new Applier();
  applier.createTopic();
  applier.createTopic('orders.dlq', 'ee'.repeat(16), 2, 1);
  applier.keyed('g', [opened, ...granted]);
  applier.entry(EntryType.topicDeleted, encodeTopicDeleted('ee'.repeat(16)));
  const records = [{ key: null, value: Buffer.from('dead'), timestamp: 50 }];
  const batches = [buildBatch({ records, baseOffset: 0 }, codecs)];
  const skipped = { kind: 'skipped', partition: 0, from: 0, to: 1 } as const;
  applier.keyed('g', [skipped], { batches, partitions: [2] });
  assert.equal(applier.state.keyed.get('g', topicId)!.finished(0).low, 1);
});

test('a topic or group that is deleted takes its ledgers along, and none comes after it', () => {
  const applier = new Applier();
  const { keyed } = applier.state;
  applier.createTopic();
  applier.keyed('g', [opened, ...granted]);
  applier.keyed('h', [{ ...opened, slot: 2 }]);
  applier.entry(EntryType.groupDeleted, encodeGroupDeleted('g'));
  assert.deepEqual([...keyed.groups()], ['h']);
  assert.equal(keyed.laneBaseMin, 4);
  applier.entry(EntryType.topicDeleted, encodeTopicDeleted(topicId));
  applier.keyed('g', [opened, ...granted]);
  assert.equal(keyed.size, 0);
  const again = new StateMachine();
  again.restore(applier.state.image());
  assert.equal(again.keyed.laneBaseMin, 4);
});

test('ledgers made in another order give the same image', () => {
  const images = ['gh', 'hg'].map((order) => {
    const applier = new Applier();
    applier.createTopic();
    for (const groupId of order) {
      applier.keyed(groupId, [{ ...opened, slot: groupId === 'g' ? 1 : 2 }, ...granted]);
    }
    return applier.state.image();
  });
  assert.ok(images[0]!.equals(images[1]!));
});

test('images are such that all members can read them', () => {
  const applier = new Applier();
  const { state } = applier;
  const level = (to: number) => applier.entry(EntryType.featureLevelRaised, encodeFeatureLevel(to));
  const versionOf = () => state.image()[0];
  assert.deepEqual([state.featureLevel, versionOf()], [1, 4]);
  level(2);
  assert.deepEqual([state.featureLevel, versionOf()], [2, 5]);
  level(1);
  assert.equal(state.featureLevel, 2, 'it never falls');
});

test('a node that was added is forgotten when it is put out, and only then', () => {
  const applier = new Applier();
  const { state } = applier;
  const members = (voters: string[], removed: string[] = []) => {
    applier.entry(EntryType.members, encodeMembers({ voters, learners: [], removed }));
  };
  const four = { nodeId: 4, peerHost: 'four', peerPort: 9192 };
  applier.entry(EntryType.featureLevelRaised, encodeFeatureLevel(2));
  members(['1:a', '2:b']);
  applier.entry(EntryType.nodeAdmitted, encodeNodeAdmitted(four));
  members(['1:a', '2:b', '3:c']);
  assert.deepEqual([...state.admitted.values()], [four], 'it has not come yet');
  members(['1:a', '2:b', '3:c', '4:d']);
  assert.ok(state.admitted.has(4));
  members(['1:a', '2:b', '3:c'], ['4:d']);
  assert.ok(!state.admitted.has(4));
  applier.entry(EntryType.nodeAdmitted, encodeNodeAdmitted(four));
  members(['1:a', '2:b'], ['4:d', '3:c']);
  assert.ok(state.admitted.has(4), 'it was added again');
  const again = new StateMachine();
  again.restore(state.image());
  assert.deepEqual([...again.admitted.values()], [four]);
});
