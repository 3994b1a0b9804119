import type { ClientTraits } from './client-traits.ts';
import { Proof } from './client-traits.ts';

/** Records in hand before anything is known of the member's speed. */
const firstWindow = 16;
const growthMax = 4;
const aimMsMin = 10;
const aimMsMax = 100;
/** For clients of which nothing is known but their commits, while they have no lack of time. */
const leastCommitWindow = 256;
const commitGrowth = 16;
/** The first time, since 256 handled records may have taken the whole interval. */
const firstCommitGrowth = 4;
/** What a member finishes between two commits has to fit, and a little to go on with. */
const commitSlack = 1.25;
/** One that had time left can do more than it finished. */
const leisureSlack = 4;
/** How much of the longest time between two commits is left after each. */
const intervalDecay = 0.8;
/**
 * So many times its part of what is ready a member may take. Taking no more than its part leaves
 * records queued until there are twice as many as members, and each costs a round trip of its own
 * until then: measured with handlers of 5 ms at a load of 0.56, that is 34 ms at the 99th
 * percentile instead of 21.
 */
export const queueShare = 2;
/**
 * Of members that prove nothing each takes half of its part of a backlog: the first ones get no
 * more slow records than the others can make up for with what remains.
 */
export const backlogShare = 1 / 2;
/** So many records ready for each member are a backlog, and to be shared out. */
const backlogRecordsEach = 16;
const windowMax = 1_000_000;

/** What is there to be shared out when a window is asked for. */
export interface Demand {
  readonly readyRecords: number;
  /** Waiting records of keys that the member holds: nobody else may get them. */
  readonly heldRecords: number;
  readonly members: number;
}

/**
 * How many records one member may have in hand, over all its lanes: few while there is little to
 * do, so that no record queues behind another one beside an idle worker; more under a backlog, so
 * that round trips cost little. Fixed by `delivery.window`, else from the member's own speed.
 */
export class Window {
  readonly #fixed: number | undefined;
  readonly #isByCommits: boolean;
  /** Records a millisecond; undefined until something was handled. */
  #rate: number | undefined;
  #most = firstWindow;
  #commitWindow = leastCommitWindow;
  /** What it is sure to finish until its next commit. */
  #sure = firstWindow;
  #finishedPerMs = 0;
  #hasGrown = false;
  /** Finished since a time, for as long as that is too short to tell anything. */
  #finished = 0;
  #sinceMs: number | undefined;
  /** The longest time between two commits of late. */
  #commitEveryMs = 0;

  constructor(traits: ClientTraits, fixed: number | undefined) {
    this.#fixed = fixed;
    this.#isByCommits = traits.proof === Proof.nothing && fixed === undefined;
  }

  size(demand: Demand): number {
    if (this.#fixed !== undefined) return this.#fixed;
    if (this.#isByCommits) return this.#sizeByCommits(demand);
    const share = shareOf(demand, queueShare);
    if (this.#rate === undefined) return Math.min(share, this.#most);
    const least = this.#rate * aimMsMin;
    const most = Math.min(this.#rate * aimMsMax, this.#most);
    return Math.max(1, Math.floor(Math.min(Math.max(share, least), most)));
  }

  /** `count` records took the member `ms` from when they were sent until they were proven. */
  onHandled(count: number, ms: number): void {
    if (count === 0) return;
    this.#rate = count / Math.max(ms, 0.25);
    // It turns small at once, and becomes larger step by step.
    const aim = Math.max(firstWindow, this.#rate * aimMsMax);
    this.#most = Math.min(aim, Math.max(this.#most, count) * growthMax, windowMax);
  }

  /**
   * It has had nothing to do for a while. What comes then may hold some slow records among many:
   * until a few are handled there is no telling, so the window begins small again.
   */
  onIdle(): void {
    if (this.#rate !== undefined) this.#most = Math.max(1, Math.floor(this.#rate * aimMsMin));
  }

  #sizeByCommits(demand: Demand): number {
    if (demand.members <= 1) return Math.max(this.#commitWindow, leastCommitWindow);
    if (!this.#isBacklog(demand)) return this.#commitWindow;
    return Math.min(this.#commitWindow, Math.max(this.#sure, shareOf(demand, backlogShare)));
  }

  #isBacklog({ readyRecords, members }: Demand): boolean {
    return readyRecords > Math.min(backlogRecordsEach, this.#sure) * members;
  }

  /**
   * Whether it may get more than that of keys that it holds. Nobody else may get those before it
   * commits, and one that proves nothing may have been waiting for them since; where there is a
   * backlog its window keeps some of it for the others.
   */
  mayExceedForHeld(demand: Demand): boolean {
    return this.#isByCommits && demand.members > 1 && !this.#isBacklog(demand);
  }

  /**
   * How many of the `inHand` records the member is not through with. Of one that proves nothing it
   * is guessed, from what it finished before its last commit: right after a commit all that it has
   * is in its queue, just before the next one hardly any of it. If that is late, all of it again.
   */
  queuedOf(inHand: number, nowMs: number): number {
    if (!this.#isByCommits || this.#sinceMs === undefined) return inHand;
    const ms = nowMs - this.#sinceMs;
    if (ms > this.#commitEveryMs * commitSlack) return inHand;
    return Math.max(inHand - this.#finishedPerMs * ms, 0);
  }

  /** For clients that prove nothing: `left` of what was granted is not committed yet. */
  onCommit(finished: number, left: number, wasFull: boolean, demand: Demand, nowMs: number): void {
    this.#finished += finished;
    const ms = nowMs - (this.#sinceMs ?? nowMs);
    const wasShort = wasFull && left === 0;
    // One that comes early, after one that came late, says nothing of what its member can do.
    if (ms < this.#commitEveryMs / 2 && !wasShort) return;
    const isFirst = this.#sinceMs === undefined;
    this.#commitEveryMs = Math.max(ms, this.#commitEveryMs * intervalDecay);
    const sure = Math.ceil(this.#finished * commitSlack);
    const isBusy = left > 0;
    // Nor does the first one.
    if (!isFirst) this.#sure = isBusy ? sure : Math.max(sure, leastCommitWindow);
    if (wasShort) {
      // As much as there is for it: what is granted beyond that queues up while others idle.
      const aim = Math.max(this.#commitWindow, shareOf(demand, 1)) * 2;
      const growth = this.#hasGrown ? commitGrowth : firstCommitGrowth;
      this.#hasGrown = true;
      // What bounds it is `delivery.unfinished.max`.
      this.#commitWindow = Math.min(this.#commitWindow * growth, aim);
    } else if (!isFirst) {
      const most = Math.max(this.#finished * leisureSlack, leastCommitWindow);
      this.#commitWindow = isBusy ? sure : most;
    }
    this.#finishedPerMs = ms > 0 ? this.#finished / ms : 0;
    this.#finished = 0;
    this.#sinceMs = nowMs;
  }
}

/** What there is for one member: so many parts of what is ready, and what it alone may get. */
function shareOf({ readyRecords, heldRecords, members }: Demand, parts: number): number {
  return Math.max(Math.ceil((parts * readyRecords) / Math.max(members, 1)), 1) + heldRecords;
}
