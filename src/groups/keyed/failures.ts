import { assert } from '../../core/assert.ts';
import type { Trial } from '../../state/keyed/effects.ts';
import { trialKey } from '../../state/keyed/ledger.ts';
import { type Now, Timer } from '../deadlines.ts';
import type { Dispatcher, ReturnCause } from './dispatcher.ts';
import { KeyPause } from './key-table.ts';
import type { LaneRange } from './lane-range.ts';
import type { Member } from './member.ts';
import { none, RecordState } from './record-store.ts';
import type { Waiter } from './waiters.ts';

export interface FailureSettings {
  /** `delivery.attempts.max`; 0: no limit. */
  readonly attemptsMax: number;
  readonly retryBackoffMs: number;
  readonly retryBackoffMsMax: number;
  /** `dead.letter.policy=halt`: the key of a record that failed too often stops. */
  readonly halts: boolean;
}

/** What a member has of a range from a lane number on. */
export interface RangePart {
  readonly range: LaneRange;
  readonly from: number;
}

/** A record that failed too often. */
export interface DeadLetter {
  readonly ref: number;
  readonly partition: number;
  readonly offset: number;
  readonly trial: Trial;
  /** Its key stops until somebody decides: it only has to be told of. */
  readonly isHalted: boolean;
}

const quartersPerAttempt = 4;
/** At most one member in so many has suspects in hand at a time. */
const membersPerSuspect = 4;
/** By then the others have rejoined: they ask for news every 3 s, and a round takes a second. */
const roundMsMax = 4_000;

/**
 * Finds the record that is to blame when a consumer fails. A record that was alone in hand is
 * charged with an attempt. Of several nobody knows which one it was: none is charged, but each is
 * delivered again with at most half as many others, so that after a few rounds it is alone.
 */
export class Failures {
  readonly #dispatcher: Dispatcher;
  /** Loaded records with failed deliveries. */
  readonly #trials = new Map<number, Trial>();
  /** Those that may be delivered now, in the order in which they became due. */
  #suspects: number[] = [];
  readonly #retries = new Map<number, Timer>();
  readonly #deadLetters: DeadLetter[] = [];
  #halted: DeadLetter[] = [];
  /** Records charged just now, which are still to be held back. */
  #charged: number[] = [];
  /** The member that gets nothing else until it may take a suspect. */
  #reserved: Member | undefined;
  /**
   * A member has gone, so all others are about to rejoin. A client that does so beside its handler
   * may drop what it is given now; if that was a suspect, nobody would know, and the client would
   * get nothing else for a whole session.
   */
  readonly #round = new Timer(() => undefined);

  constructor(dispatcher: Dispatcher) {
    this.#dispatcher = dispatcher;
  }

  get isEmpty(): boolean {
    return this.#trials.size === 0;
  }

  /** Records that wait for their backoff. */
  get retryCount(): number {
    return this.#retries.size;
  }

  /** Loaded records that failed before. */
  get tried(): Iterable<number> {
    return this.#trials.keys();
  }

