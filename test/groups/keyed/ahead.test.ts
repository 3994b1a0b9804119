import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ByteReader, ByteWriter } from '../../../src/core/bytes.ts';
import { DeliveryCounters } from '../../../src/groups/keyed/counters.ts';
import { Dispatcher } from '../../../src/groups/keyed/dispatcher.ts';
import type { Granted } from '../../../src/groups/keyed/grant.ts';
import type { Waiter } from '../../../src/groups/keyed/waiters.ts';
import { Ledger } from '../../../src/state/keyed/ledger.ts';
import { promptTraits } from './clients.ts';
import { at, keyedSettings, newDispatcher } from './support.ts';

const recordBytes = 10;

/** Two members with a lane each, and records of ten bytes; an answer has room for two. */
function group(keys: readonly string[]) {
  const dispatcher = newDispatcher(keyedSettings);
  for (const [lane, id] of ['m', 'other'].entries()) {
    dispatcher.addMember({ id, traits: promptTraits, leaseMs: 5000, sessionMs: 5000 });
    dispatcher.openRange(lane, id, at(0));
  }
  file(dispatcher, keys);
  return dispatcher;
}

function file(dispatcher: Dispatcher, keys: readonly string[]): void {
  dispatcher.filing.file(
    {
      ...{ partition: 0, baseOffset: 0, position: 0, keys },
      bytes: keys.length * recordBytes,
      offsetCount: keys.length,
      ends: keys.map((_, i) => recordBytes * (i + 1)),
    },
    at(0),
  );
}

function fetchOf(dispatcher: Dispatcher, lane = 0): Waiter {
  const range = dispatcher.presentRange(lane)!;
  const bytesMax = 2 * recordBytes;
  return { member: range.member, ranges: [range], bytesMax, laneBytesMax: bytesMax };
}

function fetch(dispatcher: Dispatcher, ms: number, lane = 0): Granted[] {
  const waiter = fetchOf(dispatcher, lane);
  dispatcher.prove(waiter.member, waiter.ranges, at(ms));
  return dispatcher.grant(waiter, at(ms));
}

/** Stored offsets of what was granted. */
function offsets(granted: readonly Granted[]): number[] {
  const found: number[] = [];
  for (const { range, from, to } of granted) {
    range.grants.forEach(from, to, (_n, count, _partition, offset) => {
      for (let i = 0; i < count; i++) found.push(offset + i);
    });
  }
  return found;
}

function grantAhead(dispatcher: Dispatcher, ms: number): void {
  assert.equal(dispatcher.ahead.grant(fetchOf(dispatcher), at(ms)).length, 1);
}

