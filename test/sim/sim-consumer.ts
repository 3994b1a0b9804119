/** A member of a group as kafkajs is one: it fetches, handles one record after the other, commits. */
import assert from 'node:assert/strict';
import { encodeAssignment, readAssignment } from '../../src/groups/consumer-protocol.ts';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  offsetFetchRequest,
  offsetFetchResponse,
} from '../../src/protocol/schema/09-offset-fetch.ts';
import { Member } from '../broker/group-client.ts';
import { fetchFrom, recordsOf } from '../broker/records.ts';
import { leaseMs, sessionTimeoutMs } from './sim-broker.ts';
import { connectTo, Disconnected, leaderOf, type SimClient } from './sim-client.ts';
import { type ConsumedTopic, topics } from './sim-topics.ts';
import type { WireClients } from './wire-clients.ts';

/** The process was killed. */
class Killed extends Error {}

const heartbeatMs = 200;
const laneOffsets = 2 ** 44;
/** The coordinator is elsewhere, or not ready: to be looked for anew. */
const elsewhere: readonly number[] = [
  ...[ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE],
  ...[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_LEADER_OR_FOLLOWER],
  ...[ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
];

export class SimConsumer {
  readonly topic: ConsumedTopic;
  readonly name: string;
  isAlive = true;
  readonly #clients: WireClients;
  #client: SimClient | undefined;
  #member: Member<SimClient> | undefined;
  #isJoined = false;
  /** Where it goes on, by partition or lane. */
  #positions = new Map<number, number>();
  /** Handled and not committed. */
  #handled: string[] = [];
  #heartbeatMs = 0;
  /** When it was given what it has in hand. */
  #answeredMs = 0;
  /** When the coordinator last said that it is a member. */
  #presentMs = Number.NEGATIVE_INFINITY;

  constructor(clients: WireClients, topic: ConsumedTopic, name: string) {
    this.#clients = clients;
    this.topic = topic;
    this.name = name;
  }

  /** Whether the coordinator has to count it as a member. */
  get isPresent(): boolean {
    const isHeard = this.#nowMs - this.#presentMs < sessionTimeoutMs;
    return this.isAlive && isHeard && this.#nowMs - this.#answeredMs < leaseMs;
  }

  get #nowMs(): number {
    return this.#clients.world.clock.monotonicMs();
  }

  kill(): void {
    this.isAlive = false;
    this.#clients.world.note(() => `${this.name} is killed`);
    this.#client?.close();
  }

  async run(): Promise<void> {
    this.#clients.world.note(() => `${this.name} begins to consume ${this.topic}`);
    while (this.isAlive) {
      try {
        await this.#connect();
        for (;;) {
          if (!this.#isJoined) await this.#join();
          await this.#round();
        }
      } catch (error) {
        if (error instanceof Killed) return;
        if (!(error instanceof Disconnected)) throw error;
        this.#client?.close();
        // As clients do, that would else ask all the time.
        await this.#pause(10 + this.#clients.world.below(40)).catch(() => undefined);
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    await this.#clients.sleep(ms);
    if (!this.isAlive) throw new Killed();
  }

  async #connect(): Promise<void> {
    const { world } = this.#clients;
    this.#client = await connectTo(world, await leaderOf(world, this.topic), this.name);
    const timeouts = { sessionTimeoutMs, rebalanceTimeoutMs: 300 };
    const options = { groupId: `by-${this.topic}`, topics: [this.topic], ...timeouts };
    this.#member ??= new Member(this.#client, options);
    this.#member.client = this.#client;
    if (this.#isJoined) await this.#heartbeat();
  }

  async #heartbeat(): Promise<void> {
    const errorCode = await this.#member!.heartbeat();
    this.#heartbeatMs = this.#nowMs;
    this.#judge(errorCode);
  }

  /** What an answer of the coordinator says of the membership. */
  #judge(errorCode: number): void {
    if (!this.isAlive) throw new Killed();
    if (elsewhere.includes(errorCode)) throw new Disconnected();
    const isMember = errorCode === ErrorCode.NONE || errorCode === ErrorCode.REBALANCE_IN_PROGRESS;
    if (isMember) this.#presentMs = this.#nowMs;
    else this.#presentMs = Number.NEGATIVE_INFINITY;
    if (errorCode === ErrorCode.UNKNOWN_MEMBER_ID) this.#member!.memberId = '';
    if (errorCode !== ErrorCode.NONE) this.#isJoined = false;
    const isExpected =
      isMember ||
      errorCode === ErrorCode.UNKNOWN_MEMBER_ID ||
      errorCode === ErrorCode.ILLEGAL_GENERATION ||
      errorCode === ErrorCode.MEMBER_ID_REQUIRED;
    assert.ok(isExpected, `error ${errorCode} for a member`);
  }

  async #join(): Promise<void> {
    const member = this.#member!;
    this.#clients.world.counts.joins++;
    this.#positions.clear();
    this.#handled = [];
    const joined = await member.askToJoin(9);
    this.#judge(joined.errorCode);
    if (joined.errorCode !== ErrorCode.NONE) return;
    const partitions = Array.from({ length: topics[this.topic] }, (_, i) => i);
    const { members } = joined;
    const assignments = members.map(({ memberId }, at) => ({
      memberId,
      assignment: encodeAssignment({
        version: 1,
        partitions: new Map([[this.topic, partitions.filter((i) => i % members.length === at)]]),
        userData: null,
      }),
    }));
    const synced = await member.sync({}, 5, { assignments });
    this.#judge(synced.errorCode);
    if (synced.errorCode !== ErrorCode.NONE) return;
    const own = readAssignment(synced.assignment)?.partitions.get(this.topic) ?? [];
    await this.#locate(own);
    this.#isJoined = true;
  }

  async #locate(partitions: readonly number[]): Promise<void> {
    if (partitions.length === 0) return;
    const { groupId, memberId, client } = this.#member!;
    const acked = [...this.#clients.ackedOffset];
    const answer = await client.ask(offsetFetchRequest, offsetFetchResponse, 9, {
      groups: [
        {
          ...{ groupId, memberId, memberEpoch: -1 },
          topics: [{ name: this.topic, partitionIndexes: [...partitions] }],
        },
      ],
    });
    const [group] = answer.groups;
    if (elsewhere.includes(group!.errorCode)) throw new Disconnected();
    assert.equal(group!.errorCode, ErrorCode.NONE);
    for (const { partitionIndex, committedOffset } of group!.topics[0]!.partitions) {
      if (this.topic === 'chat')
        assert.ok(committedOffset >= laneOffsets, 'a lane says where it is');
      else {
        this.#clients.world.counts.reads++;
        const least = acked[partitionIndex]!;
        assert.ok(committedOffset >= least || least === 0, `${committedOffset} after ${least}`);
      }
      this.#positions.set(partitionIndex, Math.max(committedOffset, 0));
    }
  }

  /** One fetch of all partitions, the handling of what it brings, and a commit. */
  async #round(): Promise<void> {
    await this.#heartbeatIfDue();
    if (!this.#isJoined) return;
    if (this.#positions.size === 0) {
      // Nothing is assigned: it waits for the next rebalance.
      await this.#pause(heartbeatMs / 2);
      return;
    }
    const from = [...this.#positions].map(([partition, offset]) => {
      return { topic: this.topic, partition, offset, bytesMax: 2000 };
    });
    const answer = await fetchFrom(this.#client!, from, { maxWaitMs: 60 });
    this.#answeredMs = this.#nowMs;
    for (const { partitions } of answer.responses) {
      for (const { partitionIndex, errorCode, records, logStartOffset } of partitions) {
        if (elsewhere.includes(errorCode)) throw new Disconnected();
        if (errorCode === ErrorCode.OFFSET_OUT_OF_RANGE && this.topic === 'orders') {
          // What others have handled and committed was deleted.
          this.#positions.set(partitionIndex, logStartOffset);
          continue;
        }
        assert.equal(errorCode, ErrorCode.NONE, `a fetch of ${this.topic}-${partitionIndex}`);
        await this.#handleAll(partitionIndex, recordsOf(records));
        if (!this.#isJoined) return;
      }
    }
    await this.#commit();
  }

  async #handleAll(partition: number, records: readonly [number, string][]): Promise<void> {
    for (const [offset, value] of records) {
      if (offset < this.#positions.get(partition)!) continue;
      if (this.topic === 'orders') this.#clients.onLogRecord(partition, offset, value);
      else await this.#handle(value);
      this.#positions.set(partition, offset + 1);
      this.#handled.push(value);
      if (this.#nowMs - this.#heartbeatMs < heartbeatMs) continue;
      // As kafkajs does: what was handled is committed before it rejoins, the rest comes again.
      await this.#heartbeat();
      if (this.#isJoined) continue;
      await this.#commit();
      return;
    }
  }

  async #handle(value: string): Promise<void> {
    const { world } = this.#clients;
    this.#clients.onKeyBegins(this, value);
    const isSlow = world.random.next() < 0.03;
    await this.#pause(isSlow ? world.below(600) : world.below(12));
    this.#clients.onKeyEnds(this, value);
  }

  async #heartbeatIfDue(): Promise<void> {
    if (this.#nowMs - this.#heartbeatMs >= heartbeatMs) await this.#heartbeat();
  }

  async #commit(): Promise<void> {
    const handled = this.#handled;
    if (handled.length === 0) return;
    for (const [partition, offset] of this.#positions) {
      const errorCode = await this.#member!.commit(this.topic, partition, offset);
      if (errorCode !== ErrorCode.NONE) {
        this.#judge(errorCode);
        return;
      }
      this.#presentMs = this.#nowMs;
      if (this.topic === 'orders') {
        const acked = this.#clients.ackedOffset;
        acked[partition] = Math.max(acked[partition]!, offset);
      }
    }
    this.#handled = [];
    // All lanes are covered by now.
    if (this.topic === 'chat') for (const value of handled) this.#clients.committed.add(value);
  }
}
