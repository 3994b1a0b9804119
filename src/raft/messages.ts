import type { ConfigurationEntry } from './membership.ts';
import type { TermRun } from './term-log.ts';

/** What members of a group tell each other; `term` is the sender's, unless said otherwise. */
interface Envelope {
  readonly from: string;
  readonly to: string;
  readonly term: number;
}

/**
 * Asks whether a vote would be granted, without anybody changing its term (thesis, section 9.6).
 * `term` is the one in which the sender would be a candidate.
 */
export interface PreVote extends Envelope {
  readonly kind: 'preVote';
  readonly lastIndex: number;
  readonly lastTerm: number;
}

/** If granted, `term` is that of the question. */
export interface PreVoteReply extends Envelope {
  readonly kind: 'preVoteReply';
  readonly isGranted: boolean;
}

/** RequestVote (section 5.2). */
export interface Vote extends Envelope {
  readonly kind: 'vote';
  readonly lastIndex: number;
  readonly lastTerm: number;
  /** The leader itself asked for this election, so it is no disturbance (thesis, section 4.2.3). */
  readonly isTransfer: boolean;
}

export interface VoteReply extends Envelope {
  readonly kind: 'voteReply';
  readonly isGranted: boolean;
}

/**
 * AppendEntries (section 5.3) with at least one entry, or as a probe without. The driver adds what
 * is in the entries `[prevIndex + 1, lastIndex]`.
 */
export interface Append extends Envelope {
  readonly kind: 'append';
  readonly prevIndex: number;
  readonly prevTerm: number;
  readonly lastIndex: number;
  readonly runs: readonly TermRun[];
  readonly configurations: readonly ConfigurationEntry[];
  readonly commitIndex: number;
  /** When it was sent, on the leader's own clock; comes back in the reply. */
  readonly sentMs: number;
}

/** All entries up to `matched` are on the sender's disk, and are those of the leader. */
export interface AppendReply extends Envelope {
  readonly kind: 'appendReply';
  readonly matched: number;
  readonly sentMs: number;
}

/**
 * The entry at `prevIndex` is not there or of another term. `hintIndex` is the last one that may be
 * the same as the leader's, of `hintTerm` (section 5.3, last paragraphs).
 */
export interface AppendRejected extends Envelope {
  readonly kind: 'appendRejected';
  readonly prevIndex: number;
  readonly hintIndex: number;
  readonly hintTerm: number;
  readonly sentMs: number;
}

/** Says that the leader is there, and how far what the receiver has is committed. */
export interface Heartbeat extends Envelope {
  readonly kind: 'heartbeat';
  readonly commitIndex: number;
  readonly sentMs: number;
  /** The next one will not come soon: nothing is to be done. */
  readonly isDozing: boolean;
}

export interface HeartbeatReply extends Envelope {
  readonly kind: 'heartbeatReply';
  /** It has had entries of this term; else what was sent to it before it started is lost. */
  readonly hasEntries: boolean;
  readonly sentMs: number;
}

/**
 * InstallSnapshot (section 7), as an offer: what the receiver lacks is no longer in the log. It
 * fetches a snapshot by ways of the driver's, and answers as to an append once it has that.
 */
export interface SnapshotOffer extends Envelope {
  readonly kind: 'snapshotOffer';
  /** The last entry that the snapshot covers. */
  readonly base: TermRun;
  readonly sentMs: number;
}

/** The receiver is to be the next leader, at once (thesis, section 3.10). */
export interface TimeoutNow extends Envelope {
  readonly kind: 'timeoutNow';
}

/** To one who believes that it leads, in a term that is over. */
export interface TermIsOver extends Envelope {
  readonly kind: 'termIsOver';
}

export type Message =
  | PreVote
  | PreVoteReply
  | Vote
  | VoteReply
  | Append
  | AppendReply
  | AppendRejected
  | Heartbeat
  | HeartbeatReply
  | SnapshotOffer
  | TimeoutNow
  | TermIsOver;
