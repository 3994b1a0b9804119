/**
 * A workload through the real dispatcher in simulated time: consumers of which nothing is known but
 * their commits, as librdkafka's, with a fetch that always waits. For comparison with schedules of
 * bench/hol/model.ts.
 */
import { Heap } from '../../../bench/hol/heap.ts';
import type { Schedule } from '../../../bench/hol/model.ts';
import { murmur2Partition } from '../../../bench/hol/murmur2.ts';
import type { Arrival } from '../../../bench/hol/workloads.ts';
import { traitsOf } from '../../../src/groups/keyed/client-traits.ts';
import type { Granted } from '../../../src/groups/keyed/grant.ts';
import { at, keyedSettings, newDispatcher } from './support.ts';

const roundTripMs = 0.6;
const firstCommitMs = 1000;

interface Consumer {
  readonly id: string;
  readonly lane: number;
  readonly queue: { readonly n: number; readonly sequence: number }[];
  isBusy: boolean;
  /** The lane number after what the handler took last: it is committed. */
  position: number;
}

/** Commits come `commitEveryMs` apart, each consumer's 2 ms after those of the one before. */
export function commitOnlySchedule(
  arrivals: readonly Arrival[],
  consumers: number,
  commitEveryMs: number,
): Schedule {
  const traits = traitsOf({ softwareName: 'librdkafka', clientId: '', protocolNames: [] });
  const dispatcher = newDispatcher({ ...keyedSettings, window: undefined, unfinishedMax: 1e7 });
  const { store } = dispatcher.board;
  const startMs = new Float64Array(arrivals.length);
  const group: Consumer[] = [];
  /** Sequence numbers, by partition and offset: one partition for each consumer. */
  const filed: number[][] = Array.from({ length: consumers }, () => []);
  let nowMs = 0;
  let handled = 0;
  let steps = 0;
  const due = new Heap<{ ms: number; step: number; run: () => void }>(
    (a, b) => a.ms < b.ms || (a.ms === b.ms && a.step < b.step),
  );
  const after = (ms: number, run: () => void): void =>
    due.push({ ms: nowMs + ms, step: steps++, run });

  const serve = (): void =>
    dispatcher.waiters.serve(at(nowMs), ({ member }, granted) => {
      answer(group.find(({ id }) => id === member.id)!, granted);
    });
  const ask = (consumer: Consumer): void => {
    const range = dispatcher.presentRange(consumer.lane)!;
    const { member } = range;
    dispatcher.waiters.park({ member, ranges: [range], bytesMax: 5e7, laneBytesMax: 1 << 20 });
    serve();
  };
  const answer = (consumer: Consumer, granted: readonly Granted[]): void => {
    for (const { range, from, to } of granted) {
      for (let n = from; n < to; n++) {
        const ref = range.ref(n);
        const sequence = filed[store.partition[store.batchOf[ref]!]!]![store.offset(ref)]!;
        consumer.queue.push({ n, sequence });
      }
    }
    after(roundTripMs / 2, () => handleNext(consumer));
    after(roundTripMs, () => ask(consumer));
  };
  const handleNext = (consumer: Consumer): void => {
    if (consumer.isBusy || consumer.queue.length === 0) return;
    const { n, sequence } = consumer.queue.shift()!;
    consumer.isBusy = true;
    consumer.position = n + 1;
    startMs[sequence] = nowMs;
    after(arrivals[sequence]!.serviceMs, () => {
      consumer.isBusy = false;
      handled++;
      handleNext(consumer);
    });
  };
  const commit = (consumer: Consumer): void => {
    const { id, lane, position } = consumer;
    if (position >= 0) dispatcher.commit(id, new Map([[lane, position]]), at(nowMs));
    serve();
    after(commitEveryMs, () => commit(consumer));
  };
  const file = (from: number, to: number): void => {
    for (let sequence = from; sequence < to; sequence++) {
      const { key } = arrivals[sequence]!;
      const partition = murmur2Partition(key, consumers);
      const baseOffset = filed[partition]!.push(sequence) - 1;
      const batch = { partition, baseOffset, position: baseOffset, keys: [key], ends: [100] };
      dispatcher.filing.file({ ...batch, bytes: 100, offsetCount: 1 }, at(nowMs));
    }
    serve();
  };

  for (let lane = 0; lane < consumers; lane++) {
    const id = `m${lane}`;
    dispatcher.addMember({ id, traits, leaseMs: 1e9, sessionMs: 1e9 });
    dispatcher.openRange(lane, id, at(0));
    const consumer = { id, lane, queue: [], isBusy: false, position: -1 };
    group.push(consumer);
    after(0, () => ask(consumer));
    after(firstCommitMs + 2 * lane, () => commit(consumer));
  }
  for (let from = 0; from < arrivals.length; ) {
    const { atMs } = arrivals[from]!;
    let to = from;
    while (to < arrivals.length && arrivals[to]!.atMs === atMs) to++;
    const first = from;
    after(atMs, () => file(first, to));
    from = to;
  }
  while (handled < arrivals.length) {
    const { ms, run } = due.pop()!;
    nowMs = ms;
    run();
    dispatcher.takeEffects();
  }
  return { startMs, endMs: nowMs };
}
