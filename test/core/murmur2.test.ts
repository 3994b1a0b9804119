import assert from 'node:assert/strict';
import { test } from 'node:test';
import { murmur2, murmur2Partition } from '../../src/core/murmur2.ts';

// The values are those of UtilsTest.testMurmur2 of Apache Kafka.
test('hashes are those of Kafka', () => {
  const cases: readonly [string, number][] = [
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ];
  for (const [text, hash] of cases) assert.equal(murmur2(Buffer.from(text)) | 0, hash, text);
});

test('a key has its partition among any number of them', () => {
  assert.equal(murmur2Partition(Buffer.from('21'), 3), (-973932308 & 0x7fffffff) % 3);
  assert.equal(murmur2Partition(Buffer.alloc(0), 1), 0);
});
