import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ClientTraits, Proof } from '../../../src/groups/keyed/client-traits.ts';
import type { Dispatcher } from '../../../src/groups/keyed/dispatcher.ts';
import { earlyTraits, promptTraits } from './clients.ts';
import { at, keyedSettings, newDispatcher } from './support.ts';

const settings = { ...keyedSettings, retryBackoffMs: 1000, retryBackoffMsMax: 60_000 };

/** Commits what is handled only. */
const lateTraits = { ...earlyTraits, commitsHandledOnly: true };

function file(dispatcher: Dispatcher, position: number, keys: readonly string[]): void {
  const ends = keys.map((_, i) => 10 * (i + 1));
  const place = { partition: 0, baseOffset: position * 100, position, bytes: 1000 };
  const batch = { ...place, offsetCount: keys.length, keys, ends };
  dispatcher.filing.file(batch, at(0));
}

/** One consumer that rejoined in the background, with records of its former range in hand. */
function rejoined(keys: readonly string[], rejoinedMs = 10, traits = earlyTraits) {
  const dispatcher = newDispatcher(settings);
  dispatcher.addMember({ id: 'm', traits, leaseMs: 300_000, sessionMs: 45_000 });
  dispatcher.openRange(0, 'm', at(0));
  file(dispatcher, 0, keys);
  const fetch = () => {
    const range = dispatcher.presentRange(0)!;
    return { member: range.member, ranges: [range], bytesMax: 1000, laneBytesMax: 1000 };
  };
  assert.equal(dispatcher.grant(fetch(), at(0)).length, 1);
  const former = dispatcher.presentRange(0)!;
  dispatcher.giveUp('m', [0], true, at(rejoinedMs));
  dispatcher.openRange(0, 'm', at(rejoinedMs));
  dispatcher.waiters.park(fetch());
  const served: number[] = [];
  const serve = (ms: number) => {
    dispatcher.tick(at(ms));
    dispatcher.waiters.serve(at(ms), (_waiter, granted) => {
      for (const { from, to } of granted) served.push(to - from);
    });
    return served;
  };
  return { dispatcher, serve, fetch, former };
}

test('a member that waits beside what it keeps is given a key of it again, alone', () => {
  const { dispatcher, serve } = rejoined(['a', 'b', 'c', 'c']);
  assert.deepEqual(serve(45_000), [], 'a handler may be at it');
  assert.deepEqual(serve(45_010), [2], 'both records of the last key');
  assert.equal(dispatcher.board.readyKeys, 0, 'nobody else gets any of it');
});

test('it is the key whose first record was granted last: no handler has come to it', () => {
  const { serve } = rejoined(['a', 'c', 'b', 'a']);
  assert.deepEqual(serve(45_010), [1], 'b');
});

test('the wait begins when the lane ends, however long the handler has been at it by then', () => {
  const { serve } = rejoined(['a', 'b'], 44_000);
  assert.deepEqual(serve(88_900), []);
  assert.deepEqual(serve(89_000), [1]);
});

test('a commit in the former range finishes what was given again, whose key stays', () => {
  const { dispatcher, serve, fetch, former } = rejoined(['a', 'a'], 10, lateTraits);
  serve(45_010);
  dispatcher.commit('m', new Map([[0, former.start + 1]]), at(46_000));
  assert.ok(dispatcher.ledger.finished(0).has(0), 'it is acknowledged');
  dispatcher.addMember({ id: 'other', traits: lateTraits, leaseMs: 300_000, sessionMs: 45_000 });
  file(dispatcher, 1, ['a']);
  assert.equal(dispatcher.board.readyKeys, 0, 'the record is in the hand of the member again');
  const { end } = dispatcher.presentRange(0)!;
  dispatcher.commit('m', new Map([[0, end]]), at(58_000));
  assert.equal(dispatcher.board.readyKeys, 1, 'now it has come back for more');
  assert.equal(dispatcher.grant(fetch(), at(58_000))[0]?.to, end + 1);
});

test('what is finished so stays finished when the member dies', () => {
  const { dispatcher, serve, former } = rejoined(['a'], 10, lateTraits);
  serve(45_010);
  dispatcher.commit('m', new Map([[0, former.end]]), at(46_000));
  dispatcher.removeMember('m', 'died', at(46_100));
  assert.equal(dispatcher.board.readyKeys + dispatcher.ledger.trials.size, 0);
});

test('a key of which that was the last record stays until the member has come back for more', () => {
  const { dispatcher, serve, fetch, former } = rejoined(['a'], 10, lateTraits);
  serve(45_010);
  dispatcher.commit('m', new Map([[0, former.end]]), at(46_000));
  assert.ok(dispatcher.ledger.finished(0).has(0));
  file(dispatcher, 1, ['a', 'b']);
  assert.equal(dispatcher.board.readyKeys, 1, 'b');
  const [granted] = dispatcher.grant(fetch(), at(46_100));
  assert.equal(granted!.to - granted!.from, 2, 'both');
  dispatcher.commit('m', new Map([[0, granted!.to]]), at(58_000));
  assert.equal(dispatcher.board.keys.size, 0);
});

