import { ErrorCode } from '../../protocol/error-codes.ts';
import type { Now } from '../deadlines.ts';
import type { ClassicContext } from './context.ts';
import type { ClassicGroup } from './group.ts';
import { comesLate, keyedRules, metadataForLeader } from './keyed-rounds.ts';
import {
  addPendingJoin,
  createGroupIfRoom,
  createMember,
  dropUnusedGroup,
  removePendingJoin,
} from './lifecycle.ts';
import { type ClassicMember, copyProtocols, type MemberFacts } from './member.ts';
import type { JoinGroupRequest, JoinGroupResponse, Respond } from './messages.ts';
import { advanceRound, rebalanceOrAdvance, removeMember, touchSession } from './rebalance.ts';
import { joinError, joinedGeneration } from './responses.ts';
import { ClassicState } from './state.ts';
import { replaceStaticMember } from './static-members.ts';

/** From here on a new dynamic member first gets an id and joins with it (KIP-394). */
const memberIdRequiredSince = 4;
/** From here on the wire has a null protocol name. */
const nullProtocolNameSince = 7;
/** Longer client or instance ids are cut in generated member ids, which must fit the wire. */
const memberIdPrefixMax = 8_000;

export type JoinRespond = Respond<JoinGroupResponse>;

export function joinGroup(
  context: ClassicContext,
  request: JoinGroupRequest,
  now: Now,
  respond: JoinRespond,
): void {
  if (request.apiVersion < nullProtocolNameSince) {
    const withNull = respond;
    respond = (response) => withNull({ ...response, protocolName: response.protocolName ?? '' });
  }
  const refusal = refuseOutright(context, request);
  if (refusal !== ErrorCode.NONE) {
    context.answer(respond, joinError(request.memberId, refusal));
    return;
  }
  const group =
    context.groups.get(request.groupId) ??
    (request.memberId === '' ? createGroupIfRoom(context, request.groupId, now) : undefined);
  if (group === undefined) {
    context.answer(respond, joinError(request.memberId, ErrorCode.UNKNOWN_MEMBER_ID));
  } else if (group === null) {
    context.answer(respond, joinError('', ErrorCode.GROUP_MAX_SIZE_REACHED));
  } else {
    joinExistingGroup(context, group, request, now, respond);
    dropUnusedGroup(context, group, now);
  }
}

function refuseOutright(context: ClassicContext, request: JoinGroupRequest): ErrorCode {
  if (request.groupId === '') return ErrorCode.INVALID_GROUP_ID;
  const { sessionTimeoutMsMin, sessionTimeoutMsMax } = context.options;
  const { sessionTimeoutMs } = request;
  if (sessionTimeoutMs < sessionTimeoutMsMin || sessionTimeoutMs > sessionTimeoutMsMax) {
    return ErrorCode.INVALID_SESSION_TIMEOUT;
  }
  return ErrorCode.NONE;
}

function joinExistingGroup(
  context: ClassicContext,
  group: ClassicGroup,
  request: JoinGroupRequest,
  now: Now,
  respond: JoinRespond,
): void {
  const { memberId } = request;
  if (!hasRoomFor(context, group, request)) {
    context.answer(respond, joinError('', ErrorCode.GROUP_MAX_SIZE_REACHED));
    turnAway(context, group, memberId, now);
  } else if (!group.supportsProtocols(request.protocolType, request.protocols)) {
    context.answer(respond, joinError(memberId, ErrorCode.INCONSISTENT_GROUP_PROTOCOL));
  } else if (memberId === '') {
    joinNewMember(context, group, request, now, respond);
  } else if (request.groupInstanceId === null && removePendingJoin(context, group, memberId)) {
    addMember(context, group, memberId, request, now, respond);
  } else {
    const errorCode = group.checkMember(memberId, request.groupInstanceId);
    if (errorCode !== ErrorCode.NONE) context.answer(respond, joinError(memberId, errorCode));
    else rejoin(context, group, group.members.get(memberId)!, request, now, respond);
  }
}

/**
 * `group.max.size`. While members gather only those who came back count: so a group that is too
 * large because the limit was lowered keeps the first ones and turns the last ones away.
 */
function hasRoomFor(
  context: ClassicContext,
  group: ClassicGroup,
  request: JoinGroupRequest,
): boolean {
  // A static member that comes back takes no more room than before (Kafka turns it away).
  const { memberId, groupInstanceId } = request;
  const holder = groupInstanceId === null ? undefined : group.staticMembers.get(groupInstanceId);
  const member = group.members.get(memberId === '' ? (holder ?? '') : memberId);
  switch (group.state) {
    case ClassicState.empty:
    case ClassicState.dead:
      return true;
    case ClassicState.preparingRebalance:
      // In keyed delivery absent members stay, so they count.
      if (keyedRules(context, group) !== null) {
        return member !== undefined || group.members.size < context.options.groupSizeMax;
      }
      return (
        (member !== undefined && member.awaitingJoin !== null) ||
        group.awaitingJoinCount < context.options.groupSizeMax
      );
    case ClassicState.completingRebalance:
    case ClassicState.stable:
      return member !== undefined || group.members.size < context.options.groupSizeMax;
  }
}

