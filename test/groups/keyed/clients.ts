/** Who takes part in the random histories: consumers with the habits of real ones. */
import { type ClientTraits, Proof } from '../../../src/groups/keyed/client-traits.ts';
import type { LaneRange } from '../../../src/groups/keyed/lane-range.ts';
import type { Waiter } from '../../../src/groups/keyed/waiters.ts';

export interface Rng {
  /** An integer below `n`. */
  below(n: number): number;
  chance(p: number): boolean;
}

export interface ModelRecord {
  readonly partition: number;
  readonly offset: number;
  readonly key: string | null;
  isFinished: boolean;
  isDeleted: boolean;
  /** Who has it in hand. */
  grant: { readonly range: LaneRange; readonly n: number } | undefined;
  deliveries: number;
  /** A handler was through with it. */
  isHandled: boolean;
}

/** A consumer, which handles what it was given in order. */
export interface Client {
  readonly id: string;
  readonly traits: ClientTraits;
  /** By lane: what was answered and not handled yet, and where the next fetch asks. */
  readonly lanes: Map<number, ClientLane>;
  waiter: Waiter | undefined;
  answers: number;
  /** It sent a fetch since its last answer with records. */
  hasAskedSince: boolean;
}

export interface QueuedRecord {
  readonly n: number;
  readonly record: ModelRecord;
  /** The client's count of answers with records when it came. */
  readonly answer: number;
}

export interface ClientLane {
  position: number;
  readonly queue: QueuedRecord[];
  /** Handled below this, not committed yet. */
  handled: number;
}

export const promptTraits: ClientTraits = {
  name: 'prompt',
  commitsHandledOnly: true,
  commitLag: 1,
  isLagDeclared: false,
  proof: Proof.everything,
  rejoinsBetweenHandlers: true,
  rejectsByRefetch: true,
  rejectionSilenceMs: 0,
  heartbeatsInBackground: false,
  fetchesInBackground: false,
};

export const earlyTraits: ClientTraits = {
  ...promptTraits,
  name: 'early',
  commitsHandledOnly: false,
  proof: Proof.nothing,
  rejoinsBetweenHandlers: false,
  rejectsByRefetch: false,
  fetchesInBackground: true,
};

/** Sends its next fetch before the handler starts. */
const javaTraits: ClientTraits = {
  ...promptTraits,
  name: 'java',
  proof: Proof.afterEmpty,
  heartbeatsInBackground: true,
};

/** Has its next answer on the way while it works on the one before. */
const franzTraits: ClientTraits = {
  ...earlyTraits,
  name: 'franz',
  commitsHandledOnly: true,
  proof: Proof.afterLater,
};

export const kinds: readonly ClientTraits[] = [promptTraits, javaTraits, franzTraits, earlyTraits];
