import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ClientTraits, Proof } from '../../../src/groups/keyed/client-traits.ts';
import { promptTraits } from './clients.ts';
import { at, keyedSettings, newDispatcher } from './support.ts';

/** Twenty batches, each with one record of each of ten keys; how many keys the first fetch gets. */
function keysOfFirstFetch(traits: ClientTraits): { records: number; keys: number } {
  const dispatcher = newDispatcher({ ...keyedSettings, window: undefined });
  for (const [lane, id] of ['a', 'b'].entries()) {
    dispatcher.addMember({ id, traits, leaseMs: 1e9, sessionMs: 1e9 });
    dispatcher.openRange(lane, id, at(0));
  }
  const keys = Array.from({ length: 10 }, (_, i) => `k${i}`);
  const ends = keys.map((_, i) => i + 1);
  for (let i = 0; i < 20; i++) {
    const place = { partition: 0, baseOffset: i * 10, offsetCount: 10, position: i };
    dispatcher.filing.file({ ...place, bytes: 10, keys, ends }, at(0));
  }
  const range = dispatcher.presentRange(0)!;
  const waiter = { member: range.member, ranges: [range], bytesMax: 1e9, laneBytesMax: 1e9 };
  dispatcher.grant(waiter, at(0));
  const { store } = dispatcher.board;
  const found = new Set<number>();
  for (let n = range.start; n < range.end; n++) found.add(store.key[range.ref(n)]!);
  return { records: range.end - range.start, keys: found.size };
}

test('who keeps its keys for long gets all that waits of one before another', () => {
  const { records, keys } = keysOfFirstFetch({ ...promptTraits, proof: Proof.nothing });
  assert.ok(records >= 20, 'a part of what is ready');
  assert.equal(keys, Math.ceil(records / 20));
});

test('who says in time what it has handled gets the oldest records', () => {
  const { records, keys } = keysOfFirstFetch(promptTraits);
  assert.equal(keys, Math.min(records, 10));
});
