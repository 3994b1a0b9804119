import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Piece } from '../../../bench/hol/plan.ts';
import { holTable, judgementOf } from '../../../bench/hol/report.ts';
import type { Result } from '../../../bench/hol/run.ts';
import type { Figures } from '../../../bench/hol/verdict.ts';

const base: Piece = {
  workload: 'W1',
  arm: 'keyed',
  client: 'kafkajs',
  seed: 1,
  scale: 0.1,
  quick: false,
};

function quantilesOf(p99: number) {
  return { p50: 1, p99, p999: p99, max: p99 };
}

function result(
  piece: Partial<Piece>,
  p99: number,
  more: Partial<Figures> = {},
  isFinished = true,
): Result {
  return {
    piece: { ...base, ...piece },
    startedAt: '2026-01-01T00:00:00.000Z',
    consumers: 8,
    partitions: 8,
    records: 100,
    isFinished,
    figures: {
      bystanderWaitMs: quantilesOf(p99),
      bystanderEndMs: quantilesOf(p99),
      ownKeyWaitMs: quantilesOf(5000),
      idealBystanderWaitMs: quantilesOf(2),
      idealAsHandledMs: quantilesOf(2),
      endMs: 12_000,
      idealEndMs: 12_000,
      idleBesideReady: 0.5,
      idleBesideReady20Ms: 0,
      orderViolations: 0,
      keyInFlightMax: 1,
      duplicates: 0,
      lost: 0,
      ...more,
    },
    producerLate: { p99Ms: 1, maxMs: 2 },
    brokerCpuSeconds: 1,
    brokerResidentMb: 100,
    loadAverage: [0, 0],
    stolenShare: 0,
    clientErrors: '',
  };
}

function isReached(one: Result, others: readonly Result[] = []): boolean | undefined {
  return judgementOf(one, [one, ...others]).isReached;
}

describe('what is reached', () => {
  test('twice the ideal and 20 ms, for clients that commit what they have handled', () => {
    assert.equal(isReached(result({}, 24)), true);
    assert.equal(isReached(result({}, 24.1)), false);
    assert.equal(isReached(result({ client: 'java-manual' }, 24.1)), false);
    assert.equal(isReached(result({ client: 'java-auto', arm: 'keyed-poll' }, 24.1)), false);
  });

  test('for the others no worse than Kafka with the same client', () => {
    for (const client of ['java-auto', 'librdkafka'] as const) {
      const kafka = result({ client, arm: 'kafka' }, 5000);
      assert.equal(isReached(result({ client }, 5100), [kafka]), true);
      assert.equal(isReached(result({ client }, 6000), [kafka]), false);
      assert.equal(isReached(result({ client }, 6000), [result({ arm: 'kafka' }, 5000)]), true);
    }
  });

  test('a backlog is drained no later than by Kafka', () => {
    const kafka = result({ workload: 'W6', arm: 'kafka' }, 5000, { endMs: 40_000 });
    const keyed = (endMs: number) => result({ workload: 'W6' }, 9000, { endMs });
    assert.equal(isReached(keyed(32_000), [kafka]), true);
    assert.equal(isReached(keyed(50_000), [kafka]), false);
  });

  test('no figure makes up for a fault', () => {
    assert.equal(isReached(result({}, 5, { orderViolations: 1 })), false);
    assert.equal(isReached(result({}, 5, { keyInFlightMax: 2 })), false);
    assert.equal(isReached(result({}, 5, { lost: 1 })), false);
    assert.equal(isReached(result({}, 5, {}, false)), false);
    assert.equal(isReached(result({}, 5, { duplicates: 3 })), true);
  });

  test('log delivery and Kafka have nothing to reach', () => {
    assert.equal(isReached(result({ arm: 'kafka' }, 5000)), undefined);
    assert.equal(isReached(result({ arm: 'log' }, 5000)), undefined);
  });
});

describe('the table', () => {
  test('has one line for each arm, with the seeds together', () => {
    const text = holTable([
      result({ seed: 2 }, 30),
      result({}, 10),
      result({ seed: 3 }, 12, {}, false),
      result({ arm: 'kafka' }, 5000),
      result({ arm: 'kafka', quick: true }, 50),
    ]);
    const lines = text.split('\n').slice(2);
    assert.equal(lines.length, 3);
    assert.match(lines[0]!, /W1 ×0.1 +\| kafkajs +\| kafka +\| 1 .*5\.00 s.* 100 /);
    assert.match(lines[1]!, /keyed.*3, 1 not finished.*12\.0 ms \(10\.0 ms–30\.0 ms\).* NO /);
    assert.match(lines[2]!, /quick/);
  });
});
