import { clipped } from '../../core/clipped.ts';
import { ErrorCode } from '../../protocol/error-codes.ts';
import type { ClassicGroup } from './group.ts';
import { emptyBuffer } from './member.ts';
import type { DescribedGroup, ListedGroup, ListGroupsFilter } from './messages.ts';
import { ClassicState } from './state.ts';

/** From here on an unknown group is an error (KIP-1043). */
const groupIdNotFoundSince = 6;

export function describeGroup(
  group: ClassicGroup | undefined,
  groupId: string,
  apiVersion: number,
): DescribedGroup {
  if (group === undefined) return describeUnknown(groupId, apiVersion);
  // Only a Stable group shows its members' metadata: before that no protocol has been settled.
  const protocolName = group.state === ClassicState.stable ? group.protocolName : null;
  return {
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    groupId,
    groupState: group.state,
    protocolType: group.protocolType ?? '',
    protocolData: protocolName ?? '',
    members: [...group.members.values()].map((member) => ({
      memberId: member.memberId,
      groupInstanceId: member.groupInstanceId,
      clientId: member.facts.clientId,
      clientHost: member.facts.clientHost,
      memberMetadata: protocolName === null ? emptyBuffer : member.metadata(protocolName),
      memberAssignment: member.assignment,
    })),
  };
}

function describeUnknown(groupId: string, apiVersion: number): DescribedGroup {
  const isError = apiVersion >= groupIdNotFoundSince;
  return {
    errorCode: isError ? ErrorCode.GROUP_ID_NOT_FOUND : ErrorCode.NONE,
    errorMessage: isError ? clipped(`Group ${groupId} not found.`) : null,
    groupId,
    groupState: ClassicState.dead,
    protocolType: '',
    protocolData: '',
    members: [],
  };
}

/** Where nothing was listed for so many groups the caller may want to pause. */
const groupsPerStep = 1000;

/**
 * The groups that there are now, each as it is when its turn comes, and without those that are gone
 * by then. Undefined is a pause. Groups are looked up by `isThere`.
 */
export function* listGroups(
  groups: readonly ClassicGroup[],
  filter: ListGroupsFilter,
  isThere: (group: ClassicGroup) => boolean,
): Generator<ListedGroup | undefined, void> {
  const states = new Set(filter.states.map((name) => name.trim().toLowerCase()));
  const types = new Set(filter.types.map((name) => name.trim().toLowerCase()));
  if (types.size > 0 && !types.has('classic')) return;
  for (const [index, group] of groups.entries()) {
    if (index % groupsPerStep === groupsPerStep - 1) yield undefined;
    const { groupId, state, protocolType } = group;
    if (!isThere(group) || (states.size > 0 && !states.has(state.toLowerCase()))) continue;
    yield {
      groupId,
      protocolType: protocolType ?? '',
      groupState: state,
      groupType: 'classic',
    };
  }
}
