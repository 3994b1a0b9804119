import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { idealSchedule } from '../../../bench/hol/model.ts';
import { type Delivery, judge, quantiles } from '../../../bench/hol/verdict.ts';
import { makeWorkload, type Workload } from '../../../bench/hol/workloads.ts';

/** Keys `a` and `b` in turn, one each 10 ms, 5 ms of work; `slow` has slow records. */
function workloadOf(keys: string): Workload {
  return {
    name: 'W1',
    options: { seed: 1, scale: 1, quick: false },
    consumers: 2,
    partitions: 2,
    arrivals: [...keys].map((key, index) => ({ atMs: index * 10, key, serviceMs: 5 })),
    slowKeys: new Set(['s']),
  };
}

function delivery(sequence: number, startMs: number, endMs = startMs + 5, member = 0): Delivery {
  return { sequence, startMs, endMs, member };
}

test('quantiles are values that occurred', () => {
  const values = Array.from({ length: 1000 }, (_, i) => 1000 - i);
  assert.deepEqual(quantiles(values), { p50: 500, p99: 990, p999: 999, max: 1000 });
  assert.deepEqual(quantiles([7]), { p50: 7, p99: 7, p999: 7, max: 7 });
  assert.ok(Number.isNaN(quantiles([]).p99));
});

describe('what the handlers saw', () => {
  test('waits count from the intended time, bystanders apart', () => {
    const figures = judge(workloadOf('asb'), [delivery(0, 3), delivery(1, 60), delivery(2, 24)]);
    assert.equal(figures.bystanderWaitMs.p50, 3);
    assert.equal(figures.bystanderWaitMs.max, 4);
    assert.equal(figures.bystanderEndMs.max, 9);
    assert.equal(figures.ownKeyWaitMs.max, 50);
    assert.equal(figures.endMs, 65);
    assert.deepEqual([figures.lost, figures.duplicates, figures.orderViolations], [0, 0, 0]);
    assert.equal(figures.keyInFlightMax, 1);
  });

  test('an ideal run has no fault', () => {
    const workload = makeWorkload('W2a', { seed: 3, scale: 0.05, quick: false });
    const { startMs } = idealSchedule(workload.arrivals, workload.consumers);
    const deliveries = workload.arrivals.map(({ serviceMs }, sequence) =>
      delivery(sequence, startMs[sequence]!, startMs[sequence]! + serviceMs),
    );
    const figures = judge(workload, deliveries);
    assert.deepEqual(figures.bystanderWaitMs, figures.idealBystanderWaitMs);
    assert.equal(figures.endMs, figures.idealEndMs);
    assert.equal(figures.idleBesideReady, 0);
    assert.deepEqual(
      [figures.orderViolations, figures.keyInFlightMax, figures.duplicates, figures.lost],
      [0, 1, 0, 0],
    );
  });

  test('records that overtake are found, also one after the other', () => {
    const workload = workloadOf('aba');
    assert.equal(
      judge(workload, [delivery(2, 30), delivery(0, 40), delivery(1, 10)]).orderViolations,
      1,
    );
    // It would be none if the earlier record had been done before.
    assert.equal(judge(workload, [delivery(0, 0, 35), delivery(2, 30)]).orderViolations, 1);
    assert.equal(judge(workload, [delivery(2, 30)]).orderViolations, 1);
  });

  test('a repetition is a duplicate, and no violation of the order', () => {
    const deliveries = [delivery(0, 0), delivery(1, 10), delivery(0, 50), delivery(1, 60)];
    const figures = judge(workloadOf('aa'), deliveries);
    assert.deepEqual([figures.duplicates, figures.orderViolations, figures.lost], [2, 0, 0]);
    assert.equal(figures.keyInFlightMax, 1);
  });

  test('two handlers of one key at once are found, whatever they work on', () => {
    assert.equal(
      judge(workloadOf('aa'), [delivery(0, 0, 30), delivery(1, 20, 25, 1)]).keyInFlightMax,
      2,
    );
    assert.equal(
      judge(workloadOf('a'), [delivery(0, 0, 30), delivery(0, 20, 25, 1)]).keyInFlightMax,
      2,
    );
    assert.equal(
      judge(workloadOf('ab'), [delivery(0, 0, 30), delivery(1, 20, 25, 1)]).keyInFlightMax,
      1,
    );
  });

  test('records that never came are lost', () => {
    assert.equal(judge(workloadOf('aba'), [delivery(0, 0)]).lost, 2);
  });

  test('time wasted is that in which a consumer idles beside a ready key', () => {
    // a waits from 0 to 50 while both consumers idle; b, due at 10, waits until 60.
    const figures = judge(workloadOf('ab'), [delivery(0, 50, 90), delivery(1, 60, 100, 1)]);
    assert.equal(figures.idleBesideReady, 60 / 100);
    assert.equal(figures.idleBesideReady20Ms, 40 / 100);
  });

  test('a key whose record is being worked on is not ready', () => {
    const figures = judge(workloadOf('aa'), [delivery(0, 0, 90), delivery(1, 90, 100)]);
    assert.equal(figures.idleBesideReady, 0);
  });

  test('nothing is wasted while all consumers work', () => {
    const deliveries = [delivery(0, 0, 50), delivery(1, 10, 50, 1), delivery(2, 50, 60)];
    assert.equal(judge(workloadOf('abc'), deliveries).idleBesideReady, 0);
  });
});
