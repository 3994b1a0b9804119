import { assert } from '../core/assert.ts';
import type { Entry } from '../log/format.ts';
import { isOnlyVoter, membersOf } from '../raft/membership.ts';
import { encodeClusterFounded, encodeMembers } from '../state/commands.ts';
import { EntryType, entryVersion } from '../state/entry-types.ts';
import { Replica, type ReplicaOptions } from './replica.ts';

export interface RecoveredAlone {
  /** The last entry of the log, of `term`. */
  readonly lastIndex: number;
  readonly term: number;
  /** Entries at its end of which this member did not know whether they were committed. */
  readonly uncertain: number;
  /** The members of the group that is given up. */
  readonly former: readonly string[];
}

/**
 * Makes a member the only voter of its group, of which the majority is lost for good. All that is
 * in its log counts as committed from then on, and what others had beyond it is lost. With a new
 * id of the cluster former members that come back after all are not let in, nor do they let this
 * one in. Undefined, and nothing is changed, if it is the only voter already. `options` without
 * others.
 */
export async function recoverAlone(
  options: ReplicaOptions,
  clusterId?: string,
): Promise<RecoveredAlone | undefined> {
  assert(options.group === undefined, 'nobody else is asked');
  const { voter } = options;
  const { replica } = await Replica.open({ ...options, founders: [] });
  try {
    const { raft, journal, state } = replica;
    if (isOnlyVoter(raft.configuration, voter)) return undefined;
    const { lastIndex } = journal;
    const term = Math.max(raft.term, journal.lastTerm) + 1;
    const former = membersOf(raft.configuration).filter((member) => member !== voter);
    const removed = [...(state.members?.removed ?? []), ...former];
    const members = encodeMembers({ voters: [voter], learners: [], removed });
    const entry = (index: number, type: EntryType, meta: Buffer): Entry => ({
      ...{ type, version: entryVersion, tenant: 0, term, index, meta, batches: [], partitions: [] },
    });
    const entries = [entry(lastIndex + 1, EntryType.members, members)];
    if (clusterId !== undefined) {
      const meta = encodeClusterFounded(clusterId);
      entries.push(entry(lastIndex + 2, EntryType.clusterFounded, meta));
    }
    await journal.append(entries);
    const uncertain = lastIndex - raft.commitIndex;
    return { lastIndex, term: journal.lastTerm, uncertain, former };
  } finally {
    await replica.stop();
  }
}