test('when it commits that, the rest of what it kept comes back', () => {
  const { dispatcher, serve, fetch } = rejoined(['a', 'b', 'a', 'c']);
  serve(45_100);
  const { end } = dispatcher.presentRange(0)!;
  dispatcher.commit('m', new Map([[0, end]]), at(45_200));
  assert.equal(dispatcher.board.readyKeys, 2, 'keys a and b');
  assert.equal(dispatcher.grant(fetch(), at(45_300))[0]?.to, end + 3);
});

/**
 * One of two consumers has as many records in hand as its window allows when its lane is given
 * anew, and its client drops them all. Answers what its next fetches get, after a time in which
 * its records turned slow.
 */
function nextAnswers(traits: ClientTraits, answersMax: number) {
  const dispatcher = newDispatcher({ ...settings, window: undefined });
  for (const [lane, id] of ['m', 'other'].entries()) {
    dispatcher.addMember({ id, traits, leaseMs: 300_000, sessionMs: 45_000 });
    dispatcher.openRange(lane, id, at(0));
  }
  let position = 0;
  const fetch = (ms: number) => {
    const range = dispatcher.presentRange(0)!;
    const { member } = range;
    dispatcher.prove(member, [range], at(ms));
    file(dispatcher, position, [`new-${position}`]);
    position++;
    const waiter = { member, ranges: [range], bytesMax: 1e9, laneBytesMax: 1e9 };
    return dispatcher.grant(waiter, at(ms)).reduce((sum, { from, to }) => sum + to - from, 0);
  };
  let inHand = 0;
  for (let i = 0; i < answersMax; i++) inHand += fetch(0);
  dispatcher.giveUp('m', [0], true, at(1));
  dispatcher.openRange(0, 'm', at(1));
  const later = Array.from({ length: 4 }, () => fetch(500));
  return { dispatcher, inHand, later };
}

test('a member gets one record to come back from, if its former range has all that it may have', () => {
  const { dispatcher, inHand, later } = nextAnswers(earlyTraits, 300);
  assert.equal(inHand, 256);
  assert.deepEqual(later, [1, 0, 0, 0], 'one, however often it asks');
  const { end } = dispatcher.presentRange(0)!;
  dispatcher.commit('m', new Map([[0, end]]), at(600));
  assert.ok(
    dispatcher.board.readyKeys >= inHand,
    'it came back, so all of that may be granted again',
  );
});

test('a member that has its next answer on the way comes back from the second one', () => {
  const { later } = nextAnswers({ ...earlyTraits, proof: Proof.afterLater }, 2);
  assert.deepEqual(later.slice(0, 2), [1, 1]);
  assert.ok(later[2]! > 1, 'with the third fetch it is through with the first');
});

/** Two consumers that rejoin beside their handlers, of which one leaves with records in hand. */
function oneLeaves() {
  const dispatcher = newDispatcher({ ...settings, window: undefined });
  const traits = { ...earlyTraits, proof: Proof.afterLater };
  const waiterOf = (lane: number) => {
    const range = dispatcher.presentRange(lane)!;
    return { member: range.member, ranges: [range], bytesMax: 1e9, laneBytesMax: 20 };
  };
  for (const [lane, id] of ['m', 'leaver'].entries()) {
    dispatcher.addMember({ id, traits, leaseMs: 300_000, sessionMs: 45_000 });
    dispatcher.openRange(lane, id, at(0));
    file(dispatcher, lane, [`${id}-1`, `${id}-2`]);
    const [granted] = dispatcher.grant(waiterOf(lane), at(0));
    assert.equal(granted!.to - granted!.from, 2);
  }
  const fetch = (ms: number) => {
    dispatcher.waiters.park(waiterOf(0));
    const served: number[] = [];
    dispatcher.tick(at(ms));
    dispatcher.waiters.serve(at(ms), (_waiter, granted) => {
      for (const { from, to } of granted) served.push(to - from);
    });
    dispatcher.waiters.unparkAll(dispatcher.presentRange(0)!.member);
    return served;
  };
  const leave = (ms: number) => dispatcher.removeMember('leaver', 'left', at(ms));
  const rejoin = (ms: number) => {
    dispatcher.giveUp('m', [0], true, at(ms));
    dispatcher.openRange(0, 'm', at(ms));
    dispatcher.failures.onAssigned();
  };
  const commit = (ms: number) => {
    const { end } = dispatcher.presentRange(0)!;
    dispatcher.commit('m', new Map([[0, end]]), at(ms));
  };
  return { dispatcher, leave, rejoin, fetch, commit, member: dispatcher.presentRange(0)!.member };
}

