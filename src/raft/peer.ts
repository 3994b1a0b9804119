/**
 * - probe: it is not known what the peer has; one append at a time. one accepted => replicate
 * - replicate: appends follow each other without waiting. one rejected or lost => probe
 * - snapshot: what it lacks is not in the log any more, and a snapshot is offered to it. it has one
 *   => replicate
 */
export const PeerState = { probe: 'probe', replicate: 'replicate', snapshot: 'snapshot' } as const;
export type PeerState = (typeof PeerState)[keyof typeof PeerState];

/** So many heartbeats are answered while an append is not: then it is taken for lost. */
const silentRepliesMax = 4;

/** How far another member is, as the leader knows it. */
export type PeerProgress = Readonly<Pick<Peer, 'matchIndex' | 'answeredSentMs' | 'caughtUpMs'>>;

/** What a leader knows of another member (the paper's nextIndex and matchIndex, figure 2). */
export class Peer {
  readonly id: string;
  state: PeerState = PeerState.probe;
  /** Everything up to it is on the peer's disk. */
  matchIndex = 0;
  nextIndex: number;
  /** When the newest message was sent that the peer has answered, on the leader's clock. */
  answeredSentMs = Number.NEGATIVE_INFINITY;
  /** When it was last known to have all that was committed, on the leader's clock. */
  caughtUpMs = Number.NEGATIVE_INFINITY;
  /** Last entries of the appends under way, in order. */
  #underWay: number[] = [];
  #silentReplies = 0;
  /** The first snapshot that was offered since it needs one; it may be on its way with that. */
  #offeredIndex = 0;

  constructor(id: string, nextIndex: number) {
    this.id = id;
    this.nextIndex = nextIndex;
  }

  mayAppend(underWayMax: number): boolean {
    if (this.state === PeerState.snapshot) return false;
    return this.#underWay.length < (this.state === PeerState.probe ? 1 : underWayMax);
  }

  /** An append with the entries up to `lastIndex` was sent. */
  onSent(lastIndex: number): void {
    this.#underWay.push(lastIndex);
    // Nothing is taken for granted while probing.
    if (this.state === PeerState.replicate) this.nextIndex = lastIndex + 1;
  }

  onAnswered(sentMs: number): void {
    this.answeredSentMs = Math.max(this.answeredSentMs, sentMs);
  }

  noteProgress(commitIndex: number, nowMs: number): void {
    if (this.matchIndex >= commitIndex) this.caughtUpMs = nowMs;
  }

  /** Answers whether that is news. */
  onMatched(index: number): boolean {
    this.#silentReplies = 0;
    this.#underWay = this.#underWay.filter((lastIndex) => lastIndex > index);
    const isNews = index > this.matchIndex;
    this.matchIndex = Math.max(this.matchIndex, index);
    if (this.state === PeerState.probe || this.matchIndex >= this.nextIndex) {
      this.state = PeerState.replicate;
      this.nextIndex = this.matchIndex + 1;
      this.#underWay = [];
    }
    return isNews;
  }

  /** Says whether the rejection is of what was asked last, or of something long settled. */
  isRejectionOf(prevIndex: number): boolean {
    if (prevIndex <= this.matchIndex) return false;
    return this.state === PeerState.replicate || prevIndex === this.nextIndex - 1;
  }

  /** Goes on with single appends, from `nextIndex` on. */
  probe(nextIndex: number): void {
    this.state = PeerState.probe;
    this.nextIndex = Math.max(nextIndex, this.matchIndex + 1);
    this.#underWay = [];
    this.#silentReplies = 0;
  }

  awaitSnapshot(offeredIndex: number): void {
    this.state = PeerState.snapshot;
    this.#offeredIndex = offeredIndex;
    this.#underWay = [];
  }

  /** It will need what follows this entry. */
  get neededAfter(): number {
    return this.state === PeerState.snapshot ? this.#offeredIndex : this.matchIndex;
  }

  /** A heartbeat was answered: so the way is free, and an append that is not answered was lost. */
  onHeartbeatReply(hasEntries: boolean): void {
    if (this.#underWay.length === 0 || this.state === PeerState.snapshot) return;
    if (hasEntries && ++this.#silentReplies < silentRepliesMax) return;
    this.probe(this.state === PeerState.probe ? this.nextIndex : this.matchIndex + 1);
  }
}
