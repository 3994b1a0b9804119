import assert from 'node:assert/strict';
import test from 'node:test';
import { noRow, PartitionRows } from '../../src/broker/partition-rows.ts';
import { seededRandom } from '../../src/core/random.ts';

test('rows are found by topic and index, whatever was added and removed', () => {
  const random = seededRandom(7);
  const below = (count: number) => Math.floor(random.next() * count);
  for (const capacity of [0, 1, 5, 300]) {
    const rows = new PartitionRows(below(2 ** 31), capacity);
    const model = new Map<string, number>();
    for (let step = 0; step < 4000; step++) {
      const topic = below(5);
      const index = below(60) * (step % 2 === 0 ? 1 : 0x1000000) - 10;
      const key = `${topic}:${index}`;
      const row = rows.find(topic, index);
      assert.equal(row, model.get(key) ?? noRow);
      if (row === noRow) model.set(key, rows.add(topic, index));
      else if (below(3) > 0) {
        rows.remove(row);
        assert.equal(rows.isUsed(row), false);
        model.delete(key);
      }
      assert.equal(rows.size, model.size);
    }
    for (const [key, row] of model) assert.equal(`${rows.topic(row)}:${rows.index(row)}`, key);
    assert.equal(new Set(model.values()).size, model.size);
    assert.ok(rows.end <= 600, 'rows are used again');
  }
});
