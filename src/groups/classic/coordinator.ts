/**
 * The coordinator of classic consumer groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup and what
 * depends on membership, behaving as Apache Kafka 4.3 does. A pure state machine: requests,
 * timers and the outcome of writes come in with the time; answers and writes go out through what
 * was passed in. It runs on the leader only and lives from `restore` to `unload`.
 */

import { ErrorCode } from '../../protocol/error-codes.ts';
import { consumerProtocolType } from '../consumer-protocol.ts';
import type { Now } from '../deadlines.ts';
import type { GroupImage } from '../group-image.ts';
import { type GroupOffsetFacts, isSubscribedToTopic } from '../offsets-rules.ts';
import { ClassicContext, type ClassicOptions, type ClassicPorts } from './context.ts';
import { describeGroup, listGroups } from './describe.ts';
import type { ClassicGroup } from './group.ts';
import { heartbeat } from './heartbeat.ts';
import { joinGroup } from './join.ts';
import { leaveGroup } from './leave.ts';
import { createGroup, dropGroup, restoreGroup } from './lifecycle.ts';
import type {
  DescribedGroup,
  HeartbeatRequest,
  JoinGroupRequest,
  JoinGroupResponse,
  LeaveGroupRequest,
  LeaveGroupResponse,
  ListedGroup,
  ListGroupsFilter,
  OffsetCommitCheck,
  Respond,
  SyncGroupRequest,
  SyncGroupResponse,
} from './messages.ts';
import { validateOffsetCommit } from './offset-commit.ts';
import { answerJoin, answerSync, rebalanceOrAdvance, removeMember } from './rebalance.ts';
import { joinError, syncError } from './responses.ts';
import { ClassicState } from './state.ts';
import { syncGroup } from './sync.ts';

/** How many timers one call of `expire` looks at, so that a turn of the loop stays short. */
const timersPerExpireMax = 1_000;

export class ClassicCoordinator {
  readonly #context: ClassicContext;
  /** Counts `unload`s: what was under way before one must not bring a group back after it. */
  #epoch = 0;

  constructor(options: ClassicOptions, ports: ClassicPorts) {
    this.#context = new ClassicContext(options, ports);
  }

