import assert from 'node:assert/strict';
import { test } from 'node:test';
import { batchesOf } from '../../../bench/drain/backlog.ts';
import { codecs } from '../../../src/core/codecs.ts';
import { murmur2Partition } from '../../../src/core/murmur2.ts';
import { decodeBatches } from '../../../src/protocol/records/decode.ts';

function recordsIn(bytes: Buffer): { key: string; value: string }[] {
  const { batches } = decodeBatches(bytes, { codecs, openedBytesMax: 1024 * 1024 });
  const text = (part: Buffer | null): string => part!.toString();
  return batches[0]!.records.map(({ key, value }) => ({ key: text(key), value: text(value) }));
}

const backlog = { topic: 't', partitions: 4, records: 1000, recordBytes: 200, keys: 50 };

test('records of a backlog lie where their keys belong and say what work they are', () => {
  const seen = new Set<number>();
  for (const { partition, records, count } of batchesOf({ ...backlog, serviceMs: 10 })) {
    const decoded = recordsIn(records);
    assert.equal(decoded.length, count);
    for (const { key, value } of decoded) {
      assert.equal(murmur2Partition(Buffer.from(key), backlog.partitions), partition);
      assert.equal(value.length, backlog.recordBytes);
      const [sequence, serviceUs] = value.split(' ');
      assert.equal(serviceUs, '10000');
      seen.add(Number(sequence));
    }
  }
  assert.equal(seen.size, backlog.records);
});

test('records that are no work begin with a hyphen', () => {
  const [first] = batchesOf({ ...backlog, serviceMs: 0 });
  const [record] = recordsIn(first!.records);
  assert.match(record!.value, /^-x/);
});
