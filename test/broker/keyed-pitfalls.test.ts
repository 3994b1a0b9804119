/** What went wrong in other systems with an order per key, each through the wire. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { codecs } from '../../src/core/codecs.ts';
import { Compression, type CompressionId } from '../../src/core/compression.ts';
import { encodeAssignment } from '../../src/groups/consumer-protocol.ts';
import type { FilePort } from '../../src/log/file-port.ts';
import { nodeFiles } from '../../src/log/node-files.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import {
  createPartitionsRequest,
  createPartitionsResponse,
} from '../../src/protocol/schema/37-create-partitions.ts';
import {
  KeyedMember,
  type KeyedOptions,
  laneAnswer,
  offsetsOf,
  send,
  sentMs,
  texts,
} from './keyed-member.ts';
import { fetchFrom, produceTo } from './records.ts';
import {
  startTestNode,
  type TestClient,
  type TestNode,
  type TestNodeOptions,
  until,
} from './support.ts';

const keyed = {
  'retention.ms': '-1',
  'delivery.mode': 'keyed',
  'delivery.window': '1000',
  'retry.backoff.ms': '0',
};

interface Started {
  readonly node: TestNode;
  readonly producer: TestClient;
  /** Lane i belongs to member i. */
  readonly members: readonly KeyedMember[];
}

function join(node: TestNode, options: Partial<KeyedOptions> = {}): Promise<KeyedMember> {
  return KeyedMember.connect(node, { groupId: 'g', topics: ['orders'], ...options });
}

/** A group of `count` members with a lane each, of as many partitions or more. */
async function started(
  t: TestContext,
  count: number,
  configs: Readonly<Record<string, string>> = {},
  { partitionCount = count, ...options }: TestNodeOptions & { partitionCount?: number } = {},
): Promise<Started> {
  const node = await startTestNode(t, options);
  await node.createTopic('orders', partitionCount, { ...keyed, ...configs });
  const producer = await node.connect('producer');
  const members: KeyedMember[] = [];
  for (let i = 0; i < count; i++) members.push(await join(node));
  await rejoin(members, (i) => [i]);
  return { node, producer, members };
}

/** All of them go through a round, after which member i has these lanes. The first one leads. */
async function rejoin(members: readonly KeyedMember[], lanesOf: (i: number) => number[]) {
  const [first, ...others] = members as [KeyedMember, ...KeyedMember[]];
  const areNew = others.some(({ memberId }) => memberId === '');
  if (first.memberId === '') await first.own(0);
  const inRound = async () => (await first.heartbeat()) === ErrorCode.REBALANCE_IN_PROGRESS;
  // Rounds are begun by new members and by the leader, not by a member that joins unchanged.
  const early = areNew ? others.map((member) => member.join()) : [];
  if (areNew) await until(inRound, 'a round begins');
  const leading = first.join();
  const late = areNew ? [] : others.map((member) => member.join());
  const [joined] = await Promise.all([leading, ...early, ...late]);
  assert.equal(joined.leader, first.memberId);
  const lanes = members.map((member, i) => [member.memberId, lanesOf(i)] as const);
  const syncs = others.map((member) => member.sync());
  await first.assign(Object.fromEntries(lanes));
  await Promise.all(syncs);
  for (const [i, member] of members.entries()) await member.locate(...lanesOf(i));
}

/** The number of unfinished records. */
async function lag({ node, producer }: Started): Promise<number> {
  const { partitions } = node.broker.topics.byName('orders')!;
  const indexes = [...partitions.keys()];
  const shown = await offsetsOf(producer, 'g', 'orders', indexes);
  const { partitions: state } = node.broker.replica.state.topics;
  return indexes.reduce((sum, i) => sum + state.end(partitions[i]!) - shown[i]!, 0);
}

test('a lane that is revoked and given to the same member again: a key is at one of two', async (t) => {
  const all = await started(t, 2);
  const { producer, members } = all;
  const [first, second] = members as [KeyedMember, KeyedMember];
  await send(producer, 'orders', ['a=1']);
  assert.deepEqual(texts((await first.await(0)).records), ['a=1']);
  const former = first.positions.get(0)!;
  await rejoin(members, (i) => [i]);
  assert.deepEqual(texts((await second.await(1)).records), ['a=1'], 'the first gave it back');
  await send(producer, 'orders', ['a=2', 'c=1']);
  assert.deepEqual(texts((await first.await(0)).records), ['c=1']);
  assert.equal(await first.commit('orders', 0, former), ErrorCode.NONE);
  assert.equal(await lag(all), 3, 'a late commit finishes nothing of what is with the other');
  assert.deepEqual((await first.fetch(0)).records, []);
  await second.commitAll(1);
  assert.deepEqual(texts((await first.await(0)).records), ['a=2']);
});

