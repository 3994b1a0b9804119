/** What a peer gets that lags behind what is in memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Entry, entryBytes } from '../../src/log/format.ts';
import type { Append } from '../../src/raft/messages.ts';
import { AppendSender } from '../../src/replica/append-sender.ts';
import { EntryTail } from '../../src/replica/entry-tail.ts';
import { appendGroups, newDisk, openJournal, plainEntry } from '../log/support.ts';

const bytesMax = 10_000;

function appendOf(first: number, lastIndex: number, term: number): Append {
  return {
    ...{ kind: 'append', from: 'a', to: 'b', term: 9, prevIndex: first - 1, prevTerm: 1 },
    ...{ lastIndex, runs: [{ index: first, term }], configurations: [] },
    ...{ commitIndex: 0, sentMs: 1 },
  };
}

async function started(count: number) {
  const { journal } = await openJournal(newDisk().files());
  const entries = Array.from({ length: count }, (_, i) => plainEntry(i + 1, Buffer.alloc(50, i)));
  await appendGroups(
    journal,
    Array.from({ length: count / 10 }, (_, i) => entries.slice(i * 10, i * 10 + 10)),
  );
  const sent: { readonly message: Append; readonly entries: readonly Entry[] }[] = [];
  let onSent: () => void = () => undefined;
  const peers = {
    send: (message: Append, of: readonly Entry[]) => {
      sent.push({ message, entries: of });
      onSent();
    },
    ask: () => Promise.resolve(undefined),
  };
  const fail = (what: unknown) => assert.fail(String(what));
  const sender = new AppendSender(peers as never, new EntryTail(0), journal, fail, fail);
  /** Sends one append from `first` on, as large as may be; answers its entries. */
  const next = async (first: number, term = 1) => {
    const last = sender.lastFitting(first, count, bytesMax) ?? first;
    const arrived = new Promise<void>((resolve) => {
      onSent = resolve;
    });
    sender.send(appendOf(first, last, term));
    await arrived;
    return sent.at(-1)!.entries;
  };
  return { journal, sender, sent, next };
}

test('old entries go in messages as large as they may be, in order', async () => {
  const count = 5000;
  const { next, sent } = await started(count);
  let index = 1;
  while (index <= count) {
    const entries = await next(index);
    for (const entry of entries) assert.equal(entry.index, index++);
    const bytes = entries.reduce((sum, entry) => sum + entryBytes(entry), 0);
    assert.ok(entries.length === 1 || bytes <= bytesMax);
  }
  assert.ok(sent.length < count / 20, `${sent.length} messages`);
});

test('what has become void is not sent, and read anew', async () => {
  const { journal, sender, sent, next } = await started(100);
  await next(1);
  await journal.rewind(50, 1);
  const fresh = Array.from({ length: 20 }, (_, i) => ({
    ...plainEntry(51 + i, Buffer.from('new')),
    term: 2,
  }));
  await journal.append(fresh);
  // What was read before is still in memory.
  const before = sent.length;
  sender.send(appendOf(51, 60, 2));
  const entries = await next(51, 2);
  assert.equal(sent.length, before + 1);
  assert.deepEqual([entries[0]!.index, entries[0]!.term], [51, 2]);
});
