/** Consumer groups: assignment, rebalances, commits, resuming, heartbeats and lost members. */
import assert from 'node:assert/strict';
import kafkajs from 'kafkajs';
import { nextEvent, rejectsWith, sampleValues, texts, uniqueName } from '../support/context.mjs';
import { check, latch, until } from '../support/harness.mjs';

const { AssignerProtocol } = kafkajs;

/** A member of a group that notes what it was assigned and what it received. */
class Member {
  constructor(consumer, topic) {
    this.consumer = consumer;
    this.topic = topic;
    this.assigned = [];
    this.received = [];
    this.joins = [];
  }

  async start(options = {}) {
    this.consumer.on(this.consumer.events.GROUP_JOIN, ({ payload }) => {
      this.joins.push(payload);
      this.assigned = payload.memberAssignment[this.topic] ?? [];
    });
    this.consumer.on(this.consumer.events.REBALANCING, () => {
      this.assigned = [];
    });
    await this.consumer.subscribe({ topics: [this.topic], fromBeginning: true });
    await this.consumer.run({
      eachMessage: async ({ partition, message }) => {
        this.received.push({ partition, message });
      },
      ...options,
    });
    await until('the member has joined', () => this.joins.length > 0);
    return this;
  }

  async leave() {
    await this.consumer.disconnect();
    this.assigned = [];
  }
}

class Group {
  constructor(t, topic, partitions) {
    this.t = t;
    this.topic = topic;
    this.partitions = partitions;
    this.groupId = uniqueName('group');
    this.members = [];
    this.sent = 0;
  }

  async join({ consumer = {}, run = {} } = {}) {
    const client = await this.t.consumer({ groupId: this.groupId, ...consumer });
    const member = new Member(client, this.topic);
    this.members.push(member);
    return member.start(run);
  }

  received() {
    return this.members.flatMap((member) => member.received);
  }

  /** Each partition has exactly one owner, and each of `count` members owns something. */
  async settled(count) {
    await until(`${count} members share ${this.partitions} partitions`, () => {
      const owners = this.members.filter(({ assigned }) => assigned.length > 0);
      const owned = owners.flatMap(({ assigned }) => assigned).sort((a, b) => a - b);
      return owners.length === count && owned.join() === [...Array(this.partitions).keys()].join();
    });
  }

  /** Sends numbered records to all partitions, waits for them and for the commits behind them. */
  async exchange(count) {
    const producer = await this.t.producer();
    const messages = Array.from({ length: count }, (_, index) => ({
      value: `${this.sent + index}`,
      partition: index % this.partitions,
    }));
    await producer.send({ topic: this.topic, messages });
    this.sent += count;
    await until(`${this.sent} records arrived`, () => this.received().length >= this.sent);
    const ends = await this.t.endOffsets(this.topic);
    await until('all is committed', async () => {
      const committed = await this.t.committed(this.groupId, this.topic);
      return committed.every((offset, partition) => offset === ends[partition]);
    });
    this.assertExactlyOnce();
  }

  assertExactlyOnce() {
    const values = texts(this.received()).map(Number);
    assert.deepEqual(
      values.sort((a, b) => a - b),
      Array.from({ length: this.sent }, (_, index) => index),
    );
  }
}

check('groups: three members join and leave, every record once', { fast: true }, async (t) => {
  const topic = await t.topic('members', 6);
  const group = new Group(t, topic, 6);
  const first = await group.join();
  await group.settled(1);
  await group.exchange(60);
  const second = await group.join();
  await group.settled(2);
  await group.exchange(60);
  await group.join();
  await group.settled(3);
  await group.exchange(60);
  await second.leave();
  await group.settled(2);
  await group.exchange(60);
  await first.leave();
  await group.settled(1);
  await group.exchange(60);
});

