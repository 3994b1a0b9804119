/** Consumer groups of the classic protocol: members that join, leave and are lost. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { check, until } from '../../kafkajs/support/harness.mjs';
import { collect, rejectsWith, sampleValues, uniqueName, valuesOf } from '../support/context.mjs';

/** A consumer in a group, and how far its stream is after the newest rebalance. */
class Member {
  constructor(consumer, topic) {
    this.consumer = consumer;
    this.topic = topic;
    this.fetchesSinceJoin = -1;
  }

  /**
   * A stream reads the committed offsets anew after each join, and a fetch for the old assignment
   * may still be under way; records that arrive before both are over may be delivered twice.
   */
  async start(received) {
    this.consumer.on('consumer:group:join', () => {
      this.fetchesSinceJoin = -1;
    });
    const stream = await collect(this.consumer, this.topic, received);
    this.fetchesSinceJoin = 0;
    stream.on('offsets', () => {
      this.fetchesSinceJoin = 0;
    });
    stream.on('fetch', () => {
      if (this.fetchesSinceJoin >= 0) this.fetchesSinceJoin++;
    });
    return this;
  }

  get isSettled() {
    return this.fetchesSinceJoin >= 2;
  }

  get assigned() {
    const { assignments } = this.consumer;
    return assignments?.find(({ topic }) => topic === this.topic)?.partitions ?? [];
  }
}

class Group {
  constructor(t, topic, partitions) {
    this.t = t;
    this.topic = topic;
    this.partitions = partitions;
    this.groupId = uniqueName('group');
    this.members = [];
    this.received = [];
    this.sent = 0;
  }

  async join(options = {}) {
    const consumer = this.t.consumer({ groupId: this.groupId, ...options });
    const member = new Member(consumer, this.topic);
    this.members.push(member);
    return member.start(this.received);
  }

  async leave(member) {
    this.members.splice(this.members.indexOf(member), 1);
    await member.consumer.close(true);
  }

  /** Each partition has exactly one owner, and each member owns something. */
  async settled() {
    await until(`${this.members.length} members share ${this.partitions} partitions`, () => {
      const owned = this.members.flatMap(({ assigned }) => assigned).sort((a, b) => a - b);
      return (
        owned.join() === [...Array(this.partitions).keys()].join() &&
        this.members.every(({ assigned, isSettled }) => assigned.length > 0 && isSettled)
      );
    });
  }

  /** Sends numbered records to all partitions, waits for them and for the commits behind them. */
  async exchange(count) {
    const producer = this.t.producer();
    const messages = Array.from({ length: count }, (_, index) => ({
      topic: this.topic,
      value: `${this.sent + index}`,
      partition: index % this.partitions,
    }));
    await producer.send({ messages });
    this.sent += count;
    await until(`${this.sent} records arrived`, () => this.received.length >= this.sent);
    const ends = await this.t.endOffsets(this.topic, this.partitions);
    await until('all is committed', async () => {
      const committed = await this.t.committed(this.groupId, this.topic, this.partitions);
      return committed.every((offset, partition) => offset === ends[partition]);
    });
    assert.deepEqual(
      valuesOf(this.received)
        .map(Number)
        .sort((a, b) => a - b),
      Array.from({ length: this.sent }, (_, index) => index),
    );
  }
}

check('groups: three members join and leave, every record once', { fast: true }, async (t) => {
  const topic = await t.topic('members', 6);
  const group = new Group(t, topic, 6);
  const first = await group.join();
  await group.settled();
  await group.exchange(60);
  const second = await group.join();
  await group.settled();
  await group.exchange(60);
  await group.join();
  await group.settled();
  await group.exchange(60);
  await group.leave(second);
  await group.settled();
  await group.exchange(60);
  await group.leave(first);
  await group.settled();
  await group.exchange(60);
});

check('groups: records that flow during rebalances are not lost', {}, async (t) => {
  const topic = await t.topic('flow', 4);
  const group = new Group(t, topic, 4);
  const producer = t.producer();
  let sent = 0;
  let isFlowing = true;
  const flow = (async () => {
    while (isFlowing) {
      const messages = [0, 1, 2, 3].map((partition) => ({ topic, value: `${sent++}`, partition }));
      await producer.send({ messages });
    }
  })();
  const first = await group.join();
  await group.settled();
  await group.join();
  await group.settled();
  await group.leave(first);
  await group.settled();
  isFlowing = false;
  await flow;
  const distinct = () => new Set(valuesOf(group.received)).size;
  await until(`${sent} records arrived`, () => distinct() === sent);
});

check('groups: the events of joining and leaving', { fast: true }, async (t) => {
  const topic = await t.topic('events', 2);
  const consumer = t.consumer();
  const joined = once(consumer, 'consumer:group:join');
  await collect(consumer, topic, []);
  const [join] = await joined;
  assert.equal(join.groupId, consumer.groupId);
  assert.equal(join.memberId, consumer.memberId);
  assert.equal(join.isLeader, true);
  assert.deepEqual(join.assignments, [{ topic, partitions: [0, 1] }]);
  await once(consumer, 'consumer:heartbeat:end');
  const left = once(consumer, 'consumer:group:leave');
  await consumer.close(true);
  const [leave] = await left;
  assert.equal(leave.memberId, join.memberId);
});

check('groups: each rebalance is a new generation', {}, async (t) => {
  const topic = await t.topic('generation', 2);
  const group = new Group(t, topic, 2);
  const { consumer: first } = await group.join();
  const before = first.generationId;
  const { consumer: second } = await group.join();
  await group.settled();
  assert.ok(first.generationId > before);
  assert.equal(first.generationId, second.generationId);
});

check('groups: leaving is noticed before the session times out', { fast: true }, async (t) => {
  const topic = await t.topic('leave', 2);
  const group = new Group(t, topic, 2);
  const patient = { sessionTimeout: 60_000, rebalanceTimeout: 60_000 };
  const first = await group.join(patient);
  await group.join(patient);
  await group.settled();
  await group.leave(first);
  await group.settled();
});

check('groups: a member that is killed loses its partitions', { slow: true }, async (t) => {
  const topic = await t.topic('killed', 2);
  const groupId = uniqueName('group');
  const [bootstrap] = t.suite.options.bootstrapBrokers;
  const script = fileURLToPath(new URL('../support/member.mjs', import.meta.url));
  const child = spawn(process.execPath, [script, bootstrap, groupId, topic], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.onClose('member', async () => child.kill('SIGKILL'));
  const [joined] = await once(child.stdout, 'data');
  assert.equal(joined.toString(), 'joined');
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
  await t.send(topic, sampleValues(4), { partition: 0 });
  await t.send(topic, sampleValues(4), { partition: 1 });
  // The coordinator waits for the dead member's session timeout of six seconds.
  const received = [];
  await collect(t.consumer({ groupId }), topic, received);
  await until('the other member has all records', () => received.length === 8);
});

check('groups: a session timeout out of bounds is refused', {}, async (t) => {
  const topic = await t.topic('session');
  const consumer = t.consumer({ sessionTimeout: 100_000_000, rebalanceTimeout: 100_000_000 });
  await rejectsWith(collect(consumer, topic, []), 'INVALID_SESSION_TIMEOUT');
});

check('groups: two groups do not disturb each other', {}, async (t) => {
  const topic = await t.topic('two-groups', 2);
  await t.send(topic, sampleValues(10));
  const [first, second] = await Promise.all([t.readAll(topic, 10), t.readAll(topic, 10)]);
  assert.deepEqual(valuesOf(first), valuesOf(second));
});
