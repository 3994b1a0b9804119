import { assert } from '../../core/assert.ts';
import { ErrorCode } from '../../protocol/error-codes.ts';
import { consumerProtocolType, readSubscribedTopics } from '../consumer-protocol.ts';
import type { Now, Timer } from '../deadlines.ts';
import type { GroupImage, GroupProtocol } from '../group-image.ts';
import type { GroupOffsetFacts } from '../offsets-rules.ts';
import { type ClassicMember, emptyBuffer, type MemberFacts } from './member.ts';
import type { JoinGroupResponse, Respond } from './messages.ts';
import { assertTransition, ClassicState } from './state.ts';

interface Subscriptions {
  /** Not read yet. */
  readonly metadata: readonly Buffer[] | null;
  readonly topics: ReadonlySet<string> | null;
}

/**
 * The data of one classic group and the rules that need nothing else (Kafka's ClassicGroup). Who
 * is answered when, what is timed and what is made durable is not decided here.
 */
export class ClassicGroup {
  readonly groupId: string;
  /** Ends the gathering of members. */
  readonly joinTimer: Timer;
  /** Removes members that got the generation and never asked for their assignment. */
  readonly syncTimer: Timer;
  state: ClassicState = ClassicState.empty;
  /** The state before this one: a round that began in Empty is an initial round. */
  previousState: ClassicState = ClassicState.dead;
  stateTimestampMs: number;
  generationId = 0;
  protocolType: string | null = null;
  protocolName: string | null = null;
  leaderId: string | null = null;
  readonly members = new Map<string, ClassicMember>();
  /** Instance id => member id. */
  readonly staticMembers = new Map<string, string>();
  /** Ids that were given out (KIP-394) and have not joined yet, oldest first. */
  readonly pendingJoins = new Map<string, Timer>();
  /** Members that have not sent SyncGroup in this generation. */
  readonly pendingSyncs = new Set<string>();
  awaitingJoinCount = 0;
  /** What is left of an initial round's delay; see rebalance.ts. */
  initialRound: { delayMs: number; remainingMs: number } | null = null;
  /** Someone joined since the initial round was last extended. */
  newMemberAdded = false;
  /** The generation whose assignment is being made durable, -1 for none; and that assignment. */
  storingGenerationId = -1;
  storingAssignments: Map<string, Buffer> = new Map();
  /** The generation whose assignment was stored last, -1 for none. */
  assignedGenerationId = -1;
  /** Keyed delivery: a member has rejoined in this round, and so it ends soon. */
  isRoundLimited = false;
  /** Keyed delivery: the leader alone is awaited by `syncTimer`, and not for long. */
  isLeaderLimited = false;
  /** Keyed delivery: leaders in a row that did not assign in time. */
  lateLeaderCount = 0;
  /** Waits for the Empty state to become durable; null when it is, or the group is not Empty. */
  emptyStored: ((isStored: boolean) => void)[] | null = null;
  /** An image of it is durable or on its way. */
  isPersisted = false;
  /** It has, or may have, committed offsets, which keep it alive without an image. */
  holdsOffsets = false;
  readonly #supporters = new Map<string, number>();
  #subscriptions: Subscriptions = { metadata: null, topics: null };

  constructor(groupId: string, joinTimer: Timer, syncTimer: Timer, now: Now) {
    this.groupId = groupId;
    this.joinTimer = joinTimer;
    this.syncTimer = syncTimer;
    this.stateTimestampMs = now.wallMs;
  }

  /** The longest that any member wants others to wait for it. */
  get rebalanceTimeoutMs(): number {
    let timeoutMs = 0;
    for (const { facts } of this.members.values()) {
      timeoutMs = Math.max(timeoutMs, facts.rebalanceTimeoutMs);
    }
    return timeoutMs;
  }

  get hasAllMembersJoined(): boolean {
    return this.members.size === this.awaitingJoinCount && this.pendingJoins.size === 0;
  }