check('groups: records that flow during rebalances are not lost', {}, async (t) => {
  const topic = await t.topic('flow', 4);
  const group = new Group(t, topic, 4);
  const producer = await t.producer();
  let sent = 0;
  let isFlowing = true;
  const flow = (async () => {
    while (isFlowing) {
      const messages = [0, 1, 2, 3].map((partition) => ({ value: `${sent++}`, partition }));
      await producer.send({ topic, messages });
    }
  })();
  const first = await group.join();
  await group.settled(1);
  await group.join();
  await group.join();
  await group.settled(3);
  await first.leave();
  await group.settled(2);
  isFlowing = false;
  await flow;
  const distinct = () => new Set(texts(group.received())).size;
  await until(`${sent} records arrived`, () => distinct() === sent);
});

check('groups: more members than partitions', {}, async (t) => {
  const topic = await t.topic('idle', 1);
  const group = new Group(t, topic, 1);
  const first = await group.join();
  await group.settled(1);
  const second = await group.join();
  await until('both are in one generation', async () => {
    const { groups } = await t.admin.describeGroups([group.groupId]);
    return groups[0].state === 'Stable' && groups[0].members.length === 2;
  });
  await group.settled(1);
  const [owner, idle] = first.assigned.length > 0 ? [first, second] : [second, first];
  await group.exchange(5);
  assert.equal(idle.received.length, 0);
  await owner.leave();
  await until('the idle member takes over', () => idle.assigned.length === 1);
  await group.exchange(5);
});

check('groups: two groups do not disturb each other', {}, async (t) => {
  const topic = await t.topic('two-groups', 2);
  await t.send(topic, sampleValues(10));
  const [first, second] = await Promise.all([t.readAll(topic, 10), t.readAll(topic, 10)]);
  assert.deepEqual(texts(first), texts(second));
});

check('groups: the join event tells leader and assignment', { fast: true }, async (t) => {
  const topic = await t.topic('join-event', 3);
  const group = new Group(t, topic, 3);
  const member = await group.join();
  const [join] = member.joins;
  assert.equal(join.groupId, group.groupId);
  assert.equal(join.isLeader, true);
  assert.equal(join.leaderId, join.memberId);
  assert.equal(join.groupProtocol, 'RoundRobinAssigner');
  assert.deepEqual(join.memberAssignment, { [topic]: [0, 1, 2] });
});

check('groups: a new partition is picked up', {}, async (t) => {
  const topic = await t.topic('grow', 1);
  const group = new Group(t, topic, 1);
  await group.join({ consumer: { metadataMaxAge: 500 } });
  await group.settled(1);
  await t.admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] });
  await t.waitForPartitions(topic, 3);
  group.partitions = 3;
  await group.settled(1);
  await group.exchange(9);
});

check('groups: commit and resume', { fast: true }, async (t) => {
  const topic = await t.topic('resume');
  const groupId = uniqueName('group');
  await t.send(topic, sampleValues(10, 'first'));
  await t.readAll(topic, 10, { groupId });
  assert.deepEqual(await t.committed(groupId, topic), [10]);
  await t.send(topic, sampleValues(10, 'second'));
  const received = await t.readAll(topic, 10, { groupId });
  assert.deepEqual(texts(received), sampleValues(10, 'second'));
});

check('groups: without auto commit nothing is committed', { fast: true }, async (t) => {
  const topic = await t.topic('no-commit');
  const groupId = uniqueName('group');
  await t.send(topic, sampleValues(5));
  for (let round = 0; round < 2; round++) {
    const member = new Member(await t.consumer({ groupId }), topic);
    await member.start({ autoCommit: false });
    await until('all arrived', () => member.received.length === 5);
    await member.leave();
    assert.deepEqual(await t.committed(groupId, topic), [-1]);
  }
});

