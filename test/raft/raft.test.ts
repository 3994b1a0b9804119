/** Sentences of the Raft paper (extended version) and of Ongaro's thesis. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AssertionFailed } from '../../src/core/assert.ts';
import type { Message } from '../../src/raft/messages.ts';
import { Raft, Role } from '../../src/raft/raft.ts';
import type { HardState, RaftOptions } from '../../src/raft/ready.ts';

const startMs = 1000;
/** One election timeout after the start everybody may vote. */
const votingMs = startMs + 300;

function newRaft(options: Partial<RaftOptions> = {}, voters: readonly string[] = ['a', 'b', 'c']) {
  return new Raft(
    {
      self: 'a',
      configuration: { index: 0, configuration: { voters, learners: [] } },
      hardState: { term: 4, votedFor: null },
      base: { index: 0, term: 0 },
      runs: [
        { index: 1, term: 1 },
        { index: 6, term: 3 },
      ],
      lastIndex: 10,
      commitIndex: 8,
      ...{ electionTimeoutMs: 300, heartbeatMs: 50, missedMs: 1000, appendsUnderWayMax: 4 },
      lastFitting: (_to, _first, last) => last,
      snapshot: () => ({ index: 0, term: 0 }),
      random: () => 0.5,
      ...options,
    },
    startMs,
  );
}

function alone(options: Partial<RaftOptions> = {}): Raft {
  return newRaft(options, ['a']);
}

/** Persists what is to be, and answers the messages that come of it. */
function persist(raft: Raft, nowMs = votingMs): Message[] {
  const { hardState, noop, messages } = raft.takeReady();
  if (hardState === undefined && noop === undefined) return [...messages];
  if (hardState !== undefined) raft.hardStatePersisted(hardState, nowMs);
  if (noop !== undefined) raft.entriesPersisted(noop.index, noop.term);
  return [...messages, ...persist(raft, nowMs)];
}

function newLeader(raft = newRaft()): Raft {
  raft.campaign(votingMs);
  persist(raft);
  const { term } = raft;
  raft.step({ kind: 'voteReply', from: 'b', to: 'a', term, isGranted: true }, votingMs);
  persist(raft);
  return raft;
}

const voteOf = (more: object = {}) => ({
  ...({ kind: 'vote', from: 'b', to: 'a', term: 5 } as const),
  ...{ lastIndex: 10, lastTerm: 3, isTransfer: false },
  ...more,
});

const appendOf = (prevIndex: number, prevTerm: number, terms: readonly number[], more = {}) => ({
  ...({ kind: 'append', from: 'b', to: 'a', term: 5, prevIndex, prevTerm } as const),
  lastIndex: prevIndex + terms.length,
  runs: terms.map((term, i) => ({ index: prevIndex + 1 + i, term })),
  ...{ configurations: [], commitIndex: 0, sentMs: 7 },
  ...more,
});

test('when servers start up, they begin as followers (5.2)', () => {
  const raft = newRaft();
  assert.equal(raft.role, Role.follower);
  const { hardState, noop, messages } = raft.takeReady();
  assert.deepEqual([hardState, noop, messages], [undefined, undefined, []]);
});

test('to begin an election, a follower increments its term and votes for itself (5.2)', () => {
  const raft = alone();
  raft.campaign(votingMs);
  assert.equal(raft.role, Role.candidate);
  assert.deepEqual(raft.takeReady().hardState, { term: 5, votedFor: 'a' });
  assert.equal(raft.takeReady().hardState, undefined, 'each ready is given once');
});

test('a follower that hears from nobody begins an election after a random time (5.2)', () => {
  for (const random of [0, 0.5, 0.99]) {
    const raft = newRaft({ random: () => random });
    const dueMs = startMs + 300 * (1 + random);
    for (let nowMs = startMs; nowMs < dueMs; nowMs += 10) raft.tick(nowMs);
    assert.equal(raft.role, Role.follower);
    raft.tick(dueMs);
    assert.equal(raft.role, Role.preCandidate);
    const asked = raft.takeReady().messages.map(({ kind, to, term }) => [kind, to, term]);
    assert.deepEqual(asked, [
      ['preVote', 'b', 5],
      ['preVote', 'c', 5],
    ]);
    assert.equal(raft.term, 4, 'nobody changes its term for a question (thesis, 9.6)');
  }
});

