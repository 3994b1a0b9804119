import type { ConfigurationEntry } from './membership.ts';
import type { Message } from './messages.ts';
import type { TermRun } from './term-log.ts';

/** Term and vote: durable before any message or entry that rests on them. */
export interface HardState {
  readonly term: number;
  readonly votedFor: string | null;
}

export interface Place {
  readonly term: number;
  readonly index: number;
}

/** What the driver has to do next. */
export interface Ready {
  /** Persist this, in the same sync as entries of the same time at the latest. */
  readonly hardState: HardState | undefined;
  /** Append an entry without effect at this place: a new leader's first (section 8). */
  readonly noop: Place | undefined;
  /** May go out at once, in this order. */
  readonly messages: readonly Message[];
  /** The leader has a snapshot without which this member cannot go on: fetch it and start anew. */
  readonly snapshot: OfferedSnapshot | undefined;
}

export interface OfferedSnapshot {
  readonly from: string;
  /** The last entry that it covers. */
  readonly base: TermRun;
}

/** What of an append is to be written: its entries from `first` on. */
export interface Accepted {
  /** Entries after it are of a leader that is none any more, and go first. */
  readonly truncateAfter: number | undefined;
  readonly first: number;
}

/** A group in which nothing happens needs few words: there may be many of them. */
export interface DozeOptions {
  /** So long nothing was to be done. */
  readonly afterMs: number;
  /** Between heartbeats meanwhile; longer than a lease, which is renewed when it is needed. */
  readonly heartbeatMs: number;
  /** The least time without a leader meanwhile after which an election begins. */
  readonly timeoutMs: number;
}

export interface RaftOptions {
  /** Identity of this member: node id and directory id. */
  readonly self: string;
  /** The latest configuration that a snapshot covers, or that the group began with. */
  readonly configuration: ConfigurationEntry;
  /** Those in the log behind it. */
  readonly configurations?: readonly ConfigurationEntry[];
  readonly hardState: HardState;
  /** Last entry that a snapshot covers; index 0 and term 0 without one. */
  readonly base: TermRun;
  /** Of the entries behind it. */
  readonly runs: readonly TermRun[];
  readonly lastIndex: number;
  /** Everything up to here was known to be committed. */
  readonly commitIndex: number;
  /** The least time without a leader after which an election begins; the most is twice that. */
  readonly electionTimeoutMs: number;
  readonly heartbeatMs: number;
  /** Undefined: the leader never dozes. */
  readonly doze?: DozeOptions | undefined;
  /** A peer that was silent for longer may have to begin with a snapshot when it comes back. */
  readonly missedMs: number;
  /** Appends on the way to one peer. */
  readonly appendsUnderWayMax: number;
  /** The last of the entries `[first, last]` that fits into one message with those before it. */
  readonly lastFitting: (to: string, first: number, last: number) => number;
  /** The last entry that the newest snapshot covers: no earlier one than the log's base. */
  readonly snapshot: () => TermRun;
  /** Evenly in [0, 1): so that elections of several members seldom collide (section 5.2). */
  readonly random: () => number;
}

/** Replies that wait for the disk: what is lost beyond them is asked again. */
const repliesMax = 256;

/** Collects what the driver is to do, and holds back what speaks for a hard state not on disk. */
export class Outbox {
  #hardState: HardState;
  #isDurable = true;
  #hardStateReady: HardState | undefined;
  #noop: Place | undefined;
  #messages: Message[] = [];
  #afterHardState: Message[] = [];
  #snapshot: OfferedSnapshot | undefined;

  constructor(hardState: HardState) {
    this.#hardState = hardState;
  }

  get hardState(): HardState {
    return this.#hardState;
  }
  get isDurable(): boolean {
    return this.#isDurable;
  }

  setHardState(hardState: HardState): void {
    this.#hardState = hardState;
    this.#hardStateReady = hardState;
    this.#isDurable = false;
    // They spoke for a term or a vote that is none any more.
    this.#afterHardState = [];
  }

  /** Answers whether it is the one that counts. */
  onPersisted({ term, votedFor }: HardState): boolean {
    if (term !== this.#hardState.term || votedFor !== this.#hardState.votedFor) return false;
    this.#isDurable = true;
    this.#messages.push(...this.#afterHardState.splice(0));
    return true;
  }

  appendNoop(place: Place): void {
    this.#noop = place;
  }

  install(snapshot: OfferedSnapshot): void {
    this.#snapshot = snapshot;
  }

  send(message: Message): void {
    this.#messages.push(message);
  }

  /** Goes out when term and vote are on disk. */
  reply(message: Message): void {
    if (this.#isDurable) this.send(message);
    else if (this.#afterHardState.length < repliesMax) this.#afterHardState.push(message);
  }

  take(): Ready {
    const ready: Ready = {
      hardState: this.#hardStateReady,
      noop: this.#noop,
      messages: this.#messages,
      snapshot: this.#snapshot,
    };
    this.#hardStateReady = undefined;
    this.#noop = undefined;
    this.#messages = [];
    this.#snapshot = undefined;
    return ready;
  }
}