  /** May park the request until the round is over, for minutes at worst. */
  joinGroup(request: JoinGroupRequest, now: Now, respond: Respond<JoinGroupResponse>): void {
    joinGroup(this.#context, request, now, respond);
    this.#context.flush();
  }

  /** May park the request until the leader's assignment is durable. */
  syncGroup(request: SyncGroupRequest, now: Now, respond: Respond<SyncGroupResponse>): void {
    syncGroup(this.#context, request, now, respond);
    this.#context.flush();
  }

  heartbeat(request: HeartbeatRequest, now: Now): ErrorCode {
    return heartbeat(this.#context, request, now);
  }

  /** Answered at once, or when the Empty group is durable if the last member left. */
  leaveGroup(request: LeaveGroupRequest, now: Now, respond: Respond<LeaveGroupResponse>): void {
    leaveGroup(this.#context, request, now, respond);
    this.#context.flush();
  }

  /**
   * Takes a member out that its session alone would keep: it has failed in another way. Its client,
   * if it is still there, learns of it at its next request. False if there is no such member.
   */
  expelMember(groupId: string, memberId: string, reason: string, now: Now): boolean {
    const group = this.#context.groups.get(groupId);
    const member = group?.members.get(memberId);
    if (group === undefined || member === undefined) return false;
    removeMember(this.#context, group, member, 'expelled', reason);
    rebalanceOrAdvance(this.#context, group, `member ${memberId} is expelled: ${reason}`, now);
    this.#context.flush();
    return true;
  }

  /** Asks all members to rejoin, for a reason that none of them can know. */
  requestRebalance(groupId: string, reason: string, now: Now): void {
    const group = this.#context.groups.get(groupId);
    if (group === undefined || group.members.size === 0) return;
    rebalanceOrAdvance(this.#context, group, reason, now);
    this.#context.flush();
  }

  hasMember(groupId: string, memberId: string): boolean {
    return this.#context.groups.get(groupId)?.members.has(memberId) ?? false;
  }

  /**
   * Called before each OffsetCommit and TxnOffsetCommit is planned. NONE also counts as a sign of
   * life, and keeps a group without members in existence until `forget`.
   */
  validateOffsetCommit(check: OffsetCommitCheck, now: Now): ErrorCode {
    return validateOffsetCommit(this.#context, check, now);
  }

  /** GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP or NONE; then each topic is asked for on its own. */
  validateOffsetDelete(groupId: string): ErrorCode {
    const group = this.#context.groups.get(groupId);
    if (group === undefined) return ErrorCode.GROUP_ID_NOT_FOUND;
    const facts = group.offsetFacts();
    return facts.isEmpty || facts.protocolType === consumerProtocolType
      ? ErrorCode.NONE
      : ErrorCode.NON_EMPTY_GROUP;
  }

  /** Whether OffsetDelete must answer GROUP_SUBSCRIBED_TO_TOPIC. */
  isSubscribedToTopic(groupId: string, topic: string): boolean {
    const facts = this.offsetFacts(groupId);
    return facts !== null && isSubscribedToTopic(facts, topic);
  }

  /** For the rules of offset expiry (offsets-rules.ts); null for an unknown group. */
  offsetFacts(groupId: string): GroupOffsetFacts | null {
    return this.#context.groups.get(groupId)?.offsetFacts() ?? null;
  }

  describe(groupId: string, apiVersion: number): DescribedGroup {
    return describeGroup(this.#context.groups.get(groupId), groupId, apiVersion);
  }

  /** To be gone through in several turns if there are many: undefined is a pause. */
  list(filter: ListGroupsFilter): Iterable<ListedGroup | undefined> {
    const { groups } = this.#context;
    return listGroups([...groups.values()], filter, (group) => groups.get(group.groupId) === group);
  }

  has(groupId: string): boolean {
    return this.#context.groups.has(groupId);
  }

  /** Since when (wall time) the group has had no members; null if it has some or is unknown. */
  isEmptySince(groupId: string): number | null {
    const group = this.#context.groups.get(groupId);
    return group?.state === ClassicState.empty ? group.stateTimestampMs : null;
  }

  groupIds(): Iterable<string> {
    return this.#context.groups.keys();
  }

  /**
   * DeleteGroups. The group is gone at once, so that the next JoinGroup makes a new one; the
   * answer comes when that is durable.
   */
  deleteGroup(groupId: string, now: Now, respond: Respond<ErrorCode>): void {
    const group = this.#context.groups.get(groupId);
    if (group === undefined) {
      this.#context.answer(respond, ErrorCode.GROUP_ID_NOT_FOUND);
    } else if (group.state !== ClassicState.empty) {
      this.#context.answer(respond, ErrorCode.NON_EMPTY_GROUP);
    } else {
      this.#delete(group, now, respond);
    }
    this.#context.flush();
  }

  /**
   * To be called when the last committed offset of a group has expired or was deleted, and now and
   * then for Empty groups without offsets: nothing is left that would need the group. Returns
   * whether it is gone; a group with members, or about to get some, stays.
   */
  forget(groupId: string, now: Now): boolean {
    const group = this.#context.groups.get(groupId);
    if (group === undefined) return true;
    group.holdsOffsets = false;
    if (group.state !== ClassicState.empty || group.pendingJoins.size > 0) return false;
    if (group.isPersisted) this.#delete(group, now, () => {});
    else dropGroup(this.#context, group, now);
    this.#context.flush();
    return true;
  }

  #delete(group: ClassicGroup, now: Now, respond: Respond<ErrorCode>): void {
    const context = this.#context;
    const { groupId } = group;
    const image = group.image(null);
    dropGroup(context, group, now);
    context.event(group, { kind: 'deleted' });
    const epoch = this.#epoch;
    context.persist(groupId, null, (isDurable, at) => {
      const isStillThere = !isDurable && epoch === this.#epoch && !context.groups.has(groupId);
      if (isStillThere) restoreGroup(context, groupId, image, at);
      const failure = ErrorCode.COORDINATOR_NOT_AVAILABLE;
      context.answer(respond, isDurable ? ErrorCode.NONE : failure);
    });
  }

  /** Takes over a group from its durable image, when this node becomes the coordinator. */
  restore(groupId: string, image: GroupImage, now: Now): void {
    restoreGroup(this.#context, groupId, image, now);
    this.#context.flush();
  }

  /** After all `restore`s, for each group that has committed offsets, with an image or without. */
  restoreOffsetsHolder(groupId: string, now: Now): void {
    const group = this.#context.groups.get(groupId) ?? createGroup(this.#context, groupId, now);
    group.holdsOffsets = true;
  }

  /** This node is the coordinator no longer: whatever is parked goes to look for the new one. */
  unload(now: Now): void {
    this.#epoch++;
    const context = this.#context;
    for (const group of [...context.groups.values()]) {
      for (const member of group.members.values()) {
        const error = joinError(member.memberId, ErrorCode.NOT_COORDINATOR);
        answerJoin(context, group, member, error);
        answerSync(context, member, syncError(ErrorCode.NOT_COORDINATOR));
      }
      dropGroup(context, group, now);
    }
    context.flush();
  }

  /**
   * When `expire` has to be called next, Infinity if there is nothing to wait for. Changes with
   * every call; a timer that was set for an earlier answer may stand, it merely comes too soon.
   */
  nextDeadlineMs(): number {
    return this.#context.deadlines.nextMs();
  }

  /** Lets what is due happen. If it was very much, `nextDeadlineMs` is still not later than now. */
  expire(now: Now): void {
    this.#context.deadlines.expire(now, timersPerExpireMax);
    this.#context.flush();
  }
}
