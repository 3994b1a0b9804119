import assert from 'node:assert/strict';
import { test } from 'node:test';
import { earlyTraits } from './clients.ts';
import { at, keyedSettings, newDispatcher } from './support.ts';

const settings = { ...keyedSettings, retryBackoffMs: 1000, retryBackoffMsMax: 60_000 };

/** One consumer that rejoined in the background, with records of its former range in hand. */
function rejoined(keys: readonly string[]) {
  const dispatcher = newDispatcher(settings);
  dispatcher.addMember({ id: 'm', traits: earlyTraits, leaseMs: 300_000, sessionMs: 45_000 });
  dispatcher.openRange(0, 'm');
  dispatcher.filing.file(
    {
      ...{ partition: 0, baseOffset: 0, position: 0, bytes: 1000, keys },
      offsetCount: keys.length,
      ends: keys.map((_, i) => 10 * (i + 1)),
    },
    at(0),
  );
  const fetch = () => {
    const range = dispatcher.presentRange(0)!;
    return { member: range.member, ranges: [range], bytesMax: 1000, laneBytesMax: 1000 };
  };
  assert.equal(dispatcher.grant(fetch(), at(0)).length, 1);
  dispatcher.giveUp('m', [0], true, at(10));
  dispatcher.openRange(0, 'm');
  dispatcher.waiters.park(fetch());
  const served: number[] = [];
  const serve = (ms: number) => {
    dispatcher.tick(at(ms));
    dispatcher.waiters.serve(at(ms), (_waiter, granted) => {
      for (const { from, to } of granted) served.push(to - from);
    });
    return served;
  };
  return { dispatcher, serve, fetch };
}

test('a member that waits beside what it keeps is given its last key again, alone', () => {
  const { dispatcher, serve } = rejoined(['a', 'c', 'b', 'c']);
  assert.deepEqual(serve(44_000), [], 'a handler may be at it');
  assert.deepEqual(serve(45_100), [2], 'both records of the key that was granted last');
  assert.equal(dispatcher.board.readyKeys, 0, 'nobody else gets any of it');
});

test('when it commits that, the rest of what it kept comes back', () => {
  const { dispatcher, serve, fetch } = rejoined(['a', 'b', 'a', 'c']);
  serve(45_100);
  const { end } = dispatcher.presentRange(0)!;
  dispatcher.commit('m', 0, end, at(45_200));
  assert.equal(dispatcher.board.readyKeys, 2, 'keys a and b');
  assert.equal(dispatcher.grant(fetch(), at(45_300))[0]?.to, end + 3);
});