test('term and vote are updated on stable storage before answering (figure 2)', () => {
  const raft = newRaft();
  raft.step(voteOf(), votingMs);
  const { hardState, messages } = raft.takeReady();
  assert.deepEqual([hardState, messages], [{ term: 5, votedFor: 'b' }, []]);
  raft.hardStatePersisted({ term: 5, votedFor: null }, votingMs);
  assert.deepEqual(raft.takeReady().messages, [], 'an older one is not enough');
  raft.hardStatePersisted(hardState!, votingMs);
  const [reply] = raft.takeReady().messages;
  assert.equal(reply?.kind === 'voteReply' && reply.isGranted, true);
});

test('a candidate asks for votes when its own is on disk (figure 2)', () => {
  const raft = newRaft();
  raft.campaign(votingMs);
  const { hardState, messages } = raft.takeReady();
  assert.deepEqual(messages, []);
  raft.hardStatePersisted(hardState!, votingMs);
  assert.deepEqual(
    raft.takeReady().messages.map(({ kind, to }) => [kind, to]),
    [
      ['vote', 'b'],
      ['vote', 'c'],
    ],
  );
});

test('each server votes for at most one candidate in a term, first come first served (5.2)', () => {
  const raft = newRaft();
  raft.step(voteOf(), votingMs);
  assert.equal(persist(raft).length, 1);
  for (const [from, isGranted] of [
    ['c', false],
    ['b', true],
  ] as const) {
    raft.step(voteOf({ from }), votingMs);
    const [reply] = persist(raft);
    assert.equal(reply?.kind === 'voteReply' && reply.isGranted, isGranted);
  }
});

test("the voter denies its vote if its own log is more up-to-date than the candidate's (5.4.1)", () => {
  for (const [lastTerm, lastIndex, isGranted] of [
    [3, 10, true],
    [3, 11, true],
    [3, 9, false],
    [4, 1, true],
    [2, 99, false],
  ] as const) {
    const raft = newRaft();
    raft.step(voteOf({ lastTerm, lastIndex }), votingMs);
    const reply = persist(raft).find(({ kind }) => kind === 'voteReply');
    assert.equal(reply?.kind === 'voteReply' && reply.isGranted, isGranted);
  }
});

test('a server that hears from a leader does not grant a vote, nor update its term (thesis, 4.2.3)', () => {
  const raft = newRaft();
  raft.step(appendOf(10, 3, []), votingMs);
  persist(raft);
  raft.step(voteOf({ from: 'c', term: 9 }), votingMs + 299);
  assert.deepEqual([raft.term, persist(raft)], [5, []]);
  raft.step(voteOf({ from: 'c', term: 9, isTransfer: true }), votingMs + 299);
  assert.equal(raft.term, 9, 'unless the leader itself wants it (thesis, 3.10)');
});

test('who has just started grants no vote: it may have promised a leader its support (6.4.1)', () => {
  const raft = newRaft();
  raft.step(voteOf(), startMs + 299);
  assert.deepEqual([raft.term, persist(raft)], [4, []]);
});

test('a leader commits an entry without effect at the start of its term (8)', () => {
  const raft = alone();
  raft.campaign(votingMs);
  const { hardState } = raft.takeReady();
  assert.equal(raft.role, Role.candidate);
  raft.hardStatePersisted(hardState!, votingMs);
  assert.deepEqual(raft.takeReady().noop, { term: 5, index: 11 });
  assert.equal(raft.mayAnswer(votingMs), false, 'it does not know yet what is committed');
  raft.entriesPersisted(11, 5);
  assert.deepEqual([raft.commitIndex, raft.mayAnswer(votingMs)], [11, true]);
});

