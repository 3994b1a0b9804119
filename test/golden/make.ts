/**
 * Makes the data folder of a format version: `node dist/test/golden/make.js v1`. Run once for each
 * version; a folder that exists is never made again, since data folders open for ever after.
 */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { codecs } from '../../src/core/codecs.ts';
import { Compression, type CompressionId } from '../../src/core/compression.ts';
import { encodeGroupImage } from '../groups/encode-group-image.ts';
import { type BatchInput, buildBatch } from '../../src/protocol/records/build.ts';
import * as commands from '../../src/state/commands.ts';
import { EntryType, featureLevel } from '../../src/state/entry-types.ts';
import { encodeKeyedChange, type KeyedEffect } from '../../src/state/keyed/effects.ts';
import type { GroupOptions } from '../../src/replica/replica.ts';
import { encodeTenantCreated, encodeTenantDeleted } from '../../src/state/tenants.ts';
import { describe } from './describe.ts';
import { openGolden } from './open.ts';
import { topicSettings } from '../replica/topic-settings.ts';

const version = process.argv[2] ?? '';
assert.match(version, /^v\d+$/, 'say which version to make, such as v1');
const folder = fileURLToPath(new URL(`../../../test/golden/${version}`, import.meta.url));
assert.ok(!existsSync(folder), `${folder} exists, and golden folders are never made again`);

const ordersId = '0123456789abcdef0123456789abcdef';
const eventsId = 'ffeeddccbbaa99887766554433221100';
const goneId = '11111111111111111111111111111111';
const startMs = 1_750_000_000_000;

/** A cluster of one has nobody to talk to, but writes what clusters do. */
const alone: GroupOptions = {
  peers: { send: () => undefined, ask: () => Promise.resolve(undefined) },
  log: pino({ level: 'silent' }),
  fetchBytesPerSecondMax: 1,
  onSnapshotFetched: () => undefined,
};
const node = await openGolden(folder, startMs, alone);
const { replica, planner, time } = node;

async function propose(type: EntryType, meta: Buffer): Promise<void> {
  time.nowMs += 10;
  assert.equal(await replica.proposeAndWait({ type, meta }), 'applied');
}

async function createTopic(name: string, topicId: string, partitionCount: number): Promise<void> {
  const configs = new Map(name === 'events' ? [['message.timestamp.type', 'LogAppendTime']] : []);
  const firstPartition = replica.state.topics.partitions.next;
  const created = { name, topicId, firstPartition, partitionCount, configs };
  await propose(EntryType.topicCreated, commands.encodeTopicCreated(created));
}

function produce(partition: number, input: Omit<BatchInput, 'records'> & { label: string }) {
  time.nowMs += 10;
  const { label, ...more } = input;
  const records = ['first', 'second'].map((which, i) => ({
    key: i === 0 ? null : Buffer.from(`key of ${label}`),
    value: Buffer.from(`${which} record of ${label}, `.repeat(4)),
    timestamp: time.nowMs + i,
    headers: i === 0 ? [{ key: 'trace', value: null }] : [{ key: 'a', value: Buffer.from([0, 1]) }],
  }));
  records.push({
    key: Buffer.from('deleted'),
    value: null as never,
    timestamp: time.nowMs,
    headers: [],
  });
  const timestampType = partition === 3 ? 'LogAppendTime' : 'CreateTime';
  const settings = { ...topicSettings, timestampType } as const;
  const batch = buildBatch({ records, ...more }, codecs);
  const part = { partition, topicPartition: `p-${partition}`, settings, records: batch };
  return new Promise<void>((resolve) => {
    planner.produce([part], 11, ([outcome]) => {
      assert.equal(outcome?.errorCode, 0, outcome?.message ?? '');
      resolve();
    });
  });
}

async function commit(groupId: string, partition: number, offset: number): Promise<void> {
  const committed = {
    offset,
    leaderEpoch: 0,
    metadata: `at ${offset}`,
    commitMs: time.nowMs,
    expireMs: -1,
  };
  const meta = commands.encodeOffsetsCommitted({ groupId, offsets: [[partition, committed]] });
  await propose(EntryType.offsetsCommitted, meta);
}

async function setConfig(
  resourceType: number,
  resource: string,
  key: string,
  value: string | null,
) {
  const set = { resourceType, resource, changes: new Map([[key, value]]) };
  await propose(EntryType.configsSet, commands.encodeConfigsSet(set));
}

async function formCluster(): Promise<void> {
  const removed = ['2:removed'];
  await new Promise<void>((resolve) => {
    const members = { voters: ['1:golden'], learners: [], removed };
    replica.consensus.proposeMembers(members, (outcome) => {
      assert.equal(outcome, 'applied');
      resolve();
    });
  });
  const peer = { peerHost: 'inside', peerPort: 9094 };
  const self = { nodeId: 1, directoryId: 'golden', host: 'outside', port: 9092, ...peer };
  await propose(EntryType.nodeStored, commands.encodeNodeStored(self));
  await propose(EntryType.featureLevelRaised, commands.encodeFeatureLevel(featureLevel));
  await propose(EntryType.nodeAdmitted, commands.encodeNodeAdmitted({ nodeId: 3, ...peer }));
  for (const [i, name] of ['acme', 'gone', 'zeta'].entries()) {
    const tenant = { number: i + 1, name, portOffset: i + 1, clusterId: `id of ${name}` };
    const meta = encodeTenantCreated({ ...tenant, voters: ['1:golden'] });
    await propose(EntryType.tenantCreated, meta);
  }
  await propose(EntryType.tenantDeleted, encodeTenantDeleted(2));
}

