import { assert } from '../../core/assert.ts';

/**
 * The states of a classic group (Kafka's ClassicGroupState). The values are the names that
 * DescribeGroups and ListGroups show.
 *
 * Empty: no members; lives on while it has committed offsets, or for its generation number.
 *   - JoinGroup of a new member => PreparingRebalance
 *   - SyncGroup, Heartbeat, LeaveGroup: UNKNOWN_MEMBER_ID
 *   - OffsetCommit without a member: accepted
 *   - deleted, or its last offset expired => Dead
 *
 * PreparingRebalance: the members are being gathered for the next generation.
 *   - JoinGroup: parked until all members are back or the round's time is up
 *   - SyncGroup, Heartbeat: REBALANCE_IN_PROGRESS
 *   - OffsetCommit of the generation before: accepted
 *   - all are back, or time is up => CompletingRebalance
 *   - time is up and nobody is left => Empty
 *
 * CompletingRebalance: the generation has begun, the leader's assignment is awaited.
 *   - SyncGroup: parked until the leader's assignment is durable => Stable
 *   - Heartbeat: accepted; OffsetCommit: REBALANCE_IN_PROGRESS
 *   - JoinGroup of a new member or with new metadata, a member leaves, fails or does not sync
 *     in time => PreparingRebalance
 *
 * Stable: every member has, or can fetch, its assignment.
 *   - Heartbeat, OffsetCommit: accepted; SyncGroup: the assignment
 *   - JoinGroup of a follower with the same metadata: the present generation
 *   - JoinGroup of the leader, of a new member or with new metadata, a member leaves or fails
 *     => PreparingRebalance
 *
 * In keyed delivery (keyed-rounds.ts) a round ends a second after the first rejoin, and members
 * that missed it stay: their Heartbeat and SyncGroup are answered REBALANCE_IN_PROGRESS in every
 * state, their OffsetCommit is accepted, and their first JoinGroup gets the present generation at
 * once. A leader that has not assigned after a second => PreparingRebalance, led by another one.
 *
 * Dead: deleted or handed to another coordinator. No way out; every parked request is answered.
 */
export const ClassicState = {
  empty: 'Empty',
  preparingRebalance: 'PreparingRebalance',
  completingRebalance: 'CompletingRebalance',
  stable: 'Stable',
  dead: 'Dead',
} as const;

export type ClassicState = (typeof ClassicState)[keyof typeof ClassicState];

const targets: Readonly<Record<ClassicState, readonly ClassicState[]>> = {
  Empty: ['PreparingRebalance', 'Dead'],
  PreparingRebalance: ['CompletingRebalance', 'Empty', 'Dead'],
  CompletingRebalance: ['Stable', 'PreparingRebalance', 'Dead'],
  Stable: ['PreparingRebalance', 'Dead'],
  Dead: [],
};

export function assertTransition(from: ClassicState, to: ClassicState): void {
  assert(targets[from].includes(to), `a group cannot go from ${from} to ${to}`);
}

export function canRebalance(state: ClassicState): boolean {
  return targets[state].includes('PreparingRebalance');
}
