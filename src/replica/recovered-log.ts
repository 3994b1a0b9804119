import { copyEntry } from '../log/entry-reader.ts';
import type { StoredEntry } from '../log/format.ts';
import type { OnRecoveredEntry } from '../log/recovery.ts';
import { type Configuration, type ConfigurationEntry, isOnlyVoter } from '../raft/membership.ts';
import type { HardState } from '../raft/ready.ts';
import type { TermRun } from '../raft/term-log.ts';
import { decodeCommitMark, decodeConfiguration, decodeHardState } from '../state/commands.ts';
import { EntryType } from '../state/entry-types.ts';
import type { StateMachine } from '../state/state-machine.ts';

/** Not known to be committed. */
export interface Held {
  readonly entry: StoredEntry;
  /** Journal position of its group. */
  readonly position: number;
  readonly index: (entry: StoredEntry) => void;
}

/**
 * What a start finds in the journal behind the snapshot. Entries that are known to be committed are
 * applied as they come: all of them while this member is the only voter, else those below the marks
 * that follow them. The others are held: others may yet take their places.
 */
export class RecoveredLog {
  readonly runs: TermRun[] = [];
  readonly configurations: ConfigurationEntry[] = [];
  hardState: HardState;
  readonly #state: StateMachine;
  readonly #self: string;
  readonly #base: Configuration;
  #committed = 0;
  #held: Held[] = [];

  constructor(state: StateMachine, self: string, base: Configuration, hardState: HardState) {
    this.#state = state;
    this.#self = self;
    this.#base = base;
    this.hardState = { term: hardState.term, votedFor: hardState.votedFor };
  }

  get held(): readonly Held[] {
    return this.#held;
  }

  readonly onEntry: OnRecoveredEntry = (entry, index, position) => {
    if (entry.type === EntryType.hardState) {
      this.hardState = decodeHardState(entry.meta);
      return;
    }
    if (entry.type === EntryType.commitMark) {
      this.#commitTo(decodeCommitMark(entry.meta));
      return;
    }
    const { term } = entry;
    if (this.runs.at(-1)?.term !== term) this.runs.push({ index: entry.index, term });
    if (entry.type === EntryType.members) {
      const configuration = decodeConfiguration(entry.meta);
      this.configurations.push({ index: entry.index, configuration });
    }
    if (this.#isAlone) {
      this.#commitTo(entry.index - 1);
      this.#apply(entry, index);
    } else this.#held.push({ entry: copyEntry(entry), position, index });
  };

  get #isAlone(): boolean {
    return isOnlyVoter(this.configurations.at(-1)?.configuration ?? this.#base, this.#self);
  }

  #commitTo(index: number): void {
    this.#committed = Math.max(this.#committed, index);
    let count = 0;
    while (count < this.#held.length && this.#held[count]!.entry.index <= this.#committed) count++;
    for (const held of this.#held.splice(0, count)) this.#apply(held.entry, held.index);
  }

  #apply(entry: StoredEntry, index: (entry: StoredEntry) => void): void {
    this.#state.apply(entry);
    index(entry);
  }
}
