import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { decodeMessage, encodeMessage } from '../../src/cluster/peer-codec.ts';
import { codecs } from '../../src/core/codecs.ts';
import type { Entry } from '../../src/log/format.ts';
import { buildBatch } from '../../src/protocol/records/build.ts';
import type { Append, Message } from '../../src/raft/messages.ts';
import { encodeMembers } from '../../src/state/commands.ts';
import { EntryType } from '../../src/state/entry-types.ts';

const place = fc.nat();
const ms = fc.double({ noNaN: true, noDefaultInfinity: true });
const envelope = { from: fc.string(), to: fc.string(), term: place };

/** One of each kind but append: a new kind without one does not compile. */
const messages: Readonly<
  Record<Exclude<Message['kind'], 'append'>, fc.Arbitrary<Record<string, unknown>>>
> = {
  preVote: fc.record({ ...envelope, lastIndex: place, lastTerm: place }),
  preVoteReply: fc.record({ ...envelope, isGranted: fc.boolean() }),
  vote: fc.record({ ...envelope, lastIndex: place, lastTerm: place, isTransfer: fc.boolean() }),
  voteReply: fc.record({ ...envelope, isGranted: fc.boolean() }),
  appendReply: fc.record({ ...envelope, matched: place, sentMs: ms }),
  appendRejected: fc.record({
    ...{ ...envelope, prevIndex: place, hintIndex: place, hintTerm: place, sentMs: ms },
  }),
  heartbeat: fc.record({
    ...{ ...envelope, commitIndex: place, sentMs: ms, isDozing: fc.boolean() },
  }),
  heartbeatReply: fc.record({ ...envelope, hasEntries: fc.boolean(), sentMs: ms }),
  snapshotOffer: fc.record({
    ...{
      ...envelope,
      base: fc.tuple(place, place).map(([index, term]) => ({ index, term })),
      sentMs: ms,
    },
  }),
  timeoutNow: fc.record(envelope),
  termIsOver: fc.record(envelope),
};

function entry(index: number, term: number, more: Partial<Entry> = {}): Entry {
  const none = { batches: [], partitions: [] };
  const meta = Buffer.from(`meta of ${index}`);
  return {
    type: EntryType.groupStored,
    version: 1,
    tenant: 0,
    term,
    index,
    meta,
    ...none,
    ...more,
  };
}

function append(entries: readonly Entry[], prevIndex: number): Append {
  return {
    ...{ kind: 'append', from: '1:a', to: '2:b', term: 9, prevIndex, prevTerm: 3 },
    ...{ lastIndex: prevIndex + entries.length, commitIndex: 4, sentMs: 12.5 },
    runs: [],
    configurations: [],
  };
}

describe('messages between nodes', () => {
  for (const [kind, values] of Object.entries(messages)) {
    it(`are the same on the other side: ${kind}`, () => {
      fc.assert(
        fc.property(values, (fields) => {
          const message = { kind, ...fields } as unknown as Message;
          const frame = Buffer.concat(encodeMessage(message, []));
          assert.deepEqual(decodeMessage(frame), { message, entries: [] });
        }),
      );
    });
  }

  it('carry entries with their batches, and tell terms and members from them', () => {
    const batch = buildBatch(
      { records: [{ key: null, value: Buffer.alloc(5000, 7), timestamp: 1 }] },
      codecs,
    );
    const members = { voters: ['1:a', '2:b'], learners: ['3:c'] };
    const entries = [
      entry(6, 3),
      entry(7, 5, { type: EntryType.batches, batches: [batch], partitions: [8] }),
      entry(8, 5, {
        type: EntryType.members,
        meta: encodeMembers({ ...members, removed: ['4:d'] }),
      }),
    ];
    const message = append(entries, 5);
    const decoded = decodeMessage(Buffer.concat(encodeMessage(message, entries)));
    assert.deepEqual(decoded.message, {
      ...message,
      runs: [
        { index: 6, term: 3 },
        { index: 7, term: 5 },
      ],
      configurations: [{ index: 8, configuration: members }],
    });
    assert.deepEqual(
      decoded.entries.map(({ index, term, meta }) => [index, term, meta.toString('latin1')]),
      entries.map(({ index, term, meta }) => [index, term, meta.toString('latin1')]),
    );
    assert.deepEqual(decoded.entries[1]!.batches[0], batch);
  });

  it('are refused when a byte is wrong, or missing', () => {
    const batch = buildBatch(
      { records: [{ key: null, value: Buffer.alloc(50, 7), timestamp: 1 }] },
      codecs,
    );
    const entries = [entry(6, 3, { type: EntryType.batches, batches: [batch], partitions: [1] })];
    const frame = Buffer.concat(encodeMessage(append(entries, 5), entries));
    for (let length = 0; length < frame.length; length++) {
      assert.throws(() => decodeMessage(frame.subarray(0, length)), `${length} bytes`);
    }
    const body = frame.length - Buffer.concat(encodeMessage(append([], 5), [])).length;
    for (let at = frame.length - body; at < frame.length; at++) {
      const damaged = Buffer.from(frame);
      damaged[at]! ^= 1;
      assert.throws(() => decodeMessage(damaged), `byte ${at}`);
    }
  });
});