test('work that is finished while a rebalance runs is not done again', async (t) => {
  const { node, producer, members } = await started(t, 1, {}, { partitionCount: 2 });
  const [first] = members as [KeyedMember];
  await send(producer, 'orders', ['a=1', 'a=2']);
  assert.deepEqual(texts((await first.await(0)).records), ['a=1', 'a=2']);
  const second = await join(node);
  const joining = second.join();
  await until(
    async () => (await first.heartbeat()) === ErrorCode.REBALANCE_IN_PROGRESS,
    'a round begins',
  );
  await first.commitAll(0);
  const [joined] = await Promise.all([first.join(), joining]);
  assert.equal(joined.leader, first.memberId);
  const syncing = second.sync();
  await first.assign({ [first.memberId]: [0], [second.memberId]: [1] });
  await syncing;
  await first.locate(0);
  await second.locate(1);
  await send(producer, 'orders', ['a=3']);
  assert.deepEqual(texts((await second.await(1)).records), ['a=3']);
  assert.deepEqual((await first.fetch(0)).records, []);
});

test('the same key in two topics is two keys', async (t) => {
  const node = await startTestNode(t);
  for (const topic of ['orders', 'bills']) await node.createTopic(topic, 1, keyed);
  const producer = await node.connect('producer');
  const topics = ['orders', 'bills'];
  const member = await KeyedMember.connect(node, { groupId: 'g', topics });
  await member.join();
  const partitions = new Map(topics.map((topic) => [topic, [0]]));
  const assignment = encodeAssignment({ version: 1, partitions, userData: null });
  await member.sync({}, 5, { assignments: [{ memberId: member.memberId, assignment }] });
  const places = await Promise.all(
    topics.map(async (topic) => {
      const [offset] = await offsetsOf(member.client, 'g', topic, [0], member.memberId);
      return { topic, offset: offset! };
    }),
  );
  const fetch = async (topic: string) => {
    const place = places.find((other) => other.topic === topic)!;
    const answer = await fetchFrom(member.client, [place], { maxWaitMs: 100 });
    const { records } = laneAnswer(answer.responses[0]!.partitions[0]!);
    place.offset += records.length;
    return texts(records);
  };
  await send(producer, 'orders', ['a=order']);
  const got: string[] = [];
  await until(async () => got.push(...(await fetch('orders'))) === 1, 'the order comes');
  // The order is in hand for as long as it takes.
  await send(producer, 'bills', ['a=bill 1', 'a=bill 2']);
  await until(async () => got.push(...(await fetch('bills'))) === 3, 'the bills come');
  assert.deepEqual(got, ['a=order', 'a=bill 1', 'a=bill 2']);
  const position = places[1]!.offset;
  assert.equal(await member.commit('bills', 0, position), ErrorCode.NONE);
  assert.deepEqual(await offsetsOf(producer, 'g', 'bills', [0]), [2]);
  assert.deepEqual(await offsetsOf(producer, 'g', 'orders', [0]), [0]);
});

/** Keys by their bytes; null has none. */
async function sendKeys(
  client: TestClient,
  keys: readonly (Buffer | null)[],
  partition: number,
  compression: CompressionId,
): Promise<void> {
  const records = keys.map((key, i) => ({
    key,
    value: Buffer.from(String(i)),
    timestamp: sentMs + i,
  }));
  const batch = buildBatch({ compression, records }, codecs);
  const { errorCode } = await produceTo(client, { topic: 'orders', partition, records: batch });
  assert.equal(errorCode, ErrorCode.NONE);
}

