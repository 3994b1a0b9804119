import { ErrorCode } from '../../protocol/error-codes.ts';
import type { Now } from '../deadlines.ts';
import type { ClassicContext } from './context.ts';
import { keyedRules } from './keyed-rounds.ts';
import { createGroupIfRoom } from './lifecycle.ts';
import type { OffsetCommitCheck } from './messages.ts';
import { touchSession } from './rebalance.ts';
import { ClassicState } from './state.ts';

/** From here on a commit to an unknown group is answered as such (KIP-848). */
const groupIdNotFoundSince = 9;

/**
 * Whether the sender may commit offsets to the group. A commit without generation comes from a
 * consumer that assigns itself its partitions, or from an admin tool: it is welcome while the
 * group has no members, and makes the group if there is none.
 *
 * In keyed delivery a member may commit in any generation that it was given: what it finished while
 * others rebalanced is not thrown away.
 */
export function validateOffsetCommit(
  context: ClassicContext,
  check: OffsetCommitCheck,
  now: Now,
): ErrorCode {
  const { generationId, memberId, groupInstanceId, isTransactional } = check;
  // Other commits, and all that only reads or deletes offsets, may name the empty group.
  if (isTransactional && check.groupId === '') return ErrorCode.INVALID_GROUP_ID;
  let group = context.groups.get(check.groupId);
  if (group === undefined) {
    if (generationId >= 0) {
      return isTransactional || check.apiVersion < groupIdNotFoundSince
        ? ErrorCode.ILLEGAL_GENERATION
        : ErrorCode.GROUP_ID_NOT_FOUND;
    }
    group = createGroupIfRoom(context, check.groupId, now) ?? undefined;
    if (group === undefined) return ErrorCode.GROUP_MAX_SIZE_REACHED;
    group.holdsOffsets = true;
  }
  const isEmpty = group.state === ClassicState.empty;
  if (generationId < 0 && isEmpty) {
    group.holdsOffsets = true;
    return ErrorCode.NONE;
  }
  if (generationId >= 0 || memberId !== '' || groupInstanceId !== null) {
    const errorCode = group.checkMember(memberId, groupInstanceId);
    if (errorCode !== ErrorCode.NONE) return errorCode;
    const mayCommit =
      generationId === group.generationId ||
      (keyedRules(context, group) !== null &&
        group.wasGiven(group.members.get(memberId)!, generationId));
    if (!mayCommit) return ErrorCode.ILLEGAL_GENERATION;
  } else if (!isTransactional) {
    return ErrorCode.UNKNOWN_MEMBER_ID;
  }
  if (!isTransactional) {
    const isBetween = group.state === ClassicState.completingRebalance;
    if (isBetween && keyedRules(context, group) === null) return ErrorCode.REBALANCE_IN_PROGRESS;
    touchSession(context, group.members.get(memberId)!, now);
  }
  group.holdsOffsets = true;
  return ErrorCode.NONE;
}
