import type { ClientTraits } from './client-traits.ts';
import type { LaneRange } from './lane-range.ts';
import type { Window } from './window.ts';

/** Keys that a commit could not free: their records may still be in the handler. */
export interface KeptKeys {
  /** The range that holds them. */
  readonly rangeId: number;
  readonly keys: readonly number[];
  /** Free once a record is committed that was granted as this one of the member, or later. */
  readonly untilGrant: number;
}

/** A record of a former range that its member was given again (see Stranded). */
export interface TakenAgain {
  /** As it was granted before. */
  readonly former: LaneRange;
  readonly formerN: number;
  /** As it is granted now. */
  range: LaneRange;
  n: number;
}

/** A record with failed deliveries that a member has in hand. */
export interface HeldSuspect {
  readonly range: LaneRange;
  readonly n: number;
  readonly limit: number;
}

/** So many commits in a row tell a habit. */
const promptCommitsMin = 3;

export interface NewMember {
  readonly id: string;
  readonly traits: ClientTraits;
  /** How long it may hold a record; Infinity: as long as it lives. */
  readonly leaseMs: number;
  readonly sessionMs: number;
}

/** A member of the group, as far as one topic in keyed delivery is concerned. */
export class Member {
  readonly id: string;
  /** What keys name as their last member; never given twice. */
  readonly number: number;
  traits: ClientTraits;
  window: Window;
  /** max(lease.ms, session and rebalance timeouts); Infinity: as long as it lives. */
  leaseMs: number;
  /** Its session timeout. */
  sessionMs = 0;
  readonly ranges = new Set<LaneRange>();
  /** Granted and not proven, over all ranges. */
  inHand = 0;
  /** Granted and not finished, over all ranges. */
  unfinished = 0;
  /** Granted to it ahead of its next fetch: neither in its hand nor unfinished. */
  ahead = 0;
  /** How long its last answer with records had left when it asked for more. */
  roundMs = Number.POSITIVE_INFINITY;
  /** When the record that is now the oldest unproven one became it, monotonic. */
  leaseStartMs = 0;
  /** Records granted to it so far. */
  grants = 0;
  /** Answers with records so far. */
  answers = 0;
  /** When the last answer with records left, monotonic. */
  sentMs = 0;
  /** Records proven or finished since then. */
  handled = 0;
  /** The last one took as many bytes as the client had room for. */
  isAnswerFull = false;
  /** Unproven ones of the last answer with records. */
  lastAnswerRecords = 0;
  /**
   * Since when it may be waiting beside what it keeps of former ranges (see Stranded): a range
   * ended with something in hand, or it was looked at whether it takes that up again. Monotonic.
   */
  keptSinceMs = 0;
  takenAgain: TakenAgain[] = [];
  /** Its window was used up since its last commit. */
  wasFull = false;
  /** Commits in a row that left nothing in its hand, with nothing proven between them. */
  promptCommits = 0;
  kept: KeptKeys[] = [];
  /** Suspects in its hand (see failures.ts), and the most records that it may hold beside them. */
  suspects: HeldSuspect[] = [];
  suspectLimit = Number.POSITIVE_INFINITY;

  constructor(id: string, number: number, traits: ClientTraits, window: Window, leaseMs: number) {
    this.id = id;
    this.number = number;
    this.traits = traits;
    this.window = window;
    this.leaseMs = leaseMs;
  }

  /** It commits whatever it has handled before it asks for more. */
  get commitsPromptly(): boolean {
    return this.promptCommits >= promptCommitsMin;
  }

  /** In hand of the lanes that it has now: the rest it keeps of former ranges (see Stranded). */
  get inHandOfPresent(): number {
    let inHand = 0;
    for (const range of this.ranges) {
      if (range.isPresent) inHand += range.countIn(range.proven, range.end);
    }
    return inHand;
  }

  /** The keys stay with it until it commits what was granted to it after its `ordinal`th. */
  keep(keys: readonly number[], rangeId: number, ordinal: number): void {
    this.kept.push({ keys, rangeId, untilGrant: ordinal + this.traits.commitLag });
  }
}