test('keys are their bytes: equal ones are one, similar ones are not', async (t) => {
  const { producer, members } = await started(t, 2);
  const [first, second] = members as [KeyedMember, KeyedMember];
  const held = [
    Buffer.from('a'),
    Buffer.from('caf\u00e9'),
    // Not UTF-8: all of these would read as the same text.
    Buffer.from([0xff]),
    Buffer.from([0xed, 0xa0, 0x80]),
    Buffer.from('1'),
    Buffer.alloc(300, 'x'),
    Buffer.alloc(0),
    Buffer.from([0]),
  ];
  await sendKeys(producer, held, 0, Compression.none);
  assert.equal((await first.await(0)).records.length, held.length);
  const similar = [
    null,
    Buffer.from('A'),
    Buffer.from('a\0'),
    Buffer.from('a '),
    Buffer.from('\0a'),
    Buffer.from('cafe\u0301'),
    Buffer.from([0xfe]),
    Buffer.from('\ufffd'),
    Buffer.from([0xed, 0xa0, 0x81]),
    Buffer.from([0, 0, 0, 1]),
    Buffer.from('01'),
    Buffer.alloc(299, 'x'),
    Buffer.alloc(301, 'x'),
    Buffer.from('null'),
    Buffer.alloc(8),
  ];
  const equal = held.map((key) => Buffer.from(key));
  await sendKeys(producer, [...equal, ...similar], 1, Compression.gzip);
  const free = await second.await(1);
  assert.deepEqual(
    free.records.map(({ key }) => key?.toString('hex') ?? null),
    similar.map((key) => key?.toString('hex') ?? null),
  );
  await first.commitAll(0);
  await second.commitAll(1);
  const rest = [...(await first.fetch(0)).records, ...(await second.fetch(1)).records];
  assert.deepEqual(
    rest.map(({ key }) => key?.toString('hex')).sort(),
    held.map((key) => key.toString('hex')).sort(),
  );
});

test('consumers that come while a key is stuck get all the others', async (t) => {
  const { node, producer, members } = await started(t, 1, {}, { partitionCount: 4 });
  const [stuck] = members as [KeyedMember];
  await send(producer, 'orders', ['a=1']);
  assert.deepEqual(texts((await stuck.await(0)).records), ['a=1']);
  await send(producer, 'orders', ['a=2', 'b=1', 'c=1']);
  // It is in its handler: rounds go on without it, and take nothing from it.
  for (let lane = 1; lane < 4; lane++) {
    const guest = await join(node, { sessionTimeoutMs: 120_000 });
    let leader: string | undefined;
    const joining = guest.join().then((joined) => {
      leader = joined.leader;
    });
    await until(() => {
      node.clock.advance(100);
      return leader !== undefined;
    }, 'the round ends without it');
    await joining;
    if (leader === guest.memberId) await guest.assign({ [guest.memberId]: [lane] });
    else await guest.sync();
    await guest.locate(lane);
    await send(producer, 'orders', [`a=${lane + 2}`, `guest ${lane}=1`]);
    const got = texts((await guest.await(lane)).records);
    assert.ok(got.includes(`guest ${lane}=1`), String(got));
    assert.ok(!got.some((text) => text.startsWith('a=')), String(got));
    await guest.commitAll(lane);
  }
  const commit = await stuck.commit('orders', 0, stuck.positions.get(0)!);
  assert.equal(commit, ErrorCode.NONE);
});

test('what comes back wakes whoever waits, though nothing new is produced', async (t) => {
  const { node, producer, members } = await started(t, 3);
  const [first, second, third] = members as [KeyedMember, KeyedMember, KeyedMember];
  await send(producer, 'orders', ['a=1', 'a=2']);
  assert.deepEqual(texts((await first.await(0)).records), ['a=1', 'a=2']);
  const waiting = second.fetch(1, { maxWaitMs: 60_000 });
  await until(() => node.broker.parkedCount === 1, 'it waits');
  await first.leave();
  assert.equal(texts((await waiting).records)[0], 'a=1');
  // Its new owner goes too.
  const next = third.fetch(2, { maxWaitMs: 60_000 });
  await until(() => node.broker.parkedCount === 1, 'it waits');
  await second.leave();
  const got = texts((await next).records);
  await third.commitAll(2);
  while (got.length < 2) {
    got.push(...texts((await third.await(2)).records));
    await third.commitAll(2);
  }
  assert.deepEqual(got, ['a=1', 'a=2']);
});

