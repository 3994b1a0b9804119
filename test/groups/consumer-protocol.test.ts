import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  encodeAssignment,
  ownedPartitions,
  readAssignment,
  readSubscribedTopics,
  withOwnedPartitions,
} from '../../src/groups/consumer-protocol.ts';
import { messageVectors } from '../protocol/vectors.ts';
import { subscription } from './classic/subscription.ts';

test('topics are read from every version of a subscription', () => {
  for (const version of [0, 1, 2, 3, 9]) {
    const bytes = subscription(['orders', 'größe'], 'user data', version);
    assert.deepEqual(readSubscribedTopics(bytes), ['orders', 'größe']);
  }
  assert.deepEqual(readSubscribedTopics(subscription([])), []);
});

test('what is cut within the topics is no subscription', () => {
  const topicsEnd = subscription(['orders', 'payments']).length - 4;
  const bytes = subscription(['orders', 'payments']);
  for (let end = 0; end < topicsEnd; end++) {
    assert.equal(readSubscribedTopics(bytes.subarray(0, end)), null, `cut at ${end}`);
  }
});

test('wrong versions, counts and lengths are no subscription', () => {
  const cases: [string, string][] = [
    ['empty', ''],
    ['negative version', 'ffff00000000'],
    ['negative count', '0000ffffffff'],
    ['huge count', '00007fffffff0001'],
    ['negative length', '000000000001ffff'],
    ['length beyond the end', '000000000001000561'],
  ];
  for (const [name, hex] of cases) {
    assert.equal(readSubscribedTopics(Buffer.from(hex, 'hex')), null, name);
  }
});

/** What Kafka's own serializers write, with the version in front. */
function kafkaBytes(name: string): { bytes: Buffer; version: number; json: Json }[] {
  const found = messageVectors().filter(({ vector }) => vector.name === name);
  assert.ok(found.length > 20, `${found.length} vectors of ${name}`);
  return found.map(({ vector }) => ({
    bytes: Buffer.from(vector.prefixedHex!, 'hex'),
    version: vector.version,
    json: vector.json as unknown as Json,
  }));
}

interface Item {
  readonly topic: string;
  readonly partitions: readonly number[];
}

interface Json {
  readonly topics?: readonly string[];
  readonly assignedPartitions?: readonly Item[];
  readonly ownedPartitions?: readonly Item[];
}

function asMap(items: readonly Item[] = []): Map<string, readonly number[]> {
  return new Map(items.map(({ topic, partitions }) => [topic, partitions]));
}

test('assignments of Kafka are read, and written byte for byte', () => {
  for (const { bytes, version, json } of kafkaBytes('ConsumerProtocolAssignment')) {
    const assignment = readAssignment(bytes);
    assert.equal(assignment?.version, version);
    assert.deepEqual(assignment.partitions, asMap(json.assignedPartitions));
    assert.deepEqual(encodeAssignment(assignment), bytes);
  }
});

test('subscriptions of Kafka tell what is owned, and can be made to tell something else', () => {
  const others = new Map([['other', [7, 9]]]);
  for (const { bytes, version, json } of kafkaBytes('ConsumerProtocolSubscription')) {
    const owned = ownedPartitions(bytes);
    assert.deepEqual(owned, asMap(json.ownedPartitions));
    const changed = withOwnedPartitions(bytes, others, 5);
    if (version === 0) {
      assert.equal(changed, bytes);
      continue;
    }
    assert.deepEqual(ownedPartitions(changed), others);
    assert.deepEqual(readSubscribedTopics(changed), json.topics);
    if (version === 1) assert.deepEqual(withOwnedPartitions(changed, owned!, -1), bytes);
  }
});

test('a subscription keeps its rack and its user data when it tells of other partitions', () => {
  const full = kafkaBytes('ConsumerProtocolSubscription').filter(
    ({ version, json }) => version === 3 && (json.ownedPartitions?.length ?? 0) > 0,
  );
  for (const { bytes, json } of full) {
    const { generationId } = json as unknown as { generationId: number };
    const changed = withOwnedPartitions(bytes, new Map(), generationId);
    assert.deepEqual(
      withOwnedPartitions(changed, asMap(json.ownedPartitions), generationId),
      bytes,
    );
  }
});

test('versions to come are read as far as they are known', () => {
  const [vector] = kafkaBytes('ConsumerProtocolSubscription').filter(
    ({ version }) => version === 3,
  );
  const bytes = Buffer.concat([vector!.bytes, Buffer.from('more')]);
  bytes.writeInt16BE(9);
  assert.deepEqual(ownedPartitions(bytes), ownedPartitions(vector!.bytes));
  const changed = withOwnedPartitions(bytes, new Map([['t', [1]]]), 3);
  assert.equal(changed.readInt16BE(0), 3, 'and written as what was understood');
});

test('no bytes are an assignment of nothing, wrong ones are none', () => {
  assert.deepEqual(readAssignment(Buffer.alloc(0))?.partitions, new Map());
  for (const text of ['x', 'assignment', 'a-1:5:123456']) {
    const bytes = Buffer.from(text);
    assert.equal(readAssignment(bytes), null);
    assert.equal(ownedPartitions(bytes), null);
    assert.equal(withOwnedPartitions(bytes, new Map(), 1), bytes);
  }
});

test('a topic that comes twice counts as one', () => {
  const hex = '0000' + '00000002' + '000174' + '0000000100000001' + '000174' + '0000000100000002';
  const bytes = Buffer.from(`${hex}ffffffff`, 'hex');
  assert.deepEqual(readAssignment(bytes)?.partitions, new Map([['t', [1, 2]]]));
});
