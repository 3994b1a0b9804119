import { ErrorCode } from '../../protocol/error-codes.ts';
import type { ClassicGroup } from './group.ts';
import { type ClassicMember, emptyBuffer } from './member.ts';
import type { JoinGroupResponse, SyncGroupResponse } from './messages.ts';

export function joinError(memberId: string, errorCode: ErrorCode): JoinGroupResponse {
  return {
    errorCode,
    generationId: -1,
    protocolType: null,
    protocolName: null,
    leader: '',
    skipAssignment: false,
    memberId,
    members: [],
  };
}

/** Which metadata of a member its leader is shown. */
export type MetadataOf = (member: ClassicMember) => Buffer;

/** The group's present generation, as the member `memberId` is told of it. */
export function joinedGeneration(
  group: ClassicGroup,
  memberId: string,
  as: {
    readonly leader: string;
    readonly metadataOf: MetadataOf;
    readonly skipAssignment?: boolean;
  },
): JoinGroupResponse {
  const { generationId, protocolType, protocolName } = group;
  const members =
    as.leader === memberId
      ? [...group.members.values()].map((member) => ({
          memberId: member.memberId,
          groupInstanceId: member.groupInstanceId,
          metadata: as.metadataOf(member),
        }))
      : [];
  return {
    errorCode: ErrorCode.NONE,
    generationId,
    protocolType,
    protocolName,
    leader: as.leader,
    skipAssignment: as.skipAssignment ?? false,
    memberId,
    members,
  };
}

export function syncError(errorCode: ErrorCode): SyncGroupResponse {
  return { errorCode, protocolType: null, protocolName: null, assignment: emptyBuffer };
}

export function syncedAssignment(group: ClassicGroup, assignment: Buffer): SyncGroupResponse {
  const { protocolType, protocolName } = group;
  return { errorCode: ErrorCode.NONE, protocolType, protocolName, assignment };
}
