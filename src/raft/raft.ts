import { assert } from '../core/assert.ts';

/**
 * The consensus core: pure and synchronous. Input are calls, output is one `Ready` value that the
 * driver takes, carries out in order, and reports back. No sockets, files, clocks or randomness.
 *
 * This version serves groups of one voter. It is the same algorithm with a majority of one: a term
 * and a vote are durable before they count (Raft paper, section 5.1 and figure 2), an entry is
 * committed once a majority has it on disk, and only entries of the leader's own term are counted,
 * which commits the earlier ones with them (section 5.4.2).
 */

/** Term and vote: durable before any message or entry that rests on them. */
export interface HardState {
  readonly term: number;
  readonly votedFor: string | null;
}

/**
 * - follower: takes entries from a leader. election timeout => candidate
 * - candidate: waits for votes, its own counts once it is on disk. majority => leader
 * - leader: proposes entries. sees a higher term => follower
 */
export const Role = { follower: 'follower', candidate: 'candidate', leader: 'leader' } as const;
export type Role = (typeof Role)[keyof typeof Role];

/** What the driver has to do next. */
export interface Ready {
  /** Persist this, in the same sync as the entries at the latest. */
  readonly hardState: HardState | undefined;
  /** Append an entry without effect in this term: a new leader's first (section 8). */
  readonly noop: { readonly term: number; readonly index: number } | undefined;
}

export interface RaftOptions {
  /** Identity of this voter: node id and directory id. */
  readonly self: string;
  readonly voters: readonly string[];
  readonly hardState: HardState;
  /** Last entry in the log. */
  readonly lastIndex: number;
  readonly lastTerm: number;
  /** Everything up to here was known to be committed (the snapshot). */
  readonly commitIndex: number;
}

export class Raft {
  readonly #self: string;
  #role: Role = Role.follower;
  #hardState: HardState;
  #hardStatePending = false;
  #noopPending: Ready['noop'];
  #lastIndex: number;
  #lastTerm: number;
  #persistedIndex: number;
  #commitIndex: number;

  constructor(options: RaftOptions) {
    const { self, voters } = options;
    assert(voters.length === 1 && voters[0] === self, 'this version serves one voter');
    this.#self = self;
    this.#hardState = options.hardState;
    this.#lastIndex = options.lastIndex;
    this.#lastTerm = options.lastTerm;
    this.#persistedIndex = options.lastIndex;
    this.#commitIndex = options.commitIndex;
  }

  get role(): Role {
    return this.#role;
  }
  get term(): number {
    return this.#hardState.term;
  }
  get hardState(): HardState {
    return this.#hardState;
  }
  get lastIndex(): number {
    return this.#lastIndex;
  }
  get lastTerm(): number {
    return this.#lastTerm;
  }
  get commitIndex(): number {
    return this.#commitIndex;
  }

  /** Begins an election (section 5.2): a new term, and a vote for itself that must be durable. */
  campaign(): void {
    assert(this.#role !== Role.leader, 'a leader does not campaign');
    this.#role = Role.candidate;
    this.#hardState = { term: this.#hardState.term + 1, votedFor: this.#self };
    this.#hardStatePending = true;
  }

  takeReady(): Ready {
    const ready: Ready = {
      hardState: this.#hardStatePending ? this.#hardState : undefined,
      noop: this.#noopPending,
    };
    this.#hardStatePending = false;
    this.#noopPending = undefined;
    return ready;
  }

  /** The driver reports that a hard state is on disk: the own vote counts from now on. */
  hardStatePersisted(term: number): void {
    if (this.#role !== Role.candidate || term !== this.#hardState.term) return;
    this.#role = Role.leader;
    this.#noopPending = this.propose();
  }

  /** The place of a new entry. Only a leader may ask. */
  propose(): { readonly term: number; readonly index: number } {
    assert(this.#role === Role.leader, 'only a leader proposes');
    this.#lastIndex++;
    this.#lastTerm = this.#hardState.term;
    return { term: this.#hardState.term, index: this.#lastIndex };
  }

  /** The driver reports that all entries up to `index` are on disk here. */
  entriesPersisted(index: number): void {
    assert(index <= this.#lastIndex, 'only what was proposed can be on disk');
    this.#persistedIndex = Math.max(this.#persistedIndex, index);
    if (this.#role === Role.leader && this.#lastTerm === this.#hardState.term) {
      this.#commitIndex = Math.max(this.#commitIndex, this.#persistedIndex);
    }
  }

  /**
   * Takes back entries after `index` that never reached the disk (no space). They were proposed
   * here, sent to nobody and are not committed, so their places are free again.
   */
  dropUnpersisted(index: number, term: number): void {
    assert(index >= this.#persistedIndex, 'what is on disk is not dropped');
    this.#lastIndex = index;
    this.#lastTerm = term;
  }
}
