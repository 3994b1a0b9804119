import {
  encodeOffsetsCommitted,
  encodeOffsetsDeleted,
  type OffsetsCommitted,
  type OffsetsDeleted,
} from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import type { Done } from './group-commit.ts';
import type { Replica } from './replica.ts';

/**
 * Plans changes of committed offsets. Whether a group may commit was decided before; here they
 * only get their place in the log, and it is known which groups have a commit under way.
 */
export class OffsetPlanner {
  readonly #replica: Replica;
  /** How many commits of a group are not settled yet. */
  readonly #committing = new Map<string, number>();

  constructor(replica: Replica) {
    this.#replica = replica;
  }

  /** Does a commit of the group wait to be applied? */
  isCommitting(groupId: string): boolean {
    return this.#committing.has(groupId);
  }

  commit(committed: OffsetsCommitted, done: Done): void {
    const { groupId } = committed;
    this.#committing.set(groupId, (this.#committing.get(groupId) ?? 0) + 1);
    const meta = encodeOffsetsCommitted(committed);
    this.#replica.propose({ type: EntryType.offsetsCommitted, meta }, (outcome) => {
      const left = this.#committing.get(groupId)! - 1;
      if (left === 0) this.#committing.delete(groupId);
      else this.#committing.set(groupId, left);
      done(outcome);
    });
  }

  delete(deleted: OffsetsDeleted, done: Done): void {
    const meta = encodeOffsetsDeleted(deleted);
    this.#replica.propose({ type: EntryType.offsetsDeleted, meta }, done);
  }
}
