import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ByteReader, ByteWriter } from '../../../src/core/bytes.ts';
import { DeliveryCounters } from '../../../src/groups/keyed/counters.ts';
import { Dispatcher } from '../../../src/groups/keyed/dispatcher.ts';
import { Ledger } from '../../../src/state/keyed/ledger.ts';
import { earlyTraits } from './clients.ts';
import { at, keyedSettings, newDispatcher } from './support.ts';

const settings = { ...keyedSettings, retryBackoffMs: 1000, retryBackoffMsMax: 60_000 };
const dayMs = 86_400_000;

function join(dispatcher: Dispatcher, id: string): void {
  dispatcher.addMember({ id, traits: earlyTraits, leaseMs: 300_000, sessionMs: 45_000 });
  dispatcher.openRange(0, id, at(0));
}

function file(dispatcher: Dispatcher, wallMs: number): void {
  const batch = { partition: 0, baseOffset: 0, position: 0, bytes: 1000, keys: ['a'] };
  dispatcher.filing.file({ ...batch, offsetCount: 1, ends: [10] }, { monotonicMs: 0, wallMs });
}

function waiterOf(dispatcher: Dispatcher) {
  const range = dispatcher.presentRange(0)!;
  return { member: range.member, ranges: [range], bytesMax: 1000, laneBytesMax: 1000 };
}

/** A record whose consumer died with it, on one leader; answers what another leader grants then. */
function diedAt(wallMs: number, nextWallMs: number): (ms: number) => number {
  const first = newDispatcher(settings);
  join(first, 'first');
  file(first, wallMs);
  assert.equal(first.grant(waiterOf(first), at(0)).length, 1);
  first.removeMember('first', 'died', { monotonicMs: 0, wallMs });
  const writer = new ByteWriter();
  first.ledger.write(writer);
  const ledger = Ledger.read(new ByteReader(writer.finish()));
  const next = new Dispatcher(ledger, settings, new DeliveryCounters());
  next.restore({ monotonicMs: 0, wallMs: nextWallMs });
  join(next, 'second');
  file(next, nextWallMs);
  next.waiters.park(waiterOf(next));
  return (ms) => {
    const now = { monotonicMs: ms, wallMs: nextWallMs + ms };
    let granted = 0;
    next.tick(now);
    next.waiters.serve(now, (_waiter, parts) => {
      granted += parts.length;
    });
    return granted;
  };
}

test('a record waits for its backoff before it is tried again, over a failover too', () => {
  const granted = diedAt(5000, 5000);
  assert.equal(granted(900), 0);
  assert.equal(granted(1100), 1);
});

test('a leader whose clock is far behind waits for no longer than the backoff', () => {
  const granted = diedAt(5000 + dayMs, 5000);
  assert.equal(granted(900), 0);
  assert.equal(granted(1100), 1);
});