test('a member is not kept free for a suspect while it cannot be rid of what it keeps', () => {
  const { dispatcher, leave, rejoin, fetch, commit, member } = oneLeaves();
  leave(1);
  rejoin(2);
  file(dispatcher, 2, ['new']);
  assert.deepEqual(fetch(300), [1], 'the new one');
  commit(301);
  assert.equal(member.inHand, 0, 'it has come back, and what it kept as well');
  fetch(302);
  assert.deepEqual(
    [member.suspects.length, member.inHand],
    [1, 1],
    'now it takes a suspect, alone',
  );
});

test('no suspect goes to a member that is about to rejoin beside its handler', () => {
  const { leave, rejoin, fetch, commit, member } = oneLeaves();
  commit(1);
  leave(2);
  assert.deepEqual(fetch(3), [], 'its client might drop it, and nobody would know');
  rejoin(500);
  assert.deepEqual(fetch(501), [1]);
  assert.equal(member.suspects.length, 1);
});

test('suspects go on if no round comes', () => {
  const { leave, fetch, commit } = oneLeaves();
  commit(1);
  leave(2);
  assert.deepEqual(fetch(4_001), []);
  assert.deepEqual(fetch(4_002), [1]);
});

/** A consumer of two lanes, which got one record of each in one answer, and then lost lane 1. */
function ofTwoLanes(traits = lateTraits) {
  const dispatcher = newDispatcher(settings);
  dispatcher.addMember({ id: 'm', traits, leaseMs: 300_000, sessionMs: 45_000 });
  for (const lane of [0, 1]) dispatcher.openRange(lane, 'm', at(0));
  const ranges = [0, 1].map((lane) => dispatcher.presentRange(lane)!);
  const { member } = ranges[0]!;
  const grant = (keys: readonly string[], position: number, lanes = ranges) => {
    file(dispatcher, position, keys);
    const fetch = { member, ranges: lanes, bytesMax: 1000, laneBytesMax: 10 };
    return dispatcher.grant(fetch, at(1)).map(({ range, to }) => [range.lane, to] as const);
  };
  const first = grant(['a', 'b'], 0);
  assert.deepEqual(
    first.map(([lane]) => lane),
    [0, 1],
  );
  return { dispatcher, grant, first, present: ranges[0]! };
}

test('a commit of what was granted before a lane ended returns nothing of that lane', () => {
  const { dispatcher, grant, first, present } = ofTwoLanes();
  dispatcher.closeLane(1, at(2));
  grant(['c'], 1, [present]);
  dispatcher.commit('m', new Map([first[0]!]), at(3));
  assert.equal(dispatcher.board.readyKeys, 0, 'the handler may be at b');
});

test('a commit finishes all its lanes before anything comes back because of one of them', () => {
  const { dispatcher, grant, first, present } = ofTwoLanes();
  dispatcher.closeLane(1, at(2));
  const [later] = grant(['c'], 1, [present]);
  dispatcher.commit('m', new Map([later!, first[1]!]), at(3));
  assert.equal(dispatcher.board.readyKeys, 0);
  for (const offset of [0, 1, 100]) assert.ok(dispatcher.ledger.finished(0).has(offset));
});

test('the keys of one commit stay until the next one, of whatever lane they are', () => {
  const { dispatcher, grant, first } = ofTwoLanes(earlyTraits);
  dispatcher.commit('m', new Map(first), at(3));
  assert.equal(dispatcher.board.keys.size, 2, 'the handler may be at a or at b');
  dispatcher.commit('m', new Map(grant(['c'], 1)), at(4));
  assert.equal(dispatcher.board.keys.size, 1);
});

test('what is answered between a JoinGroup and a plan without the lane comes back', () => {
  for (const [traits, ready] of [
    [promptTraits, 1],
    [earlyTraits, 0],
  ] as const) {
    const dispatcher = newDispatcher(settings);
    for (const id of ['m', 'other']) {
      dispatcher.addMember({ id, traits, leaseMs: 300_000, sessionMs: 45_000 });
    }
    dispatcher.openRange(0, 'm', at(0));
    file(dispatcher, 0, ['a']);
    dispatcher.giveUp('m', [0], true, at(1));
    dispatcher.keepLane(0, 'm', at(1));
    const range = dispatcher.presentRange(0)!;
    const fetch = { member: range.member, ranges: [range], bytesMax: 1000, laneBytesMax: 1000 };
    assert.equal(
      dispatcher.grant(fetch, at(2)).length,
      1,
      'it asks at the end of its former range',
    );
    dispatcher.openRange(0, 'other', at(3));
    assert.equal(dispatcher.board.readyKeys, ready, traits.name);
  }
});
