import { ErrorCode } from '../../protocol/error-codes.ts';
import type { Now } from '../deadlines.ts';
import type { ClassicContext } from './context.ts';
import type { ClassicGroup } from './group.ts';
import { metadataForLeader } from './keyed-rounds.ts';
import { createMember } from './lifecycle.ts';
import type { ClassicMember, MemberFacts } from './member.ts';
import type { JoinGroupRequest, JoinGroupResponse, Respond } from './messages.ts';
import {
  advanceRound,
  answerJoin,
  answerSync,
  prepareRebalance,
  rebalanceOrAdvance,
  touchSession,
} from './rebalance.ts';
import { joinError, joinedGeneration, syncError } from './responses.ts';
import { ClassicState } from './state.ts';

/** From here on a returning static leader is told that it leads, but need not assign (KIP-814). */
const skipAssignmentSince = 9;

/** A static member that comes back without its member id, and the request that it came with. */
interface Return {
  readonly memberId: string;
  readonly facts: MemberFacts;
  readonly request: JoinGroupRequest;
  readonly respond: Respond<JoinGroupResponse>;
}

/**
 * Static membership (KIP-345): a consumer with a `group.instance.id` that restarts takes over the
 * place of its former self, whose member id is fenced from now on. A stable group whose protocol
 * stays the same does not even rebalance; the new id only has to become durable first.
 */
export function replaceStaticMember(
  context: ClassicContext,
  group: ClassicGroup,
  former: ClassicMember,
  returns: Return,
  now: Now,
): void {
  const leaderBefore = group.leaderId!;
  const { request } = returns;
  const member = takePlace(context, group, former, returns.memberId, returns.facts, now);
  if (group.state === ClassicState.stable) member.noteGeneration(group.generationId);
  group.setAwaitingJoin(member, returns.respond);
  touchSession(context, member, now);
  const reason =
    `static member ${member.memberId} (${member.groupInstanceId}) returns: ` +
    `${request.reason ?? 'no reason given'}`;
  if (group.state === ClassicState.completingRebalance) {
    // The leader may already have seen the former id, and its assignment would miss the new one.
    prepareRebalance(context, group, reason, now);
  } else if (group.state !== ClassicState.stable) {
    advanceRound(context, group, now);
  } else if (group.selectProtocol() !== group.protocolName) {
    rebalanceOrAdvance(context, group, reason, now);
  } else {
    group.noteSubscriptions();
    storeReplacement(context, group, member, former, returns, leaderBefore);
  }
}

/** Puts a member with the new id in the place of `former`, whose parked requests are fenced. */
function takePlace(
  context: ClassicContext,
  group: ClassicGroup,
  former: ClassicMember,
  memberId: string,
  facts: MemberFacts,
  now: Now,
): ClassicMember {
  const { groupInstanceId } = former;
  answerJoin(context, group, former, joinError(former.memberId, ErrorCode.FENCED_INSTANCE_ID));
  answerSync(context, former, syncError(ErrorCode.FENCED_INSTANCE_ID));
  context.deadlines.cancel(former.session);
  const member = createMember(context, group, { memberId, groupInstanceId }, facts);
  member.assignment = former.assignment;
  // A plan that is being stored names the former id.
  const planned = group.storingAssignments.get(former.memberId);
  if (planned !== undefined) group.storingAssignments.set(memberId, planned);
  group.replace(former, member);
  touchSession(context, member, now);
  context.event(group, { kind: 'memberReplaced', former, member });
  return member;
}

function storeReplacement(
  context: ClassicContext,
  group: ClassicGroup,
  member: ClassicMember,
  former: ClassicMember,
  returns: Return,
  leaderBefore: string,
): void {
  const { generationId } = group;
  context.persist(group.groupId, group.image(null), (isDurable, now) => {
    // A round that began meanwhile has taken the parked JoinGroup in, and will answer it.
    const isWaiting =
      group.state === ClassicState.stable &&
      group.generationId === generationId &&
      member.awaitingJoin === returns.respond;
    if (!isWaiting) return;
    if (isDurable) {
      touchSession(context, member, now);
      answerReplacement(context, group, member, returns.request, leaderBefore);
    } else {
      context.event(group, { kind: 'persistFailed', what: 'static member' });
      const error = joinError('', ErrorCode.COORDINATOR_NOT_AVAILABLE);
      answerJoin(context, group, member, error);
      const restored = takePlace(context, group, member, former.memberId, former.facts, now);
      restored.firstGenerationId = former.firstGenerationId;
      restored.lastGenerationId = former.lastGenerationId;
      group.noteSubscriptions();
    }
  });
}

function answerReplacement(
  context: ClassicContext,
  group: ClassicGroup,
  member: ClassicMember,
  request: JoinGroupRequest,
  leaderBefore: string,
): void {
  const { memberId } = member;
  const leads = group.leaderId === memberId;
  const metadataOf = metadataForLeader(context, group);
  // Before version 9 the answer names the leader's former id, so that a returning leader takes
  // itself for a follower and fetches its assignment instead of making a new one.
  const response =
    request.apiVersion >= skipAssignmentSince
      ? joinedGeneration(group, memberId, {
          leader: group.leaderId!,
          metadataOf,
          skipAssignment: leads,
        })
      : joinedGeneration(group, memberId, { leader: leaderBefore, metadataOf });
  answerJoin(context, group, member, response);
}
