/**
 * What goes into the classic coordinator and what comes out, as plain values with Kafka's own
 * field names. Buffers in requests are copied where they are kept; buffers in responses belong to
 * the coordinator and must not be written to.
 */

import type { ErrorCode } from '../../protocol/error-codes.ts';
import type { GroupProtocol } from '../group-image.ts';
import type { ClassicState } from './state.ts';

/** Called exactly once per request, after the coordinator's own state is consistent. */
export type Respond<T> = (response: T) => void;

export interface JoinGroupRequest {
  readonly apiVersion: number;
  readonly groupId: string;
  /** Empty for a member that has no id yet. */
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  readonly clientId: string;
  /** As Kafka shows it: the address after a slash, `/192.0.2.1`. */
  readonly clientHost: string;
  readonly protocolType: string;
  readonly protocols: readonly GroupProtocol[];
  readonly sessionTimeoutMs: number;
  /** Ignored in version 0, which has none and means the session timeout. */
  readonly rebalanceTimeoutMs: number;
  /** Why the client joins (KIP-800), for people. */
  readonly reason: string | null;
}

export interface JoinGroupResponseMember {
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  readonly metadata: Buffer;
}

export interface JoinGroupResponse {
  readonly errorCode: ErrorCode;
  readonly generationId: number;
  readonly protocolType: string | null;
  /** Never null for requests below version 7, where the wire has no null for it. */
  readonly protocolName: string | null;
  readonly leader: string;
  readonly skipAssignment: boolean;
  readonly memberId: string;
  /** For the leader only. */
  readonly members: readonly JoinGroupResponseMember[];
}

export interface SyncGroupRequest {
  readonly apiVersion: number;
  readonly groupId: string;
  readonly generationId: number;
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  readonly assignments: readonly { readonly memberId: string; readonly assignment: Buffer }[];
}

export interface SyncGroupResponse {
  readonly errorCode: ErrorCode;
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  readonly assignment: Buffer;
}

export interface HeartbeatRequest {
  readonly groupId: string;
  readonly generationId: number;
  readonly memberId: string;
  readonly groupInstanceId: string | null;
}

export interface LeavingMember {
  /** Empty to remove whoever holds the instance id (admin clients). */
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  readonly reason: string | null;
}

/** Versions 0 to 2 name one member: give it as a list of one, and show its error at the top. */
export interface LeaveGroupRequest {
  readonly groupId: string;
  readonly members: readonly LeavingMember[];
}

export interface LeaveGroupResponse {
  readonly errorCode: ErrorCode;
  readonly members: readonly {
    readonly memberId: string;
    readonly groupInstanceId: string | null;
    readonly errorCode: ErrorCode;
  }[];
}

/** OffsetCommit, or TxnOffsetCommit where `isTransactional`. */
export interface OffsetCommitCheck {
  readonly apiVersion: number;
  readonly groupId: string;
  /** -1 for a consumer without group management. */
  readonly generationId: number;
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  readonly isTransactional: boolean;
}

export interface DescribedMember {
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  readonly clientId: string;
  readonly clientHost: string;
  readonly memberMetadata: Buffer;
  readonly memberAssignment: Buffer;
}

export interface DescribedGroup {
  readonly errorCode: ErrorCode;
  readonly errorMessage: string | null;
  readonly groupId: string;
  readonly groupState: ClassicState;
  readonly protocolType: string;
  /** The protocol of a Stable group, else empty. */
  readonly protocolData: string;
  readonly members: readonly DescribedMember[];
}

export interface ListGroupsFilter {
  /** State names in any case; empty for all. */
  readonly states: readonly string[];
  /** Group types in any case; empty for all. */
  readonly types: readonly string[];
}

export interface ListedGroup {
  readonly groupId: string;
  readonly protocolType: string;
  readonly groupState: ClassicState;
  readonly groupType: 'classic';
}