test('a log entry is committed once it is on the disks of a majority (5.3)', () => {
  const raft = newLeader();
  const reply = (from: string, matched: number) => {
    const message = { kind: 'appendReply', from, to: 'a', term: 5, matched, sentMs: 1 } as const;
    raft.step(message, votingMs);
  };
  assert.equal(raft.commitIndex, 8, 'its own disk alone is no majority');
  reply('b', 11);
  assert.equal(raft.commitIndex, 11);
  assert.deepEqual([raft.propose().index, raft.propose().index], [12, 13]);
  reply('b', 13);
  assert.equal(raft.commitIndex, 11, 'the leader counts itself only after its own sync');
  reply('c', 12);
  assert.equal(raft.commitIndex, 12, 'and is not needed (thesis, 10.2.1)');
  raft.entriesPersisted(13, 5);
  assert.equal(raft.commitIndex, 13);
  reply('c', 11);
  assert.equal(raft.commitIndex, 13, 'the commit index never moves back');
});

test('only entries of the current term are committed by counting, earlier ones with them (5.4.2)', () => {
  const raft = newLeader();
  const reply = { kind: 'appendReply', from: 'b', to: 'a', term: 5, sentMs: 1 } as const;
  raft.step({ ...reply, matched: 10 }, votingMs);
  assert.equal(raft.commitIndex, 8, 'entries of term 3 are not counted');
  raft.step({ ...reply, matched: 11 }, votingMs);
  assert.equal(raft.commitIndex, 11);
});

test('the leader is the only one that proposes, and does not campaign (5.3)', () => {
  const raft = alone();
  assert.throws(() => raft.propose(), AssertionFailed);
  raft.campaign(votingMs);
  assert.throws(() => raft.propose(), AssertionFailed);
  assert.throws(() => newLeader().campaign(votingMs), AssertionFailed);
});

test('a follower without the entry before the new ones refuses them (5.3)', () => {
  for (const [prevIndex, prevTerm, hint] of [
    [12, 5, [10, 3]],
    [10, 4, [10, 3]],
    [9, 2, [5, 1]],
  ] as const) {
    const raft = newRaft();
    assert.equal(raft.step(appendOf(prevIndex, prevTerm, [5]), votingMs), undefined);
    const reply = persist(raft).find(({ kind }) => kind === 'appendRejected');
    assert.ok(reply?.kind === 'appendRejected');
    assert.deepEqual([reply.prevIndex, reply.hintIndex, reply.hintTerm], [prevIndex, ...hint]);
  }
});

test('an entry that conflicts with a new one is deleted, with all that follow it (5.3)', () => {
  const raft = newRaft();
  const accepted = raft.step(appendOf(8, 3, [4, 5]), votingMs);
  assert.deepEqual(accepted, { truncateAfter: 8, first: 9 });
  assert.deepEqual([raft.termAt(9), raft.termAt(10), raft.lastIndex], [4, 5, 10]);
  const sound = newRaft();
  assert.deepEqual(sound.step(appendOf(8, 3, [3]), votingMs), undefined);
  assert.equal(sound.lastIndex, 10, 'what merely follows stays: the message may be an old one');
});

test('what is committed is never truncated', () => {
  assert.throws(() => newRaft().step(appendOf(7, 3, [5]), votingMs), AssertionFailed);
});

test('a follower answers for entries when they are on its disk, and are those of the leader', () => {
  const raft = newRaft();
  raft.step(appendOf(10, 3, [5, 5]), votingMs);
  const matchedOf = (messages: readonly Message[]) =>
    messages.flatMap((message) => (message.kind === 'appendReply' ? [message.matched] : []));
  assert.deepEqual(matchedOf(persist(raft)), [10], 'the term is on disk, the entries are not');
  raft.entriesPersisted(11, 4);
  assert.deepEqual(persist(raft), [], 'an entry of another term was at this place');
  raft.entriesPersisted(11, 5);
  assert.deepEqual(matchedOf(persist(raft)), [11]);
  const longer = newRaft();
  longer.step(appendOf(8, 3, []), votingMs);
  assert.deepEqual(matchedOf(persist(longer)), [8], 'what follows may be of another leader');
});

