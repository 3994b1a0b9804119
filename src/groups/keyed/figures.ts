import type { Now } from '../deadlines.ts';
import type { Dispatcher } from './dispatcher.ts';
import { KeyPause } from './key-table.ts';
import type { Member } from './member.ts';
import { none } from './record-store.ts';

/**
 * What an operator sees of the dispatcher of one group and topic. All of it is counted when it is
 * asked for, so that nothing of it costs anything on the way of a record.
 */
export interface Figures {
  /** Records that members were given and have not finished. */
  readonly granted: number;
  /** Those of them that no later fetch has proven handled. */
  readonly inHand: number;
  /** Keys that somebody holds: what comes next of them goes to nobody else. */
  readonly leasedKeys: number;
  /** Those that nothing in hand is of: handled and not committed, or kept after a commit. */
  readonly pinnedKeys: number;
  /** Records that wait behind one that is granted, those left in the log (spill.ts) included. */
  readonly held: number;
  /** Those of them whose key is pinned. */
  readonly heldByPinned: number;
  /** Records that failed, by what they wait for. */
  readonly waiting: Waiting;
  /** Records that wait behind those. */
  readonly heldByWaiting: number;
}

export interface Waiting {
  readonly retry: number;
  readonly suspect: number;
  readonly deadLetter: number;
  readonly halted: number;
}

export function figuresOf(dispatcher: Dispatcher): Figures {
  const { keys } = dispatcher.board;
  const atWork = keysInHand(dispatcher);
  let [granted, inHand] = [0, 0];
  for (const member of dispatcher.members.values()) {
    granted += member.unfinished;
    inHand += member.inHand;
  }
  let [leasedKeys, pinnedKeys, held, heldByPinned] = [0, 0, 0, 0];
  for (const key of keys.all()) {
    if (keys.holder[key] === none) continue;
    leasedKeys++;
    // One that failed is counted among those that wait, whoever holds its key.
    const waits = keys.pause[key] === KeyPause.none ? 0 : 1;
    const behind = keys.pending[key]! + keys.spilled[key]! - waits;
    held += behind;
    if (atWork.has(key)) continue;
    pinnedKeys++;
    heldByPinned += behind;
  }
  const failed = failedRecords(dispatcher);
  return { granted, inHand, leasedKeys, pinnedKeys, held, heldByPinned, ...failed };
}

/** Keys with a record in somebody's hand. */
function keysInHand({ board, members }: Dispatcher): Set<number> {
  const found = new Set<number>();
  for (const { ranges } of members.values()) {
    for (const range of ranges) {
      for (let n = Math.max(range.proven, range.finished); n < range.end; n++) {
        const ref = range.ref(n);
        if (ref !== none && board.store.key[ref]! >= 0) found.add(board.store.key[ref]!);
      }
    }
  }
  return found;
}

function failedRecords({ board, failures }: Dispatcher) {
  const { keys, store } = board;
  const waiting = { retry: 0, suspect: 0, deadLetter: 0, halted: 0 };
  let heldByWaiting = 0;
  for (const ref of failures.tried) {
    const name = pauseNames[failures.pauseOf(ref)];
    if (name === undefined) continue;
    waiting[name]++;
    const key = store.key[ref]!;
    // What waits behind a record whose key somebody holds is counted there.
    if (key < 0 || keys.holder[key] !== none) continue;
    heldByWaiting += keys.pending[key]! + keys.spilled[key]! - 1;
  }
  return { waiting, heldByWaiting };
}

const pauseNames: Readonly<Record<KeyPause, keyof Waiting | undefined>> = {
  [KeyPause.none]: undefined,
  [KeyPause.retry]: 'retry',
  [KeyPause.suspect]: 'suspect',
  [KeyPause.deadLetter]: 'deadLetter',
  [KeyPause.halted]: 'halted',
};

/** The record that has been in a member's hand for longest. */
export interface Lease {
  readonly member: Member;
  /** For how long it has been the oldest one. */
  readonly ageMs: number;
  /** Stored partition and offset. */
  readonly partition: number;
  readonly offset: number;
  /** As in `FiledBatch`; undefined while the record is not loaded, or has none. */
  readonly key: string | undefined;
}

/** Undefined where the member has nothing in hand. */
export function leaseOf({ board }: Dispatcher, member: Member, now: Now): Lease | undefined {
  if (member.inHand === 0) return undefined;
  let lease: Lease | undefined;
  let oldest = Number.POSITIVE_INFINITY;
  for (const range of member.ranges) {
    const first = range.grants.firstFrom(Math.max(range.proven, range.finished));
    if (first === undefined) continue;
    const ordinal = range.ordinalOf(first.n);
    if (ordinal >= oldest) continue;
    oldest = ordinal;
    const ref = range.ref(first.n);
    const key = ref === none ? none : board.store.key[ref]!;
    lease = {
      member,
      ageMs: Math.max(now.monotonicMs - member.leaseStartMs, 0),
      partition: first.partition,
      offset: first.offset,
      key: key < 0 ? undefined : board.keys.name(key),
    };
  }
  return lease;
}

/** The oldest lease of all members. */
export function oldestLease(dispatcher: Dispatcher, now: Now): Lease | undefined {
  let oldest: Lease | undefined;
  for (const member of dispatcher.members.values()) {
    const lease = leaseOf(dispatcher, member, now);
    if (lease !== undefined && lease.ageMs > (oldest?.ageMs ?? -1)) oldest = lease;
  }
  return oldest;
}

/**
 * Whether what the members are said to have agrees with the ledger: a count that went astray would
 * hold back records, or give out too many, without anybody being told.
 */
export function areBooksRight({ members }: Dispatcher): boolean {
  for (const member of members.values()) {
    let [unfinished, inHand] = [0, 0];
    for (const range of member.ranges) {
      unfinished += range.grants.records - range.ahead;
      inHand += range.countIn(Math.max(range.proven, range.start), range.end);
    }
    if (unfinished !== member.unfinished || inHand !== member.inHand) return false;
  }
  return true;
}
