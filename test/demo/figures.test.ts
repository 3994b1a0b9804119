import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Figures } from '../../demo/figures.ts';
import { conclusion } from '../../demo/words.ts';

describe('waits', () => {
  test('a record waits from when it was sent until it is begun', () => {
    const figures = new Figures(1, 100);
    const first = figures.sent('quick', 10);
    figures.sent('quick', 40);
    figures.begun(first, 0, 35);
    figures.tick(100);
    assert.equal(figures.waiting, 1);
    assert.equal(figures.waitMsNow, 60);
    const { quickRecords, waitMsMax } = figures.summary();
    assert.deepEqual([quickRecords, waitMsMax], [2, 60]);
  });

  test('later records of the key of the slow one are not among those that are measured', () => {
    const figures = new Figures(1, 100);
    const slow = figures.sent('slow', 0);
    figures.sent('own', 10);
    figures.begun(slow, 0, 5);
    figures.tick(500);
    assert.equal(figures.ownWaiting, 1);
    assert.equal(figures.waitMsNow, 0);
    assert.equal(figures.summary().quickRecords, 0);
  });

  test('a record that comes again is no second wait', () => {
    const figures = new Figures(2, 100);
    const record = figures.sent('quick', 0);
    figures.begun(record, 0, 10);
    figures.begun(record, 1, 500);
    assert.equal(figures.summary().waitMsMax, 10);
    assert.equal(figures.waiting, 0);
  });
});

describe('behind the slow one', () => {
  /** Consumer 0 is busy with the slow record from 100 to 5,100 ms. */
  function withSlowRecord(): Figures {
    const figures = new Figures(2, 100);
    const slow = figures.sent('slow', 100);
    figures.begun(slow, 0, 100);
    figures.done(slow, 0, 5_100);
    return figures;
  }
  const handle = (figures: Figures, consumer: number, sentMs: number, begunMs: number): void => {
    const record = figures.sent('quick', sentMs);
    figures.begun(record, consumer, begunMs);
    figures.done(record, consumer, begunMs + 5);
  };

  test('are records that were sent before its end and came to its consumer after it', () => {
    const figures = withSlowRecord();
    handle(figures, 0, 200, 5_110);
    handle(figures, 0, 1_100, 5_120);
    handle(figures, 1, 200, 5_110);
    handle(figures, 0, 5_200, 9_000);
    const { behindSlow, behindSlowMsMax } = figures.summary();
    assert.deepEqual([behindSlow, behindSlowMsMax], [2, 4_910]);
  });

  test('are no records that hardly waited', () => {
    const figures = withSlowRecord();
    handle(figures, 0, 5_090, 5_110);
    assert.equal(figures.summary().behindSlow, 0);
  });

  test('the last line says how many and how long, or how long the longest wait of all was', () => {
    const figures = withSlowRecord();
    handle(figures, 1, 200, 240);
    assert.equal(
      conclusion('keyed', figures.summary()),
      'keyed delivery: none waited behind the slow one; the longest wait was 0.04 s',
    );
    handle(figures, 0, 200, 5_110);
    assert.equal(
      conclusion('log', figures.summary()),
      'log delivery:   1 quick record waited behind the slow one, up to 4.91 s',
    );
  });
});

test('the time of a consumer is spread over slices, also while it is still at work', () => {
  const figures = new Figures(1, 100);
  const quick = figures.sent('quick', 0);
  const slow = figures.sent('slow', 0);
  figures.begun(quick, 0, 10);
  figures.done(quick, 0, 30);
  figures.begun(slow, 0, 150);
  figures.tick(220);
  figures.tick(250);
  const [lane] = figures.consumers;
  assert.deepEqual(lane?.slices, [
    { quickMs: 20, slowMs: 0 },
    { quickMs: 0, slowMs: 50 },
    { quickMs: 0, slowMs: 50 },
  ]);
  assert.equal(figures.isDrained, false);
  figures.done(slow, 0, 260);
  assert.equal(figures.isDrained, true);
  assert.deepEqual(figures.slow, { consumer: 0, ms: 110, isDone: true });
});