test('a leader with an older term learns that it is over (5.1)', () => {
  const raft = newRaft();
  raft.step(appendOf(10, 3, [], { term: 3 }), votingMs);
  const [reply] = persist(raft);
  assert.deepEqual([reply?.kind, reply?.term], ['termIsOver', 4]);
  const leader = newLeader();
  leader.step({ kind: 'termIsOver', from: 'c', to: 'a', term: 9 }, votingMs);
  assert.deepEqual([leader.role, leader.term], [Role.follower, 9]);
});

test('an entry proves its term, whatever became of the hard state', () => {
  const raft = newRaft({ hardState: { term: 2, votedFor: 'c' } });
  assert.deepEqual(raft.hardState, { term: 3, votedFor: null });
});

test('places of entries that never reached the disk are given again, if nobody else got them', () => {
  const raft = newLeader(alone());
  raft.propose();
  raft.propose();
  raft.dropUnpersisted(11, votingMs);
  assert.deepEqual(raft.propose(), { term: 5, index: 12 });
  raft.entriesPersisted(12, 5);
  assert.equal(raft.commitIndex, 12);
  assert.throws(() => raft.dropUnpersisted(11, votingMs), AssertionFailed);
  const leader = newLeader();
  leader.propose();
  leader.dropUnpersisted(11, votingMs);
  assert.deepEqual([leader.role, leader.lastIndex], [Role.follower, 11]);
});

test('a lone leader whose first entry never reached the disk is elected once more', () => {
  const raft = alone();
  const elect = (nowMs: number) => {
    for (let ms = nowMs - 600; ms <= nowMs && raft.role !== Role.candidate; ms += 50) raft.tick(ms);
    const { hardState } = raft.takeReady();
    raft.hardStatePersisted(hardState!, nowMs);
    return [raft.role, raft.takeReady().noop];
  };
  assert.deepEqual(elect(startMs + 600), [Role.leader, { term: 5, index: 11 }]);
  raft.dropUnpersisted(10, startMs + 600);
  assert.equal(raft.role, Role.follower, 'it could commit nothing');
  assert.deepEqual(elect(startMs + 1200), [Role.leader, { term: 6, index: 11 }]);
});

test('who was alone only by an entry that never reached the disk leads no longer without it', () => {
  const raft = newLeader(newRaft({}, ['a', 'b']));
  const reply = { kind: 'appendReply', from: 'b', to: 'a', term: 5, sentMs: 1 } as const;
  raft.step({ ...reply, matched: 11 }, votingMs);
  raft.propose();
  raft.proposeConfiguration({ voters: ['a'], learners: [] });
  raft.dropUnpersisted(11, votingMs);
  assert.deepEqual([raft.role, raft.lastIndex], [Role.follower, 11]);
  assert.deepEqual(raft.configuration.voters, ['a', 'b']);
});

test('one voter more or less at a time, and the next when that is committed (thesis, 4.1)', () => {
  const raft = newLeader();
  const change = (voters: string[]) => raft.proposeConfiguration({ voters, learners: [] });
  assert.throws(() => change(['a', 'b']), AssertionFailed, 'nothing of its term is committed');
  const reply = { kind: 'appendReply', from: 'b', to: 'a', term: 5, sentMs: 1 } as const;
  raft.step({ ...reply, matched: 11 }, votingMs);
  assert.throws(() => change(['a', 'd', 'e']), AssertionFailed);
  assert.equal(change(['a', 'b', 'c', 'd']).index, 12);
  assert.throws(() => change(['a', 'b', 'c']), AssertionFailed);
  raft.entriesPersisted(12, 5);
  raft.step({ ...reply, matched: 12 }, votingMs);
  assert.equal(raft.commitIndex, 11, 'three of four are needed now');
  raft.step({ ...reply, from: 'c', matched: 12 }, votingMs);
  assert.deepEqual([raft.commitIndex, raft.mayReconfigure], [12, true]);
});

test('a hard state is reported as it was given', () => {
  const raft = newRaft();
  raft.campaign(votingMs);
  const given: HardState = raft.takeReady().hardState!;
  raft.campaign(votingMs);
  raft.hardStatePersisted(given, votingMs);
  assert.deepEqual(persist(raft).length, 2, 'votes of the newer term alone are asked for');
});
