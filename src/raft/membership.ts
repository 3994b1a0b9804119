import { assert } from '../core/assert.ts';

/** Who is in the group. Learners get entries and have no say (thesis, section 4.2.1). */
export interface Configuration {
  readonly voters: readonly string[];
  readonly learners: readonly string[];
}

/** Voters and learners. */
export function membersOf({ voters, learners }: Configuration): string[] {
  return [...voters, ...learners];
}

export function isOnlyVoter({ voters }: Configuration, id: string): boolean {
  return voters.length === 1 && voters[0] === id;
}

/** An entry that changes the configuration. */
export interface ConfigurationEntry {
  readonly index: number;
  readonly configuration: Configuration;
}

export function majorityOf(voters: number): number {
  return Math.floor(voters / 2) + 1;
}

/** The greatest value that a majority of the voters has reached. */
export function reachedByMajority(values: readonly number[]): number {
  assert(values.length > 0, 'there is a voter');
  const sorted = [...values].sort((a, b) => b - a);
  return sorted[majorityOf(values.length) - 1]!;
}

/** One voter more or less: then any two majorities have a voter in common (thesis, section 4.1). */
export function isSingleChange(from: Configuration, to: Configuration): boolean {
  const added = to.voters.filter((voter) => !from.voters.includes(voter));
  const removed = from.voters.filter((voter) => !to.voters.includes(voter));
  return added.length + removed.length <= 1;
}

/**
 * The configurations of a log. The latest one counts, committed or not (thesis, section 4.1); if
 * its entry is truncated, the one before it does again.
 */
export class Memberships {
  readonly #entries: ConfigurationEntry[];

  /** `base` holds from its index on, which a snapshot may cover. */
  constructor(base: ConfigurationEntry, later: readonly ConfigurationEntry[]) {
    this.#entries = [base, ...later];
  }

  get current(): Configuration {
    return this.#entries.at(-1)!.configuration;
  }
  /** The entry that made it. */
  get index(): number {
    return this.#entries.at(-1)!.index;
  }

  /** Nobody else is in the group. */
  isAlone(id: string): boolean {
    return isOnlyVoter(this.current, id) && this.current.learners.length === 0;
  }

  isVoter(id: string): boolean {
    return this.current.voters.includes(id);
  }

  add(entry: ConfigurationEntry): void {
    assert(entry.index > this.index, 'configurations follow each other');
    this.#entries.push(entry);
  }

  truncateAfter(index: number): void {
    while (this.#entries.length > 1 && this.index > index) this.#entries.pop();
    assert(this.index <= index, 'a committed configuration stays');
  }

  /** What is before the configuration that held at `index` is not needed any more. */
  compactTo(index: number): void {
    while (this.#entries.length > 1 && this.#entries[1]!.index <= index) this.#entries.shift();
  }

  /** Those in the entries `[first, last]`. */
  between(first: number, last: number): ConfigurationEntry[] {
    return this.#entries.filter(({ index }) => index >= first && index <= last);
  }
}
