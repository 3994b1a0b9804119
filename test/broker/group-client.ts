/** What the tests of consumer groups share: a member that speaks the raw protocol. */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../src/protocol/error-codes.ts';
import {
  type OffsetCommitRequestInput,
  offsetCommitRequest,
  offsetCommitResponse,
} from '../../src/protocol/schema/08-offset-commit.ts';
import {
  offsetFetchRequest,
  offsetFetchResponse,
} from '../../src/protocol/schema/09-offset-fetch.ts';
import {
  type JoinGroupRequestInput,
  type JoinGroupResponse,
  joinGroupRequest,
  joinGroupResponse,
} from '../../src/protocol/schema/11-join-group.ts';
import { heartbeatRequest, heartbeatResponse } from '../../src/protocol/schema/12-heartbeat.ts';
import { leaveGroupRequest, leaveGroupResponse } from '../../src/protocol/schema/13-leave-group.ts';
import {
  type SyncGroupRequestInput,
  type SyncGroupResponse,
  syncGroupRequest,
  syncGroupResponse,
} from '../../src/protocol/schema/14-sync-group.ts';
import type { Asker, TestClient } from './support.ts';

/** A subscription as consumers write it (ConsumerProtocolSubscription version 0). */
export function subscription(...topics: readonly string[]): Buffer {
  const parts: Buffer[] = [int16(0), int32(topics.length)];
  for (const topic of topics) parts.push(int16(topic.length), Buffer.from(topic));
  parts.push(int32(-1));
  return Buffer.concat(parts);
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

export interface MemberOptions {
  readonly groupId: string;
  readonly topics?: readonly string[];
  readonly protocolType?: string;
  readonly sessionTimeoutMs?: number;
  readonly rebalanceTimeoutMs?: number;
  readonly groupInstanceId?: string;
}

/** One member on one connection, at the newest version of each API. */
export class Member<C extends Asker = TestClient> {
  client: C;
  memberId = '';
  generationId = -1;
  assignment = '';
  readonly #options: MemberOptions;

  constructor(client: C, options: MemberOptions) {
    this.client = client;
    this.#options = options;
  }

  get groupId(): string {
    return this.#options.groupId;
  }

  get groupInstanceId(): string | null {
    return this.#options.groupInstanceId ?? null;
  }

  /** One JoinGroup, whatever comes of it. */
  async askToJoin(
    version = 9,
    changes: Partial<JoinGroupRequestInput> = {},
  ): Promise<JoinGroupResponse> {
    const { groupId, topics = ['topic'], protocolType = 'consumer' } = this.#options;
    const { sessionTimeoutMs = 30_000, rebalanceTimeoutMs = 30_000 } = this.#options;
    const answer = await this.client.ask(joinGroupRequest, joinGroupResponse, version, {
      groupId,
      sessionTimeoutMs,
      rebalanceTimeoutMs,
      memberId: this.memberId,
      groupInstanceId: this.groupInstanceId,
      protocolType,
      protocols: [{ name: 'range', metadata: subscription(...topics) }],
      ...changes,
    });
    if (answer.memberId !== '') this.memberId = answer.memberId;
    if (answer.errorCode === ErrorCode.NONE) this.generationId = answer.generationId;
    return answer;
  }

  /** Joins, with the id that the coordinator gives out first. */
  async join(version = 9): Promise<JoinGroupResponse> {
    let answer = await this.askToJoin(version);
    if (answer.errorCode === ErrorCode.MEMBER_ID_REQUIRED) answer = await this.askToJoin(version);
    assert.equal(answer.errorCode, ErrorCode.NONE, 'the member joins');
    return answer;
  }

  async sync(
    assignments: Readonly<Record<string, string>> = {},
    version = 5,
    changes: Partial<SyncGroupRequestInput> = {},
  ): Promise<SyncGroupResponse> {
    const named = version >= 5;
    const answer = await this.client.ask(syncGroupRequest, syncGroupResponse, version, {
      groupId: this.groupId,
      generationId: this.generationId,
      memberId: this.memberId,
      groupInstanceId: this.groupInstanceId,
      protocolType: named ? (this.#options.protocolType ?? 'consumer') : null,
      protocolName: named ? 'range' : null,
      assignments: Object.entries(assignments).map(([memberId, text]) => ({
        memberId,
        assignment: Buffer.from(text),
      })),
      ...changes,
    });
    this.assignment = answer.assignment.toString();
    return answer;
  }

  /** Joins and syncs as the only member. */
  async joinAlone(assignment = 'everything'): Promise<void> {
    const joined = await this.join();
    assert.equal(joined.leader, this.memberId);
    const synced = await this.sync({ [this.memberId]: assignment });
    assert.equal(synced.errorCode, ErrorCode.NONE);
  }

  async heartbeat(version = 4): Promise<number> {
    const { groupId, generationId, memberId, groupInstanceId } = this;
    const request = { groupId, generationId, memberId, groupInstanceId };
    const answer = await this.client.ask(heartbeatRequest, heartbeatResponse, version, request);
    return answer.errorCode;
  }

  async leave(): Promise<number> {
    const { groupId, memberId, groupInstanceId } = this;
    const answer = await this.client.ask(leaveGroupRequest, leaveGroupResponse, 5, {
      groupId,
      members: [{ memberId, groupInstanceId }],
    });
    return answer.errorCode === ErrorCode.NONE ? answer.members[0]!.errorCode : answer.errorCode;
  }

  commit(topic: string, partitionIndex: number, offset: number): Promise<number> {
    return commit(this.client, this.groupId, topic, partitionIndex, offset, {
      generationIdOrMemberEpoch: this.generationId,
      memberId: this.memberId,
      groupInstanceId: this.groupInstanceId,
    });
  }
}

/** Commits one offset in version 9, without a member if none is given; answers the error. */
export async function commit(
  client: Asker,
  groupId: string,
  topic: string,
  partitionIndex: number,
  committedOffset: number,
  changes: Partial<OffsetCommitRequestInput> = {},
): Promise<number> {
  const answer = await client.ask(offsetCommitRequest, offsetCommitResponse, 9, {
    groupId,
    memberId: '',
    topics: [
      {
        name: topic,
        partitions: [{ partitionIndex, committedOffset, committedMetadata: null }],
      },
    ],
    ...changes,
  });
  return answer.topics[0]!.partitions[0]!.errorCode;
}

/** All committed offsets of a group, as `topic-partition: offset`. */
export async function committed(client: Asker, groupId: string): Promise<string[]> {
  const answer = await client.ask(offsetFetchRequest, offsetFetchResponse, 9, {
    groups: [{ groupId, topics: null }],
  });
  const [group] = answer.groups;
  assert.equal(group?.errorCode, ErrorCode.NONE);
  return group.topics.flatMap(({ name, partitions }) =>
    partitions.map(({ partitionIndex, committedOffset }) => {
      return `${name}-${partitionIndex}: ${committedOffset}`;
    }),
  );
}
