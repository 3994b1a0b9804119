import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sumOf } from '../../../bench/drain/broker-metrics.ts';

test('a metric is the sum over its labels, 0 where it is missing', () => {
  const text = [
    '# HELP a_total words',
    'a_total 3',
    'b_total{group="x y",topic="t"} 2',
    'b_total{group="z"} 5',
    '',
  ];
  assert.equal(sumOf(text.join('\n'), 'a_total'), 3);
  assert.equal(sumOf(text.join('\n'), 'b_total'), 7);
  assert.equal(sumOf(text.join('\n'), 'c_total'), 0);
});