check('groups: commitOffsets with metadata', { fast: true }, async (t) => {
  const topic = await t.topic('metadata', 2);
  const groupId = uniqueName('group');
  for (const partition of [0, 1]) await t.send(topic, sampleValues(6), { partition });
  const member = new Member(await t.consumer({ groupId }), topic);
  await member.start({ autoCommit: false });
  await until('all arrived', () => member.received.length === 12);
  await member.consumer.commitOffsets([
    { topic, partition: 0, offset: '4', metadata: 'four of six ü' },
    { topic, partition: 1, offset: '6' },
  ]);
  const [{ partitions }] = await t.admin.fetchOffsets({ groupId, topics: [topic] });
  assert.deepEqual(
    partitions.sort((a, b) => a.partition - b.partition),
    [
      { partition: 0, offset: '4', metadata: 'four of six ü' },
      { partition: 1, offset: '6', metadata: null },
    ],
  );
  await member.leave();
  const rest = await t.readAll(topic, 2, { groupId });
  assert.deepEqual(texts(rest), sampleValues(6).slice(4));
});

check('groups: commit metadata that is too long', {}, async (t) => {
  const topic = await t.topic('metadata-long');
  const member = new Member(await t.consumer({ retry: { retries: 0 } }), topic);
  await member.start({ autoCommit: false });
  const commit = { topic, partition: 0, offset: '0', metadata: 'x'.repeat(4_097) };
  await rejectsWith(member.consumer.commitOffsets([commit]), 'OFFSET_METADATA_TOO_LARGE');
});

check('groups: autoCommitThreshold and autoCommitInterval', {}, async (t) => {
  for (const options of [{ autoCommitThreshold: 2 }, { autoCommitInterval: 20 }]) {
    const topic = await t.topic('auto-commit');
    const groupId = uniqueName('group');
    await t.send(topic, sampleValues(5));
    const consumer = await t.consumer({ groupId });
    const gate = latch();
    let isCommitted = false;
    const member = new Member(consumer, topic);
    await member.start({
      ...options,
      eachMessage: async ({ message }) => {
        // In the middle of the batch, so only the option can have caused a commit.
        if (message.offset !== '4') return;
        const committed = await t.committed(groupId, topic);
        isCommitted = options.autoCommitThreshold === undefined || committed[0] === 4;
        gate.open();
      },
    });
    await gate.opened;
    assert.ok(isCommitted);
    await until('the rest is committed', async () => (await t.committed(groupId, topic))[0] === 5);
    await consumer.disconnect();
  }
});

check('groups: heartbeat() keeps a slow handler in the group', { slow: true }, async (t) => {
  const topic = await t.topic('heartbeat');
  await t.send(topic, ['slow']);
  const group = new Group(t, topic, 1);
  const received = [];
  let beats = 0;
  const consumer = await t.consumer({
    groupId: group.groupId,
    sessionTimeout: 6_000,
    heartbeatInterval: 500,
  });
  consumer.on(consumer.events.HEARTBEAT, () => {
    beats++;
  });
  const member = new Member(consumer, topic);
  await member.start({
    eachMessage: async ({ message, heartbeat }) => {
      const startedMs = performance.now();
      await until('more than a session timeout has passed', async () => {
        await heartbeat();
        return performance.now() - startedMs > 7_000;
      });
      received.push({ message });
    },
  });
  await until('it is handled', () => received.length > 0);
  assert.ok(beats >= 8, `${beats} heartbeats`);
  await until('it is committed', async () => (await t.committed(group.groupId, topic))[0] === 1);
  assert.equal(member.joins.length, 1);
});

check('groups: a member without heartbeats loses its partitions', { slow: true }, async (t) => {
  const topic = await t.topic('expired');
  await t.send(topic, ['stuck']);
  const group = new Group(t, topic, 1);
  const gate = latch();
  const options = { groupId: group.groupId, sessionTimeout: 6_000 };
  const stuck = new Member(await t.consumer(options), topic);
  await stuck.start({
    eachMessage: async ({ message }) => {
      stuck.received.push({ message });
      await gate.opened;
    },
  });
  await until('the first member is stuck', () => stuck.received.length === 1);
  const other = new Member(await t.consumer(options), topic);
  await other.start();
  await until('the other one gets the record', () => other.received.length === 1);
  assert.deepEqual(texts(other.received), texts(stuck.received));
  gate.open();
  // Its commit is refused as of an unknown member, and it joins again.
  await until('the first one is back', () => stuck.joins.length >= 2);
});