test('fetches of one record keep the order', async (t) => {
  const all = await started(t, 2);
  const { producer, members } = all;
  const keys = ['a', 'b', 'c', 'd', 'e'];
  const numbers = Array.from({ length: 12 }, (_, i) => i);
  await send(
    producer,
    'orders',
    numbers.flatMap((number) => keys.map((key) => `${key}=${number}`)),
  );
  const handled: string[] = [];
  while (handled.length < 60) {
    for (const [lane, member] of members.entries()) {
      const { records } = await member.fetch(lane, { bytesMax: 1, maxBytes: 1 });
      if (records.length === 0) continue;
      assert.equal(records.length, 1);
      handled.push(...texts(records));
      await member.commitAll(lane);
    }
  }
  for (const key of keys) {
    const own = handled.filter((text) => text.startsWith(key));
    assert.deepEqual(
      own,
      numbers.map((number) => `${key}=${number}`),
    );
  }
  assert.equal(await lag(all), 0);
});

test('partitions that are added under load: a key that moves waits for its former records', async (t) => {
  const all = await started(t, 2);
  const { producer, members } = all;
  const [first, second] = members as [KeyedMember, KeyedMember];
  await send(producer, 'orders', ['a=1', 'b=1']);
  assert.deepEqual(texts((await first.await(0)).records), ['a=1', 'b=1']);
  await send(producer, 'orders', ['a=2']);
  const waiting = second.fetch(1, { maxWaitMs: 60_000 });
  const answer = await producer.ask(createPartitionsRequest, createPartitionsResponse, 3, {
    topics: [{ name: 'orders', count: 5, assignments: null }],
    timeoutMs: 1000,
    validateOnly: false,
  });
  assert.equal(answer.results[0]!.errorCode, ErrorCode.NONE);
  // Where producers put them by what they know now.
  await send(producer, 'orders', ['a=3', 'c=1'], { partition: 4 });
  assert.deepEqual(texts((await waiting).records), ['c=1']);
  await send(producer, 'orders', ['a=4', 'd=1'], { partition: 3 });
  assert.deepEqual(texts((await second.await(1)).records), ['d=1']);
  await first.commitAll(0);
  const rest: string[] = [];
  while (rest.length < 3) {
    rest.push(...texts((await second.await(1)).records));
    await second.commitAll(1);
  }
  assert.deepEqual(rest, ['a=2', 'a=3', 'a=4']);
  assert.equal(await lag(all), 0);
});

test('a fetch that waits at an offset where there is no record gets the next one', async (t) => {
  const { node, producer, members } = await started(t, 1);
  const [member] = members as [KeyedMember];
  await send(producer, 'orders', ['a=1']);
  await member.await(0);
  await member.commitAll(0);
  const former = member.positions.get(0)!;
  await rejoin(members, (i) => [i]);
  assert.ok(member.positions.get(0)! > former, 'its lane begins behind the gap');
  // A cooperative client goes on at the position that it had.
  const waiting = member.fetch(0, { at: former, maxWaitMs: 60_000 });
  await until(() => node.broker.parkedCount === 1, 'it waits');
  await send(producer, 'orders', ['a=2']);
  const { records, highWatermark } = await waiting;
  assert.deepEqual(texts(records), ['a=2']);
  assert.ok(records[0]!.offset > former);
  assert.equal(highWatermark, records[0]!.offset + 1);
});

test('a failure in the middle of a batch: what came before is done, what comes behind is not lost', async (t) => {
  const all = await started(t, 1);
  const { node, producer, members } = all;
  const [member] = members as [KeyedMember];
  const records = ['a=1', 'b=1', 'c=1', 'a=2', 'b=2', 'c=2'];
  await send(producer, 'orders', records);
  const at = member.positions.get(0)!;
  assert.deepEqual(texts((await member.await(0)).records), records);
  // Its handler throws at c=1: as kafkajs, it commits what came before, pauses and asks again.
  assert.equal(await member.commit('orders', 0, at + 2), ErrorCode.NONE);
  node.clock.advance(300);
  const handled = ['a=1', 'b=1'];
  let answer = await member.fetch(0, { at: at + 2 });
  while (handled.length < 6) {
    handled.push(...texts(answer.records));
    if (answer.records.length > 0) await member.commitAll(0);
    else node.clock.advance(60);
    if (handled.length < 6) answer = await member.fetch(0);
  }
  assert.deepEqual(handled.toSorted(), records.toSorted(), 'each of them once');
  for (const key of ['a', 'b', 'c']) {
    const own = handled.filter((text) => text.startsWith(key));
    assert.deepEqual(own, [`${key}=1`, `${key}=2`]);
  }
  assert.equal(await lag(all), 0);
});

