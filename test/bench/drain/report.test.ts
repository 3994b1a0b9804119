import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Piece } from '../../../bench/drain/plan.ts';
import { drainTable, idleTable, judgementOf } from '../../../bench/drain/report.ts';
import type { Drain, Result } from '../../../bench/drain/run.ts';

function resultOf(piece: Piece, drain?: Partial<Drain>): Result {
  const whole = { perSecond: [], rate: 0, joinedLateMs: 0, redelivered: 0, ...drain };
  return {
    piece,
    startedAt: '2026-01-01T00:00:00.000Z',
    loadAverage: [0.1, 0.9],
    brokerCpuPerSecond: 0.004,
    clientCpuPerSecond: 0.25,
    otherCpuPerSecond: 0,
    requestsPerSecond: 3,
    ...(drain !== undefined && { drain: whole }),
    clientErrors: '',
  };
}

const quick = { kind: 'drain', serviceMs: 0, recordBytes: 1000 } as const;
const slow = { kind: 'drain', serviceMs: 10, recordBytes: 100 } as const;

test('without work the goal is relative to log delivery of the same client and load', () => {
  const log = resultOf({ client: 'kafkajs', arm: 'log', load: quick }, { rate: 100 });
  const other = resultOf({ client: 'sarama', arm: 'log', load: quick }, { rate: 1000 });
  const keyed = resultOf(
    { client: 'kafkajs', arm: 'keyed', load: quick },
    { rate: 70, perSecond: [10, 40, 65, 70] },
  );
  const judgement = judgementOf(keyed, [other, log, keyed]);
  assert.equal(judgement.ofLog, 0.7);
  assert.equal(judgement.reachedAfter, 2);
  assert.equal(judgement.isReached, true);
  assert.equal(
    judgementOf({ ...keyed, drain: { ...keyed.drain!, rate: 50 } }, [log]).isReached,
    false,
  );
  assert.equal(judgementOf(keyed, [keyed]).isReached, undefined);
});

test('with work it is relative to the ideal for the time that handlers took', () => {
  const keyed = resultOf(
    { client: 'kafkajs', arm: 'keyed', load: slow },
    { rate: 700, idealRate: 800, idealAsHandled: 720, perSecond: [700] },
  );
  const { ofIdeal, isReached, reachedAfter } = judgementOf(keyed, [keyed]);
  assert.ok(Math.abs(ofIdeal! - 700 / 720) < 1e-9);
  assert.equal(isReached, true);
  assert.equal(reachedAfter, 0);
});

test('the tables have a line for each run, in the order of the plan', () => {
  const log = resultOf({ client: 'kafkajs', arm: 'log', load: quick }, { rate: 100 });
  const keyed = resultOf({ client: 'kafkajs', arm: 'keyed', load: quick }, { rate: 20 });
  const idle = resultOf({ client: 'kafkajs', arm: 'keyed', load: { kind: 'idle' } });
  const lines = drainTable([keyed, idle, log]).split('\n').slice(2);
  assert.deepEqual(
    lines.map((line) => line.split('|')[3]!.trim()),
    ['log', 'keyed'],
  );
  assert.match(lines[1]!, /NO \|$/);
  assert.match(
    idleTable([keyed, idle, log]),
    /kafkajs \| keyed \| 0\.4 % +\| 25\.0 % +\| 0\.0 % +\| 3\.0/,
  );
});
