import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ClientTraits, Proof } from '../../../src/groups/keyed/client-traits.ts';
import { partOf } from '../../../src/groups/keyed/commit-parts.ts';
import { promptTraits } from './clients.ts';
import { at, keyedSettings, newDispatcher } from './support.ts';

const recordsEach = 1000;

/** A member with so many records in hand, of ten keys. */
function withRecords(records: number, traits: ClientTraits) {
  const settings = { ...keyedSettings, window: records, unfinishedMax: records };
  const dispatcher = newDispatcher(settings);
  const member = dispatcher.addMember({ id: 'm', traits, leaseMs: 1e9, sessionMs: 1e9 });
  dispatcher.openRange(0, 'm', at(0));
  for (let offset = 0; offset < records; offset += recordsEach) {
    const keys = Array.from({ length: recordsEach }, (_, i) => `k${i % 10}`);
    const ends = keys.map((_, i) => i + 1);
    const place = { partition: 0, baseOffset: offset, offsetCount: recordsEach, position: offset };
    dispatcher.filing.file({ ...place, bytes: recordsEach, keys, ends }, at(0));
  }
  const range = dispatcher.presentRange(0)!;
  dispatcher.grant({ member, ranges: [range], bytesMax: 1e9, laneBytesMax: 1e9 }, at(0));
  assert.equal(member.unfinished, records);
  return { dispatcher, member, range };
}

test('a commit of very many records is made of parts, which finish the same', () => {
  const { dispatcher, member, range } = withRecords(350_000, promptTraits);
  const whole = new Map([[0, range.end]]);
  const left: number[] = [];
  for (;;) {
    const part = partOf(dispatcher, 'm', whole);
    dispatcher.commit('m', part ?? whole, at(1));
    left.push(member.unfinished);
    if (part === undefined) break;
  }
  assert.deepEqual(left, [250_000, 150_000, 50_000, 0]);
  assert.equal(dispatcher.ledger.finished(0).low, 350_000);
  assert.deepEqual([dispatcher.board.keys.size, dispatcher.board.store.records], [0, 0]);
});

test('a commit of few records is taken as it is, and so is that of one who is not there', () => {
  const { dispatcher, range } = withRecords(350_000, promptTraits);
  assert.equal(partOf(dispatcher, 'm', new Map([[0, range.start + 100_000]])), undefined);
  assert.equal(partOf(dispatcher, 'm', new Map([[0, range.end + 1]])), undefined);
  assert.equal(partOf(dispatcher, 'm', new Map([[1, range.end]])), undefined);
  assert.equal(partOf(dispatcher, 'another', new Map([[0, range.end]])), undefined);
});

test('where it tells more than what it covers a commit is one, however large', () => {
  for (const habit of [{ commitsHandledOnly: false }, { proof: Proof.nothing }]) {
    const { dispatcher, range } = withRecords(350_000, { ...promptTraits, ...habit });
    assert.equal(partOf(dispatcher, 'm', new Map([[0, range.end]])), undefined);
  }
});
