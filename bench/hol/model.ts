/**
 * What no network and no broker would make of a workload: the ideal of keyed delivery, and Apache
 * Kafka's partitions. The measured figures are held against the first; the second tells whether a
 * measured Kafka behaves as it should.
 */
import { Heap } from './heap.ts';
import { murmur2Partition } from './murmur2.ts';
import type { Arrival } from './workloads.ts';

/** When each arrival was started, in milliseconds after the start, by sequence number. */
export interface Schedule {
  readonly startMs: Float64Array;
  /** When the last one was done. */
  readonly endMs: number;
}

/** One FIFO for each key, `consumers` servers, the oldest ready record first. */
export function idealSchedule(arrivals: readonly Arrival[], consumers: number): Schedule {
  const startMs = new Float64Array(arrivals.length);
  /** Keys that have a record in service, with those that wait behind it. */
  const waiting = new Map<string, number[]>();
  const ready = new Heap<number>((a, b) => a < b);
  const running = new Heap<{ endMs: number; sequence: number }>((a, b) => a.endMs < b.endMs);
  let endMs = 0;

  const startReady = (nowMs: number): void => {
    while (ready.size > 0 && running.size < consumers) {
      const sequence = ready.pop()!;
      startMs[sequence] = nowMs;
      running.push({ endMs: nowMs + arrivals[sequence]!.serviceMs, sequence });
    }
  };
  const finishUntil = (untilMs: number): void => {
    for (let next = running.peek(); next && next.endMs <= untilMs; next = running.peek()) {
      running.pop();
      endMs = next.endMs;
      const { key } = arrivals[next.sequence]!;
      const behind = waiting.get(key)!.shift();
      if (behind === undefined) waiting.delete(key);
      else ready.push(behind);
      startReady(next.endMs);
    }
  };
  for (const [sequence, { atMs, key }] of arrivals.entries()) {
    finishUntil(atMs);
    const behind = waiting.get(key);
    if (behind === undefined) {
      waiting.set(key, []);
      ready.push(sequence);
      // Of those that arrive at the same time, the first ones come first: the heap sees to it.
      startReady(atMs);
    } else {
      behind.push(sequence);
    }
  }
  finishUntil(Number.POSITIVE_INFINITY);
  return { startMs, endMs };
}

/**
 * Partitions in turn over the consumers, each of which takes what comes in order. A consumer of
 * several partitions is modelled as if it got them merged by time; real ones take them in runs.
 */
export function partitionSchedule(
  arrivals: readonly Arrival[],
  consumers: number,
  partitions: number,
): Schedule {
  const startMs = new Float64Array(arrivals.length);
  const freeMs = new Float64Array(consumers);
  for (const [sequence, { atMs, key, serviceMs }] of arrivals.entries()) {
    const consumer = murmur2Partition(key, partitions) % consumers;
    startMs[sequence] = Math.max(atMs, freeMs[consumer]!);
    freeMs[consumer] = startMs[sequence]! + serviceMs;
  }
  return { startMs, endMs: Math.max(0, ...freeMs) };
}
