import {
  encodeOffsetsCommitted,
  encodeOffsetsDeleted,
  type OffsetsCommitted,
  type OffsetsDeleted,
} from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import type { Command, Done, Replica } from './replica.ts';

/**
 * Plans changes of committed offsets. Whether a group may commit was decided before; here they
 * only get their place in the log, and it is known whether a group's offsets are about to change.
 */
export class OffsetPlanner {
  readonly #replica: Replica;
  /** How many changes of a group's offsets are not settled yet. */
  readonly #pending = new Map<string, number>();

  constructor(replica: Replica) {
    this.#replica = replica;
  }

  /** Does a change of the group's offsets wait to be applied? */
  isPending(groupId: string): boolean {
    return this.#pending.has(groupId);
  }

  commit(committed: OffsetsCommitted, done: Done): void {
    const meta = encodeOffsetsCommitted(committed);
    this.#propose(committed.groupId, { type: EntryType.offsetsCommitted, meta }, done);
  }

  delete(deleted: OffsetsDeleted, done: Done): void {
    const meta = encodeOffsetsDeleted(deleted);
    this.#propose(deleted.groupId, { type: EntryType.offsetsDeleted, meta }, done);
  }

  #propose(groupId: string, command: Command, done: Done): void {
    this.#pending.set(groupId, (this.#pending.get(groupId) ?? 0) + 1);
    this.#replica.propose(command, (outcome) => {
      const left = this.#pending.get(groupId)! - 1;
      if (left === 0) this.#pending.delete(groupId);
      else this.#pending.set(groupId, left);
      done(outcome);
    });
  }
}