  /** What a record that failed before waits for, `none` if it is not what its key waits for. */
  pauseOf(ref: number): KeyPause {
    const { board, settings } = this.#dispatcher;
    const { store, keys } = board;
    const key = store.key[ref]!;
    if (key >= 0) {
      return keys.nextPending[key] === ref ? (keys.pause[key] as KeyPause) : KeyPause.none;
    }
    if (store.state[ref] !== RecordState.parked) return KeyPause.none;
    if (this.#retries.has(ref)) return KeyPause.retry;
    if (!this.#isSpent(this.#trials.get(ref)!)) return KeyPause.suspect;
    return settings.halts ? KeyPause.halted : KeyPause.deadLetter;
  }

  #isSpent({ quarters }: Trial): boolean {
    const { attemptsMax } = this.#dispatcher.settings;
    return attemptsMax > 0 && quarters >= attemptsMax * quartersPerAttempt;
  }

  takeDeadLetters(): DeadLetter[] {
    return this.#deadLetters.splice(0);
  }

  /** A batch was loaded of which some record may have failed before. */
  onFiled(batch: number, now: Now): void {
    const { store } = this.#dispatcher.board;
    const { trials } = this.#dispatcher.ledger;
    const first = store.first[batch]!;
    for (let ref = first; ref < first + store.count[batch]!; ref++) {
      if (store.state[ref] === RecordState.gone) continue;
      const trial = trials.get(trialKey(store.partition[batch]!, store.offset(ref)));
      if (trial === undefined) continue;
      store.wasSent[ref] = 1;
      this.#trials.set(ref, trial);
      this.#charged.push(ref);
    }
    this.settle(now);
  }

  /** The record is done with. */
  forget(ref: number): void {
    if (!this.#trials.delete(ref)) return;
    const timer = this.#retries.get(ref);
    if (timer === undefined) return;
    this.#dispatcher.deadlines.cancel(timer);
    this.#retries.delete(ref);
  }

  /** Called before what the member had in hand comes back; `settle` after it. */
  onFailure(member: Member, parts: readonly RangePart[], cause: ReturnCause, now: Now): void {
    const { inHand } = member;
    if (inHand === 0) return;
    const unproven = parts.flatMap((part) => unprovenOf(part));
    if (cause === 'lease') {
      unproven.sort((a, b) => a.ordinal - b.ordinal);
      if (unproven.length > 0) this.#charge(unproven[0]!.ref, cause, now);
    } else if (inHand === 1) {
      for (const { ref } of unproven) this.#charge(ref, cause, now);
    } else {
      for (const { ref } of unproven) this.#limit(ref, inHand, cause, now);
    }
  }

  #charge(ref: number, cause: ReturnCause, now: Now): void {
    const { attemptsMax, retryBackoffMs, retryBackoffMsMax } = this.#dispatcher.settings;
    const before = this.#trials.get(ref);
    const quarters = (before?.quarters ?? 0) + (cause === 'left' ? 1 : quartersPerAttempt);
    const attempts = Math.floor(quarters / quartersPerAttempt);
    const backoffMs =
      cause === 'left' ? 0 : Math.min(retryBackoffMs * 2 ** (attempts - 1), retryBackoffMsMax);
    const isDead = attemptsMax > 0 && attempts >= attemptsMax;
    this.#dispatcher.counters.charged++;
    this.#note(ref, {
      quarters,
      limit: 1,
      firstMs: before?.firstMs ?? now.wallMs,
      lastMs: now.wallMs,
      dueMs: now.wallMs + (isDead ? 0 : backoffMs),
      reason: cause,
    });
  }

  #limit(ref: number, inHand: number, cause: ReturnCause, now: Now): void {
    const before = this.#trials.get(ref);
    const limit = Math.max(Math.floor(Math.min(before?.limit || inHand, inHand) / 2), 1);
    this.#note(ref, {
      quarters: before?.quarters ?? 0,
      limit,
      firstMs: before?.firstMs ?? now.wallMs,
      lastMs: now.wallMs,
      dueMs: now.wallMs,
      reason: cause,
    });
  }

  #note(ref: number, trial: Trial): void {
    const { store } = this.#dispatcher.board;
    const partition = store.partition[store.batchOf[ref]!]!;
    this.#dispatcher.plan({ kind: 'tried', partition, offset: store.offset(ref), trial });
    this.#trials.set(ref, trial);
    this.#charged.push(ref);
  }

  /** Holds back what was charged, after it came back. */
  settle(now: Now): void {
    for (const ref of this.#charged.splice(0)) this.holdBack(ref, now);
  }

  /** Whether a waiting record takes its own way because of its failures; sends it there. */
  holdBack(ref: number, now: Now): boolean {
    const trial = this.#trials.get(ref);
    if (trial === undefined) return false;
    const { board, settings, deadlines } = this.#dispatcher;
    const { store, keys } = board;
    if (store.state[ref] !== RecordState.pending) return false;
    const key = store.key[ref]!;
    if (key >= 0 && keys.nextPending[key] !== ref) return false;
    if (key >= 0 && keys.pause[key] !== KeyPause.none) return true;
    const { halts } = settings;
    if (this.#isSpent(trial)) {
      this.#pause(ref, halts ? KeyPause.halted : KeyPause.deadLetter);
      const partition = store.partition[store.batchOf[ref]!]!;
      const letter = { ref, partition, offset: store.offset(ref), trial, isHalted: halts };
      this.#deadLetters.push(letter);
      if (halts) this.#halted.push(letter);
      return true;
    }
    if (trial.dueMs <= now.wallMs) {
      this.#pause(ref, KeyPause.suspect);
      this.#suspects.push(ref);
      return true;
    }
    this.#pause(ref, KeyPause.retry);
    if (this.#retries.has(ref)) return true;
    const timer = new Timer(() => {
      this.#retries.delete(ref);
      const isFirst = key < 0 || keys.nextPending[key] === ref;
      // Else it is held back again when its turn comes.
      if (!isFirst) return;
      if (key >= 0) keys.pause[key] = KeyPause.suspect;
      this.#suspects.push(ref);
    });
    this.#retries.set(ref, timer);
    // The clock of a leader may be far behind that of the one before it.
    const backoffMs = trial.dueMs - trial.lastMs;
    const restMs = Math.min(trial.dueMs - now.wallMs, backoffMs);
    deadlines.schedule(timer, now.monotonicMs + restMs);
    return true;
  }

  #pause(ref: number, why: KeyPause): void {
    const { board } = this.#dispatcher;
    const key = board.store.key[ref]!;
    if (key >= 0) board.pause(key, why);
    else board.park(ref);
  }

  /**
   * A suspect for a fetch that was granted so many records already: its record and limit; 'wait' if
   * its member is kept free for one and has too much in hand yet; undefined if it may get anything.
   */
  takeFor(
    waiter: Waiter,
    granted: number,
  ): { readonly ref: number; readonly limit: number } | 'wait' | undefined {
    const { member } = waiter;
    const first = this.#firstSuspect(waiter);
    if (first === none) {
      if (this.#suspects.length === 0) this.#reserved = undefined;
      return undefined;
    }
    if (this.canTake(waiter, granted)) {
      this.#suspects.splice(this.#suspects.indexOf(first), 1);
      this.#reserved = undefined;
      return { ref: first, limit: this.#trials.get(first)!.limit };
    }
    if (this.#isCrowded(member) || this.#isToRejoin(member)) return undefined;
    if (this.#dispatcher.stranded.keeps(member)) {
      // That leaves its hand when it has come back from something newer, and not before.
      if (this.#reserved === member) this.#reserved = undefined;
      return undefined;
    }
    if (this.#reserved === undefined && this.#isLeastBusy(member)) this.#reserved = member;
    return this.#reserved === member ? 'wait' : undefined;
  }

  /** Whether the fetch may take a suspect now. */
  canTake(waiter: Waiter, granted = 0): boolean {
    const { member } = waiter;
    const first = this.#firstSuspect(waiter);
    if (first === none || this.#isCrowded(member) || this.#isToRejoin(member)) return false;
    const { limit } = this.#trials.get(first)!;
    return member.inHand + granted + 1 <= Math.min(limit, member.suspectLimit);
  }

  #isToRejoin({ traits }: Member): boolean {
    return this.#round.isScheduled && !traits.rejoinsBetweenHandlers;
  }

  #isCrowded(member: Member): boolean {
    if (member.suspects.length > 0) return false;
    const { members } = this.#dispatcher;
    let busy = 0;
    for (const { suspects } of members.values()) if (suspects.length > 0) busy++;
    return busy >= Math.max(Math.floor(members.size / membersPerSuspect), 1);
  }

  #isLeastBusy(member: Member): boolean {
    for (const { inHand } of this.#dispatcher.members.values()) {
      if (inHand < member.inHand) return false;
    }
    return true;
  }

  /** The first one whose key nobody else holds; drops those that are gone. */
  #firstSuspect({ ranges }: Waiter): number {
    const { store, keys } = this.#dispatcher.board;
    for (let i = 0; i < this.#suspects.length; ) {
      const ref = this.#suspects[i]!;
      const key = store.key[ref]!;
      const state = store.state[ref];
      const isThere =
        this.#trials.has(ref) &&
        (key >= 0
          ? keys.nextPending[key] === ref && keys.pause[key] === KeyPause.suspect
          : state === RecordState.parked);
      if (!isThere) {
        this.#suspects.splice(i, 1);
        continue;
      }
      const holder = key < 0 ? none : keys.holder[key]!;
      if (holder === none || ranges.some(({ id }) => id === holder)) return ref;
      i++;
    }
    return none;
  }

  /** Something that the member had in hand was proven, finished or returned. */
  onProgress(member: Member): void {
    if (member.suspects.length === 0) return;
    member.suspects = member.suspects.filter(
      ({ range, n }) => n >= range.proven && range.countIn(n, n + 1) === 1,
    );
    member.suspectLimit = Number.POSITIVE_INFINITY;
    for (const { limit } of member.suspects) {
      member.suspectLimit = Math.min(member.suspectLimit, limit);
    }
  }

  /** Whether it gets nothing but a suspect, once it has few enough in hand. */
  isReserved(member: Member): boolean {
    return this.#reserved === member;
  }

  onMemberGone(member: Member, { monotonicMs }: Now): void {
    if (this.#reserved === member) this.#reserved = undefined;
    this.#dispatcher.deadlines.schedule(this.#round, monotonicMs + roundMsMax);
  }

  /** A plan has given the lanes to those that are there. */
  onAssigned(): void {
    this.#dispatcher.deadlines.cancel(this.#round);
  }

  /** Whether the record still waits for this: it may be deleted, or its key's turn be over. */
  isDead({ ref, partition, offset, isHalted }: DeadLetter): boolean {
    const { store, keys } = this.#dispatcher.board;
    const isSame =
      this.#trials.has(ref) &&
      store.offset(ref) === offset &&
      store.partition[store.batchOf[ref]!] === partition;
    if (!isSame) return false;
    const key = store.key[ref]!;
    if (key < 0) return store.state[ref] === RecordState.parked;
    const why = isHalted ? KeyPause.halted : KeyPause.deadLetter;
    return keys.nextPending[key] === ref && keys.pause[key] === why;
  }

  /** The settings changed: what is halted may go on in one way or another. */
  reconsiderHalted(now: Now): void {
    const { board } = this.#dispatcher;
    const halted = this.#halted;
    this.#halted = [];
    for (const letter of halted) {
      if (!this.isDead(letter)) continue;
      const key = board.store.key[letter.ref]!;
      if (key >= 0) board.resume(key);
      else board.unpark(letter.ref);
      this.holdBack(letter.ref, now);
    }
  }

  /** The record of a dead letter that is planned, or was given up: its key goes on. */
  bury(letter: DeadLetter): void {
    const { ref, partition, offset } = letter;
    const { board } = this.#dispatcher;
    assert(this.isDead(letter), 'a dead letter is a waiting record');
    this.#dispatcher.plan({ kind: 'skipped', partition, from: offset, to: offset + 1 });
    this.#dispatcher.counters.deadLetters++;
    this.forget(ref);
    board.delete(ref);
  }
}

function unprovenOf({ range, from }: RangePart): { ref: number; ordinal: number }[] {
  const found: { ref: number; ordinal: number }[] = [];
  for (let n = Math.max(range.proven, range.finished, from); n < range.end; n++) {
    const ref = range.ref(n);
    if (ref !== none) found.push({ ref, ordinal: range.ordinalOf(n) });
  }
  return found;
}