  get isInitialRound(): boolean {
    return (
      this.state === ClassicState.preparingRebalance && this.previousState === ClassicState.empty
    );
  }

  offsetFacts(): GroupOffsetFacts {
    return {
      protocolType: this.protocolType,
      isEmpty: this.state === ClassicState.empty,
      isStable: this.state === ClassicState.stable,
      stateTimestampMs: this.stateTimestampMs,
      subscribedTopics: this.subscribedTopics,
    };
  }

  transitionTo(state: ClassicState, now: Now): void {
    assertTransition(this.state, state);
    this.previousState = this.state;
    this.state = state;
    this.stateTimestampMs = now.wallMs;
  }

  /** Whether all members could go on with one of these protocols. */
  supportsProtocols(protocolType: string, protocols: readonly GroupProtocol[]): boolean {
    if (this.state === ClassicState.empty) return protocolType !== '' && protocols.length > 0;
    return (
      protocolType === this.protocolType &&
      protocols.some(({ name }) => (this.#supporters.get(name) ?? 0) === this.members.size)
    );
  }

  add(member: ClassicMember, protocolType: string): void {
    const { memberId, groupInstanceId } = member;
    assert(!this.members.has(memberId), `${memberId} is in the group already`);
    if (this.members.size === 0) this.protocolType = protocolType;
    assert(this.protocolType === protocolType, 'members share one protocol type');
    if (groupInstanceId !== null) {
      assert(!this.staticMembers.has(groupInstanceId), `${groupInstanceId} is taken`);
      this.staticMembers.set(groupInstanceId, memberId);
    }
    this.leaderId ??= memberId;
    this.members.set(memberId, member);
    this.#countSupport(member, 1);
    if (member.awaitingJoin !== null) this.awaitingJoinCount++;
  }

  /** The caller has answered what the member had parked. */
  remove(member: ClassicMember): void {
    assert(this.members.get(member.memberId) === member, 'only members are removed');
    assert(member.awaitingJoin === null && member.awaitingSync === null, 'nothing stays parked');
    this.members.delete(member.memberId);
    this.#countSupport(member, -1);
    this.pendingSyncs.delete(member.memberId);
    if (member.groupInstanceId !== null) this.staticMembers.delete(member.groupInstanceId);
    if (this.leaderId === member.memberId) this.leaderId = this.#firstMemberId();
  }

  /** `replacement` takes the place of a static member under a new id (KIP-345). */
  replace(member: ClassicMember, replacement: ClassicMember): void {
    assert(member.groupInstanceId !== null, 'only static members are replaced');
    assert(member.groupInstanceId === replacement.groupInstanceId, 'the instance stays the same');
    const wasLeader = this.leaderId === member.memberId;
    const hasYetToSync = this.pendingSyncs.has(member.memberId);
    const { protocolType } = this;
    this.remove(member);
    this.add(replacement, protocolType!);
    if (wasLeader) this.leaderId = replacement.memberId;
    if (hasYetToSync) this.pendingSyncs.add(replacement.memberId);
  }

  update(member: ClassicMember, facts: MemberFacts): void {
    this.#countSupport(member, -1);
    member.facts = facts;
    this.#countSupport(member, 1);
  }

  /** Parks the member's JoinGroup, or takes it out; returns the one that was parked before. */
  setAwaitingJoin(
    member: ClassicMember,
    respond: Respond<JoinGroupResponse> | null,
  ): Respond<JoinGroupResponse> | null {
    const before = member.awaitingJoin;
    member.awaitingJoin = respond;
    this.awaitingJoinCount += Number(respond !== null) - Number(before !== null);
    return before;
  }

  /**
   * Makes sure that a leader is among those who rejoined. False if nobody did; then the round
   * cannot end with members.
   */
  electJoinedLeader(): boolean {
    if (this.leaderId === null) return false;
    if (this.members.get(this.leaderId)!.awaitingJoin !== null) return true;
    for (const member of this.members.values()) {
      if (member.awaitingJoin === null) continue;
      this.leaderId = member.memberId;
      return true;
    }
    return false;
  }

  /** Begins the next generation with whoever is a member now. */
  beginGeneration(now: Now): void {
    this.generationId++;
    this.pendingSyncs.clear();
    const isEmpty = this.members.size === 0;
    this.protocolName = isEmpty ? null : this.selectProtocol();
    this.noteSubscriptions();
    this.transitionTo(isEmpty ? ClassicState.empty : ClassicState.completingRebalance, now);
  }

  /** Each member votes for its favourite among what all of them support; most votes win. */
  selectProtocol(): string {
    const candidates = new Set<string>();
    for (const [name, count] of this.#supporters) {
      if (count === this.members.size) candidates.add(name);
    }
    if (candidates.size === 1) return [...candidates][0]!;
    const votes = new Map<string, number>();
    for (const member of this.members.values()) {
      const name = member.vote(candidates);
      votes.set(name, (votes.get(name) ?? 0) + 1);
    }
    let winner = '';
    for (const [name, count] of votes) {
      if (count > (votes.get(winner) ?? 0)) winner = name;
    }
    return winner;
  }

  /**
   * The topics that the members of this generation subscribe to; null where their metadata does
   * not tell. Read when it is first asked for, which is seldom: a large group has much of it.
   */
  get subscribedTopics(): ReadonlySet<string> | null {
    const { metadata } = this.#subscriptions;
    if (metadata !== null) {
      this.#subscriptions = { metadata: null, topics: readAllTopics(metadata) };
    }
    return this.#subscriptions.topics;
  }

  /** From now on the members' present metadata is what counts as subscribed. */
  noteSubscriptions(): void {
    const metadata =
      this.protocolType === consumerProtocolType
        ? [...this.members.values()].map((member) => member.metadata(this.protocolName!))
        : null;
    this.#subscriptions = { metadata, topics: null };
  }

  /**
   * Whether the member may know this generation: it is the present one, or one since it came in. A
   * generation in between that it missed counts as well; nobody told the member of it, so that
   * makes no difference.
   */
  wasGiven(member: ClassicMember, generationId: number): boolean {
    const { firstGenerationId } = member;
    const isSince = firstGenerationId >= 0 && firstGenerationId <= generationId;
    return isSince && generationId <= this.generationId;
  }

  /** Who may act as this member: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or NONE. */
  checkMember(memberId: string, groupInstanceId: string | null): ErrorCode {
    if (groupInstanceId !== null) {
      const holder = this.staticMembers.get(groupInstanceId);
      if (holder === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
      if (holder !== memberId) return ErrorCode.FENCED_INSTANCE_ID;
    }
    return this.members.has(memberId) ? ErrorCode.NONE : ErrorCode.UNKNOWN_MEMBER_ID;
  }

  /** With the members' own assignments, or with those of a leader that just sent them. */
  image(assignments: ReadonlyMap<string, Buffer> | null): GroupImage {
    const { protocolType, generationId, protocolName, leaderId, stateTimestampMs } = this;
    const members = [...this.members.values()].map((member) =>
      member.image(
        assignments === null
          ? member.assignment
          : (assignments.get(member.memberId) ?? emptyBuffer),
      ),
    );
    return { protocolType, generationId, protocolName, leaderId, stateTimestampMs, members };
  }

  #firstMemberId(): string | null {
    for (const memberId of this.members.keys()) return memberId;
    return null;
  }

  #countSupport(member: ClassicMember, by: 1 | -1): void {
    for (const { name } of member.facts.protocols) {
      const count = (this.#supporters.get(name) ?? 0) + by;
      if (count === 0) this.#supporters.delete(name);
      else this.#supporters.set(name, count);
    }
  }
}

function readAllTopics(metadata: readonly Buffer[]): ReadonlySet<string> | null {
  const all = new Set<string>();
  for (const bytes of metadata) {
    const topics = readSubscribedTopics(bytes);
    if (topics === null) return null;
    for (const topic of topics) all.add(topic);
  }
  return all;
}
