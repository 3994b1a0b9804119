import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type GroupOffsetFacts,
  isOffsetExpired,
  isSubscribedToTopic,
} from '../../src/groups/offsets-rules.ts';

const retentionMs = 1_000;

const facts = (given: Partial<GroupOffsetFacts>): GroupOffsetFacts => ({
  protocolType: 'consumer',
  isEmpty: false,
  isStable: false,
  stateTimestampMs: 5_000,
  subscribedTopics: new Set(['sub']),
  ...given,
});

const empty = facts({ isEmpty: true, subscribedTopics: new Set() });
const stable = facts({ isStable: true });

/** Each row: group, topic, committed at, expires at, now, expired. */
const rows: [string, GroupOffsetFacts | null, string, number, number | null, number, boolean][] = [
  ['unknown group, young commit', null, 't', 4_000, null, 4_999, false],
  ['unknown group, old commit', null, 't', 4_000, null, 5_000, true],
  ['simple group, young', facts({ protocolType: null }), 't', 4_000, null, 4_999, false],
  ['simple group, old', facts({ protocolType: null }), 't', 4_000, null, 5_000, true],
  ['empty since 5 s, however old the commit', empty, 't', 1, null, 5_999, false],
  ['empty for the retention time', empty, 't', 5_900, null, 6_000, true],
  ['empty group of another type', { ...empty, protocolType: 'connect' }, 't', 1, null, 6_000, true],
  ['stable, subscribed', stable, 'sub', 1, null, 99_999, false],
  ['stable, no longer subscribed, young', stable, 'old', 9_000, null, 9_999, false],
  ['stable, no longer subscribed, old', stable, 'old', 9_000, null, 10_000, true],
  ['rebalancing, no longer subscribed', facts({}), 'old', 1, null, 99_999, false],
  ['topics unknown', { ...stable, subscribedTopics: null }, 'old', 1, null, 99_999, false],
  [
    'active, of another type',
    { ...stable, protocolType: 'connect', subscribedTopics: null },
    'old',
    1,
    null,
    99_999,
    false,
  ],
  ['own retention time, not over', empty, 't', 1, 7_000, 6_999, false],
  ['own retention time, over', empty, 't', 6_900, 7_000, 7_000, true],
  ['own retention time, subscribed', stable, 'sub', 1, 2, 99_999, false],
  ['own retention time, rebalancing', facts({}), 'old', 1, 2, 99_999, false],
  ['clock went back', empty, 't', 1, null, 0, false],
];

for (const [name, group, topic, commitTimestampMs, expireTimestampMs, nowMs, expired] of rows) {
  test(`offset expiry: ${name}`, () => {
    const offset = { topic, commitTimestampMs, expireTimestampMs };
    assert.equal(isOffsetExpired(group, offset, nowMs, retentionMs), expired);
  });
}

test('a consumer group whose topics are not known counts as subscribed to all', () => {
  assert.equal(isSubscribedToTopic(facts({ subscribedTopics: null }), 'any'), true);
  assert.equal(isSubscribedToTopic(facts({}), 'sub'), true);
  assert.equal(isSubscribedToTopic(facts({}), 'any'), false);
  const connect = facts({ protocolType: 'connect', subscribedTopics: null });
  assert.equal(isSubscribedToTopic(connect, 'any'), false);
});