async function keyed(groupId: string, topicId: string, effects: KeyedEffect[]): Promise<void> {
  const change = { groupId, topicId, effects, appendedMs: time.nowMs };
  await propose(EntryType.keyed, encodeKeyedChange(change));
}

function groupImage(generationId: number): Buffer {
  return encodeGroupImage({
    protocolType: 'consumer',
    generationId,
    protocolName: 'range',
    leaderId: 'member-1',
    stateTimestampMs: time.nowMs,
    members: [
      {
        memberId: 'member-1',
        groupInstanceId: 'static-1',
        clientId: 'client',
        clientHost: '/127.0.0.1',
        rebalanceTimeoutMs: 60_000,
        sessionTimeoutMs: 45_000,
        protocols: [{ name: 'range', metadata: Buffer.from('subscription') }],
        assignment: Buffer.from('assignment'),
      },
    ],
  });
}

await propose(EntryType.clusterFounded, commands.encodeClusterFounded('golden-cluster-id-22ch'));
await formCluster();
await createTopic('orders', ordersId, 3);
await createTopic('events', eventsId, 1);
await createTopic('gone', goneId, 2);
await setConfig(2, ordersId, 'retention.ms', '604800000');
await setConfig(2, ordersId, 'segment.bytes', '1000');
await setConfig(2, ordersId, 'segment.bytes', null);
await setConfig(4, '', 'log.retention.ms', '86400000');
await setConfig(4, '1', 'log.retention.ms', '43200000');
await setConfig(4, '2', 'message.max.bytes', '5000');
await setConfig(4, '2', 'message.max.bytes', null);
await setConfig(32, 'billing', 'consumer.session.timeout.ms', '30000');
await propose(EntryType.producerIdsAllocated, commands.encodeProducerIdsAllocated(1000));
for (const [name, compression] of Object.entries(Compression) as [string, CompressionId][]) {
  for (let partition = 0; partition < 6; partition++) {
    await produce(partition, { label: `${name} ${partition}`, compression });
  }
}
for (let i = 0; i < 8; i++) {
  const sequence = { producerId: 7, producerEpoch: 2, baseSequence: i * 3 };
  await produce(1, { label: `idempotent ${i}`, ...sequence });
}
await produce(0, { label: 'expired', producerId: 8, producerEpoch: 0, baseSequence: 0 });
await propose(EntryType.producersExpired, commands.encodeProducersExpired({ producers: [[0, 8]] }));
await commit('billing', 0, 3);
await commit('billing', 1, 5);
await commit('audit', 3, 1);
await commit('gone-group', 0, 1);
const deleted = { groupId: 'audit', partitions: [3] };
await propose(EntryType.offsetsDeleted, commands.encodeOffsetsDeleted(deleted));
for (const generationId of [1, 2]) {
  const stored = { groupId: 'billing', image: groupImage(generationId) };
  await propose(EntryType.groupStored, commands.encodeGroupStored(stored));
}
await propose(
  EntryType.groupStored,
  commands.encodeGroupStored({ groupId: 'gone-group', image: groupImage(1) }),
);
await propose(EntryType.groupDeleted, commands.encodeGroupDeleted('gone-group'));
await propose(EntryType.topicDeleted, commands.encodeTopicDeleted(goneId));
const added = {
  topicId: ordersId,
  firstPartition: replica.state.topics.partitions.next,
  partitionCount: 1,
};
await propose(EntryType.partitionsAdded, commands.encodePartitionsAdded(added));
await produce(added.firstPartition, { label: 'an added partition' });
await keyed('workers', ordersId, [
  { kind: 'opened', slot: 1, laneBase: 50, starts: [[0, 2]] },
  { kind: 'rangeOpened', lane: 0, memberId: 'worker-1' },
  { kind: 'rangeOpened', lane: 1, memberId: 'worker-2' },
  { kind: 'granted', lane: 0, runs: [3, 0, 2, 1, 1, 0] },
  { kind: 'granted', lane: 1, runs: [2, 1, 1] },
  { kind: 'finished', lane: 0, from: 51, to: 53 },
  { kind: 'returned', lane: 1, from: 52, to: 53 },
  {
    ...{ kind: 'tried', partition: 1, offset: 2 },
    trial: { quarters: 4, limit: 1, firstMs: 1, lastMs: 2, dueMs: 3, reason: 'died' },
  },
  { kind: 'skipped', partition: 0, from: 10, to: 12 },
  { kind: 'rangeClosed', lane: 1 },
  { kind: 'reset', partition: 2, offset: 5 },
]);
await keyed('former', ordersId, [
  { kind: 'opened', slot: 2, laneBase: 60, starts: [] },
  { kind: 'rangeOpened', lane: 0, memberId: 'worker-3' },
  { kind: 'closed' },
]);
const starts = [{ partition: 2, offset: 4, droppedBytes: 300 }];
await propose(EntryType.logStartsMoved, commands.encodeLogStarts(starts));
for (let i = 0; i < 40; i++) await produce(i % 4, { label: `filling ${i}` });
// Behind the last snapshot.
await commit('billing', 0, 9);
await replica.stop();

const again = await openGolden(folder, startMs + 1_000_000);
writeFileSync(
  `${folder}/expected.json`,
  `${JSON.stringify(await describe(again.replica), null, 1)}\n`,
);
await again.replica.stop();