check('groups: leaving is noticed before the session times out', { fast: true }, async (t) => {
  const topic = await t.topic('leave', 2);
  const group = new Group(t, topic, 2);
  const first = await group.join({ consumer: { sessionTimeout: 60_000 } });
  await group.join({ consumer: { sessionTimeout: 60_000 } });
  await group.settled(2);
  await first.leave();
  await group.settled(1);
});

check('groups: a group whose last member left is empty', { fast: true }, async (t) => {
  const topic = await t.topic('empty');
  const group = new Group(t, topic, 1);
  const member = await group.join();
  await member.leave();
  const { groups } = await t.admin.describeGroups([group.groupId]);
  assert.equal(groups[0].state, 'Empty');
  assert.deepEqual(groups[0].members, []);
});

/** All partitions to the member whose user data is greatest; carries user data both ways. */
function greatestTakesAll(name, userData) {
  const createAssigner = ({ cluster }) => ({
    name,
    version: 1,
    protocol: ({ topics }) => ({
      name,
      metadata: AssignerProtocol.MemberMetadata.encode({ version: 1, topics, userData }),
    }),
    assign: async ({ members, topics }) => {
      const rank = ({ memberMetadata }) =>
        AssignerProtocol.MemberMetadata.decode(memberMetadata).userData.toString();
      const [greatest] = [...members].sort((a, b) => (rank(a) < rank(b) ? 1 : -1));
      const all = topics.map((topic) => [
        topic,
        cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId),
      ]);
      return members.map(({ memberId }) => ({
        memberId,
        memberAssignment: AssignerProtocol.MemberAssignment.encode({
          version: 1,
          assignment: memberId === greatest.memberId ? Object.fromEntries(all) : {},
          userData: Buffer.from('back'),
        }),
      }));
    },
  });
  return createAssigner;
}

check('groups: an assigner of our own with user data', {}, async (t) => {
  const topic = await t.topic('assigner', 3);
  const group = new Group(t, topic, 3);
  const assigner = (rank) => ({
    partitionAssigners: [greatestTakesAll('ours', Buffer.from(rank))],
  });
  const low = await group.join({ consumer: assigner('a') });
  await group.settled(1);
  const high = await group.join({ consumer: assigner('b') });
  await until('the greater one has all', () => high.assigned.length === 3);
  assert.equal(low.assigned.length, 0);
  assert.equal(high.joins.at(-1).groupProtocol, 'ours');
});

check('groups: a member without a common assigner is refused', {}, async (t) => {
  const topic = await t.topic('inconsistent');
  const group = new Group(t, topic, 1);
  await group.join();
  await group.settled(1);
  const partitionAssigners = [greatestTakesAll('other', Buffer.alloc(0))];
  const stranger = await t.consumer({ groupId: group.groupId, partitionAssigners });
  const crashed = nextEvent(stranger, stranger.events.CRASH);
  await stranger.subscribe({ topics: [topic] });
  await stranger.run({ eachMessage: async () => {} });
  assert.equal((await crashed).error.type, 'INCONSISTENT_GROUP_PROTOCOL');
});

check('groups: a session timeout out of bounds is refused', {}, async (t) => {
  const topic = await t.topic('session');
  const consumer = await t.consumer({ sessionTimeout: 100_000_000 });
  const crashed = nextEvent(consumer, consumer.events.CRASH);
  await consumer.subscribe({ topics: [topic] });
  await consumer.run({ eachMessage: async () => {} });
  assert.equal((await crashed).error.type, 'INVALID_SESSION_TIMEOUT');
});
