/**
 * The dispatcher of keyed delivery by itself: what held keys cost those that are not, what finished
 * records above a stuck one cost, and what keys leave behind.
 *
 *     node --expose-gc dist/bench/micro/keyed.js
 */

import { DeliveryCounters } from '../../src/groups/keyed/counters.ts';
import { Dispatcher } from '../../src/groups/keyed/dispatcher.ts';
import type { FiledBatch } from '../../src/groups/keyed/record-store.ts';
import { Ledger } from '../../src/state/keyed/ledger.ts';
import { promptTraits } from '../../test/groups/keyed/clients.ts';

const recordsPerBatch = 100;
const recordBytes = 100;
const settings = {
  finishesProven: false,
  window: 100_000_000,
  unfinishedMax: 100_000_000,
  neverRejects: false,
  attemptsMax: 5,
  retryBackoffMs: 1000,
  retryBackoffMsMax: 60_000,
  halts: false,
};

class Rig {
  readonly dispatcher: Dispatcher;
  readonly #now = { monotonicMs: 1, wallMs: 1 };
  #offset = 0;

  constructor(lanes: number) {
    const effect = { kind: 'opened' as const, slot: 1, laneBase: 1, starts: [] };
    const ledger = Ledger.open('group', '00'.repeat(16), effect);
    this.dispatcher = new Dispatcher(ledger, settings, new DeliveryCounters());
    for (let lane = 0; lane < lanes; lane++) {
      const member = { id: `m${lane}`, traits: promptTraits, leaseMs: 1e9, sessionMs: 1e9 };
      this.dispatcher.addMember(member);
      this.dispatcher.openRange(lane, member.id, this.#now);
    }
  }

  file(keyOf: (record: number) => string, records: number): void {
    for (let done = 0; done < records; done += recordsPerBatch) {
      const count = Math.min(recordsPerBatch, records - done);
      const batch: FiledBatch = {
        partition: 0,
        baseOffset: this.#offset,
        offsetCount: count,
        position: this.#offset * recordBytes,
        bytes: count * recordBytes,
        keys: Array.from({ length: count }, (_, i) => keyOf(done + i)),
        ends: Array.from({ length: count }, (_, i) => (i + 1) * recordBytes),
      };
      this.#offset += count;
      this.dispatcher.filing.file(batch, this.#now);
    }
    this.dispatcher.takeEffects();
  }

  /** Grants up to so many records to a lane's member; answers how many. */
  grant(lane: number, records: number): number {
    const range = this.dispatcher.presentRange(lane)!;
    const bytes = records * recordBytes;
    const waiter = { member: range.member, ranges: [range], bytesMax: bytes, laneBytesMax: bytes };
    const before = range.end;
    this.dispatcher.grant(waiter, this.#now);
    this.dispatcher.takeEffects();
    return range.end - before;
  }

  commit(lane: number): void {
    const range = this.dispatcher.presentRange(lane)!;
    this.dispatcher.commit(range.member.id, new Map([[lane, range.end]]), this.#now);
    this.dispatcher.takeEffects();
  }
}

function heapMb(): number {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return (heapUsed + arrayBuffers) / 1e6;
}

/** Microseconds for a grant and a commit of one record of another key. */
function timePerGrant(behind: number): number {
  const rig = new Rig(2);
  rig.file(() => 'stuck', 1);
  rig.grant(0, 1);
  rig.file(() => 'stuck', behind);
  const count = 200_000;
  const start = performance.now();
  let granted = 0;
  for (let i = 0; i < count; i += 1000) {
    rig.file((record) => `key${(i + record) % 5000}`, 1000);
    for (let j = 0; j < 1000; j++) {
      granted += rig.grant(1, 1);
      rig.commit(1);
    }
  }
  if (granted !== count) throw new Error(`${granted} of ${count} were granted`);
  return ((performance.now() - start) * 1000) / count;
}

function stuckBelow(finished: number): string {
  const before = heapMb();
  const rig = new Rig(2);
  rig.file(() => 'stuck', 1);
  rig.grant(0, 1);
  for (let done = 0; done < finished; done += 100_000) {
    rig.file((record) => `key${record % 5000}`, 100_000);
    rig.grant(1, 100_000);
    rig.commit(1);
  }
  const { above } = rig.dispatcher.ledger.finished(0);
  return `${above} finished above a stuck one: ${(heapMb() - before).toFixed(1)} MB`;
}

function keysSeen(keys: number): string {
  const rig = new Rig(1);
  const before = heapMb();
  for (let done = 0; done < keys; done += 100_000) {
    rig.file((record) => `key${done + record}`, 100_000);
    rig.grant(0, 100_000);
    rig.commit(0);
  }
  const left = rig.dispatcher.board.keys.size;
  return `${keys} keys seen: ${left} left, ${(heapMb() - before).toFixed(1)} MB more than before`;
}

timePerGrant(1);
const rows = [1, 1_000, 1_000_000].map((behind) => [behind, timePerGrant(behind)] as const);
for (const [behind, us] of rows) {
  const ratio = (us / rows[0]![1]).toFixed(2);
  console.log(`${behind} behind a stuck key: ${us.toFixed(2)} µs a grant and commit, ${ratio}x`);
}
console.log(stuckBelow(5_000_000));
console.log(keysSeen(10_000_000));