function turnAway(context: ClassicContext, group: ClassicGroup, memberId: string, now: Now): void {
  removePendingJoin(context, group, memberId);
  const member = group.members.get(memberId);
  if (member !== undefined) removeMember(context, group, member, 'group is full');
  advanceRound(context, group, now);
}

function joinNewMember(
  context: ClassicContext,
  group: ClassicGroup,
  request: JoinGroupRequest,
  now: Now,
  respond: JoinRespond,
): void {
  const { groupInstanceId } = request;
  const prefix = (groupInstanceId ?? request.clientId).slice(0, memberIdPrefixMax);
  const memberId = `${prefix}-${context.ports.uuid()}`;
  if (groupInstanceId !== null) {
    const holder = group.staticMembers.get(groupInstanceId);
    if (holder === undefined) {
      addMember(context, group, memberId, request, now, respond);
    } else {
      const member = group.members.get(holder)!;
      const facts = factsOf(request);
      replaceStaticMember(context, group, member, { memberId, facts, request, respond }, now);
    }
  } else if (request.apiVersion >= memberIdRequiredSince) {
    addPendingJoin(context, group, memberId, now.monotonicMs + request.sessionTimeoutMs);
    context.answer(respond, joinError(memberId, ErrorCode.MEMBER_ID_REQUIRED));
  } else {
    addMember(context, group, memberId, request, now, respond);
  }
}

function addMember(
  context: ClassicContext,
  group: ClassicGroup,
  memberId: string,
  request: JoinGroupRequest,
  now: Now,
  respond: JoinRespond,
): void {
  const { groupInstanceId } = request;
  const member = createMember(context, group, { memberId, groupInstanceId }, factsOf(request));
  member.isNew = true;
  member.awaitingJoin = respond;
  if (group.isInitialRound) group.newMemberAdded = true;
  group.add(member, request.protocolType);
  touchSession(context, member, now, context.options.newMemberJoinTimeoutMs);
  const reason = `member ${memberId} joins: ${request.reason ?? 'no reason given'}`;
  context.event(group, { kind: 'memberAdded', member, reason });
  rebalanceOrAdvance(context, group, reason, now);
}

function factsOf(request: JoinGroupRequest): MemberFacts {
  const { clientId, clientHost, sessionTimeoutMs } = request;
  const rebalanceTimeoutMs =
    request.apiVersion === 0 ? sessionTimeoutMs : Math.max(request.rebalanceTimeoutMs, 0);
  const protocols = copyProtocols(request.protocols);
  return { clientId, clientHost, rebalanceTimeoutMs, sessionTimeoutMs, protocols };
}

/** JoinGroup of a member that is known by its id. */
function rejoin(
  context: ClassicContext,
  group: ClassicGroup,
  member: ClassicMember,
  request: JoinGroupRequest,
  now: Now,
  respond: JoinRespond,
): void {
  const facts = factsOf(request);
  const hasChanged = !member.matches(facts.protocols);
  const isLeader = group.leaderId === member.memberId;
  // A leader of a stable group asks for a round on purpose: topics may have changed, which its
  // metadata does not show. In CompletingRebalance it merely lost the answer.
  const isLate = comesLate(context, group, member, facts);
  const needsRound =
    group.state === ClassicState.preparingRebalance ||
    (hasChanged && !isLate) ||
    (group.state === ClassicState.stable && isLeader);
  const before = metadataOf(group, member);
  if (needsRound || isLate) group.update(member, facts);
  context.event(group, {
    kind: 'memberRejoined',
    member,
    before,
    after: metadataOf(group, member),
  });
  if (!needsRound) {
    touchSession(context, member, now);
    const { memberId } = member;
    member.noteGeneration(group.generationId);
    const as = { leader: group.leaderId!, metadataOf: metadataForLeader(context, group) };
    context.answer(respond, joinedGeneration(group, memberId, as));
    return;
  }
  const superseded = group.setAwaitingJoin(member, respond);
  if (superseded !== null) {
    // Kafka forgets the older request; here every request is answered. Its client, which is
    // hardly there any more, would join again.
    context.answer(superseded, joinError(member.memberId, ErrorCode.REBALANCE_IN_PROGRESS));
  }
  const reason = `member ${member.memberId} rejoins: ${request.reason ?? 'no reason given'}`;
  rebalanceOrAdvance(context, group, reason, now);
}

/** Its metadata for the group's protocol, or for its favourite one while the group has none. */
function metadataOf(group: ClassicGroup, member: ClassicMember): Buffer {
  const { protocols } = member.facts;
  const protocol = protocols.find(({ name }) => name === group.protocolName) ?? protocols[0]!;
  return protocol.metadata;
}
