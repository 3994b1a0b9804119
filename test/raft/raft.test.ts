/** Sentences of the Raft paper (extended version) and thesis, as far as one voter goes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AssertionFailed } from '../../src/core/assert.ts';
import { Raft, type RaftOptions, Role } from '../../src/raft/raft.ts';

function newRaft(options: Partial<RaftOptions> = {}): Raft {
  return new Raft({
    self: 'a',
    voters: ['a'],
    hardState: { term: 4, votedFor: null },
    lastIndex: 10,
    lastTerm: 3,
    commitIndex: 8,
    ...options,
  });
}

function newLeader(options: Partial<RaftOptions> = {}): Raft {
  const raft = newRaft(options);
  raft.campaign();
  raft.hardStatePersisted(raft.takeReady().hardState!.term);
  return raft;
}

test('when servers start up, they begin as followers (5.2)', () => {
  const raft = newRaft();
  assert.equal(raft.role, Role.follower);
  assert.deepEqual(raft.takeReady(), { hardState: undefined, noop: undefined });
});

test('to begin an election, a follower increments its current term and votes for itself (5.2)', () => {
  const raft = newRaft();
  raft.campaign();
  assert.equal(raft.role, Role.candidate);
  assert.deepEqual(raft.takeReady().hardState, { term: 5, votedFor: 'a' });
  assert.equal(raft.takeReady().hardState, undefined, 'each ready is given once');
});

test('term and vote are updated on stable storage before they count (figure 2)', () => {
  const raft = newRaft();
  raft.campaign();
  const { term } = raft.takeReady().hardState!;
  assert.equal(raft.role, Role.candidate);
  assert.equal(raft.takeReady().noop, undefined);
  raft.hardStatePersisted(term - 1);
  assert.equal(raft.role, Role.candidate, 'the vote of an older term does not count');
  raft.hardStatePersisted(term);
  assert.equal(raft.role, Role.leader);
});

test('a leader commits a no-op entry at the start of its term (8)', () => {
  const raft = newLeader();
  assert.deepEqual(raft.takeReady().noop, { term: 5, index: 11 });
  assert.equal(raft.lastIndex, 11);
  raft.entriesPersisted(11);
  assert.equal(raft.commitIndex, 11);
});

test('a log entry is committed once it is replicated on a majority: on disk here (5.3)', () => {
  const raft = newLeader();
  raft.entriesPersisted(11);
  for (const index of [12, 13, 14]) {
    assert.deepEqual(raft.propose(), { term: 5, index });
  }
  assert.equal(raft.commitIndex, 11, 'the leader counts itself only after its own sync');
  raft.entriesPersisted(13);
  assert.equal(raft.commitIndex, 13);
  raft.entriesPersisted(12);
  assert.equal(raft.commitIndex, 13, 'the commit index never moves back');
});

test('only entries from the current term are committed by counting, earlier ones with them (5.4.2)', () => {
  const raft = newRaft();
  raft.campaign();
  raft.entriesPersisted(10);
  assert.equal(raft.commitIndex, 8, 'entries of term 3 are not counted');
  raft.hardStatePersisted(5);
  raft.entriesPersisted(10);
  raft.entriesPersisted(11);
  assert.equal(raft.commitIndex, 11);
});

test('the leader is the only one that proposes (5.3)', () => {
  const raft = newRaft();
  assert.throws(() => raft.propose(), AssertionFailed);
  raft.campaign();
  assert.throws(() => raft.propose(), AssertionFailed);
  assert.throws(() => newLeader().campaign(), AssertionFailed);
});

test('only what was proposed can be on disk', () => {
  assert.throws(() => newLeader().entriesPersisted(12), AssertionFailed);
});

test('places of entries that never reached the disk are given again', () => {
  const raft = newLeader();
  raft.entriesPersisted(11);
  raft.propose();
  raft.propose();
  raft.dropUnpersisted(11, 5);
  assert.deepEqual(raft.propose(), { term: 5, index: 12 });
  raft.entriesPersisted(12);
  assert.equal(raft.commitIndex, 12);
  assert.throws(() => raft.dropUnpersisted(11, 5), AssertionFailed);
});

test('this version serves a group of one voter, itself', () => {
  assert.throws(() => newRaft({ voters: ['a', 'b', 'c'] }), AssertionFailed);
  assert.throws(() => newRaft({ voters: ['b'] }), AssertionFailed);
});
