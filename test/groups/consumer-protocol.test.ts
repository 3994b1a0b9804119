import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSubscribedTopics } from '../../src/groups/consumer-protocol.ts';
import { subscription } from './classic/subscription.ts';

test('topics are read from every version of a subscription', () => {
  for (const version of [0, 1, 2, 3, 9]) {
    const bytes = subscription(['orders', 'größe'], 'user data', version);
    assert.deepEqual(readSubscribedTopics(bytes), ['orders', 'größe']);
  }
  assert.deepEqual(readSubscribedTopics(subscription([])), []);
});

test('what is cut within the topics is no subscription', () => {
  const topicsEnd = subscription(['orders', 'payments']).length - 4;
  const bytes = subscription(['orders', 'payments']);
  for (let end = 0; end < topicsEnd; end++) {
    assert.equal(readSubscribedTopics(bytes.subarray(0, end)), null, `cut at ${end}`);
  }
});

test('wrong versions, counts and lengths are no subscription', () => {
  const cases: [string, string][] = [
    ['empty', ''],
    ['negative version', 'ffff00000000'],
    ['negative count', '0000ffffffff'],
    ['huge count', '00007fffffff0001'],
    ['negative length', '000000000001ffff'],
    ['length beyond the end', '000000000001000561'],
  ];
  for (const [name, hex] of cases) {
    assert.equal(readSubscribedTopics(Buffer.from(hex, 'hex')), null, name);
  }
});
