import type { Now } from '../deadlines.ts';
import { Proof } from './client-traits.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { Member } from './member.ts';
import { backlogShare, type Demand } from './window.ts';

/** Twice the time that a window is made for: what is in hand for longer holds a slow record. */
const slowMs = 200;

/**
 * Granted and not finished, over all members of a group and topic: what a group that never commits
 * may take of memory, some 40 bytes each.
 */
export const groupUnfinishedMax = 20_000_000;

/** How many more records the member may have in hand. */
export function roomOf(dispatcher: Dispatcher, member: Member, { monotonicMs }: Now): number {
  const { window } = member;
  const inHand = Math.max(member.inHand - queuedOf(member), 0);
  const isKept = isSlow(dispatcher, member, monotonicMs) || takesAtCommit(dispatcher, member);
  const room = Math.min(
    isKept ? Math.max(1 - inHand, 0) : Number.POSITIVE_INFINITY,
    window.size(demandOf(dispatcher, member)) - inHand,
  );
  return Math.min(
    room > 0 ? room : roomToComeBack(dispatcher, member),
    boundOf(dispatcher, member),
  );
}

/** Whatever its window is. */
function boundOf({ settings, board }: Dispatcher, member: Member): number {
  return Math.min(
    settings.unfinishedMax - member.unfinished,
    groupUnfinishedMax - board.granted,
    member.suspectLimit - member.inHand,
  );
}

/** How many more records it may get now. */
export function grantRoom(dispatcher: Dispatcher, member: Member, now: Now): number {
  return Math.min(roomOf(dispatcher, member, now), shareOf(dispatcher, member));
}

/** The same for records of keys that it holds. */
export function heldRoom(dispatcher: Dispatcher, member: Member, now: Now): number {
  const mayExceed = member.window.mayExceedForHeld(demandOf(dispatcher, member));
  return mayExceed ? boundOf(dispatcher, member) : grantRoom(dispatcher, member, now);
}

/** What the client has queued behind its present work does not count against the window. */
function queuedOf({ traits, lastAnswerRecords }: Member): number {
  return traits.fetchesInBackground && traits.proof !== Proof.nothing ? lastAnswerRecords : 0;
}

/**
 * What a member keeps of former ranges may be all that its window allows, and the client may have
 * dropped it: only when it comes back from something newer is it known to be through with that. So
 * it gets one record; else it would idle for a whole session.
 */
function roomToComeBack({ stranded }: Dispatcher, member: Member): number {
  if (!stranded.keeps(member)) return 0;
  return member.inHandOfPresent > queuedOf(member) ? 0 : 1;
}

export function demandOf(dispatcher: Dispatcher, member: Member): Demand {
  const { readyRecords, members } = dispatcher;
  const heldRecords = heldRecordsOf(dispatcher, member);
  return { readyRecords, heldRecords, members: members.size };
}

function heldRecordsOf({ board }: Dispatcher, { ranges }: Member): number {
  let records = 0;
  for (const range of ranges) if (range.isPresent) records += board.heldRecords(range.id);
  return records;
}

/**
 * Whether so many waiting records are loaded as members are about to get: a part for each of those
 * that go on, of what is ready and of the keys that it holds. Those that keep what they have for
 * long count neither way, unless there are no others: then only what is ready counts.
 */
export function isStocked(dispatcher: Dispatcher, records: number, now: Now): boolean {
  const { board, members } = dispatcher;
  const { readyRecords } = board;
  if (readyRecords >= records) return true;
  let isAnyGoingOn = false;
  for (const member of members.values()) {
    if (isLeaseOld(member, now.monotonicMs) && roomOf(dispatcher, member, now) <= 0) continue;
    isAnyGoingOn = true;
    const heldRecords = heldRecordsOf(dispatcher, member);
    if (readyRecords + heldRecords * members.size < records) return false;
  }
  return isAnyGoingOn;
}

/**
 * Its window is that of the records before, and nothing may queue behind a record that is slow. Of
 * clients that prove nothing it cannot be told.
 */
function isSlow({ settings }: Dispatcher, member: Member, nowMs: number): boolean {
  const { traits, inHand } = member;
  if (traits.proof === Proof.nothing || settings.window !== undefined) return false;
  return inHand > 0 && isLeaseOld(member, nowMs);
}

/** It has proven and committed nothing for so long. */
function isLeaseOld({ leaseStartMs }: Member, nowMs: number): boolean {
  return nowMs - leaseStartMs > slowMs;
}

/**
 * What it gets beside the records in its handler waits there for their commit, and needs a commit
 * of its own; what it gets with the commit comes no later, and as one answer. Large answers take
 * time on their way; and clients that queue answers have some in hand after each commit, too.
 */
function takesAtCommit({ settings }: Dispatcher, member: Member): boolean {
  const { inHand, commitsPromptly, isAnswerFull, traits } = member;
  if (traits.fetchesInBackground || settings.window !== undefined) return false;
  return inHand > 0 && commitsPromptly && !isAnswerFull;
}

/** What one fetch may take of all that is ready, so that nobody idles beside it: one or more. */
function shareOf(dispatcher: Dispatcher, member: Member): number {
  const { settings, members, waiters } = dispatcher;
  if (settings.window !== undefined) return Number.POSITIVE_INFINITY;
  // One that proves nothing has a large window, and always a fetch waiting.
  const isHungry = member.traits.proof === Proof.nothing;
  const sharers = isHungry ? members.size : waiters.countIdle();
  if (sharers <= 1) return Number.POSITIVE_INFINITY;
  const parts = isHungry ? sharers / backlogShare : sharers;
  const { readyRecords, heldRecords } = demandOf(dispatcher, member);
  return Math.max(Math.floor(readyRecords / parts), 1) + heldRecords;
}