test('with as many keys as consumers all of them work', async (t) => {
  const { node, producer, members } = await started(t, 4, { 'delivery.window': 'auto' });
  const waiting = members.map((member, lane) => member.fetch(lane, { maxWaitMs: 60_000 }));
  await until(() => node.broker.parkedCount === 4, 'they wait');
  const rounds = [1, 2, 3].flatMap((number) =>
    ['a', 'b', 'c', 'd'].map((key) => `${key}=${number}`),
  );
  await send(producer, 'orders', rounds);
  const keys = (await Promise.all(waiting)).map(({ records }) => {
    const own = new Set(records.map(({ key }) => String(key)));
    assert.equal(own.size, 1, 'one key for each');
    return [...own][0];
  });
  assert.deepEqual(keys.toSorted(), ['a', 'b', 'c', 'd']);
});

test('records that wait for their retry use up no window', async (t) => {
  const { node, producer, members } = await started(t, 1, {
    'delivery.window': '2',
    'delivery.attempts.max': '0',
    'retry.backoff.ms': '600000',
    'retry.backoff.max.ms': '600000',
  });
  const [member] = members as [KeyedMember];
  const failing = ['a', 'b', 'c', 'd', 'e', 'f'];
  for (const key of failing) {
    await send(producer, 'orders', [`${key}=fails`]);
    const { records } = await member.await(0);
    assert.deepEqual(texts(records), [`${key}=fails`]);
    node.clock.advance(300);
    assert.deepEqual((await member.fetch(0, { at: records[0]!.offset })).records, []);
  }
  await send(producer, 'orders', [...failing.map((key) => `${key}=behind`), 'x=1', 'y=1', 'z=1']);
  assert.deepEqual(texts((await member.await(0)).records), ['x=1', 'y=1'], 'a whole window');
  await member.commitAll(0);
  assert.deepEqual(texts((await member.await(0)).records), ['z=1']);
});

/** Real files, which count what is read of them. */
class CountedFiles {
  bytesRead = 0;

  readonly files: FilePort = {
    ...nodeFiles,
    open: async (path, mode) => {
      const file = await nodeFiles.open(path, mode);
      const read: typeof file.read = async (...place) => {
        const bytes = await file.read(...place);
        this.bytesRead += bytes;
        return bytes;
      };
      return { ...file, read };
    },
    readMany: async (reads) => {
      const done = (await nodeFiles.readMany?.(reads)) ?? 0;
      for (const { target } of reads.slice(0, done)) this.bytesRead += target.length;
      return done;
    },
  };
}

test('beside a slow consumer the log is not read over and over', async (t) => {
  const counted = new CountedFiles();
  const settings = { 'journal.recent.bytes': 0, 'keyed.memory.bytes': 65_536 };
  const all = await started(t, 2, {}, { files: counted.files, settings });
  const { producer, members } = all;
  const [slow, fast] = members as [KeyedMember, KeyedMember];
  await send(producer, 'orders', ['slow=0']);
  assert.deepEqual(texts((await slow.await(0)).records), ['slow=0']);
  // Half of all that comes waits for the slow one.
  const text = 'x'.repeat(200);
  const batch = Array.from({ length: 200 }, (_, i) => `${i % 2 === 0 ? 'slow' : i}=${text}`);
  let bytesSent = 0;
  for (let i = 0; i < 200; i++) bytesSent += (await send(producer, 'orders', batch)).length;
  for (let handled = 0; handled < 20_000; ) {
    handled += (await fast.await(1)).records.length;
    await fast.commitAll(1);
  }
  assert.equal(await lag(all), 20_001);
  const times = () => counted.bytesRead / bytesSent;
  // Once for the answers; the feed had it all in memory as it came, or read it once.
  assert.ok(times() > 0.5 && times() < 2.2, `the log was read ${times().toFixed(1)} times`);
  await slow.commitAll(0);
  for (let handled = 0; handled < 20_000; ) {
    handled += (await slow.await(0)).records.length;
    await slow.commitAll(0);
  }
  assert.equal(await lag(all), 0);
  // What waited was not kept in memory: it is read again, and once for the answers.
  assert.ok(times() < 4.4, `the log was read ${times().toFixed(1)} times`);
});