describe('records that are granted ahead of a fetch', () => {
  it('are the answer to it', () => {
    const dispatcher = group(['a', 'b', 'c', 'd', 'e', 'f']);
    const first = fetch(dispatcher, 0);
    assert.deepEqual(offsets(first), [0, 1]);
    grantAhead(dispatcher, 1);
    const second = fetch(dispatcher, 2);
    assert.deepEqual(offsets(second), [2, 3]);
    assert.equal(second[0]!.from, first[0]!.to);
    assert.deepEqual([first[0]!.isAhead, second[0]!.isAhead], [false, true]);
    assert.deepEqual(offsets(fetch(dispatcher, 3)), [4, 5]);
  });

  it('are worth while when full answers follow one another quickly and much is ready', () => {
    const isWorthwhile = (count: number, askedMs: number, parked?: number) => {
      const dispatcher = group(Array.from({ length: count }, (_, i) => `k${i}`));
      fetch(dispatcher, 0);
      fetch(dispatcher, askedMs);
      if (parked !== undefined) dispatcher.waiters.park(fetchOf(dispatcher, parked));
      return dispatcher.ahead.isWorthwhile(fetchOf(dispatcher));
    };
    assert.equal(isWorthwhile(100, 5), true);
    assert.equal(isWorthwhile(100, 30), false, 'the client is slow');
    assert.equal(isWorthwhile(10, 5), false, 'others may need what there is');
    assert.equal(isWorthwhile(3, 5), false, 'the answer was not full');
    assert.equal(isWorthwhile(100, 5, 1), false, 'somebody waits');
  });

  it('come with a commit of all that a member has, if that is its habit and nobody waits', () => {
    const atCommit = (commits: number, more: { parked?: number; isBusy?: boolean } = {}) => {
      const dispatcher = group(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']);
      const { member, ranges } = fetchOf(dispatcher);
      for (let i = 0; i < commits; i++) {
        const granted = fetch(dispatcher, i);
        dispatcher.ahead.onAnswered(fetchOf(dispatcher));
        const left = more.isBusy === true && i === commits - 1 ? 1 : 0;
        dispatcher.commit('m', new Map([[0, granted[0]!.to - left]]), at(i));
      }
      const waiter = more.parked === undefined ? undefined : fetchOf(dispatcher, more.parked);
      if (waiter !== undefined) dispatcher.waiters.park(waiter);
      return dispatcher.ahead.grantAtCommit(member, at(commits)).length === ranges.length;
    };
    assert.equal(atCommit(3), true);
    assert.equal(atCommit(2), false, 'no habit yet');
    assert.equal(atCommit(4, { isBusy: true }), false, 'it has something in hand');
    assert.equal(atCommit(3, { parked: 1 }), false, 'another one waits');
    assert.equal(atCommit(3, { parked: 0 }), false, 'it has a fetch here already');
    assert.equal(atCommit(5), false, 'nothing is ready');
  });

  it('are in nobody’s hand, prove nothing, and are not charged to anybody', () => {
    const dispatcher = group(['a', 'b', 'c', 'd']);
    fetch(dispatcher, 0);
    const { member, ranges } = fetchOf(dispatcher);
    dispatcher.commit('m', new Map([[0, ranges[0]!.end - 1]]), at(1));
    assert.deepEqual([member.inHand, member.unfinished], [1, 1]);
    grantAhead(dispatcher, 1);
    assert.deepEqual([member.inHand, member.unfinished], [1, 1]);
    dispatcher.prove(member, ranges, at(2));
    assert.equal(member.inHand, 0);
    dispatcher.removeMember('m', 'died', at(3));
    assert.equal(dispatcher.counters.charged, 0);
    assert.deepEqual([...dispatcher.failures.tried], []);
    assert.deepEqual(offsets(fetch(dispatcher, 4, 1)), [1, 2]);
    assert.equal(dispatcher.counters.redelivered, 1, 'the one that was sent');
  });

  it('are ready again, and their numbers used again, when the fetch does not come', () => {
    const dispatcher = group(['a', 'b', 'c', 'd']);
    const [first] = fetch(dispatcher, 0);
    grantAhead(dispatcher, 1);
    assert.equal(dispatcher.nextDueMs(), 51);
    dispatcher.tick(at(51));
    const [second] = fetch(dispatcher, 60);
    assert.deepEqual(offsets([second!]), [2, 3]);
    assert.deepEqual([second!.from, second!.isAhead], [first!.to, false]);
  });

  it('go to another fetch that there is nothing else for', () => {
    const dispatcher = group(['a', 'b', 'c', 'd']);
    fetch(dispatcher, 0);
    grantAhead(dispatcher, 1);
    assert.deepEqual(offsets(fetch(dispatcher, 2, 1)), [2, 3]);
  });

  it('are not finished by a commit beyond what was sent', () => {
    const dispatcher = group(['a', 'b', 'c', 'd']);
    const [first] = fetch(dispatcher, 0);
    grantAhead(dispatcher, 1);
    assert.deepEqual(dispatcher.commit('m', new Map([[0, first!.to + 1]]), at(2)), [0]);
    assert.equal(dispatcher.ledger.finished(0).low, 0);
  });

  it('do not overtake what the client gives back', () => {
    const dispatcher = group(['a', 'a', 'a', 'a']);
    const [first] = fetch(dispatcher, 0);
    grantAhead(dispatcher, 1);
    dispatcher.reject(first!.range.member, [first!], false, at(2));
    assert.deepEqual(offsets(dispatcher.grant(fetchOf(dispatcher), at(2))), [0, 1]);
  });

  it('stay behind when the lane goes to somebody else', () => {
    const dispatcher = group(['a', 'b', 'c', 'd']);
    fetch(dispatcher, 0);
    grantAhead(dispatcher, 1);
    dispatcher.openRange(0, 'other', at(0));
    assert.deepEqual(offsets(fetch(dispatcher, 2)), [2, 3]);
  });

  it('are not sent once they are deleted', () => {
    const dispatcher = group(['a', 'b', 'c', 'd']);
    fetch(dispatcher, 0);
    grantAhead(dispatcher, 1);
    dispatcher.filing.deleteBelow(0, 3);
    assert.deepEqual(offsets(fetch(dispatcher, 2)), [3]);
  });

  it('are asked for once more after a restart, like what was sent', () => {
    const keys = ['a', 'b', 'c', 'd'];
    const before = group(keys);
    const [first] = fetch(before, 0);
    grantAhead(before, 1);
    const writer = new ByteWriter();
    before.ledger.write(writer);
    const ledger = Ledger.read(new ByteReader(writer.finish()));
    const dispatcher = new Dispatcher(ledger, keyedSettings, new DeliveryCounters());
    dispatcher.addMember({ id: 'm', traits: promptTraits, leaseMs: 5000, sessionMs: 5000 });
    dispatcher.restore(at(10));
    file(dispatcher, keys);
    const range = dispatcher.presentRange(0)!;
    assert.equal(range.end, first!.to + 2);
    assert.deepEqual(offsets([{ range, from: first!.to, to: range.end, isAhead: false }]), [2, 3]);
  });
});
