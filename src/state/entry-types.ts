/**
 * The types of journal entries. A number is never used for anything else, and an entry of an
 * unknown type or version stops the node: skipping it would let replicas drift apart.
 */
export const EntryType = {
  /** First entry of a leader's term. */
  noop: 1,
  /** Raft's term and vote: not a log entry, it has index 0. */
  hardState: 2,
  /** Record batches, stored as they came; the meta says when. */
  batches: 3,
  topicCreated: 4,
  topicDeleted: 5,
  partitionsAdded: 6,
  configsSet: 7,
  logStartsMoved: 8,
  offsetsCommitted: 9,
  offsetsDeleted: 10,
  groupStored: 11,
  groupDeleted: 12,
  producerIdsAllocated: 13,
  producersExpired: 14,
  clusterFounded: 15,
  /** Keyed delivery of a topic to a group, and dead letters: record batches as in `batches`. */
  keyed: 16,
  /** Who is in the Raft group: counts for a member as soon as it has the entry. */
  members: 17,
  /** How far the log was known to be committed: not a log entry, it has index 0. */
  commitMark: 18,
  /** Where a node is reached. */
  nodeStored: 19,
  /** From now on entries of a feature level may be written. Since level 2, as the next one. */
  featureLevelRaised: 20,
  /** A node may join that the settings do not name, and where it is. */
  nodeAdmitted: 21,
  /** Of the system group: a tenant begins, or ends with all that it has. */
  tenantCreated: 22,
  tenantDeleted: 23,
} as const;
export type EntryType = (typeof EntryType)[keyof typeof EntryType];

/**
 * The newest version of entries that this code writes; it reads all up to it. Since version 2 a
 * `configsSet` of a broker may name a node, which version 1 would take for all nodes.
 */
export const entryVersion = 2;

/**
 * What all members of a cluster understand: each node announces the level of its code, and the
 * leader raises that of the cluster (`featureLevelRaised`) when all of them have announced a higher
 * one. Only then are entries and images written that an older version would stop at, so nodes can
 * be upgraded one by one. The level never falls: an older version is not let in any more.
 *
 * - 1: all entry types up to `nodeStored`, images up to version 4
 * - 2: `featureLevelRaised`, `nodeAdmitted`, images of version 5
 * - 3: `tenantCreated`, `tenantDeleted`, images of version 6
 */
export const featureLevel = 3;
/** Since this level there are tenants. */
export const tenantsLevel = 3;
